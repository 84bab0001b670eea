"""Delimited text: where its records are, what kind its columns are of, its cells as pyarrow reads them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.types import Integers
from sketchnewton.features.columns import NUMBER
from sketchnewton.features.kinds import is_missing, kind_of, looks_like_number
from sketchnewton.features.table_rows import Cells, Fault, Numbers, Report, Roles, RowMaker, Texts
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.formats.arrow import import_arrow, text_column
from sketchnewton.streams.lines import chunks, explain
from sketchnewton.streams.source import Source
from sketchnewton.streams.table_batches import advice, table_batches

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Delimited", "whole_records"]

LOOK_AHEAD = 1000
"""Rows in which the kinds of columns are found out."""

_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(rb"\s*[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?\s*")


def whole_records(
    source: Source, table: Delimited, batch_bytes: int, max_line_bytes: int
) -> Iterator[tuple[bytes, bool]]:
    """Text that ends where a record ends, and whether it is the last; at first enough to tell the kinds."""
    pending = b""
    try:
        for chunk in chunks(source, batch_bytes, max_line_bytes):
            text = pending + bytes(chunk)
            ends, fields, _, is_open = table.scan(text)
            if np.count_nonzero(fields) <= LOOK_AHEAD and not table.knows_kinds(text, ends, fields):
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


class _Records(NamedTuple):
    """Where records begin and end in a text, on which line, and how many fields they have."""

    begins: Integers
    ends: Integers
    lines: Integers
    fields: Integers

    def part(self, which: slice | Integers) -> _Records:
        return _Records(*(array[which] for array in self))


class _Piece(NamedTuple):
    """Records that follow one another, all with as many fields as the header."""

    text: bytes
    begins: Integers
    lines: Integers


class Delimited:
    """One file: its header, then its records. A delimiter that is not given is the one that its first line has."""

    def __init__(
        self,
        path: str,
        delimiter: str | None,
        quote: str,
        maker: RowMaker,
        policy: ErrorPolicy,
        *,
        header: bool = True,
    ) -> None:
        self._arrow = import_arrow("csv")
        self._path = path
        self.line = 1  # of the next record
        self._delimiter = delimiter
        self._quote = quote
        self._maker = maker
        self._policy = policy
        self._header: list[str] | None = None
        self._header_passed = not header
        self._looked_ahead = False
        self._decimal = "."
        self._roles: Roles | None = None
        self._nulls = [text.decode() for text in sorted(maker.missing) if _is_utf8(text)]

    def knows_kinds(self, text: bytes, ends: Integers, fields: Integers) -> bool:
        """Whether no more rows are needed to tell the kinds of columns."""
        filled = np.flatnonzero(fields)
        if self._header is None and len(filled):
            first = int(filled[0])
            begin = int(ends[first - 1]) if first else 0
            self._read_header(text[begin : int(ends[first])], self.line + first)
        return self._roles is not None and self._maker.kinds.keys() >= set(self._roles.features)

    def scan(self, text: bytes) -> tuple[Integers, Integers, Integers, bool]:
        """Where records end, how many fields and lines they have, and whether the last is open."""
        if self._delimiter is None:
            self._delimiter = _delimiter_of(text)
        return _native.scan_csv(text, self._delimiter, self._quote or "\0")

    def fail(self, column: int, message: str) -> None:
        """Raise an error at the next record."""
        raise ParseError(self._path, self.line, column, message)

    def batches(self, text: bytes, last: bool) -> Iterator[Batch]:
        """The rows of whole records."""
        ends, fields, spans, is_open = self.scan(text)
        if len(ends):
            begins = np.concatenate(([0], ends[:-1]))
            lines = self.line + np.concatenate(([0], np.cumsum(spans)[:-1]))
            self.line += int(spans.sum())
            yield from self._rows(text, _Records(begins, ends, lines, fields).part(np.flatnonzero(fields)))
        if is_open and last:
            tail = text[int(ends[-1]) if len(ends) else 0 :]
            self.fail(tail.find(b'"') + 1, "expected a closing quote before the end of the file")

    def _rows(self, text: bytes, records: _Records) -> Iterator[Batch]:
        if self._header is None and len(records.begins):
            self._read_header(text[records.begins[0] : records.ends[0]], int(records.lines[0]))
        if not self._header_passed and len(records.begins):
            self._header_passed = True
            records = records.part(slice(1, None))
        if self._header is None or not len(records.begins):
            return
        good = records.fields == len(self._header)
        if not self._looked_ahead:
            self._look_ahead(text, records.part(np.flatnonzero(good[:LOOK_AHEAD])))
        start = 0
        for stop in [*np.flatnonzero(~good).tolist(), len(good)]:
            if stop > start:
                part = records.part(slice(start, stop))
                origin, end = int(part.begins[0]), int(part.ends[-1])
                yield from self._convert(_Piece(text[origin:end], part.begins - origin, part.lines))
            if stop < len(good):
                message = f"expected {len(self._header)} fields as in the header, got {records.fields[stop]}"
                self._policy.report(ParseError(self._path, int(records.lines[stop]), 1, message))
            start = stop + 1

    def _read_header(self, record: bytes, line: int) -> None:
        names: list[str] = []
        start = 0
        record = record.removeprefix(b"\xef\xbb\xbf")
        for name in next(self._reader(record.decode("utf-8", "surrogateescape"))):
            quoted = bool(self._quote) and record[start : start + 1] == b'"'
            names.append(name if quoted else name.strip())
            start = self._behind_field(record, start)
        if self._header_passed:  # there is none
            names = [str(number) for number in range(1, len(names) + 1)]
        elif all(looks_like_number(name.encode("utf-8", "surrogateescape")) for name in names):
            message = explain("expected the names of the columns in the first line", record.strip())
            raise ParseError(self._path, line, 1, f"{message} (--no-header if there are none)")
        self._header = names
        try:
            self._roles = self._maker.roles(names)
        except ValueError as error:
            raise ParseError(self._path, line, 1, str(error)) from None

    def _reader(self, text: str) -> Iterator[list[str]]:
        lines, delimiter = io.StringIO(text, newline=""), self._delimiter or ","
        if self._quote:
            return csv.reader(lines, delimiter=delimiter)
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)

    # --- kinds

    def _look_ahead(self, text: bytes, records: _Records) -> None:
        """Find the kinds of columns in the first rows, and whether numbers have a decimal comma."""
        self._looked_ahead = True
        unknown = self._unknown()
        commas = self._delimiter == ";"
        if not (unknown or commas) or not len(records.begins):
            return
        begins, ends = records.begins.tolist(), records.ends.tolist()
        head = b"".join(text[begin:end] for begin, end in zip(begins, ends, strict=True))
        roles = self._known_roles()
        names = (
            [n for n in (roles.label, roles.weight, *roles.features) if n is not None] if commas else unknown
        )
        found = {
            name: [cell for cell in text_column(column)[1] if not self._is_missing(cell)]
            for name, column in self._read(head, names, set()).items()
        }
        if commas and any(map(_has_decimal_commas, found.values())):
            self._decimal = ","
        for name in unknown:
            self._found(name, kind_of(map(self._with_point, found[name])))

    def _with_point(self, cell: bytes) -> bytes:
        """A number with a decimal comma as one with a point."""
        if self._decimal == "," and _DECIMAL_COMMA.fullmatch(cell):
            return cell.replace(b",", b".")
        return cell

    def _unknown(self) -> list[str]:
        return [name for name in self._known_roles().features if name not in self._maker.kinds]

    def _is_missing(self, cell: bytes) -> bool:
        return is_missing(cell, self._maker.missing)

    def _found(self, name: str, kind: str | None) -> None:
        if kind is not None:
            self._maker.kinds[name] = kind

    def _known_roles(self) -> Roles:
        assert self._roles is not None
        return self._roles

    # --- cells

    def _convert(self, piece: _Piece) -> Iterator[Batch]:
        make = partial(self._batch, piece)
        try:
            yield from table_batches(make, len(piece.begins), self._policy, partial(self._located, piece))
        except self._arrow.ArrowInvalid:
            message = "expected delimited text that pyarrow can read"
            self._policy.report(ParseError(self._path, int(piece.lines[0]), 1, message), can_go_on=False)

    def _batch(self, piece: _Piece, report: Report) -> Batch:
        roles, kinds = self._known_roles(), self._maker.kinds
        wanted = [n for n in (roles.label, roles.weight, roles.tag, *roles.features) if n is not None]
        numeric = {name for name in roles.features if kinds.get(name) == NUMBER}
        numeric |= {n for n in (roles.weight, roles.label) if n is not None}
        if self._maker.label_codes is not None or not self._maker.labels_wanted:
            numeric -= {roles.label}
        try:
            table = self._read(piece.text, wanted, numeric)
        except self._arrow.ArrowInvalid:  # some cell is no number: which of them is found out one by one
            table, numeric = self._read(piece.text, wanted, set()), set()
        cells = {
            name: _numbers(column) if name in numeric else self._texts(name, column)
            for name, column in table.items()
            if name != roles.tag
        }
        for name in self._unknown():  # nothing but missing cells until now: the first that is not decides
            texts = cells[name]
            assert isinstance(texts, Texts)
            for cell in texts.distinct:
                if not self._is_missing(cell):
                    self._found(name, kind_of([self._with_point(cell)]))
                    break
        tags = None if roles.tag is None else table[roles.tag].to_pylist()
        made = Cells(
            {name: cells[name] for name in roles.features},
            None if roles.label is None else (roles.label, cells[roles.label]),
            None if roles.weight is None else (roles.weight, cells[roles.weight]),
            tags,
            len(piece.begins),
        )
        return self._maker.batch(made, report, int(piece.lines[0]))

    def _texts(self, name: str, column: pa.ChunkedArray) -> Texts:
        codes, distinct = text_column(column)
        roles, kind = self._known_roles(), self._maker.kinds.get(name, NUMBER)
        if self._decimal == "," and (name in (roles.label, roles.weight) or kind == NUMBER):
            distinct = list(map(self._with_point, distinct))
        return Texts(codes, distinct)

    def _read(self, text: bytes, wanted: list[str], numeric: set[str]) -> dict[str, pa.ChunkedArray]:
        """The columns by name, as numbers or as bytes."""
        arrow = self._arrow
        assert self._header is not None
        # By number: pyarrow takes no name that is not UTF-8.
        number = {name: str(at) for at, name in enumerate(self._header)}
        types = {number[n]: arrow.float64() if n in numeric else arrow.binary() for n in wanted}
        table = arrow.csv.read_csv(
            arrow.BufferReader(text),
            arrow.csv.ReadOptions(
                use_threads=False, column_names=list(number.values()), block_size=len(text) + 1
            ),
            arrow.csv.ParseOptions(
                delimiter=self._delimiter, quote_char=self._quote or False, newlines_in_values=True
            ),
            arrow.csv.ConvertOptions(
                check_utf8=False,
                decimal_point=self._decimal,
                column_types=types,
                null_values=self._nulls,  # of numbers; texts are told from missing ones later
                include_columns=list(types),
            ),
        ).combine_chunks()
        return {name: table[number[name]] for name in wanted}

    # --- errors

    def _located(self, piece: _Piece, fault: Fault) -> ParseError:
        roles, name = self._known_roles(), fault.column
        role = {roles.label: "as the label", roles.weight: "as the weight"}.get(name, f"in column '{name}'")
        end = int(piece.begins[fault.row + 1]) if fault.row + 1 < len(piece.begins) else len(piece.text)
        record, line = piece.text[int(piece.begins[fault.row]) : end], int(piece.lines[fault.row])
        start, token = self._field(name, record)
        message = explain(f"{fault.expected} {role}", token)
        if name in (roles.label, *roles.features):
            message += advice(fault.expected, name, label=name == roles.label)
        line += record[:start].count(b"\n")
        column = start - (record.rfind(b"\n", 0, start) + 1) + 1
        return ParseError(self._path, line, column, message)

    def _field(self, name: str, record: bytes) -> tuple[int, bytes]:
        """Where the field of that name begins in a record, and what it has."""
        assert self._header is not None
        place = self._header.index(name)
        start = 0
        for _ in range(place):
            start = self._behind_field(record, start)
        fields = next(self._reader(record.decode("utf-8", "surrogateescape")))
        return start, fields[place].encode("utf-8", "surrogateescape")

    def _behind_field(self, record: bytes, start: int) -> int:
        """Where the field after the one at ``start`` begins."""
        at = start
        if self._quote and record[at : at + 1] == b'"':
            at += 1
            while at < len(record):
                if record[at : at + 2] == b'""':
                    at += 2
                elif record[at : at + 1] == b'"':
                    break
                else:
                    at += 1
        return record.find((self._delimiter or ",").encode(), at) + 1


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return Numbers(column.fill_null(np.nan).to_numpy())


def _delimiter_of(text: bytes) -> str:
    """What separates the names of the first line; a comma if nothing does."""
    line = text.lstrip(b"\r\n").split(b"\n", 1)[0].decode("utf-8", "replace")
    bare = "".join(part for at, part in enumerate(line.split('"')) if at % 2 == 0)  # what is not in quotes
    return max(_DELIMITERS, key=lambda delimiter: (bare.count(delimiter), delimiter == ","))


def _has_decimal_commas(cells: list[bytes]) -> bool:
    """Whether these are numbers, some with a decimal comma."""
    commas = [_DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells]
    return any(commas) and all(
        comma or looks_like_number(cell) for comma, cell in zip(commas, cells, strict=True)
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
