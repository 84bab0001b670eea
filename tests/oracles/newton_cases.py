"""Random streams for SketchedNewton with random parameters, what exact arithmetic gives for them, and how far off
a learner is.

A case is drawn from a seed: awkward rows (`exact/streams.py`) of few features or more than 64, dense or sparse;
Frequent Directions or Oja's sketch; any loss; with and without diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sketchnewton import SketchedNewton
from sketchnewton.core.types import Floats
from sketchnewton.learners.newton.schedule import checked_curvature, checked_curvature_weight
from sketchnewton.losses import get_loss
from tests.oracles.exact.merging import merged
from tests.oracles.exact.newton import NewtonRun, newton
from tests.oracles.exact.sketches import FrequentDirections, Oja
from tests.oracles.exact.streams import STREAMS, Stream, perturbed

BETA = 0.5
ALPHAS = {"fd": (0.01, 1.0, 10.0), "rfd": (0.0, 1.0), "pfd": (0.01, 1.0), "oja": (0.1, 1.0, 10.0)}
LOSSES = ("squared", "hinge", "absolute", "quantile:0.3", "squared_hinge", "logistic", "huber:0.3")
COPIES = ("repeated", "repeated_often", "returning", "near_copies", "nearest_copies")


@dataclass(frozen=True)
class Case:
    """A stream, and what is to learn from it."""

    name: str
    seed: int
    stream: Stream = field(repr=False)
    kind: str
    m: int
    alpha: float
    diagonal: bool
    loss: str

    @property
    def clip(self) -> float:
        return 2.0 if self.loss == "logistic" else 1.0

    def learner(self, dtype: str = "float64") -> SketchedNewton:
        named = {"alpha": self.alpha, "beta": BETA, "diagonal": self.diagonal}
        return SketchedNewton(self.kind, self.m, loss=self.loss, clip=self.clip, dtype=dtype, **named)

    def problem(self) -> dict[str, Any]:
        """σ and η as the learner has them."""
        known = get_loss(self.loss)
        sigma = checked_curvature(None, known, self.clip)
        schedule = checked_curvature_weight(None, known, self.clip, sigma)
        eta = "1/sqrt(t)" if schedule.first == 1 and schedule.power == 0.5 else None
        return {"loss": self.loss, "clip": self.clip, "sigma": sigma, "eta": eta, "diagonal": self.diagonal}

    def exact(
        self, digits: int = 60, stream: Stream | None = None, start: NewtonRun | None = None
    ) -> NewtonRun:
        sketch: FrequentDirections | Oja
        if self.kind == "oja":
            sketch = Oja(self.m, rate="adaptive")
        else:
            share = BETA if self.kind == "pfd" and self.m > 1 else 1.0
            sketch = FrequentDirections(self.m, robust=self.kind == "rfd", beta=share)
        rows = self.stream if stream is None else stream
        return newton(*rows, sketch=sketch, alpha=self.alpha, digits=digits, start=start, **self.problem())

    def exact_merged(self, parts: list[Stream], digits: int = 60) -> NewtonRun:
        """The first two parts learned apart and merged, then the third."""
        first, second = (self.exact(digits, part) for part in parts[:2])
        return self.exact(digits, parts[2], start=merged(first, second, diagonal=self.diagonal))

    def moved(self, size: float) -> Case:
        return replace(self, stream=perturbed(self.stream, size))


def draw(name: str, seed: int, wide: bool, frequent: bool = True) -> Case:
    """More than 64 features if `wide`; Frequent Directions, or Oja's sketch."""
    r = np.random.default_rng([seed, wide, *map(ord, name)])
    loss = LOSSES[int(r.integers(len(LOSSES)))] if r.random() < 0.6 else "squared"
    signs = bool(get_loss(loss).sign_labels or r.random() < 0.3)
    size = {"d": int(r.integers(66, 120))} if wide and name != "single_feature" else {}
    X, y = STREAMS[name](seed, n=int(r.integers(18, 30)), signs=signs, **size)
    if wide and r.random() < 0.5:  # sparse rows, copies remaining copies
        shape = X.shape[1] if name in COPIES else X.shape
        X = X * (r.random(shape) < r.choice([0.1, 0.3]))
    kind = ("fd", "rfd", "pfd")[int(r.integers(3))] if frequent else "oja"
    return Case(
        name=name,
        seed=seed,
        stream=Stream(X, y),
        kind=kind,
        m=int(r.choice([1, 2, 3, 5, 10])),
        alpha=float(r.choice(ALPHAS[kind])),
        diagonal=bool(r.random() < 0.3),
        loss=loss,
    )


def furthest(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max(initial=0.0))


def curvature(case: Case, predictions: Floats, stream: Stream | None = None) -> Floats:
    """Σĝĝᵀ of the gradients that these predictions have, each in the scales of its round."""
    X, y = case.stream if stream is None else stream
    problem, loss = case.problem(), get_loss(case.loss)
    t = np.arange(1, len(y) + 1)
    slopes = loss.derivative(predictions, y)
    schedule = checked_curvature_weight(None, loss, case.clip, problem["sigma"])
    weights = problem["sigma"] + schedule.first / t**schedule.power
    scales = 0.1 + np.cumsum((slopes[:, None] * X) ** 2, axis=0) if case.diagonal else np.ones_like(X)
    G = (np.sqrt(weights) * slopes)[:, None] * X / np.sqrt(scales)
    total: Floats = G.T @ G
    return total


def true_error(made: SketchedNewton, total: Floats, alpha: float) -> float:
    """‖Σĝĝᵀ − SᵀS − (α − α₀)I‖₂ of what the learner has."""
    d = len(total)
    S = np.zeros((0, d)) if made.dimension == 0 else made.matrix
    S = np.pad(S, ((0, 0), (0, d - S.shape[1])))
    return float(np.linalg.norm(total - S.T @ S - (made.alpha_ - alpha) * np.eye(d), 2))
