"""Metrics of predictions whose labels are known: one function each, and the table that names them.

A metric takes an `Answers`: predictions, labels and weights of all rows, and probabilities where there are some.
To add one: write a function, and add its line to `METRICS`.

>>> answers = Answers(np.array([2.0, -1.0, 0.5]), np.array([1.0, -1.0, -1.0]), np.ones(3), "signs")
>>> {name: round(value, 3) for name, value in measure(answers).items()}
{'error': 0.333, 'auc': 1.0, 'f1': 0.667}
"""

from __future__ import annotations

from collections.abc import Callable

from sketchnewton.core.hints import Any, NamedTuple
from sketchnewton.core.types import Floats, NDArray, np

__all__ = ["METRICS", "Answers", "calibration", "confusion", "measure"]

_LEAST = 1e-15  # probability, so that one wrong row that was thought impossible leaves the log loss finite


class Answers(NamedTuple):
    """Predictions (one per row, or one per row and class) and what was right.

    `kind` is "numbers", "signs" (labels −1 and +1) or "classes" (labels 0…K − 1, numbering the columns).
    `probabilities` has a column per class, the second of two being +1's; None where the loss gives none.
    """

    predictions: Floats
    labels: Floats
    weights: Floats
    kind: str
    probabilities: Floats | None = None

    def of(self, rows: NDArray[Any]) -> Answers:
        """Those of some rows: a mask, or their numbers."""
        known = None if self.probabilities is None else self.probabilities[rows]
        return Answers(self.predictions[rows], self.labels[rows], self.weights[rows], self.kind, known)


def error(answers: Answers) -> float:
    """Share of rows whose class is wrong; a score of 0 counts as +1."""
    p, y = answers.predictions, answers.labels
    wrong = p.argmax(axis=1) != y if answers.kind == "classes" else np.where(p >= 0.0, 1.0, -1.0) != y
    return _mean(wrong, answers.weights)


def auc(answers: Answers) -> float:
    """Probability that a row of label +1 scores higher than one of label −1; ties count half. NaN without both."""
    p, w, positive = answers.predictions, answers.weights, answers.labels > 0.0
    distinct, at = np.unique(p, return_inverse=True)
    above = np.bincount(at, np.where(positive, w, 0.0), len(distinct))
    below = np.bincount(at, np.where(positive, 0.0, w), len(distinct))
    pairs = above.sum() * below.sum()
    if pairs == 0.0:
        return float("nan")
    return float((above * (np.cumsum(below) - below / 2.0)).sum() / pairs)


def f1(answers: Answers) -> float:
    """Harmonic mean of precision and recall of the label +1; NaN where nothing is +1 or called so."""
    called, positive, w = answers.predictions >= 0.0, answers.labels > 0.0, answers.weights
    both = w[called & positive].sum()
    total = w[called].sum() + w[positive].sum()
    return float(2.0 * both / total) if total > 0.0 else float("nan")


def log_loss(answers: Answers) -> float | None:
    """Mean of −log of the probability given to what was right."""
    right = _right(answers)
    return None if right is None else _mean(-np.log(np.maximum(right, _LEAST)), answers.weights)


def brier(answers: Answers) -> float | None:
    """Mean squared distance of the probabilities from what was right; of two classes, that of the second."""
    if answers.probabilities is None:
        return None
    if answers.kind == "signs":
        return _mean((answers.probabilities[:, 1] - (answers.labels > 0.0)) ** 2, answers.weights)
    wanted = np.arange(answers.probabilities.shape[1]) == answers.labels[:, None]
    return _mean(((answers.probabilities - wanted) ** 2).sum(axis=1), answers.weights)


def mae(answers: Answers) -> float:
    """Mean absolute error."""
    return _mean(np.abs(answers.predictions - answers.labels), answers.weights)


def rmse(answers: Answers) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(_mean((answers.predictions - answers.labels) ** 2, answers.weights)))


def r2(answers: Answers) -> float:
    """Share of the labels' variance that is explained; NaN where they do not vary."""
    y, w = answers.labels, answers.weights
    variance = _mean((y - _mean(y, w)) ** 2, w)
    return 1.0 - rmse(answers) ** 2 / variance if variance > 0.0 else float("nan")


METRICS: dict[str, tuple[Callable[[Answers], float | None], tuple[str, ...]]] = {
    "error": (error, ("signs", "classes")),
    "auc": (auc, ("signs",)),
    "f1": (f1, ("signs",)),
    "log_loss": (log_loss, ("signs", "classes")),
    "brier": (brier, ("signs", "classes")),
    "mae": (mae, ("numbers",)),
    "rmse": (rmse, ("numbers",)),
    "r2": (r2, ("numbers",)),
}
"""The function of each metric, and the kinds of answers that have it."""


def measure(answers: Answers) -> dict[str, float]:
    """All metrics that these answers have, by name."""
    values = {name: metric(answers) for name, (metric, kinds) in METRICS.items() if answers.kind in kinds}
    return {name: value for name, value in values.items() if value is not None}


def calibration(answers: Answers, bins: int = 10) -> list[tuple[float, float, float]]:
    """Mean probability of +1, observed share of +1 and weight of rows, for each bin that has rows."""
    if answers.kind != "signs" or answers.probabilities is None:
        return []
    p, w = answers.probabilities[:, 1], answers.weights
    at = np.minimum((p * bins).astype(np.intp), bins - 1)
    weight, said, seen = (np.bincount(at, values, bins) for values in (w, w * p, w * (answers.labels > 0.0)))
    return [
        (float(said[k] / weight[k]), float(seen[k] / weight[k]), float(weight[k]))
        for k in np.flatnonzero(weight)
    ]


def confusion(answers: Answers) -> Floats | None:
    """The weight of rows by their class (row) and the class they were given (column); None for numbers."""
    if answers.kind == "numbers":
        return None
    classes: Floats = answers.labels
    if answers.kind == "signs":
        size, classes, given = 2, (answers.labels + 1.0) / 2.0, answers.predictions >= 0.0
    else:
        size, given = answers.predictions.shape[1], answers.predictions.argmax(axis=1)
    at = classes.astype(np.intp) * size + given
    return np.asarray(np.bincount(at, answers.weights, size * size), np.float64).reshape(size, size)


def _right(answers: Answers) -> Floats | None:
    """The probability given to what was right."""
    if answers.probabilities is None:
        return None
    column = (answers.labels > 0.0) if answers.kind == "signs" else answers.labels
    return np.take_along_axis(answers.probabilities, column.astype(np.intp)[:, None], axis=1)[:, 0]


def _mean(values: Floats, weights: Floats) -> float:
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0.0 else float("nan")
