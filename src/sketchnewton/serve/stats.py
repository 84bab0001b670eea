"""Counts and times of a server: for the page, for `skn top` and for Prometheus."""

from __future__ import annotations

import json
import math
import time
from typing import TypedDict

from sketchnewton.core.types import np
from sketchnewton.serve.answers import names_in
from sketchnewton.serve.counts import BOUNDS, Counts
from sketchnewton.serve.engine import Engine
from sketchnewton.serve.replaying import REFUSED

__all__ = ["Stats"]

_HISTORY = 600
_CURRENT = ("experts", "spectrum", "weights", "calibration", "errors", "metrics")  # only of this moment
_NAMES = 50_000
_WEIGHTS = 15


class Expert(TypedDict):
    """An expert of a bank."""

    name: str
    weight: float


class Moving(Expert):
    """A feature, its weight, and what was added to it since the last look."""

    change: float


class Stats(Counts):
    """What has happened since the process began, and how the model does."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.started = time.time()
        self.history: list[bytes] = []
        """Figures from the start to now, each as JSON, which takes a quarter of the memory of a dict."""
        self.latest: dict[str, object] = {}
        self._before = (time.monotonic(), 0, 0)
        self._rates = (0.0, 0.0)
        self._names: dict[int, str] = {}
        self._weights: dict[str, float] = {}

    def tick(self) -> dict[str, object]:
        """The figures of this moment, which become the latest."""
        now, engine = time.monotonic(), self.engine
        then, rows, total = self._before
        if now - then > 0.5:
            self._rates = ((engine.rows - rows) / (now - then), (self.total - total) / (now - then))
            self._before = (now, engine.rows, self.total)
        figures = engine.window.figures(engine.model)
        metrics = figures.get("metrics", {})
        learner = engine.model.learner
        self.latest = {
            "time": time.time(),
            "version": engine.version,
            "rows_per_second": self._rates[0],
            "requests_per_second": self._rates[1],
            "loss": plain(engine.score.mean_loss),
            "loss_recent": plain(figures.get("loss", math.nan)),
            "metric": next(({"name": name, "value": plain(value)} for name, value in metrics.items()), None),
            "metrics": {name: plain(value) for name, value in metrics.items()},
            "latency_ms": {
                name: self.routes[path].quantiles()
                for name, path in (
                    ("predict", "/v1/predict"),
                    ("learn", "/v1/learn"),
                    ("feedback", "/v1/feedback"),
                )
                if path in self.routes
            },
            "pending": engine.pending,
            "label_delay_s": self._delays(),
            "labels": dict(engine.labels),
            "queue": engine.waiting,
            "log_bytes": engine.log.bytes(),
            "experts": experts(engine),
            "spectrum": np.sort(np.ravel(learner.spectrum))[::-1][:64].tolist(),
            "weights": self._moving(),
            "calibration": figures.get("calibration") or None,
            "errors": list(self.errors),
            "problem": None if engine.problem is None else str(engine.problem),
        }
        kept = {name: value for name, value in self.latest.items() if name not in _CURRENT}
        self.history.append(json.dumps(kept).encode())
        if len(self.history) > _HISTORY:  # the older half loses every second one: all the time is still there
            half = _HISTORY // 2
            self.history[:half] = self.history[:half:2]
        return self.latest

    def _delays(self) -> dict[str, float]:
        ordered = sorted(self.engine.delays)
        last = len(ordered) - 1
        return {name: ordered[round(q * last)] for name, q in (("p50", 0.5), ("p90", 0.9))} if ordered else {}

    def _moving(self) -> list[Moving]:
        """The largest weights and those that changed most since the last look, with names."""
        engine = self.engine
        self.learn_names()
        features, weights = engine.model.learner.largest_weights(200)
        if weights.ndim > 1:
            weights = np.take_along_axis(weights, np.abs(weights).argmax(axis=1)[:, None], axis=1)[:, 0]
        now = {
            self.name_of(at): weight for at, weight in zip(features.tolist(), weights.tolist(), strict=True)
        }
        changes = {name: weight - self._weights.get(name, 0.0) for name, weight in now.items()}
        self._weights = now
        largest = list(now)[:_WEIGHTS]
        fastest = sorted(changes, key=lambda name: -abs(changes[name]))[:_WEIGHTS]
        return [
            {"name": name, "weight": now[name], "change": changes[name]}
            for name in dict.fromkeys((*largest, *fastest))
        ]

    def name_of(self, feature: int) -> str:
        """What a feature is called, as far as it is known."""
        return self._names.get(feature, str(feature))

    def learn_names(self) -> None:
        """Find the names of features in some of the records that were learned lately."""
        engine = self.engine
        noted, engine.noted = engine.noted, []
        if engine.model.names is not None:
            self._names = engine.model.names.readable()
            return
        for records in noted:
            if len(self._names) >= _NAMES:
                return
            try:
                self._names.update(names_in(engine.model, records))
            except REFUSED:
                continue  # of a model that has been replaced

    def prometheus(self) -> str:
        """The figures in Prometheus' text format."""
        engine = self.engine
        lines = ["# TYPE skn_requests_total counter"]
        for (route, status), number in sorted(self.requests.items()):
            lines.append(f'skn_requests_total{{route="{route}",status="{status}"}} {number}')
        lines.append("# TYPE skn_request_seconds histogram")
        for route, found in sorted(self.routes.items()):
            total = 0
            for bound, number in zip((*BOUNDS, math.inf), found.buckets, strict=True):
                total += number
                edge = "+Inf" if bound == math.inf else f"{bound:g}"
                lines.append(f'skn_request_seconds_bucket{{route="{route}",le="{edge}"}} {total}')
            lines.append(f'skn_request_seconds_sum{{route="{route}"}} {found.seconds:.9g}')
            lines.append(f'skn_request_seconds_count{{route="{route}"}} {total}')
        lines.append("# TYPE skn_labels_total counter")
        lines += [f'skn_labels_total{{kind="{kind}"}} {n}' for kind, n in sorted(engine.labels.items())]
        errors = sum(number for (_, status), number in self.requests.items() if status >= 400)
        loss = engine.score.mean_loss
        gauges: dict[str, tuple[str, float]] = {
            "skn_rows_learned_total": ("counter", engine.version),
            "skn_errors_total": ("counter", errors),
            "skn_commits_total": ("counter", engine.log.commits),
            "skn_events_total": ("counter", engine.seq),
            "skn_loss": ("gauge", loss),
            "skn_pending_labels": ("gauge", engine.pending),
            "skn_queue": ("gauge", engine.waiting),
            "skn_log_bytes": ("gauge", engine.log.bytes()),
            "skn_uptime_seconds": ("gauge", time.time() - self.started),
            "skn_ready": ("gauge", float(engine.problem is None)),
        }
        for name, (kind, value) in gauges.items():
            lines += [f"# TYPE {name} {kind}", f"{name} {'NaN' if math.isnan(value) else f'{value:.12g}'}"]
        return "\n".join(lines) + "\n"


def experts(engine: Engine) -> list[Expert]:
    """The weights of a bank's experts, the largest first."""
    pairs = sorted(engine.model.learner.experts.items(), key=lambda pair: -pair[1])
    return [{"name": name, "weight": weight} for name, weight in pairs]


def plain(value: float) -> float | None:
    """A number as JSON has it: none of the special ones."""
    return value if math.isfinite(value) else None
