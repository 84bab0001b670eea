"""Labels that suggest another coding than the one in use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["LabelWatch"]

_ENOUGH = 3  # different labels, after which there is nothing left to notice


class LabelWatch:
    """Sees the labels of a stream and notices when there are only one or two different ones."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def see(self, labels: npt.NDArray[np.float64]) -> None:
        """Take note of labels, as the learner gets them."""
        if len(self._values) == _ENOUGH:
            return
        rest = labels
        for value in self._values:
            rest = rest[rest != value]
        while len(rest) and len(self._values) < _ENOUGH:
            self._values.append(float(rest[0]))
            rest = rest[rest != rest[0]]

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
        if self._values != [-1.0]:
            return None
        return f"skn: warning: no row has the label {positive:.12g}, so all of them were learned as -1"
