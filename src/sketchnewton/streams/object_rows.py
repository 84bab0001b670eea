"""Rows out of objects: what JSON lines and dicts in memory have in common."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.hints import Any
from sketchnewton.core.types import Integers, NDArray, np
from sketchnewton.features.columns import BOOLEAN, CATEGORY, NUMBER, Columns, meant
from sketchnewton.features.kinds import (
    MISSING_NAME,
    Misfit,
    category,
    encoded,
    expected_class,
    features_of,
    is_missing,
    label_number,
    missing_numbers,
    missing_texts,
    number_text,
    parse_number,
    split_column,
)
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.advice import advice
from sketchnewton.streams.reader import ReadOptions

__all__ = ["BadValue", "MissingLabel", "ObjectRows", "Pairs", "value_text"]

Pairs = list[tuple[str, Any]]
"""An object in its order; an object within it is pairs, too."""


_LARGEST = sys.float_info.max
_VALUES = "expected a number, a text, true or false, a date, a list or a dict"


class BadValue(Exception):
    """A value that is not allowed: what was expected, the key, and what stands there."""

    def __init__(self, expected: str, key: str, value: object) -> None:
        super().__init__(expected)
        self.key = key
        self.value = value
        self.message = f"{expected} for '{key}'" if key else expected
        self.token = _shown(value)
        self.advice = ""  # what to do about it


class MissingLabel(BadValue):
    """The first object does not have the label that was named."""


@dataclass
class ObjectRows:
    """Rows in the making, of objects as pairs. Each different name is hashed once, when all are there.

    ``kinds`` are those of keys as far as they are known; ``misfit``, if there is one, is told of a value that is
    not of its kind, which is missing then.
    """

    columns: Columns
    features: Features
    names: Names | None
    kinds: dict[str, str]
    missing: frozenset[bytes]
    label_codes: Mapping[bytes, float] | None = None
    ignore_labels: bool = False
    only_labels: bool = False
    in_memory: bool = False
    misfit: Callable[[BadValue], None] | None = None
    labels: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    values: list[float] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    distinct: dict[tuple[bytes, bytes, int], int] = field(default_factory=dict)
    # What is known without taking names and texts apart again.
    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    nested: dict[str, tuple[bytes, bytes, str]] = field(default_factory=dict)
    """Namespace and name of columns ``space|name`` that are keys of objects within objects."""

    def __post_init__(self) -> None:
        self.column_numbers = self.features.column_numbers
        self.missing_numbers = missing_numbers(self.columns.missing)

    @classmethod
    def of(cls, options: ReadOptions) -> ObjectRows:
        """No rows yet."""
        return cls(
            options.columns,
            options.features,
            options.names,
            options.known_kinds(),
            missing_texts(options.columns.missing),
            options.label_codes,
            options.ignore_labels,
            options.only_labels,
        )

    def __len__(self) -> int:
        return len(self.labels)

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
        label_key, weight_key = columns.label_among(keys), columns.weight_among(keys)
        tag_key = columns.tag_among(keys)
        label, weight, tag = math.nan, 1.0, b""
        for key, value in pairs:
            if key == label_key:
                label = self._label(key, value)
            elif self.only_labels:
                continue
            elif key == weight_key:
                weight = self._number(key, value)
                if not weight >= 0.0:
                    raise BadValue("expected a non-negative number", key, value)
            elif key == tag_key:
                tag = b"" if _is_none(value) else encoded(str(value))
            elif key not in columns.drop:
                self._feature(key, value)
        if columns.weight not in (None, *keys, *columns.optional) and not self.only_labels:
            raise BadValue("expected a number", str(columns.weight), None)
        self.labels.append(label)
        self.weights.append(weight)
        self.tags.append(tag)

    def _label(self, key: str, value: object) -> float:
        if self.ignore_labels:
            return math.nan
        if self.label_codes is None:
            try:
                text = self._text(key, value) if self.in_memory and isinstance(value, str) else None
                return self._number(key, value) if text is None else label_number(text)
            except Misfit as misfit:
                bad = BadValue(str(misfit), key, value)
            except BadValue as wrong:
                bad = wrong
            bad.advice = advice(str(bad), key, self.columns, label=True, in_memory=self.in_memory)
            raise bad
        text = self._text(key, value)
        if text is None:
            return math.nan
        code = self.label_codes.get(category(text))
        if code is None:
            raise BadValue(expected_class(self.label_codes), key, value)
        return code

    def _number(self, key: str, value: object) -> float:
        """A number, NaN if it is missing."""
        if isinstance(value, str):
            text = self._text(key, value)
            try:
                return math.nan if text is None else parse_number(text)
            except Misfit as misfit:
                raise BadValue(str(misfit), key, value) from None
        return math.nan if value is None else _number(key, value)

    def _text(self, key: str, value: object) -> bytes | None:
        """A value as a text, None if it is missing."""
        if isinstance(value, str):
            text = encoded(value)
            return None if is_missing(text, self.missing) else text
        if _is_none(value):
            return None
        if not isinstance(value, bool):
            _number(self._shown(key), value)
        return value_text(value)

    # --- features

    def _feature(self, key: str, value: object) -> None:
        # Numbers and texts first, by their very type: they are nearly all there is, and bool is none of them.
        if type(value) is float or type(value) is int:
            if value in self.missing_numbers:
                self._append(self._missing(key))
            elif self.kinds.get(key) != NUMBER or not -_LARGEST <= value <= _LARGEST:  # NaN, infinity
                self._scalar(key, value)
            elif value:
                slot = self.numbers.get(key)
                if slot is None:
                    slot = self.numbers[key] = self._slot(key, *self._split(key))
                self.slots.append(slot)
                self.values.append(value)
        elif type(value) is str:
            self._append(self._of_text(key, value))
        elif isinstance(value, list):
            if value and isinstance(value[0], tuple):
                self._namespace(key, value)
            else:
                self._list(key, value)
        else:
            self._scalar(key, value)

    def _namespace(self, space: str, pairs: Pairs) -> None:
        for name, inner in pairs:
            if isinstance(inner, list) and inner and isinstance(inner[0], tuple):
                raise BadValue("expected at most one level of objects", space, "{…}")
            column = f"{space}|{name}"
            if column in self.columns.drop:
                continue
            if column not in self.nested:
                self.nested[column] = encoded(space), encoded(name), name
            self._feature(column, inner)

    def _list(self, key: str, values: list[object]) -> None:
        """A bag of words, or numbered features."""
        space, name = self._split(key)
        for place, item in enumerate(values):
            if isinstance(item, list):
                raise BadValue("expected a list of numbers or texts", self._shown(key), "[…]")
            if _is_none(item):
                continue
            if isinstance(item, str):
                ending = encoded(item)
                self._append([(self._slot(key, space, name + b"=" + ending), 1.0)])
            else:
                within = space + b"^" + name if space else name
                number = _number(self._shown(key), item)
                self._append([(self._slot(key, within, b"%d" % place), number)] if number else [])

    def _scalar(self, key: str, value: object) -> None:
        """Anything but a text, an object or a list."""
        try:
            text = self._text(key, value)
        except BadValue as bad:
            self._misfit(key, bad)
            return
        if text is None:
            self._append(self._missing(key))
            return
        if key not in self.kinds:
            self.kinds[key] = BOOLEAN if isinstance(value, bool) else NUMBER
            self._feature(key, value)
            return
        kind = self.kinds[key]
        if kind == NUMBER:
            number = _number(key, value)
            self._append([(self._slot(key, *self._split(key)), number)] if number else [])
            return
        self._append(self._of_cell(key, kind, text, value))

    def _of_text(self, key: str, value: str) -> list[tuple[int, float]]:
        known = self.texts.get((key, value))
        if known is None:
            text = self._text(key, value)
            if text is None:
                return self._missing(key)
            known = self._of_cell(key, self.kinds.setdefault(key, CATEGORY), text, value)
            self.texts[key, value] = known
        return known

    def _of_cell(self, key: str, kind: str, text: bytes, value: object) -> list[tuple[int, float]]:
        """Slots and values of the features of a cell that is not missing."""
        space, name = self._split(key)
        try:
            return [
                (self._slot(key, space, name + ending), number)
                for ending, number in features_of(kind, text)
                if number != 0.0  # which is no feature, and has no name
            ]
        except Misfit as misfit:
            bad = BadValue(str(misfit), self._shown(key), value)
            bad.message += advice(str(misfit), key, self.columns, in_memory=self.in_memory)
        self._complain(bad)
        return self._missing(key)

    def _misfit(self, key: str, bad: BadValue) -> None:
        self._complain(bad)
        self._append(self._missing(key))

    def _complain(self, bad: BadValue) -> None:
        if self.misfit is None:
            raise bad
        self.misfit(bad)

    def _missing(self, key: str) -> list[tuple[int, float]]:
        space, name = self._split(key)
        return [(self._slot(key, space, name + MISSING_NAME), 1.0)]

    def _append(self, features: list[tuple[int, float]]) -> None:
        for slot, number in features:
            self.slots.append(slot)
            self.values.append(number)

    def _split(self, key: str) -> tuple[bytes, bytes]:
        """The namespace and the name of a column."""
        return self.nested[key][:2] if key in self.nested else split_column(key)

    def _shown(self, key: str) -> str:
        """A column as the line has it."""
        return self.nested[key][2] if key in self.nested else key

    def _slot(self, key: str, space: bytes, name: bytes) -> int:
        number = self.column_numbers.get(key, 0)
        return self.distinct.setdefault((space, name, number), len(self.distinct))

    def rows(self) -> Iterator[tuple[float, float, bytes, list[tuple[bytes, bytes, int, float]]]]:
        """Label, weight, tag and features of each row; a feature's namespace, name, column and value."""
        distinct = list(self.distinct)
        for row, (begin, end) in enumerate(itertools.pairwise(self.ends)):
            slots, values = self.slots[begin:end], self.values[begin:end]
            features = [(*distinct[slot], float(value)) for slot, value in zip(slots, values, strict=True)]
            yield self.labels[row], self.weights[row], self.tags[row], features

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
        columns = np.array([number for *_, number in self.distinct], np.uint8)[slots]
        named = None if self.names is None else entries[slots]
        return self.features.expanded(batch, spaces[slots], named, self.names, columns)

    def _look_up(self) -> tuple[Integers, Integers, NDArray[np.uint8]]:
        """Index, entry and namespace of each different name."""
        count = len(self.distinct)
        indices = np.zeros(count, np.int64)
        entries = np.zeros(count, np.int64)
        spaces = np.full(count, ord(" "), np.uint8)
        for (space, name, _), slot in self.distinct.items():
            if space:
                spaces[slot] = space[0]
            indices[slot] = _native.name_hash(name, _native.name_hash(space, 0)) & self.features.mask
            if self.names is not None:
                index, entry = self.names.enter([name], space, indices[slot : slot + 1])
                indices[slot], entries[slot] = index[0], entry[0]
        return indices, entries, spaces


def value_text(value: Any) -> bytes:
    """A number, true or false as a text: all digits of a long number."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return number_text(value)


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(key: str, value: object) -> float:
    if not isinstance(value, int | float):
        plain = value is None or isinstance(value, str | list)
        raise BadValue("expected a number" if plain else _VALUES, key, value)
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
