"""Predictions as lines of text: numbers or classes, on one scale or another, with the rows' tags."""

from __future__ import annotations

from typing import TextIO

from sketchnewton.cli.io.console import printable
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.files import write_numbers
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats
from sketchnewton.model import Model

__all__ = ["PredictionFormat"]


class PredictionFormat:
    """One line per row: the model's answer, or with `link` what it means on the scale of the answer.

    For several classes the line names the best one; `raw` and `link` give all their scores instead, `link` those
    of the logistic loss as probabilities that sum to one. A row's tag follows its prediction.
    """

    def __init__(self, model: Model, *, link: bool = False, raw: bool = False) -> None:
        if link and raw:
            raise usage_error("--link and --raw cannot be combined")
        loss = model.learner.loss
        if link and loss.link_kind == "identity":
            raise usage_error(
                f"--link does not apply to {loss.name} loss, whose predictions are on the scale of the labels "
                "already: leave it out, or train with --loss logistic for probabilities"
            )
        self._named = not (link or raw) and model.target.names is not None
        self._shown = model.linked if link else model.ordered if raw else model.answer

    def write(self, file: TextIO, scores: Floats, batch: Batch) -> None:
        """Write the predictions of a batch, so that whoever reads them need not wait."""
        shown = self._shown(scores)
        if shown.ndim == 1 and batch.tags is None and shown.dtype.kind == "f":
            write_numbers(file, shown)
            return
        cell = _name if self._named else _cell
        lines = [" ".join(map(cell, row)) for row in shown.reshape(len(shown), -1).tolist()]
        if batch.tags is not None:
            tags = [_in_line(tag) for tag in batch.tags]
            lines = [f"{line} {tag}" if tag else line for line, tag in zip(lines, tags, strict=True)]
        file.writelines(f"{line}\n" for line in lines)
        file.flush()


def _name(value: object) -> str:
    return printable(str(value))  # in one line, all of it


def _cell(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float | int) else str(value)


def _in_line(tag: bytes) -> str:
    return printable(tag.decode("utf-8", "backslashreplace"))  # a cell of a table may have line breaks
