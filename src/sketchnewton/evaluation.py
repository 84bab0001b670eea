"""Progressive validation: each row is predicted before it is learned, so the mean loss is an honest test.

>>> score = ProgressiveScore("hinge")
>>> score.update(predictions=[0.0, 2.0, -0.5], labels=[1, 1, 1])
>>> score.rows, score.mean_loss, round(score.error_rate, 3)
(3, 0.8333333333333334, 0.333)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sketchnewton.losses import Loss, get_loss
from sketchnewton.regret import best_fixed, regret, regret_bound

__all__ = [
    "Batch",
    "Learner",
    "ProgressiveScore",
    "Report",
    "best_fixed",
    "progressive",
    "regret",
    "regret_bound",
]


class Batch(Protocol):
    """Rows with their answers; what else it holds is between it and the learner."""

    @property
    def labels(self) -> npt.ArrayLike:
        """One label per row."""

    @property
    def weights(self) -> npt.ArrayLike | None:
        """One weight per row, or None for all ones."""


class Learner(Protocol):
    """Anything that predicts each row before it learns from it."""

    @property
    def loss(self) -> Loss:
        """The loss that scores its predictions."""

    def learn(self, X: Any, y: Any, sample_weight: Any = None, /) -> npt.ArrayLike:
        """Learn row by row; return the prediction made before each update."""


class Report(NamedTuple):
    """Where a run stands after `examples` rows; `label` and `prediction` are those of the last of them.

    The losses are weighted means over all rows and over the rows since the previous report. `error_rate` is
    None unless all labels so far were −1 or +1.
    """

    examples: int
    mean_loss: float
    loss_since_last: float
    error_rate: float | None
    label: float
    prediction: float


class ProgressiveScore:
    """Running weighted loss and 0/1 error of predictions that were made before their labels were known.

    A prediction of 0 counts as +1, as SGN(0) = 1 in the sketched online Newton paper. Sums run from the first
    row to the last, so the numbers do not depend, to the last bit, on how the rows were cut into batches.
    Memory is constant; a row costs one evaluation of the loss.
    """

    def __init__(self, loss: Loss | str) -> None:
        self.loss = get_loss(loss)
        self.rows = 0
        self.weight = 0.0
        self._loss_sum = 0.0
        self._mistakes = 0.0
        self._labels_are_signs = True
        self._reported_loss_sum = 0.0
        self._reported_weight = 0.0

    @property
    def mean_loss(self) -> float:
        """Weighted mean loss of all rows; NaN before the first."""
        return _ratio(self._loss_sum, self.weight)

    @property
    def loss_since_report(self) -> float:
        """Weighted mean loss of the rows since the last `report`; NaN where there are none."""
        return _ratio(self._loss_sum - self._reported_loss_sum, self.weight - self._reported_weight)

    @property
    def error_rate(self) -> float | None:
        """Weighted share of predictions with the wrong sign; None unless all labels were −1 or +1."""
        if self.weight == 0.0 or not self._labels_are_signs:
            return None
        return self._mistakes / self.weight

    def update(
        self, predictions: npt.ArrayLike, labels: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> None:
        """Add rows: one prediction and label each, and a weight ≥ 0 unless all weigh 1."""
        p, y, w = _columns(predictions, labels, weights)
        signs = np.where(p >= 0.0, 1.0, -1.0)
        self.rows += len(p)
        self.weight = _add_in_order(self.weight, w)
        self._loss_sum = _add_in_order(self._loss_sum, w * self.loss.value(p, y))
        self._mistakes = _add_in_order(self._mistakes, w * (signs != y))
        self._labels_are_signs &= bool((np.abs(y) == 1.0).all())

    def report(self, label: float, prediction: float) -> Report:
        """The state after the last row, given its `label` and `prediction`; the next interval begins."""
        report = Report(
            examples=self.rows,
            mean_loss=self.mean_loss,
            loss_since_last=self.loss_since_report,
            error_rate=self.error_rate,
            label=float(label),
            prediction=float(prediction),
        )
        self._reported_loss_sum, self._reported_weight = self._loss_sum, self.weight
        return report


def progressive(
    learner: Learner, batches: Iterable[Batch], *, on_report: Callable[[Report], object] | None = None
) -> ProgressiveScore:
    """Let `learner` learn all `batches` and score the predictions it made before each update.

    `on_report` is called for the first 1, 2, 4, 8, … rows, also where that count falls inside a batch; the
    learner has then gone on to the end of the batch, but the report has not.
    """
    score = ProgressiveScore(learner.loss)
    due = 1
    for batch in batches:
        learned = learner.learn(batch, batch.labels, batch.weights)
        p, y, w = _columns(learned, batch.labels, batch.weights)
        begin = 0
        while on_report is not None and due - score.rows <= len(p) - begin:
            end = begin + due - score.rows
            score.update(p[begin:end], y[begin:end], w[begin:end])
            on_report(score.report(y[end - 1], p[end - 1]))
            begin = end
            due *= 2
        score.update(p[begin:], y[begin:], w[begin:])
    return score


Column = npt.NDArray[np.float64]


def _columns(
    predictions: npt.ArrayLike, labels: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Column, Column, Column]:
    p, y = np.asarray(predictions, np.float64), np.asarray(labels, np.float64)
    w = np.ones_like(p) if weights is None else np.asarray(weights, np.float64)
    if p.ndim != 1 or not p.shape == y.shape == w.shape:
        shapes = f"predictions {p.shape}, labels {y.shape} and weights {w.shape}"
        raise ValueError(f"{shapes} must have one dimension and the same length")
    if not (w >= 0.0).all():  # NaN included
        raise ValueError(f"weight {w[~(w >= 0.0)][0]:g} is invalid: must be >= 0")
    return p, y, w


def _add_in_order(total: float, terms: Column) -> float:
    # `cumsum` adds one term after the other; `sum` would add in pairs, which depends on where a batch begins.
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0.0 else math.nan
