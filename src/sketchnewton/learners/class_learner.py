"""Several outputs: learners that give a row one score per class."""

from __future__ import annotations

from abc import abstractmethod

from sketchnewton import _native
from sketchnewton.core.parameters import checked_size
from sketchnewton.core.types import Floats
from sketchnewton.learners.base import Learner
from sketchnewton.learners.probabilities import softmax
from sketchnewton.learners.rows import check_class_labels
from sketchnewton.losses import Loss

MOST_CLASSES = 100_000


class ClassLearner(Learner):
    """A learner of K classes: labels are 0, …, K − 1, a prediction is a row of K scores, the largest score wins.

    Either each class is learned against the rest, or (`softmax`) all at once with the cross-entropy of the scores'
    softmax. Some learners have classes only if asked for: while `classes` is None they predict one number per row.
    """

    @property
    @abstractmethod
    def intercepts(self) -> Floats:
        """The constants that are added to the scores, one per class."""

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; a learner of several classes has `intercepts`."""
        if self.classes is not None:
            raise AttributeError("a learner of several classes has `intercepts`")
        return float(self.intercepts[0])

    def takes(self, label: float) -> bool:
        """Whether the label can be learned."""
        if self.classes is None:
            return super().takes(label)
        return _native.LabelRule.classes(self.classes, zero=True).takes(label)

    def learn_row(self, row: _native.Rows, label: float, weight: float = 1.0) -> float:
        """`learn` for a row that is in the kernels' form already; for learners of one number."""
        if self.classes is not None:
            raise TypeError(f"{type(self).__name__} predicts {self.classes} scores per row: use learn")
        return super().learn_row(row, label, weight)

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each class, by the scores that `predict` gave."""
        return softmax(scores) if self.softmax else super().probabilities(scores)

    def _shape(self, n: int) -> tuple[int, ...]:
        return (n,) if self.classes is None else (n, self.classes)

    def _check_labels(self, labels: Floats) -> None:
        if self.classes is None:
            super()._check_labels(labels)
            return
        check_class_labels(labels, self.classes)


def checked_class_count(classes: int) -> int:
    """The number of classes as a whole number, or say what is wrong with it."""
    count = checked_size("classes", classes, 2)
    if count > MOST_CLASSES:
        raise ValueError(f"classes={classes} is invalid: must be <= {MOST_CLASSES}")
    return count


def check_signs(loss: Loss) -> None:
    """Refuse a loss that cannot tell one class, +1, from the rest, −1."""
    if not (loss.takes(-1.0) and loss.takes(1.0)):
        loss.check_labels([-1.0, 1.0])
