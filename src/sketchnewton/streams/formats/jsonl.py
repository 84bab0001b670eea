"""JSON lines: an object per line, flat or with one level of namespaces."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import partial

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.features.columns import LABELS
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.lines import LineError, explain, parse_lines
from sketchnewton.streams.object_rows import BadValue, MissingLabel, ObjectRows, Pairs
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
        return parse_lines(source, partial(_parse_text, options, source.name, policy), policy, options)

    return parse


def _parse_text(
    options: ReadOptions, path: str, policy: ErrorPolicy, text: memoryview, line: int
) -> tuple[Batch, int, LineError | None]:
    rows = ObjectRows.of(options)
    lines = 0
    start = 0
    error: LineError | None = None
    raw = bytes(text)
    record = b""

    def locate(bad: BadValue) -> ParseError:
        mistake = _at(record, bad)
        return ParseError(path, line + lines, mistake.column, explain(mistake.message, mistake.token))

    if policy.skips:
        rows.misfit = lambda bad: policy.report_misfit(partial(locate, bad))
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        record = raw[start:end].removeprefix(b"\xef\xbb\xbf")
        if len(record) > options.max_line_bytes:
            error = (1, "", None, end + 1)
            break
        try:
            if record.strip():
                rows.add_object(_decode(record), first=line + lines == 1)
        except (_Mistake, BadValue) as wrong:
            mistake = _at(record, wrong) if isinstance(wrong, BadValue) else wrong
            error = (mistake.column, mistake.message, mistake.token, end + 1)
            break
        lines += 1
        start = end + 1
    return rows.batch(line), lines, error


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
_DECODER = json.JSONDecoder(object_pairs_hook=lambda pairs: pairs, parse_constant=_CONSTANTS.__getitem__)


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
        raise _Mistake(1, "expected an object", text.encode())
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
