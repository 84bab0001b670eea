"""What the labels of a stream tell about it: whether they look like classes, whether rows are sorted by them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from sketchnewton import _native
from sketchnewton.core.batch import View
from sketchnewton.model.target import shown_label

__all__ = ["LabelWatch"]

_ENOUGH = 3  # different labels, after which there is nothing left to notice
_SAMPLE = 1024  # labels that tell how frequent each is
_IN_RUNS = 0.05  # of the changes that a random order has; a stream whose classes merely persist has more
_FEW_CHANGES = 20.0  # expected: with fewer, chance might do it


class LabelWatch:
    """Sees the labels of a stream and notices when there are only one or two different ones, or long runs."""

    def __init__(self) -> None:
        self._values: set[float] = set()
        self._rows = self._changes = 0  # labels that were followed, and how many differ from the one before
        self._last = math.nan
        self._sample: list[float] = []  # every `_step`-th of them
        self._step = 1

    @classmethod
    def joined(cls, watches: Sequence[LabelWatch]) -> LabelWatch:
        """What was noticed of the parts of a stream."""
        whole, coarsest = cls(), max(watch._step for watch in watches)
        for watch in watches:
            whole.see(watch._values)
            whole._rows += watch._rows
            whole._changes += watch._changes
            whole._sample += watch._sample[:: coarsest // watch._step]
        return whole

    def see(self, labels: Iterable[float]) -> None:
        """Take note of labels, as the learner gets them."""
        if len(self._values) < _ENOUGH:
            self._values.update(labels)
            self._values = set(sorted(self._values)[:_ENOUGH])

    def follow(self, labels: View) -> None:
        """Take note of the order of labels, each once."""
        if not len(labels):
            return
        self._changes += _native.changes(labels)
        if self._rows and labels[0] != self._last:
            self._changes += 1
        self._sample += labels[-self._rows % self._step :: self._step].tolist()
        self._rows += len(labels)
        self._last = labels[-1]
        while len(self._sample) > _SAMPLE:
            self._sample = self._sample[::2]
            self._step *= 2

    def runs(self, *, numbers: bool = False) -> str | None:
        """A warning for classes that come in runs far longer than by chance.

        `numbers` are taken for classes if there are two: the values of a sensor change slowly, too.
        """
        if self._changes > _IN_RUNS * self._rows:  # too many for any labels; no need to count them
            return None
        counts = Counter(self._sample)
        if numbers and len(counts) > 2:
            return None
        shares = [count / len(self._sample) for count in counts.values()]
        expected = self._rows * (1 - sum(share * share for share in shares))
        if expected < _FEW_CHANGES or self._changes > _IN_RUNS * expected:
            return None
        return (
            f"labels come in runs: {self._changes} of {self._rows} differ from the one before, in random order "
            f"about {expected:.0f} would. A model of rows sorted by label suits the last of them"
        )

    def two_classes(self) -> str | None:
        """A hint for labels that are exactly two numbers, but not −1 and +1, as a line."""
        low, high = sorted(self._values) if len(self._values) == 2 else (-1.0, 1.0)
        if (low, high) == (-1.0, 1.0):
            return None
        return (
            f"skn: hint: all labels are {low:.12g} or {high:.12g}: if they are classes, "
            f"--positive {high:.12g} makes them -1 and +1"
        )

    def no_positive(self, positive: float | str) -> str | None:
        """A warning where no label was `positive`, as a line."""
        if self._values != {-1.0}:
            return None
        return (
            f"skn: warning: no row has the label {shown_label(positive)}, so all of them were learned as -1"
        )
