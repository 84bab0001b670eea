"""CSV and TSV, converted by pyarrow (extra ``arrow``)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.types import Integers
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.table_rows import NUMBER, TEXT, Numbers, Roles, RowMaker, Texts
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.formats.arrow import import_arrow, text_column
from sketchnewton.streams.lines import chunks, explain
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.source import Source
from sketchnewton.streams.writer import BatchWriter, row_fields, row_values, short

LOOK_AHEAD = 1000
"""Rows in which the types of columns are found out."""

MOST_COLUMNS = 1 << 14
"""Of a dense table that is written."""


def csv_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``; the first record of each file names the columns."""
    return _delimited(",", options)


def tsv_parser(options: ReadOptions) -> Parse:
    """The same with tabs, and without quotes."""
    return _delimited("\t", options)


def _delimited(delimiter: str, options: ReadOptions) -> Parse:
    maker = RowMaker(options.features, options.names, options.types)

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        table = _Table(source.name, delimiter, options.columns, maker, policy)
        for text, last in _whole_records(source, table, options.batch_bytes, options.max_line_bytes):
            yield from table.batches(text, last)

    return parse


def _whole_records(
    source: Source, table: _Table, batch_bytes: int, max_line_bytes: int
) -> Iterator[tuple[bytes, bool]]:
    """Text that ends where a record ends, and whether it is the last; at first enough to tell the types."""
    pending = b""
    try:
        for chunk in chunks(source, batch_bytes, max_line_bytes):
            text = pending + bytes(chunk)
            ends, fields, _, is_open = table.scan(text)
            if np.count_nonzero(fields) <= LOOK_AHEAD and not table.knows_types(text, ends, fields):
                pending = text
            else:
                cut = (int(ends[-1]) if len(ends) else 0) if is_open else len(text)
                if cut:
                    yield text[:cut], False
                pending = text[cut:]
                if is_open and len(pending) > max_line_bytes:
                    table.fail(1, explain("", None, max_line_bytes))
    except ParseError as error:
        if pending:
            yield pending, False
        if error.line is not None:
            raise
        raise ParseError(source.name, table.line, error.column, error.message) from None
    if pending:
        yield pending, True


@dataclass(slots=True)
class _Piece:
    """Records that follow one another, all with as many fields as the header."""

    text: bytes
    begins: Integers
    lines: Integers  # the line of each record


class _Table:
    """One file: its header, then its records."""

    def __init__(
        self, path: str, delimiter: str, columns: Columns, maker: RowMaker, policy: ErrorPolicy
    ) -> None:
        self.arrow = import_arrow("csv")
        self.path = path
        self.line = 1  # of the next record
        self._delimiter = delimiter
        self._quote = '"' if delimiter == "," else "\0"
        self._columns = columns
        self._maker = maker
        self._policy = policy
        self._header: list[str] | None = None
        self._header_passed = False
        self._roles: Roles | None = None

    def knows_types(self, text: bytes, ends: Integers, fields: Integers) -> bool:
        """Whether no more rows are needed to tell the types of columns."""
        filled = np.flatnonzero(fields)
        if self._header is None and len(filled):
            first = int(filled[0])
            begin = int(ends[first - 1]) if first else 0
            self._read_header(text[begin : int(ends[first])], self.line + first)
        known = {*self._maker.types, *dict(self._columns.types), *self._columns.categorical}
        return self._roles is not None and known.issuperset(self._roles.features)

    def scan(self, text: bytes) -> tuple[Integers, Integers, Integers, bool]:
        return _native.scan_csv(text, self._delimiter, self._quote)

    def fail(self, column: int, message: str) -> None:
        raise ParseError(self.path, self.line, column, message)

    def batches(self, text: bytes, last: bool) -> Iterator[Batch]:
        """The rows of whole records."""
        ends, fields, spans, is_open = self.scan(text)
        yield from self._rows(text, ends, fields, spans)
        if is_open and last:
            tail = text[int(ends[-1]) if len(ends) else 0 :]
            self.fail(tail.find(b'"') + 1, "expected a closing quote before the end of the file")

    def _rows(self, text: bytes, ends: Integers, fields: Integers, spans: Integers) -> Iterator[Batch]:
        begins = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        lines = self.line + np.concatenate(([0], np.cumsum(spans)[:-1])) if len(ends) else ends
        self.line += int(spans.sum())
        filled = fields > 0
        text_end = int(ends[-1]) if len(ends) else 0
        begins, ends, lines, fields = begins[filled], ends[filled], lines[filled], fields[filled]
        if not self._header_passed and len(begins):
            if self._header is None:
                self._read_header(text[begins[0] : ends[0]], int(lines[0]))
            self._header_passed = True
            begins, ends, lines, fields = begins[1:], ends[1:], lines[1:], fields[1:]
        if self._header is None or not len(begins):
            return
        bad = np.flatnonzero(fields != len(self._header))
        start = 0
        for stop in [*bad.tolist(), len(begins)]:
            if stop > start:
                end = int(begins[stop]) if stop < len(begins) else text_end
                origin = int(begins[start])
                piece = _Piece(text[origin:end], begins[start:stop] - origin, lines[start:stop])
                yield from self._convert(piece)
            if stop < len(begins):
                message = f"expected {len(self._header)} fields as in the header, got {fields[stop]}"
                self._policy.report(ParseError(self.path, int(lines[stop]), 1, message))
            start = stop + 1

    def _read_header(self, record: bytes, line: int) -> None:
        record = record.removeprefix(b"\xef\xbb\xbf")
        self._header = []
        start = 0
        for name in next(self._reader(record.decode("utf-8", "surrogateescape"))):
            quoted = record[start : start + 1] == self._quote.encode()
            self._header.append(name if quoted else name.strip())
            start = self._behind_field(record, start)
        if all(_is_number(name.encode("utf-8", "surrogateescape")) for name in self._header):
            message = explain("expected the names of the columns in the first line", record.strip())
            raise ParseError(self.path, line, 1, message)
        try:
            self._roles = Roles.of(self._header, self._columns)
        except ValueError as error:
            raise ParseError(self.path, line, 1, str(error)) from None

    def _reader(self, text: str) -> Any:
        quoted: dict[str, Any] = {} if self._delimiter == "," else {"quoting": csv.QUOTE_NONE}
        return csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, **quoted)

    def _convert(self, piece: _Piece) -> Iterator[Batch]:
        """The rows of a piece; around bad cells it is taken apart."""
        while len(piece.begins):
            batch = self._batch(piece)
            if batch is not None:
                yield batch
                return
            row, error = self._first_mistake(piece)
            if row:
                yield from self._convert(
                    _Piece(piece.text[: piece.begins[row]], piece.begins[:row], piece.lines[:row])
                )
            self._policy.report(error)
            if row + 1 == len(piece.begins):
                return
            origin = int(piece.begins[row + 1])
            piece = _Piece(piece.text[origin:], piece.begins[row + 1 :] - origin, piece.lines[row + 1 :])

    def _numeric(self) -> list[str]:
        roles = self._known_roles()
        names = [name for name in roles.features if self._maker.types[name] == NUMBER]
        return [name for name in (roles.label, roles.weight, *names) if name is not None]

    def _known_roles(self) -> Roles:
        assert self._roles is not None
        return self._roles

    def _batch(self, piece: _Piece) -> Batch | None:
        """All rows at once; None if some cell is bad."""
        roles = self._known_roles()
        self._find_types(piece)
        numeric = set(self._numeric())
        try:
            table = self._read(piece, numeric)
        except self.arrow.ArrowInvalid:
            return None
        cells: dict[str, Numbers | Texts] = {}
        for name in roles.features:
            column = table[name]
            cells[name] = Numbers(_floats(column)) if name in numeric else Texts(*text_column(column))
        labels = _floats(table[roles.label]) if roles.label else np.full(len(piece.begins), np.nan)
        weights = _floats(table[roles.weight]) if roles.weight else None
        numbers = [labels, *(cell.values for cell in cells.values() if isinstance(cell, Numbers))]
        if weights is not None:
            if np.any(~(weights >= 0.0)):
                return None
            numbers.append(weights)
        # Empty cells are NaN by now, others must be finite; "nan" itself is told from empty by the count.
        nulls = sum(table[name].null_count for name in numeric)
        unlabelled = 0 if roles.label else len(labels)
        if any(np.isinf(n).any() for n in numbers):
            return None
        if sum(int(np.isnan(n).sum()) for n in numbers) != nulls + unlabelled:
            return None
        tags = [value or b"" for value in table[roles.tag].to_pylist()] if roles.tag else None
        return self._maker.batch(cells, labels, weights, tags, int(piece.lines[0]))

    def _read(self, piece: _Piece, numeric: set[str]) -> dict[str, Any]:
        """The columns by name."""
        arrow = self.arrow
        roles = self._known_roles()
        assert self._header is not None
        wanted = [n for n in (roles.label, roles.weight, roles.tag, *roles.features) if n is not None]
        # By number: pyarrow takes no name that is not UTF-8.
        number = {name: str(at) for at, name in enumerate(self._header)}
        types = {number[n]: arrow.float64() if n in numeric else arrow.binary() for n in wanted}
        table = arrow.csv.read_csv(
            arrow.BufferReader(piece.text),
            arrow.csv.ReadOptions(
                use_threads=False, column_names=list(number.values()), block_size=len(piece.text) + 1
            ),
            arrow.csv.ParseOptions(
                delimiter=self._delimiter,
                quote_char='"' if self._quote == '"' else False,
                newlines_in_values=True,
            ),
            arrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                include_columns=list(types),
            ),
        ).combine_chunks()
        return {name: table[number[name]] for name in wanted}

    def _find_types(self, piece: _Piece) -> None:
        roles = self._known_roles()
        types = self._maker.types
        types.update({name: kind for name, kind in self._columns.types if name not in types})
        types.update(dict.fromkeys(self._columns.categorical, TEXT))
        unknown = [name for name in roles.features if name not in types]
        if not unknown:
            return
        stop = int(piece.begins[LOOK_AHEAD]) if len(piece.begins) > LOOK_AHEAD else len(piece.text)
        head = self._read(_Piece(piece.text[:stop], piece.begins, piece.lines), set())
        for name in unknown:
            cells = [cell for cell in head[name].to_pylist() if cell]
            types[name] = NUMBER if all(map(_is_number, cells)) else TEXT

    def _first_mistake(self, piece: _Piece) -> tuple[int, ParseError]:
        """The first bad cell, found slowly."""
        roles = self._known_roles()
        table = self._read(piece, set())
        found: tuple[int, str, bytes, str] | None = None
        for name in self._numeric():
            column = table[name].to_pylist()
            for row, cell in enumerate(column[: found[0] if found else None]):
                wrong = _wrong_number(cell, name == roles.weight)
                if wrong:
                    found = (row, name, cell or b"", wrong)
                    break
        if found is None:
            message = "expected delimited text that pyarrow can read"
            return 0, ParseError(self.path, int(piece.lines[0]), 1, message)
        row, name, cell, wrong = found
        role = {roles.label: "as the label", roles.weight: "as the weight"}.get(name, f"in column '{name}'")
        message = explain(f"{wrong} {role}", cell)
        if name in roles.features and wrong == "expected a number":
            message += f" (text in such a column: --categorical {name})"
        end = int(piece.begins[row + 1]) if row + 1 < len(piece.begins) else len(piece.text)
        return row, self._at(name, piece.text[int(piece.begins[row]) : end], int(piece.lines[row]), message)

    def _at(self, name: str, record: bytes, line: int, message: str) -> ParseError:
        """The error, at the field of that name."""
        assert self._header is not None
        place = self._header.index(name)
        start = 0
        for _ in range(place):
            start = self._behind_field(record, start)
        line += record[:start].count(b"\n")
        column = start - (record.rfind(b"\n", 0, start) + 1) + 1
        return ParseError(self.path, line, column, message)

    def _behind_field(self, record: bytes, start: int) -> int:
        """Where the field after the one at ``start`` begins."""
        at = start
        if self._quote == '"' and record[at : at + 1] == b'"':
            at += 1
            while at < len(record):
                if record[at : at + 2] == b'""':
                    at += 2
                elif record[at : at + 1] == b'"':
                    break
                else:
                    at += 1
        return record.find(self._delimiter.encode(), at) + 1


def _floats(column: Any) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = column.fill_null(math.nan).to_numpy()
    return values


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return b"_" not in cell


def _wrong_number(cell: bytes | None, weight: bool) -> str | None:
    """What was expected instead of a cell; None if it is good. An empty one is good, but not as a weight."""
    if cell is None:
        return "expected a number" if weight else None
    if not _is_number(cell):
        return "expected a number"
    if not math.isfinite(float(cell)):
        return "expected a finite number"
    return "expected a non-negative number" if weight and float(cell) < 0.0 else None


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
            cells = [""] * self._width
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
