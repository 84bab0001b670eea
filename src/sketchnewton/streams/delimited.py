"""Delimited text: its dialect, its header, the kinds of its columns; compiled code makes rows of its records."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Iterator
from functools import partial

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.features.columns import NUMBER
from sketchnewton.features.kinds import (
    Misfit,
    encoded,
    features_of,
    is_missing,
    kind_of,
    looks_like_number,
    missing_texts,
)
from sketchnewton.features.roles import Roles
from sketchnewton.streams.advice import advice
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.lines import chunks, explain
from sketchnewton.streams.made_rows import MISSING_CELL, finished, label_code, table_rows, weight_number
from sketchnewton.streams.reader import ReadOptions
from sketchnewton.streams.source import Source

__all__ = ["Delimited"]

LOOK_AHEAD = 1000
"""Rows in which the kinds of columns are found out."""

_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(rb"\s*[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?\s*")
_FIRST_LINE = re.compile(rb"[\r\n]*([^\n]*)")
_DROPPED, _LABEL, _WEIGHT, _TAG = -1, -2, -3, -4  # fields that are no features, to the compiled parser


class Delimited:
    """One file: its header, then its records. A delimiter that is not given is the one that its first line has."""

    def __init__(
        self, path: str, delimiter: str | None, quote: str, options: ReadOptions, policy: ErrorPolicy
    ) -> None:
        self._path = path
        self._line = 1  # of the next record
        self._delimiter = delimiter
        self._quote = quote
        self._options = options
        self._policy = policy
        self._kinds = options.known_kinds()
        self._missing = missing_texts(options.columns.missing)
        self._decimal = "."
        self._header: list[str] = []
        self._roles = Roles(None, None, None, ())
        self._rows = table_rows(options)
        self._parser: _native.CsvParser | None = None

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows of all records."""
        pieces = chunks(source, self._options.batch_bytes, self._options.max_line_bytes)
        pending = b""
        failure: ParseError | None = None
        ended = False
        while not ended:
            try:
                piece = bytes(next(pieces, b""))
            except ParseError as error:
                piece, failure = b"", error
            pending += piece
            ended = piece[-1:] != b"\n"  # which only the last may lack
            if ended and pending and not pending.endswith(b"\n"):
                pending += b"\n"
            pending = yield from self._read(pending, ended, failure is None)
            if not ended and self._parser is not None and len(pending) > self._options.max_line_bytes:
                raise ParseError(self._path, self._line, 1, explain("", None, self._options.max_line_bytes))
        if failure is not None:
            raise ParseError(self._path, self._line, failure.column, failure.message)

    def _read(self, text: bytes, ended: bool, whole: bool) -> Generator[Batch, None, bytes]:
        """Rows of a text that ends where a line ends; gives back what is no whole record yet."""
        at = 0
        if self._parser is None:
            if not text:
                return text
            at = self._begin(text, ended)
            if self._parser is None and not ended:
                return text
        if self._parser is not None:
            at = yield from self._records(self._parser, text, at)
        rest = text[at:]
        if ended and whole and rest.strip(b"\r\n"):
            message = "expected a closing quote before the end of the file"
            raise ParseError(self._path, self._line, rest.find(b'"') + 1, message)
        return rest

    # --- dialect, header and kinds

    def _begin(self, text: bytes, ended: bool) -> int:
        """Find out what the columns are, if there is enough to tell; where the first record begins."""
        if self._delimiter is None:
            self._delimiter = _delimiter_of(text)
        quote = self._quote or "\0"
        records, begin, end, lines, own = _native.csv_start(text, self._delimiter, quote, LOOK_AHEAD + 1)
        if not records:
            return 0
        if not self._header:
            self._read_header(text[begin:end], self._line + lines)
        if not ended and records <= LOOK_AHEAD and self._unknown():
            return 0
        at = begin
        self._line += lines
        if self._options.header:
            at = end
            self._line += own
        self._parser = _native.CsvParser(self._delimiter, quote, self._fields())
        self._look_ahead(self._parser, text, at)
        return at

    def _read_header(self, record: bytes, line: int) -> None:
        names: list[str] = []
        start = 0
        for name in self._split(record):
            quoted = bool(self._quote) and record[start : start + 1] == b'"'
            names.append(name if quoted else name.strip())
            start = self._behind_field(record, start)
        if not self._options.header:
            names = [str(number) for number in range(1, len(names) + 1)]
        elif all(looks_like_number(encoded(name)) for name in names) and not self._are_names(names):
            message = explain("expected the names of the columns in the first line", record.strip())
            raise ParseError(self._path, line, 1, f"{message} (--no-header if there are none)")
        self._header = names
        try:
            self._roles = self._options.roles(names)
            self._options.check_known(self._roles.features)
        except ValueError as error:
            values = self._options.header and any(looks_like_number(encoded(name)) for name in names)
            hint = " (--no-header if the first line has no names)" if values else ""
            raise ParseError(self._path, line, 1, f"{error}{hint}") from None

    def _are_names(self, numbers: list[str]) -> bool:
        """Whether a first line of numbers names columns: as pandas numbers them, or as columns are known here.

        Columns that are known as 1, 2, 3, … had no header; their values may be such numbers, too. So where columns
        were learned and none of them is 0, a line 0, 1, 2, … is values.
        """
        known = {*self._kinds, *self._options.columns.named}
        counted = len(numbers) > 2 and numbers == [str(number) for number in range(len(numbers))]
        if counted and ("0" in known or not self._options.columns.kinds):
            return True
        return known.issuperset(numbers) and known != {str(number) for number in range(1, len(known) + 1)}

    def _fields(self) -> list[int]:
        """What each field is; the columns of features are entered with their kinds."""
        roles, numbers = self._roles, self._options.features.column_numbers
        others = {roles.label: _LABEL, roles.weight: _WEIGHT, roles.tag: _TAG}
        self._columns: dict[str, int] = {}
        for name in roles.features:
            column = self._columns[name] = self._rows.add_column(encoded(name), numbers.get(name, 0))
            if name in self._kinds:
                self._rows.set_kind(column, self._kinds[name])
        return [self._columns.get(name, others.get(name, _DROPPED)) for name in self._header]

    def _look_ahead(self, parser: _native.CsvParser, text: bytes, at: int) -> None:
        """Find the kinds of columns in the first rows, and whether numbers have a decimal comma."""
        unknown = self._unknown()
        commas = self._delimiter == ";"
        roles = self._roles
        names = (
            [n for n in (roles.label, roles.weight, *roles.features) if n is not None] if commas else unknown
        )
        wanted = [self._header.index(name) for name in names]
        cells = parser.look(self._rows, text, at, wanted, LOOK_AHEAD, commas) if wanted else []
        found = dict(zip(names, cells, strict=True))
        if commas and any(map(_has_decimal_commas, found.values())):
            self._decimal = ","
            self._rows.set_decimal_comma()
        for name in unknown:
            kind = kind_of(map(self._with_point, found[name]))
            if kind is not None:
                self._find_out(name, kind)

    def _unknown(self) -> list[str]:
        return [name for name in self._roles.features if name not in self._kinds]

    def _find_out(self, name: str, kind: str) -> None:
        self._kinds[name] = kind
        self._rows.set_kind(self._columns[name], kind)

    def _with_point(self, cell: bytes) -> bytes:
        """A number with a decimal comma as one with a point."""
        if self._decimal == "," and _DECIMAL_COMMA.fullmatch(cell):
            return cell.replace(b",", b".")
        return cell

    # --- records

    def _records(self, parser: _native.CsvParser, text: bytes, at: int) -> Generator[Batch, None, int]:
        """Rows up to the last record, or to one that is open; gives where that is."""
        rows = self._rows
        first_line: int | None = None  # of the rows in the making
        begin, begin_line = at, self._line  # where they were looked for
        while True:
            why, at, behind, lines, own, first, fields, field, cell = parser.parse(rows, text, at)
            if first_line is None and first >= 0:
                first_line = self._line + first
            self._line += lines
            record = text[at:behind]
            fault: ParseError | None = None
            if why == "fields":
                plural = "s" * (len(self._header) != 1)
                message = f"expected {len(self._header)} field{plural} as in the header, got {fields}"
                fault = ParseError(self._path, self._line, 1, message)
            elif why in ("cell", "label", "weight"):
                fault = self._answered(why, field, cell, record)
                if fault is None:
                    continue
            self._policy.misfits += rows.misfits()
            if first_line is not None:
                batch = finished(rows, self._options, first_line)
                if self._line - first_line != len(batch):  # some rows have several lines, or none are between
                    batch.find_line = partial(self._line_of_row, text, begin, begin_line)
                yield batch
                del batch
                first_line = None
            if fault is None:
                return at
            self._policy.report(fault)
            self._line += own
            at = behind
            begin, begin_line = at, self._line

    def _line_of_row(self, text: bytes, begin: int, line: int, row: int) -> int | None:
        """The line in which a record begins: of the records of `text` from `begin` on, which is in that line."""
        with memoryview(text) as view:
            delimiter, quote = self._delimiter or ",", self._quote or "\0"
            for _ in range(row + 1):
                records, _, end, lines, own = _native.csv_start(view[begin:], delimiter, quote, 1)
                if not records:
                    return None
                begin, line = begin + end, line + lines + own
        return line - own

    def _answered(self, why: str, field: int, cell: bytes, record: bytes) -> ParseError | None:
        """Tell the parser what it asked for; what is wrong, if the record cannot be a row."""
        name = self._header[field]
        try:
            if why == "label":
                self._rows.know_label(False, cell, label_code(self._with_point(cell), self._options))
            elif why == "weight":
                missing = is_missing(cell, self._missing)
                self._rows.know_weight(cell, weight_number(b"" if missing else self._with_point(cell)))
            else:
                self._answer_cell(name, cell)
        except Misfit as misfit:
            fault = self._located(name, str(misfit), record)
            if why != "cell" or not self._policy.skips:
                return fault
            self._policy.report_misfit(lambda: fault, 0)  # counted when rows are made
            self._rows.know(self._columns[name], False, cell, MISSING_CELL, True)
        return None

    def _answer_cell(self, name: str, cell: bytes) -> None:
        kind = self._kinds.get(name)
        if kind is None:  # nothing but missing cells until now: the first that is not decides
            found = kind_of([self._with_point(cell)])
            assert found is not None
            self._find_out(name, found)
            return
        text = self._with_point(cell) if kind == NUMBER else cell
        self._rows.know(self._columns[name], False, cell, features_of(kind, text), False)

    # --- errors

    def _located(self, name: str, expected: str, record: bytes) -> ParseError:
        roles = self._roles
        role = {roles.label: "as the label", roles.weight: "as the weight"}.get(name, f"in column '{name}'")
        start, token = self._field(name, record)
        message = explain(f"{expected} {role}", token)
        if name != roles.weight:
            message += advice(expected, name, self._options.columns, label=name == roles.label)
        line = self._line + record[:start].count(b"\n")
        column = start - (record.rfind(b"\n", 0, start) + 1) + 1
        return ParseError(self._path, line, column, message)

    def _field(self, name: str, record: bytes) -> tuple[int, bytes]:
        """Where the field of that name begins in a record, and what it has."""
        place = self._header.index(name)
        start = 0
        for _ in range(place):
            start = self._behind_field(record, start)
        return start, self._split(record)[place].encode("utf-8", "surrogateescape")

    def _split(self, record: bytes) -> list[str]:
        """The fields of a record."""
        text = io.StringIO(record.decode("utf-8", "surrogateescape"), newline="")
        delimiter = self._delimiter or ","
        try:
            if self._quote:
                return next(csv.reader(text, delimiter=delimiter))
            return next(csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE))
        except csv.Error as error:  # a field is longer than its limit
            raise ParseError(self._path, None, None, f"expected shorter fields: {error}") from None

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


def _delimiter_of(text: bytes) -> str:
    """What separates the names of the first line; a comma if nothing does."""
    found = _FIRST_LINE.match(text)
    line = found[1].decode("utf-8", "replace") if found else ""
    bare = "".join(part for at, part in enumerate(line.split('"')) if at % 2 == 0)  # what is not in quotes
    return max(_DELIMITERS, key=lambda delimiter: (bare.count(delimiter), delimiter == ","))


def _has_decimal_commas(cells: list[bytes]) -> bool:
    """Whether these are numbers, some with a decimal comma."""
    commas = [_DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells]
    return any(commas) and all(
        comma or looks_like_number(cell) for comma, cell in zip(commas, cells, strict=True)
    )
