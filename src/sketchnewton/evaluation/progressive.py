"""Progressive validation: each row is predicted before it is learned, so the mean loss is an honest test.

>>> score = ProgressiveScore("hinge")
>>> score.update(predictions=[0.0, 2.0, -0.5], labels=[1, 1, 1])
>>> score.rows, score.mean_loss, round(score.error_rate, 3)
(3, 0.8333333333333334, 0.333)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from sketchnewton import _native
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.hints import Any, NamedTuple, Protocol, cast
from sketchnewton.core.types import ArrayLike, Floats, Header, NDArray, np
from sketchnewton.losses import Loss, get_loss

__all__ = [
    "ClassScore",
    "Learner",
    "ProgressiveScore",
    "Report",
    "SoftmaxScore",
    "last_row",
    "progressive",
    "score_for",
]


_STATE = (
    "rows",
    "weight",
    "_loss_sum",
    "_mistakes",
    "_labels_are_signs",
    "_reported_loss_sum",
    "_reported_weight",
)


class Learner(Protocol):
    """Anything that predicts each row before it learns from it."""

    @property
    def loss(self) -> Loss:
        """The loss that scores its predictions."""

    def learn_batch(self, batch: Batch, /) -> View:
        """Learn row by row; return the prediction made before each update."""


class ScoredLearner(Protocol):
    """What tells how a learner's predictions are scored."""

    @property
    def loss(self) -> Loss:
        """The loss of a prediction."""

    @property
    def classes(self) -> int | None:
        """How many scores a prediction has; None for one number."""

    @property
    def softmax(self) -> bool:
        """Whether the scores of classes are judged together, by the cross-entropy of their softmax."""


class Report(NamedTuple):
    """Where a run stands after `examples` rows; `label` and `prediction` are those of the last of them.

    The losses are weighted means over all rows and over the rows since the previous report. `error_rate` is
    None unless all labels so far were −1 or +1.

    `mean_loss` is the mean over all rows, `loss_since_last` that since the previous report.
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
    Memory is constant; a row costs one evaluation of the `loss`, an object or a name.
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
        self, predictions: ArrayLike | View, labels: ArrayLike | View, weights: ArrayLike | View | None = None
    ) -> None:
        """Add rows: one prediction and label each, and a weight ≥ 0 unless all weigh 1."""
        p, y, w = self.columns(predictions, labels, weights)
        self._add(p, y, w)
        self.rows += len(y)

    def report(self, label: float, prediction: ArrayLike) -> Report:
        """The state after the last row, given its `label` and `prediction`; the next interval begins."""
        report = Report(
            examples=self.rows,
            mean_loss=self.mean_loss,
            loss_since_last=self.loss_since_report,
            error_rate=self.error_rate,
            label=float(label),
            prediction=self._answer(prediction),
        )
        self._reported_loss_sum, self._reported_weight = self._loss_sum, self.weight
        return report

    @property
    def state(self) -> Header:
        """All sums, as JSON can hold them without losing a bit; `state = …` takes them back."""
        return {name.lstrip("_"): getattr(self, name) for name in _STATE}

    @state.setter
    def state(self, state: Mapping[str, float]) -> None:
        for name in _STATE:
            kind = type(getattr(self, name))
            value = state[name.lstrip("_")]
            if type(value) is not kind or (kind is not bool and not 0 <= value < math.inf):
                raise ValueError(f"{value!r} cannot be a score's {name.lstrip('_')}")
            setattr(self, name, value)

    def columns(
        self, predictions: ArrayLike | View, labels: ArrayLike | View, weights: ArrayLike | View | None
    ) -> tuple[Floats, Floats, Floats | None]:
        """The three as checked arrays; no weights stay none."""
        p, y, w = _column(predictions), _column(labels), None if weights is None else _column(weights)
        if y.ndim != 1 or p.shape != self._shape(len(y)) or (w is not None and w.shape != y.shape):
            shapes = f"predictions {p.shape}, labels {y.shape}"
            shapes += "" if w is None else f" and weights {w.shape}"
            raise ValueError(f"{shapes} must have one dimension and the same length")
        if w is not None and (bad := _native.negative(w)) >= 0:
            raise ValueError(f"weight {w[bad]:g} is invalid: must be >= 0")
        return p, y, w

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows,)

    def _add(self, p: Floats, y: Floats, w: Floats | None) -> None:
        """The terms of each row to the sums, one after the other."""
        if not self.loss.compiled:  # somebody's own
            return self._add_terms(p, y, w)
        self._loss_sum, self._mistakes, self.weight, signs = _native.add_losses(
            self.loss.code, self.loss.parameter, p, y, w, self._loss_sum, self._mistakes, self.weight
        )
        self._labels_are_signs &= signs
        return None

    def _add_terms(self, p: Floats, y: Floats, w: Floats | None) -> None:
        """`_add` by NumPy."""
        p, y = np.asarray(p), np.asarray(y)
        losses, wrong = self._terms(p, y)
        w = np.ones_like(y) if w is None else np.asarray(w)
        self.weight = _add_in_order(self.weight, w)
        self._mistakes = _add_in_order(self._mistakes, w * wrong)
        self._loss_sum = _add_in_order(self._loss_sum, w * losses)

    def _terms(self, p: Floats, y: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The loss of each row, and whether its sign is wrong."""
        self._labels_are_signs &= bool((np.abs(y) == 1.0).all())
        return self.loss.value(p, y), np.where(p >= 0.0, 1.0, -1.0) != y

    def _answer(self, prediction: Any) -> float:
        return float(prediction)


class ClassScore(ProgressiveScore):
    """`ProgressiveScore` for K classes: each row has K scores, and its label is the number 0…K − 1 of its class.

    `classes` is K. The `loss` is averaged over the K scores, of which the row's class should be +1 and the others
    −1; the error counts rows whose largest score is another class's.

    >>> score = ClassScore("hinge", 3)
    >>> score.update([[0.5, 0.0, -1.0], [2.0, -2.0, -2.0]], [0, 2])
    >>> score.mean_loss, score.error_rate
    (1.25, 0.5)
    """

    def __init__(self, loss: Loss | str, classes: int) -> None:
        super().__init__(loss)
        self.classes = classes

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows, self.classes)

    def _add(self, p: Floats, y: Floats, w: Floats | None) -> None:
        if not self.loss.compiled:  # somebody's own
            return self._add_terms(p, y, w)
        return self._add_classes(self.loss.code, p, y, w)

    def _add_classes(self, code: int | None, p: Floats, y: Floats, w: Floats | None) -> None:
        self._loss_sum, self._mistakes, self.weight = _native.add_class_losses(
            code, self.loss.parameter, p, y, w, self._loss_sum, self._mistakes, self.weight
        )

    def _terms(self, p: Floats, y: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The loss of each row, and whether its class is wrong."""
        wanted = np.where(np.arange(self.classes) == y[:, None], 1.0, -1.0)
        return self.loss.value(p, wanted).mean(axis=1), p.argmax(axis=1) != y

    def _answer(self, prediction: Any) -> float:
        return float(max(range(self.classes), key=prediction.__getitem__))


class SoftmaxScore(ClassScore):
    """`ClassScore` with the cross-entropy of the softmax of the scores.

    >>> score = SoftmaxScore("logistic", 2)
    >>> score.update([[0.0, 0.0], [0.0, np.log(3.0)]], [0, 1])
    >>> round(score.mean_loss, 6)  # (log 2 + log 4/3) / 2
    0.490415
    """

    def _add(self, p: Floats, y: Floats, w: Floats | None) -> None:
        self._add_classes(None, p, y, w)


def score_for(learner: ScoredLearner) -> ProgressiveScore:
    """A new score, of the kind that fits the predictions of `learner`."""
    if learner.classes is None:
        return ProgressiveScore(learner.loss)
    return (SoftmaxScore if learner.softmax else ClassScore)(learner.loss, learner.classes)


def progressive(
    learner: Learner,
    batches: Iterable[Batch],
    *,
    on_report: Callable[[Report], object] | None = None,
    score: ProgressiveScore | None = None,
) -> ProgressiveScore:
    """Let `learner` learn all `batches` and score the predictions it made before each update.

    `on_report` is called after the first 1, 2, 4, 8, … rows, when the learner has learned these and no others.
    `score` continues one that has seen earlier rows; when the next batch is asked for, it has seen all before it.
    """
    score = ProgressiveScore(learner.loss) if score is None else score
    for batch in batches:
        begin = 0
        while begin < len(batch):
            due = 1 << score.rows.bit_length()
            end = len(batch) if on_report is None else min(len(batch), begin + due - score.rows)
            part = batch[begin:end]
            predictions, labels = learner.learn_batch(part), part.views.labels
            score.update(predictions, labels, part.views.weights)
            if on_report is not None and score.rows == due:
                on_report(score.report(labels[-1], last_row(predictions)))
            begin = end
        del batch  # before the next is asked for: memory for one batch less
    return score


def last_row(predictions: View) -> ArrayLike:
    """The last prediction: a number, or the scores of several classes.

    `predictions` are those of a batch, in order.
    """
    if predictions.ndim == 1:
        return float(predictions[-1])
    last, classes = len(predictions) - 1, (predictions.shape or (0,))[-1]
    return [float(predictions[last, k]) for k in range(classes)]


def _column(values: ArrayLike | View) -> Floats:
    if isinstance(values, memoryview) and values.format == "d" and values.c_contiguous:
        return cast(Floats, values)  # native memory, which needs no NumPy
    return np.asarray(values, np.float64, order="C")


def _add_in_order(total: float, terms: Floats) -> float:
    # `cumsum` adds one term after the other; `sum` would add in pairs, which depends on where a batch begins.
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0.0 else math.nan
