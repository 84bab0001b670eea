"""JSON lines: an object per line, flat or with one level of namespaces."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import LABELS, Columns, meant
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.lines import LineError, line_parser
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.writer import BatchWriter, row_fields, row_values

Pairs = list[tuple[str, Any]]
"""An object in its order; an object within it is pairs, too."""


def jsonl_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``.

    ``{"label": 1, "price": 0.5, "city": "Rome", "user": {"age": 33}}``: numbers as they are, texts as 1 at
    ``city=Rome``, ``true`` as 1, ``null`` and ``false`` as nothing; an object is a namespace; a list of texts is
    a bag of words, a list of numbers has numbered features in a namespace of its own.
    """

    def parse_text(text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        rows = ObjectRows.of(options)
        lines = 0
        start = 0
        error: LineError | None = None
        raw = bytes(text)
        while start < len(raw):
            end = raw.find(b"\n", start)
            end = len(raw) if end < 0 else end
            record = raw[start:end]
            if len(record) > options.max_line_bytes:
                error = (1, "", None, end + 1)
                break
            try:
                rows.add(record.removeprefix(b"\xef\xbb\xbf"), first=line + lines == 1)
            except _Mistake as mistake:
                error = (mistake.column, mistake.message, mistake.token, end + 1)
                break
            lines += 1
            start = end + 1
        return rows.batch(line), lines, error

    return line_parser(parse_text, options)


class _Mistake(Exception):
    """A line that is not allowed: where, what was expected, and what stands there."""

    def __init__(self, column: int, message: str, token: bytes) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.token = token


class BadValue(Exception):
    """A value that is not allowed: what was expected, the key, and what stands there."""

    def __init__(self, expected: str, key: str, value: object) -> None:
        super().__init__(expected)
        self.key = key
        self.value = value
        self.message = f"{expected} for '{key}'" if key else expected
        self.token = _shown(value)


class MissingLabel(BadValue):
    """The first object does not have the label that was named."""


def _no_constant(name: str) -> float:
    raise BadValue("expected a finite number", "", name)


_DECODER = json.JSONDecoder(object_pairs_hook=lambda pairs: pairs, parse_constant=_no_constant)


@dataclass
class ObjectRows:
    """Rows in the making, of objects as pairs. Each different name is hashed once, when all are there."""

    columns: Columns
    features: Features
    names: Names | None
    labels: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    values: list[float] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    distinct: dict[tuple[str, str], int] = field(default_factory=dict)
    # What is known without taking names apart again.
    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, options: ReadOptions) -> ObjectRows:
        """No rows yet. A column that was one of texts in the table that a model was trained on is one here."""
        columns = options.columns
        texts = [name for name, kind in columns.types if kind == "text"]
        columns = columns._replace(categorical=(*columns.categorical, *texts))
        return cls(columns, options.features, options.names)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, record: bytes, *, first: bool = False) -> None:
        """One line; a blank one is nothing. The `first` has to have a label that was named, be it null."""
        if not record.strip():
            return
        try:
            self.add_object(_decode(record), first=first)
        except MissingLabel as bad:
            raise _Mistake(1, bad.message, bad.token) from None
        except BadValue as bad:
            sought = json.dumps(bad.key, ensure_ascii=False) if bad.key else str(bad.value)
            place = record.find(sought.encode("utf-8", "surrogatepass"))
            raise _Mistake(1 + max(0, place), bad.message, bad.token) from None

    def add_object(self, pairs: Pairs, *, first: bool = False) -> None:
        """One object; those within it are lists of pairs, too. ``BadValue`` leaves the rows as they were."""
        kept = len(self.values)
        try:
            if first:
                self._check_label([key for key, _ in pairs])
            self._row(pairs)
        except BadValue:
            del self.values[kept:], self.slots[kept:]
            raise
        self.ends.append(len(self.values))

    def _check_label(self, keys: list[str]) -> None:
        label = self.columns.label
        if label is not None and label not in (*keys, *self.columns.optional):
            raise MissingLabel(f"expected the label as '{label}'{meant(label, keys)}", "", ", ".join(keys))

    def _row(self, pairs: Pairs) -> None:
        columns = self.columns
        keys = {key for key, _ in pairs}
        roles = columns.label_among(keys), columns.weight_among(keys), columns.tag_among(keys)
        label_key, weight_key, tag_key = roles
        label, weight, tag = math.nan, 1.0, b""
        seen: set[str] = set()
        for key, value in pairs:
            if key in roles:
                if key in seen:
                    raise BadValue("expected one value", key, value)
                seen.add(key)
            if key == label_key:
                label = math.nan if value is None else _number(key, value)
            elif key == weight_key:
                weight = _number(key, value)
                if weight < 0.0:
                    raise BadValue("expected a non-negative number", key, value)
            elif key == tag_key:
                tag = b"" if value is None else str(value).encode("utf-8", "surrogatepass")
            elif key not in columns.drop:
                self._feature(key, value)
        if columns.weight is not None and columns.weight not in (*seen, *columns.optional):
            raise BadValue("expected a number", columns.weight, None)
        self.labels.append(label)
        self.weights.append(weight)
        self.tags.append(tag)

    def _feature(self, key: str, value: object) -> None:
        # Numbers and texts first, by their very type: they are nearly all there is, and bool is none of them.
        kind = type(value)
        if (kind is float or kind is int) and key not in self.columns.categorical:
            self._append(self.numbers, key, key, "", _number(key, value))
        elif kind is str:
            self._append(self.texts, (key, value), key, f"={value}", 1.0)
        elif isinstance(value, list) and value and isinstance(value[0], tuple):
            for name, inner in value:
                if isinstance(inner, list) and inner and isinstance(inner[0], tuple):
                    raise BadValue("expected at most one level of objects", key, "{…}")
                self._values(key, name, inner)
        else:
            self._values(*_split(key), value)

    def _append(self, known: dict[Any, int], key: object, column: str, ending: str, number: float) -> None:
        if number == 0.0:
            return
        slot = known.get(key)
        if slot is None:
            space, name = _split(column)
            slot = known[key] = self._slot(space, name + ending)
        self.slots.append(slot)
        self.values.append(number)

    def _slot(self, space: str, name: str) -> int:
        return self.distinct.setdefault((space, name), len(self.distinct))

    def _values(self, space: str, name: str, value: object) -> None:
        if not isinstance(value, list):
            self._one(space, name, value)
            return
        for place, item in enumerate(value):
            if isinstance(item, list):
                raise BadValue("expected a list of numbers or texts", name, "[…]")
            if isinstance(item, str) or item is None:
                self._one(space, name, item)
            else:
                self._one(f"{space}^{name}" if space else name, str(place), item)

    def _one(self, space: str, name: str, value: object) -> None:
        if value is None or value is False:
            return
        number = 1.0
        if isinstance(value, str):
            name = f"{name}={value}"
        elif name in self.columns.categorical:
            name = f"{name}={'true' if value is True else value}"
        else:
            number = _number(name, value)
        if number != 0.0:
            self.slots.append(self._slot(space, name))
            self.values.append(number)

    def batch(self, line: int | None) -> Batch:
        """All rows so far."""
        indices, entries, spaces = self._look_up()
        slots = np.array(self.slots, np.int64)
        weights = np.array(self.weights)
        batch = Batch(
            np.array(self.ends, np.int64),
            indices[slots],
            np.array(self.values, np.float64),
            np.array(self.labels, np.float64),
            weights if np.any(weights != 1.0) else None,
            first_line=line,
            tags=self.tags if any(self.tags) else None,
        )
        if not self.features.expands:
            return batch
        return self.features.expanded(
            batch, spaces[slots], None if self.names is None else entries[slots], self.names
        )

    def _look_up(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Index, entry and namespace of each different name."""
        count = len(self.distinct)
        indices = np.zeros(count, np.int64)
        entries = np.zeros(count, np.int64)
        spaces = np.full(count, ord(" "), np.uint8)
        for pair, slot in self.distinct.items():
            space, name = (text.encode("utf-8", "surrogatepass") for text in pair)
            if space:
                spaces[slot] = space[0]
            indices[slot] = _native.name_hash(name, _native.name_hash(space, 0)) & self.features.mask
            if self.names is not None:
                index, entry = self.names.enter([name], space, indices[slot : slot + 1])
                indices[slot], entries[slot] = index[0], entry[0]
        return indices, entries, spaces


def _split(key: str) -> tuple[str, str]:
    """The namespace and the name of a key."""
    space, bar, name = key.partition("|")
    return (space, name) if bar else ("", space)


def _decode(record: bytes) -> Pairs:
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


def _number(key: str, value: object) -> float:
    if not isinstance(value, int | float):
        raise BadValue("expected a number", key, value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadValue("expected a finite number", key, value)
    return number


def _shown(value: object) -> bytes:
    if value is None:
        return b"null"
    try:
        return str(value)[:80].encode("utf-8", "surrogatepass")
    except ValueError:
        return b"an integer of thousands of digits"


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
