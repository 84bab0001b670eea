"""Jobs that several experiments share: one pass over a data set with one learner and one parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import load
from experiments.runner import Job, Result
from sketchnewton import AdaGrad, SketchedNewton

ALPHAS = [2.0**k for k in range(-6, 4)]
"""1/α of 2^-3 … 2^6, the grid of SON §5.2."""


def learner_of(method: dict[str, Any]) -> SketchedNewton | AdaGrad:
    """A learner from plain arguments; `kind` is newton or adagrad."""
    arguments = dict(method)
    kind = arguments.pop("kind")
    return AdaGrad(**arguments) if kind == "adagrad" else SketchedNewton(**arguments)


def progressive_error(
    folder: str, data: str, method: dict[str, Any], limit: int | None = None, seed: int = 0
) -> float:
    """Share of the rows of one pass whose sign was predicted wrong; half of those predicted zero."""
    X, y = load(data, Path(folder), seed, limit)
    signs = np.sign(learner_of(method).learn(X, y))
    return float(np.mean(np.where(signs == 0, 0.5, signs != y)))


def progressive_job(folder: Path, data: str, method: dict[str, Any], limit: int | None) -> Job:
    """The job of `progressive_error`."""
    arguments = {"folder": str(folder), "data": data, "method": method, "limit": limit}
    return Job("experiments.learning:progressive_error", arguments)


def split_accuracy(
    folder: str, data: str, method: dict[str, Any], seed: int, limit: int | None = None
) -> tuple[float, float]:
    """One pass over 70% of the rows, drawn by the seed: accuracy on the rest, and the online error."""
    X, y = load(data, Path(folder), 0, limit)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.7 * len(y))
    learner = learner_of(method)
    train, test = order[:cut], order[cut:]
    online = np.sign(learner.learn(X[train], y[train])) != y[train]
    return float(np.mean(np.sign(learner.predict(X[test])) == y[test])), float(online.mean())


def best(results: list[tuple[Job, Result]], **matching: Any) -> float | None:
    """The least result of the jobs whose arguments, or method, have these values."""
    values = [
        float(result)
        for job, result in results
        if all(
            job.arguments.get(name, job.arguments.get("method", {}).get(name)) == value
            for name, value in matching.items()
        )
    ]
    return min(values) if values else None
