"""The bank's experts with whole matrices, dense: ridge regression, and how sure it is of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .bank_odds import Odds
from .bank_tracking import LOSSES as TRACKED
from .bank_tracking import MOST, Tracking
from .common import Vector

Matrix = NDArray[np.float64]
FORGET = (1.0, 0.999, 0.99)  # γ
LOSSES = ("squared", "logistic", "hinge", "absolute", "quantile", "huber", "poisson")


class Range(Protocol):
    """The labels so far."""

    signs: bool
    offset: float

    def bounds(self) -> tuple[float, float]:
        """Of predictions."""


@dataclass
class Full:
    """Ridge regression on all rows.

    They come in blocks: a row's weight falls by γ with every row of later blocks. Weights are computed once in
    a while.
    """

    forget: float
    d: int
    intercept: bool

    def __post_init__(self) -> None:
        self.A, self.b = np.zeros((self.d, self.d)), np.zeros(self.d)
        self.w, self.stale = np.zeros(self.d), 0
        self.odds = Odds(np.diag([1.0, float(self.intercept)]))

    def restart(self) -> None:
        """Forget all rows."""
        self.__post_init__()

    def learn(self, X: Matrix, y: Vector, h: Vector, age: float) -> None:
        self.A = self.A * self.forget**age + (h * X.T) @ X
        self.b = self.b * self.forget**age + (h * X.T) @ y

    def due(self, rows: int, T: int, share: float, known: int) -> bool:
        """Is a block, or a 128th of what is remembered, new? Four times that, if the expert has little weight.

        Of more than 128 features, as many rows as there are more; but no more than a third of all rows.
        """
        remembered = T if self.forget == 1 else min(T, round(1 / (1 - self.forget)))
        self.stale += rows
        due = self.stale >= (4 if share < 0.01 else 1) * max(rows, remembered / 128, min(T // 3, known - 128))
        self.stale = 0 if due else self.stale
        return due

    def solve(self, sizes: Vector, seen: NDArray[np.bool_]) -> None:
        # In units in which all sizes are one, so that Σ x² counts rows.
        unit = sizes[seen]
        A = self.A[np.ix_(seen, seen)] / np.outer(unit, unit)
        places = len(unit) + (not self.intercept)  # the constant has one, used or not
        there = np.diag(A) > 0  # else it was forgotten
        squares = np.where(there, np.diag(A), 1.0)
        ridge = np.minimum(1.0, places / np.where(there, squares, places)) ** 2
        if (
            self.intercept
        ):  # the last: one mean row instead, and features as far as they differ from their means
            rows, mean = A[-1, -1], A[-1] / A[-1, -1]
            spread = np.clip(1.0 - mean**2 / (squares / rows), 1 / max(1.0, rows), 1.0)
            ridge *= np.where(there, spread, 1.0)
            ridge[-1] = 0.0
            A = A + min(1.0, places / rows) ** 2 * np.outer(mean, mean)
        self.w = np.zeros(self.d)
        self.w[seen] = np.linalg.solve(A + np.diag(ridge), self.b[seen] / unit) / unit


class FullExperts:
    """All of them; none when features have become many, or if the loss has none.

    The last is the one whose weights wander, while features are fewer still and labels are classes.
    """

    def __init__(self, loss: str, d: int, intercept: bool) -> None:
        self.loss, self.features = loss, d - intercept
        self.experts = [Full(forget, d, intercept) for forget in FORGET] if loss in LOSSES else []
        self.tracking = Tracking(d, intercept=intercept) if loss in TRACKED else None
        self.tracking_odds = Odds(np.diag([1.0, float(intercept)]))
        self.non_zeros, self.places = 0, 0  # places are those of features met, and the constant's
        self.block: list[tuple[Vector, float, float, float]] = []
        self.scores: list[float] = []

    def __len__(self) -> int:
        return len(self.experts) + (self.tracking is not None)

    def predictions(self, x: Vector, labels: Range, middle: float, half: float) -> Vector:
        low, high = labels.bounds()
        self.scores = [float(expert.w @ x) for expert in self.experts]
        odds = [expert.odds.of(s) for expert, s in zip(self.experts, self.scores, strict=True)]
        if self.tracking is not None:
            self.scores.append(self.tracking.score(x))
            odds.append(self.tracking_odds.of(self.scores[-1]))
        if not labels.signs:
            held = np.clip(np.array(self.scores) + labels.offset, low, high)
            return (held - middle) / half if half > 0 else np.zeros(len(held))
        odds = np.array(odds)
        if self.loss == "logistic":
            return np.clip(odds, low, high)
        likely = 2 * expit(np.clip(odds, -20, 20)) - 1
        return likely if self.loss == "squared" else np.clip(likely, low, high)

    def go_on(self, *, signs: bool) -> None:
        """Without the one whose weights wander, if labels are no classes."""
        self.tracking = self.tracking if signs else None

    def restart(self) -> None:
        """Forget all rows."""
        self.block = []
        for expert in self.experts:
            expert.restart()

    def learn(
        self,
        x: Vector,
        y: float,
        weight: float,
        h: float,
        labels: Range,
        T: int,
        N: Vector,
        M1: Vector,
        shares: Vector,
    ) -> None:
        """N and M1: in how many rows each feature was, this one included, and the sum of its sizes.

        The row is as old as h rows, and counts as `weight` times as many.
        """
        present = x[: self.features] != 0
        self.non_zeros += np.count_nonzero(present)
        known = np.count_nonzero(N[: self.features])
        new = (present & (N[: self.features] == 1)).any()
        sparse = max(known / 8, known**2 / 1024) * T > self.non_zeros
        if new and (known > 384 or (known > 64 and sparse)):
            self.experts, self.tracking = [], None
        if known > MOST:
            self.tracking = None
        self.block.append((x, y, weight * h, h))
        ended = len(self.block) >= min(1 + T // 32, max(8, (known + 1) // 4), 32)
        if self.tracking is not None:
            self.tracking_odds.learn(self.scores[-1], y, h, T)
        for expert, score, share in zip(self.experts, self.scores, shares, strict=False):
            if labels.signs:
                expert.odds.learn(score, y, h, T)
            if ended:
                rows, targets, weights, ages = (np.array(part) for part in zip(*self.block, strict=True))
                expert.learn(rows, targets, weights, ages.sum())
                if expert.due(len(self.block), T, share, known):
                    expert.solve(M1 / np.maximum(N, 1), N > 0)
        if self.tracking is not None:
            sizes = M1 / np.maximum(N, 1)
            self.tracking.learn(x, y, h, N > 0, sizes)
            if ended:
                self.tracking.measure(self.experts[0].A, sizes)
        self.block, self.places = ([] if ended else self.block), known + 1

    def weights(self, *, signs: bool) -> tuple[Matrix, Vector]:
        """Of each expert, and what is added to its scores; log odds if labels are classes."""
        w, theta = np.array([e.w for e in self.experts]), np.array([e.odds.theta for e in self.experts])
        if not signs or not self.experts:
            return w, np.zeros(len(w))
        return w * theta[:, :1], theta[:, 1]
