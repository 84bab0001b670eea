"""Plain rows learned without NumPy, whose import would take as long as learning tens of thousands of them.

Neither this module nor any other that a plain run of `skn train` imports may import NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sketchnewton import _native
from sketchnewton.cli.train.learner import labels_of
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.types import Floats
from sketchnewton.learners.table import TableLearner

__all__ = ["Early", "Learned", "Plain"]


class Learned(NamedTuple):
    """Rows that the learner knows already: their labels as it got them, and what it predicted before.

    All arrays are memoryviews.
    """

    labels: Floats
    weights: Floats | None
    tags: list[bytes] | None
    predictions: Floats


class Plain(NamedTuple):
    """Rows that a learner has room for, and their labels as it wants them."""

    batch: Batch
    labels: Floats


class Early:
    """Learns batches of plain rows, as `Learner.learn` would. All else is for those who have NumPy."""

    def __init__(self, learner: TableLearner) -> None:
        self._learner = learner
        self._labels = labels_of(learner)
        self._rows = 0

    def plain(self, batch: Batch) -> Plain | None:
        """The rows, ready to be learned; None if anything about them needs a closer look: nothing has happened."""
        if batch.views.base is not None or not _weights_are_sound(batch.views.weights):
            return None
        labels, unfit = self._labels.code(batch.views.labels)
        if unfit:
            return None
        try:
            self._learner.reserve(batch.rows)
        except (ValueError, MemoryError):
            return None
        return Plain(batch, labels)

    def learn(self, plain: Plain, *, in_steps: bool) -> Iterator[Learned]:
        """Learn the rows; with `in_steps`, part after part up to the first 1, 2, 4, 8, … rows of all."""
        batch, labels = plain
        all_weights: Any = batch.views.weights
        begin, n = 0, len(batch)
        while begin < n:
            end = min(n, begin + (1 << self._rows.bit_length()) - self._rows) if in_steps else n
            weights = None if all_weights is None else all_weights[begin:end]
            tags = None if batch.tags is None else batch.tags[begin:end]
            predictions: Any = self._learner.new_predictions(end - begin)
            learned = Learned(labels[begin:end], weights, tags, predictions)
            self._learner.learn_into(predictions, batch.rows.part(begin, end), learned.labels, weights)
            self._rows += end - begin
            begin = end
            yield learned


def _weights_are_sound(weights: View | None) -> bool:
    if weights is None:
        return True
    _, least, _, finite = _native.look(weights)
    return finite and least >= 0.0
