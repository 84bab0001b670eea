"""`--by COLUMN`: the value of one column for each row, beside its prediction."""

from __future__ import annotations

import argparse
from array import array

from sketchnewton.cli.io.console import Console
from sketchnewton.cli.io.data_source import DataSource
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.core.types import Header, np
from sketchnewton.evaluation.metrics import Answers, measure
from sketchnewton.model import Model
from sketchnewton.model.target import NO_LABEL

__all__ = ["Segments"]


def _of_the_label(column: str) -> CommandError:
    return usage_error(f"--by {column} does not apply to the label: give another column")


class Segments:
    """Which value each row has.

    The column is read as the rows' tag, in a reading of its own: in the other it may be a feature.
    """

    def __init__(
        self,
        column: str,
        data: DataSource,
        args: argparse.Namespace,
        model: Model,
        console: Console,
        stop: GracefulStop,
    ) -> None:
        if data.identity() is None:
            raise usage_error(f"--by needs a file: {data.name} can be read only once")
        reading = argparse.Namespace(**{**vars(args), "ahead": None})
        if not data.without_columns:
            if column == data.columns.usual_label:
                raise _of_the_label(column)
            reading.tag = column
        elif column != "tag":
            raise usage_error(
                f"--by {column} does not apply to {data.name}, which has no columns: use --by tag"
            )
        tagged = DataSource(args.data, reading, model)
        # Interactions may multiply this very column, which is not a feature here.
        tagged.features = tagged.features._replace(interactions=())
        self._data = data
        self._numbers: dict[bytes, int] = {}
        self._of = array("q")
        refused: CommandError | None = None
        try:
            for batch in tagged.fitted(tagged.read(console, stop), model.target.copy()):
                for tag in batch.tags or [b""] * len(batch):
                    self._of.append(self._numbers.setdefault(tag, len(self._numbers)))
        except CommandError as error:
            refused = error
        # A label that nobody has named may be any of several columns: without this one there may be none.
        unlabelled = NO_LABEL in str(refused or tagged.first_error)
        if unlabelled and not self._of and column in data.columns.labels:
            raise _of_the_label(column)
        if refused is not None:
            raise refused

    def measured(self, answers: Answers) -> list[Header]:
        """The metrics of the rows of each value, the most frequent first."""
        if len(self._of) != len(answers.labels):
            raise CommandError(
                f"{self._data.name}: reading the column for --by skips different rows: fix them, or use "
                "--on-error stop"
            )
        of = np.frombuffer(self._of, np.int64)
        order = np.argsort(of, kind="stable")
        ends = np.cumsum(np.bincount(of, minlength=len(self._numbers)))
        found = []
        for tag, number in self._numbers.items():
            rows = order[ends[number - 1] if number else 0 : ends[number]]
            value = tag.decode("utf-8", "backslashreplace") or None
            found.append({"value": value, "rows": len(rows), **measure(answers.of(rows))})
        return sorted(found, key=lambda segment: -segment["rows"])
