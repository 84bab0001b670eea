"""Labels: how they are coded for the learner, and those that suggest another coding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sketchnewton.core.types import Floats, NDArray, np
from sketchnewton.learners.rows import LARGEST_VALUE
from sketchnewton.losses import Loss

__all__ = ["Classes", "LabelWatch", "Labels", "label_coding"]

NO_LABEL = "has no label, but training needs one (in a table, --label names its column)"
_ENOUGH = 3  # different labels, after which there is nothing left to notice


def label_coding(positive: float | None, classes: int | None = None) -> str:
    """What becomes of labels, in words."""
    if classes is not None:
        return f"labels as {classes} classes"
    return "labels as they are" if positive is None else f"label {positive:.12g} as +1, others as -1"


class Labels:
    """Labels as the learner knows them: +1 for `positive` and −1 for the others, or as they are if it is None."""

    def __init__(self, loss: Loss, positive: float | None = None) -> None:
        self.loss = loss
        self._positive = positive

    def code(self, labels: Floats) -> Floats:
        """The coded labels; NaN where one is missing or unfit."""
        if self._positive is not None:
            coded = np.where(labels == self._positive, 1.0, -1.0)
            return np.where(np.isnan(labels), np.nan, coded) if np.isnan(labels).any() else coded
        fits = self.loss.fits(labels) & (np.abs(labels) <= LARGEST_VALUE)
        return labels if fits.all() else np.where(fits, labels, np.nan)

    def complaint(self, label: float) -> str:
        """What is wrong with an unfit label."""
        if np.isnan(label):
            return NO_LABEL
        if abs(label) > LARGEST_VALUE:
            return f"has the label {label:g}, beyond ±{LARGEST_VALUE:g}: rescale the labels"
        rule = self.loss.label_rule
        hint = ": --positive LABEL makes them" if "-1" in rule else ""
        return f"has the label {label:g}, but the {self.loss.name} loss needs {rule}{hint}"


class Classes(Labels):
    """Labels that are classes, 1 to K or 0 to K − 1: the learner knows class `label mod K`.

    So 1 to K − 1 mean the same in both ways of counting; `zero`, which the model's notes keep, says whether the
    remaining class is 0 or K, and is None until one of the two has been seen.
    """

    def __init__(self, count: int, notes: dict[str, Any]) -> None:
        self.count = count
        self._notes = notes

    @property
    def zero(self) -> bool | None:
        """Whether classes are counted from 0; None if that is not known yet."""
        return self._notes.get("zero")

    def code(self, labels: Floats) -> Floats:
        """The number of each label's class; NaN where one is missing or no class."""
        fits = (labels == np.floor(labels)) & (labels >= 0) & (labels <= self.count)
        ends = labels[fits & ((labels == 0) | (labels == self.count))]
        if len(ends):
            self._notes.setdefault("zero", bool(ends[0] == 0))
            fits &= labels != (self.count if self.zero else 0)
        return np.where(fits, labels % self.count, np.nan)

    def name(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The label of each class, by its number."""
        return classes if self.zero else np.where(classes == 0, self.count, classes)

    def complaint(self, label: float) -> str:
        """What is wrong with an unfit label."""
        if np.isnan(label):
            return NO_LABEL
        count = self.count
        if label in (0, count):
            return (
                f"has the label {label:g}, but there was a label {count - label:g}: "
                f"classes are 1..{count} or 0..{count - 1}"
            )
        return f"has the label {label:g}, but --multiclass {count} needs 1..{count} or 0..{count - 1}"


class LabelWatch:
    """Sees the labels of a stream and notices when there are only one or two different ones."""

    def __init__(self) -> None:
        self._values: set[float] = set()

    def see(self, labels: Iterable[float]) -> None:
        """Take note of labels, as the learner gets them."""
        if len(self._values) < _ENOUGH:
            self._values.update(labels)
            self._values = set(sorted(self._values)[:_ENOUGH])

    def two_classes(self) -> str | None:
        """A hint for labels that are exactly two numbers, but not −1 and +1, as a line."""
        low, high = sorted(self._values) if len(self._values) == 2 else (-1.0, 1.0)
        if (low, high) == (-1.0, 1.0):
            return None
        return (
            f"skn: hint: all labels are {low:.12g} or {high:.12g}: if they are classes, "
            f"--positive {high:.12g} makes them -1 and +1"
        )

    def no_positive(self, positive: float) -> str | None:
        """A warning where no label was `positive`, as a line."""
        if self._values != {-1.0}:
            return None
        return f"skn: warning: no row has the label {positive:.12g}, so all of them were learned as -1"
