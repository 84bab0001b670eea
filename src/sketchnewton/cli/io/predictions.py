"""Predictions as lines of text or as a table: numbers or classes, on one scale or another, with the rows' tags."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

from sketchnewton.cli.io.console import printable
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.files import write_numbers
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.hints import TextIO
from sketchnewton.core.types import Floats, np
from sketchnewton.model import Model

__all__ = ["PredictionFormat", "PredictionTable", "table_format"]

_SCALES = ("link", "raw", "probabilities")
TABLES = ("csv", "jsonl")


def table_format(output: str) -> str | None:
    """The format of the table that `--output` asks for, by itself or as the ending of a name; None for lines."""
    return next((kind for kind in TABLES if output == kind or output.endswith(f".{kind}")), None)


class PredictionFormat:
    """One line per row: the model's answer, or with `--link` what it means on the scale of the answer.

    For several classes the line names the best one; `--raw` and `--link` give all their scores instead, `--link`
    those of the logistic loss as probabilities that sum to one. With `--probabilities` there is one for each
    class, in the order of `classes`. A row's tag follows its prediction.
    """

    def __init__(self, model: Model, args: argparse.Namespace) -> None:
        scales = [name for name in _SCALES if getattr(args, name)]
        if len(scales) > 1:
            raise usage_error(f"--{scales[0]} and --{scales[1]} cannot be combined")
        self.scale = scales[0] if scales else None
        if self.scale == "probabilities" and not model.has_classes:
            raise usage_error(
                "--probabilities needs a model of classes, but this one predicts a number: train with --classes, "
                "--positive or --loss logistic"
            )
        loss = model.learner.loss
        if self.scale == "link" and loss.link_kind == "identity":
            raise usage_error(
                f"--link does not apply to {loss.name} loss, whose predictions are on the scale of the labels "
                "already: leave it out, or train with --loss logistic for probabilities"
            )
        self.interval: float | None = getattr(args, "interval", None)
        if self.interval is not None:
            self._check_interval(model)
        self._named = self.scale is None and model.target.names is not None
        self._model = model
        plain = self.scale in (None, "raw") and self.interval is None and not self._named
        self._as_is = plain and model.learner.classes is None
        ways = {"link": model.linked, "raw": model.ordered, "probabilities": model.probabilities}
        self._way = model.answer if self.scale is None else ways[self.scale]

    def _check_interval(self, model: Model) -> None:
        if self.scale in ("raw", "probabilities"):
            raise usage_error(f"--interval and --{self.scale} cannot be combined")
        if model.has_classes:
            raise usage_error(
                "--interval needs a model of numbers, but this one predicts classes: see --probabilities"
            )
        if not model.learner.tracks_residuals:
            raise usage_error(
                f"--interval needs a model of the default learner, but this one has {model.learner.title}"
            )

    def shown(self, scores: Floats, batch: Batch) -> Floats:
        """What is asked for of each row; with an interval the prediction, the lower and the upper bound."""
        if self.interval is None:
            return self._way(scores)
        bounds = self._model.interval(scores, self.interval, batch)
        return np.column_stack([self._model.linked(scores), bounds])

    def write(self, file: TextIO, scores: Floats | View, batch: Batch) -> None:
        """Write the predictions of a batch, so that whoever reads them need not wait."""
        if self._as_is and batch.tags is None:  # without NumPy, if scores are native memory
            write_numbers(file, scores)
            return
        shown = self.shown(np.asarray(scores), batch)
        if shown.ndim == 1 and batch.tags is None and shown.dtype.kind == "f" and not self._named:
            write_numbers(file, shown)
            return
        cell = name_text if self._named else _cell
        lines = [" ".join(map(cell, row)) for row in shown.reshape(len(shown), -1).tolist()]
        if batch.tags is not None:
            tags = [_in_line(tag) for tag in batch.tags]
            lines = [f"{line} {tag}" if tag else line for line, tag in zip(lines, tags, strict=True)]
        file.writelines(f"{line}\n" for line in lines)
        file.flush()


class PredictionTable:
    """A table of predictions, CSV or JSON lines: the tag, if rows have one, the answer, and a column per class.

    Columns are `tag`, `prediction`, and with `--probabilities`, `--link` or `--raw` the numbers of each class
    under its name.
    """

    def __init__(self, model: Model, form: PredictionFormat, kind: str, *, tagged: bool) -> None:
        self._model = model
        self._form = form
        self._kind = kind
        self._tagged: bool | None = tagged or None  # None: the first rows decide
        self._begun = False
        self._classes = (
            [_plain(name) for name in model.classes or (-1, 1)]
            if form.interval is None
            else ["lower", "upper"]
        )

    def write(self, file: TextIO, native: Floats | View, batch: Batch) -> None:
        """Write the predictions of a batch."""
        scores = np.asarray(native)
        if self._tagged is None:
            self._tagged = batch.tags is not None
        if batch.tags is not None and not self._tagged:
            raise usage_error("a row has a tag, but the first rows had none: name the column of tags (--tag)")
        if self._kind == "csv":
            self._write_csv(file, scores, batch)
        else:
            self._write_json(file, scores, batch)
        file.flush()

    def _rows(self, scores: Floats, batch: Batch) -> Iterator[tuple[str | None, object, list[float]]]:
        """Tag, answer and the numbers of classes, if they were asked for, of each row."""
        shown = self._form.shown(scores, batch)
        if self._form.interval is not None:
            for tag, (answer, *bounds) in zip(batch.tags or [b""] * len(batch), shown.tolist(), strict=True):
                text = tag.decode("utf-8", "backslashreplace") if self._tagged else None
                yield text, answer, bounds
            return
        numbers = shown.tolist() if shown.ndim == 2 and self._form.scale is not None else [[]] * len(shown)
        single = shown.ndim == 1 and self._form.scale is not None
        answers = (shown if single else self._model.answer(scores)).tolist()
        tags = batch.tags or [b""] * len(batch)
        for tag, answer, row in zip(tags, answers, numbers, strict=True):
            text = tag.decode("utf-8", "backslashreplace") if self._tagged else None
            yield text, answer, [float(_cell(number)) for number in row]

    def _write_csv(self, file: TextIO, scores: Floats, batch: Batch) -> None:
        import csv

        table = csv.writer(file, lineterminator="\n")
        for tag, answer, numbers in self._rows(scores, batch):
            if not self._begun:
                self._begun = True
                table.writerow([*["tag"] * (tag is not None), "prediction", *self._classes[: len(numbers)]])
            cells = [_cell(number) for number in numbers]
            shown = _cell(answer) if self._model.classes is None else _plain(answer)
            table.writerow([*([] if tag is None else [tag]), shown, *cells])

    def _write_json(self, file: TextIO, scores: Floats, batch: Batch) -> None:
        import json

        for tag, answer, numbers in self._rows(scores, batch):
            record: dict[str, object] = {} if tag is None else {"tag": tag}
            rounded = isinstance(answer, float) and self._model.classes is None  # names stay as they are
            record["prediction"] = float(_cell(answer)) if rounded else answer
            if self._form.interval is not None:
                bounds = zip(self._classes, numbers, strict=True)
                record.update({name: float(_cell(at)) if math.isfinite(at) else None for name, at in bounds})
            elif numbers:
                name = "probabilities" if self._form.scale == "probabilities" else "scores"
                record[name] = dict(zip(self._classes, numbers, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def name_text(value: object) -> str:
    """The name of a class in one line, all of it; true and false as tables have them."""
    return printable(_plain(value))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _cell(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float | int) else str(value)


def _in_line(tag: bytes) -> str:
    return printable(tag.decode("utf-8", "backslashreplace"))  # a cell of a table may have line breaks
