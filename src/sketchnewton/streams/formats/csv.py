"""CSV and TSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator

from sketchnewton.core.batch import Batch
from sketchnewton.features.names import Names
from sketchnewton.streams.delimited import Delimited
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.source import Source
from sketchnewton.streams.writer import BatchWriter, row_fields, row_values, short

MOST_COLUMNS = 1 << 14
"""Of a dense table that is written."""


def csv_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``; the first record of each file names the columns."""
    return _delimited(options.delimiter, '"', options)


def tsv_parser(options: ReadOptions) -> Parse:
    """The same with tabs, and without quotes."""
    return _delimited(options.delimiter or "\t", "", options)


def _delimited(delimiter: str | None, quote: str, options: ReadOptions) -> Parse:
    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        return Delimited(source.name, delimiter, quote, options, policy).batches(source)

    return parse


class CsvWriter(BatchWriter):
    """A dense table; with exact names the columns have theirs."""

    format = "csv"

    def __init__(self, path: str, columns: int | None, names: Names | None) -> None:
        super().__init__(path, columns, names)
        self._begun = False  # with the header

    def _begin(self, batch: Batch) -> None:
        width = len(self._column_names()) if self._names is not None else self._columns
        if width is None:
            raise ValueError(f"{self.path}: {self.format} is dense: the number of columns must be known")
        if width > MOST_COLUMNS:
            raise ValueError(
                f"{self.path}: {self.format} is dense, and {width} columns are too many: "
                f"must be at most {MOST_COLUMNS}"
            )
        names = self._column_names() if self._names is not None else map(str, range(width))
        self._width = width
        self._weighted, self._tagged = batch.weights is not None, batch.tags is not None
        header = ["label", *["_weight"] * self._weighted, *["_tag"] * self._tagged, *names]
        self._rows([header])
        self._begun = True

    def _write(self, batch: Batch) -> None:
        if not self._begun:
            self._begin(batch)
        if batch.base is not None:
            raise self._refuse("base predictions")
        if (batch.weights is not None and not self._weighted) or (
            batch.tags is not None and not self._tagged
        ):
            raise self._refuse("weights or tags that the first rows did not have")
        largest = int(batch.indices.max(initial=-1))
        if largest >= self._width:
            raise ValueError(f"{self.path}: feature {largest} is beyond the {self._width} columns")
        table = []
        for (label, weight, tag, _), values in zip(row_fields(batch), row_values(batch), strict=True):
            cells = ["0"] * self._width  # an empty cell would be a missing value
            for index, value in values.items():
                cells[index] = short(value)
            start = ["" if math.isnan(label) else short(label)]
            if self._weighted:
                start.append(short(weight))
            if self._tagged:
                start.append(self._text(tag))
            table.append(start + cells)
        self._rows(table)

    def _rows(self, rows: list[list[str]]) -> None:
        lines: list[str] = []
        # Blanks at the ends of a column's name would otherwise be taken for layout.
        bare = self._begun or all(cell == cell.strip() for cell in rows[0])
        # The writer quotes what its own line end has in it, so a carriage return must be part of that.
        csv.writer(
            _Lines(lines), lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL if bare else csv.QUOTE_ALL
        ).writerows(rows)
        self._file.write("".join(f"{line[:-2]}\n" for line in lines).encode())


class _Lines:
    def __init__(self, lines: list[str]) -> None:
        self.write = lines.append


class TsvWriter(CsvWriter):
    """The same with tabs; what would need quotes is refused."""

    format = "tsv"

    def _rows(self, rows: list[list[str]]) -> None:
        for row in rows:
            if any(c in cell for cell in row for c in "\t\r\n"):
                raise self._refuse("tabs and line ends within names and tags")
            if row == [""]:
                raise self._refuse("a row of nothing")
        if not self._begun and any(name != name.strip() for name in rows[0]):
            raise self._refuse("blanks at the ends of names")
        self._file.write("".join("\t".join(row) + "\n" for row in rows).encode())


PARSERS = {"csv": csv_parser, "tsv": tsv_parser}
WRITERS = {"csv": CsvWriter, "tsv": TsvWriter}
