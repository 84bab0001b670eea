"""JSON lines: an object per line, flat or with one level of namespaces."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from functools import partial

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.features.columns import LABELS, TAG, WEIGHT
from sketchnewton.features.kinds import Misfit, encoded, features_of
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.lines import LineError, explain, parse_lines
from sketchnewton.streams.made_rows import MISSING_CELL, finished, label_code, table_rows
from sketchnewton.streams.object_rows import BadValue, MissingLabel, ObjectRows, Pairs, value_text
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.source import Source
from sketchnewton.streams.writer import BatchWriter, row_fields, row_values


def jsonl_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``.

    ``{"label": 1, "price": 0.5, "city": "Rome", "user": {"age": 33}}``: a key is a column, of the kind of its
    first value that is not null: a number, a boolean, or a text, which is a category; an object is a namespace;
    a list of texts is a bag of words, one of numbers has numbered features in a namespace of its own.
    """

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        return parse_lines(source, _Lines(options, source.name, policy).parse, policy, options)

    return parse


Stop = tuple[str, int, int, int, int, bytes | None, bool, bytes]
"""Where compiled code stopped and what it asks for: see ``JsonParser`` in ``_native.pyi``."""


class _Lines:
    """Lines of one input. Compiled code makes rows of what is certainly right; the rest is looked at here."""

    def __init__(self, options: ReadOptions, path: str, policy: ErrorPolicy) -> None:
        columns = options.columns
        self._options = options
        self._path = path
        self._policy = policy
        self._kinds = options.known_kinds()
        self._told = 0  # of the kinds
        self._rows = table_rows(options)
        self._parser = _native.JsonParser(
            [encoded(name) for name in columns.labels],
            encoded(WEIGHT if columns.weight is None else columns.weight),
            encoded(TAG if columns.tag is None else columns.tag),
            columns.weight not in (None, *columns.optional),
            [encoded(name) for name in columns.drop],
            options.only_labels,
            {encoded(name): number for name, number in options.features.column_numbers.items()},
        )

    def parse(self, text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        """Rows of whole lines, as ``parse_lines`` wants them."""
        whole = bytes(text) + b"\n" if len(text) and text[-1] != 10 else text
        most = self._options.max_line_bytes
        at = lines = 0
        behind = self._first_line(whole) if line == 1 else 0
        error: LineError | None = None
        while error is None:
            if not behind:
                self._tell_kinds()
                stop = self._parser.parse(self._rows, whole, at, most)
                why, at, behind, passed = stop[:4]
                lines += passed
                self._note_kinds()
                if why == "end":
                    break
                if why == "long":
                    error = (1, "", None, behind)
                    break
                if self._answered(stop, bytes(whole[at : behind - 1]), line + lines):
                    behind = 0
                    continue
            error = self._look_at(bytes(whole[at : behind - 1]), line + lines, behind)
            lines += error is None
            at, behind = behind, 0
        self._policy.misfits += self._rows.misfits()
        return finished(self._rows, self._options, line), lines, error

    def _first_line(self, text: memoryview | bytes) -> int:
        """Where the first line ends, which must have the label: it is looked at here. 0 if it is too long."""
        return bytes(text[: self._options.max_line_bytes + 1]).find(b"\n") + 1

    def _tell_kinds(self) -> None:
        for name in itertools.islice(self._kinds, self._told, None):
            self._parser.set_kind(self._rows, encoded(name), self._kinds[name])
        self._told = len(self._kinds)

    def _note_kinds(self) -> None:
        for name, kind in self._rows.found():
            self._kinds[name.decode()] = kind
        self._told = len(self._kinds)

    def _look_at(self, record: bytes, line: int, behind: int) -> LineError | None:
        """Make a row of one line, or say what is wrong with it."""
        made = ObjectRows.of(self._options)
        record = record.removeprefix(b"\xef\xbb\xbf")
        if self._policy.skips:
            made.misfit = lambda bad: self._policy.report_misfit(partial(self._located, record, line, bad))
        try:
            if record.strip():
                made.add_object(_decode(record), first=line == 1)
        except (_Mistake, BadValue) as wrong:
            mistake = _at(record, wrong) if isinstance(wrong, BadValue) else wrong
            return mistake.column, mistake.message, mistake.token, behind
        for label, weight, tag, features in made.rows():
            self._rows.add_row(label, weight, tag, features)
        return None

    def _answered(self, stop: Stop, record: bytes, line: int) -> bool:
        """Tell the parser what a cell becomes; False: the line must be looked at as a whole."""
        why, _, _, _, column, key, is_number, cell = stop
        if why == "line":
            return False
        text = value_text(json.loads(cell)) if is_number else cell
        try:
            if why == "label":
                self._rows.know_label(is_number, cell, label_code(text, self._options))
            elif key is not None:
                kind = self._kinds.get(key.decode())
                if kind is None:  # this very line decides it
                    return False
                self._rows.know(column, is_number, cell, features_of(kind, text), False)
        except Misfit:
            if why == "label" or not self._policy.skips:
                return False
            self._policy.report_misfit(partial(self._misfit, record, line), 0)  # counted when rows are made
            self._rows.know(column, is_number, cell, MISSING_CELL, True)
        return True

    def _misfit(self, record: bytes, line: int) -> ParseError:
        """The first value of a line that is not of its kind."""
        found: list[BadValue] = []
        made = ObjectRows.of(self._options)
        made.misfit = found.append
        with contextlib.suppress(BadValue):  # in a value behind it
            made.add_object(_decode(record))
        return self._located(record, line, found[0])

    def _located(self, record: bytes, line: int, bad: BadValue) -> ParseError:
        mistake = _at(record, bad)
        return ParseError(self._path, line, mistake.column, explain(mistake.message, mistake.token))


class _Mistake(Exception):
    """A line that is not allowed: where, what was expected, and what stands there."""

    def __init__(self, column: int, message: str, token: bytes) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.token = token


_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
MAX_VALUES = 1 << 18
"""Of a line."""

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')


class _RepeatedKey(Exception):
    """An object has a key twice."""


def _members(pairs: Pairs) -> Pairs:
    """Of an object: the JSON standard leaves open which value of a key that comes twice is meant."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedKey
    return pairs


_MARK = re.compile(r'("(?:[^"\\]|\\.)*+")\s*+(:?)|[{}]')


def _repeated(text: str) -> _Mistake:
    """The key that comes twice in the first object to end with such a one, where it comes again."""
    keys: list[dict[str, None]] = []
    again: list[re.Match[str] | None] = []
    for mark in _MARK.finditer(text):
        if mark[0] == "{":
            keys.append({})
            again.append(None)
        elif mark[0] == "}":
            keys.pop()
            if (found := again.pop()) is not None:
                break
        elif mark[2]:
            key = json.loads(mark[1])
            if key in keys[-1] and again[-1] is None:
                again[-1] = mark
            keys[-1][key] = None
    assert found is not None
    column = len(text[: found.start()].encode()) + 1
    return _Mistake(
        column, "expected each key of an object once", json.loads(found[1]).encode("utf-8", "surrogatepass")
    )


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_CONSTANTS.__getitem__)


def _at(record: bytes, bad: BadValue) -> _Mistake:
    """The mistake, at the key in the line."""
    if isinstance(bad, MissingLabel):
        return _Mistake(1, bad.message, bad.token)
    sought = json.dumps(bad.key, ensure_ascii=False) if bad.key else str(bad.value)
    place = record.find(sought.encode("utf-8", "surrogatepass"))
    return _Mistake(1 + max(0, place), bad.message + bad.advice, bad.token)


def _check_size(record: bytes) -> None:
    """Refuse more values than a row may have before there are objects for them, a hundred bytes for each."""
    if record.count(b",") > MAX_VALUES and _TEXT.sub(b"", record).count(b",") > MAX_VALUES:
        raise _Mistake(1, f"expected at most {MAX_VALUES} values in a line", record[:20])


def _decode(record: bytes) -> Pairs:
    _check_size(record)
    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise _Mistake(error.start + 1, "expected UTF-8", record[error.start : error.start + 1]) from None
    text = text.rstrip(" \t\r\n")
    begin = len(text) - len(text.lstrip(" \t"))
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except _RepeatedKey:
        raise _repeated(text) from None
    except json.JSONDecodeError as error:
        column = len(text[: error.pos].encode()) + 1
        expected = error.msg[0].lower() + error.msg[1:]
        raise _Mistake(column, f"expected JSON: {expected}", text[error.pos :].encode()) from None
    except RecursionError:
        raise _Mistake(1, "expected at most one level of objects", b"{{") from None
    except ValueError:  # an integer of thousands of digits
        found = max(re.finditer(r"\d+", text), key=lambda digits: len(digits[0]))
        column = len(text[: found.start()].encode()) + 1
        raise _Mistake(column, "expected a finite number", found[0].encode()) from None
    is_object = isinstance(value, list) and text[begin] == "{"
    if not is_object:
        raise _Mistake(1, "expected an object in each line", text.encode())
    if end != len(text):
        column = len(text[:end].encode()) + 1
        raise _Mistake(column, "expected the end of the line after the object", text[end:].encode())
    pairs: Pairs = value
    return pairs


class JsonLinesWriter(BatchWriter):
    """An object per row, flat."""

    format = "jsonl"

    def _write(self, batch: Batch) -> None:
        if batch.base is not None:
            raise self._refuse("base predictions")
        names = None if self._names is None else self._column_names()
        # Where there is a feature whose name may stand for the label, all rows must have one, or none by name.
        doubtful = not set(LABELS).isdisjoint(names or ())
        lines = []
        for (label, weight, tag, _), values in zip(row_fields(batch), row_values(batch), strict=True):
            record: dict[str, object] = {}
            if doubtful or not math.isnan(label):
                record["label"] = None if math.isnan(label) else _plain(label)
            if weight != 1.0:
                record["_weight"] = _plain(weight)
            if tag:
                record["_tag"] = self._text(tag)
            for index, value in values.items():
                record[str(index) if names is None else names[index]] = _plain(value)
            lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.write("".join(lines).encode())


def _plain(number: float) -> float | int:
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


PARSERS = {"jsonl": jsonl_parser}
WRITERS = {"jsonl": JsonLinesWriter}
