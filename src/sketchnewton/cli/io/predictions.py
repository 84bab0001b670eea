"""Predictions as lines of text: numbers or classes, on one scale or another, with the rows' tags."""

from __future__ import annotations

from typing import TextIO

from sketchnewton.cli.io.console import printable
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.files import write_numbers
from sketchnewton.cli.train.early import Learned
from sketchnewton.cli.train.learner import has_softmax
from sketchnewton.core.types import Floats, np
from sketchnewton.learners import Learner
from sketchnewton.model.target import Classes, Target
from sketchnewton.streams import Batch

__all__ = ["PredictionFormat"]


class PredictionFormat:
    """One line per row: the prediction, or with `link` what it means on the scale of the answer.

    Of many classes the line names the best one; `raw` and `link` give all their scores instead, `link` those of
    the logistic loss as probabilities that sum to one. A row's tag follows its prediction.
    """

    def __init__(self, learner: Learner, labels: Target, *, link: bool = False, raw: bool = False) -> None:
        if link and raw:
            raise usage_error("--link and --raw cannot be combined")
        self._loss = learner.loss
        self._softmax = has_softmax(learner)
        self._labels = labels
        self._link = link
        self._scores = link or raw

    def write(self, file: TextIO, predictions: Floats, batch: Batch | Learned) -> None:
        """Write the predictions of a batch, so that whoever reads them need not wait."""
        shown = np.asarray(predictions)
        if isinstance(batch, Batch) and batch.base is not None:
            shown = shown + (batch.base if shown.ndim == 1 else batch.base[:, None])
        if self._link:
            shown = (
                np.exp(shown - shown.max(axis=1, keepdims=True)) if self._softmax else self._loss.link(shown)
            )
        if isinstance(self._labels, Classes):
            if not self._scores:
                shown = self._labels.name(shown.argmax(axis=1)).astype(np.float64)
            elif self._link and self._loss.link_kind == "logistic":
                shown = shown / shown.sum(axis=1, keepdims=True)
            if self._scores:
                shown = np.roll(shown, 0 if self._labels.zero else -1, axis=1)  # class 1 first, class K last
        if shown.ndim == 1 and batch.tags is None:
            write_numbers(file, shown)
            return
        lines = [" ".join(f"{value:.9g}" for value in row) for row in shown.reshape(len(shown), -1).tolist()]
        if batch.tags is not None:
            tags = [_in_line(tag) for tag in batch.tags]
            lines = [f"{line} {tag}" if tag else line for line, tag in zip(lines, tags, strict=True)]
        file.writelines(f"{line}\n" for line in lines)
        file.flush()


def _in_line(tag: bytes) -> str:
    return printable(tag.decode("utf-8", "backslashreplace"))  # a cell of a table may have line breaks
