"""Which column of a table, or key of a JSON object, is what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sketchnewton.core.spelling import closest
from sketchnewton.core.types import Header

LABELS = ("label", "y", "target", "_label")
"""The column of the label, if none is named, is the first of these that is there."""
WEIGHT, TAG = "_weight", "_tag"
"""The columns of weights and tags, if none are named and these are there."""


class Columns(NamedTuple):
    """What the columns of CSV, Parquet and Arrow tables, and the keys of JSON lines, stand for.

    A column named ``space|name`` belongs to a namespace. All columns that are not mentioned here are features:
    numbers as they are, texts hashed as ``column=value``; an empty cell is no feature.
    """

    label: str | None = None
    """None: ``label``, ``y`` or ``target``, if there is one; rows without a label have NaN."""
    weight: str | None = None
    """None: ``_weight``, if it is there; otherwise all rows weigh 1."""
    tag: str | None = None
    """None: ``_tag``, if it is there."""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    categorical: tuple[str, ...] = ()
    """Columns whose numbers are to be treated as texts."""

    types: tuple[tuple[str, str], ...] = ()
    """``number`` or ``text`` for columns whose type is not to be found out again: see ``with_types``."""
    optional: tuple[str, ...] = ()
    """Those of the columns above that may be missing; others are taken for mistyped."""

    def with_types(self, types: Mapping[str, str]) -> Columns:
        """These columns, with the types that a reader found: ``reader.types``."""
        return self._replace(types=tuple(sorted(types.items())))

    def agree(self, other: Columns) -> bool:
        """Do both make the same features of the same columns?"""
        mine, theirs = dict(self.types), dict(other.types)
        same = all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())
        return same and (self.drop, self.categorical) == (other.drop, other.categorical)

    def to_dict(self) -> Header:
        """What differs from the defaults, as JSON has it."""
        defaults = self._field_defaults
        return {name: _lists(value) for name, value in self._asdict().items() if value != defaults[name]}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Columns:
        """What ``to_dict`` gave."""
        options: Header = {k: _tuples(v) for k, v in values.items()}
        return cls(**options)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that have been named."""
        return (*filter(None, (self.label, self.weight, self.tag)), *self.drop, *self.categorical)

    def label_among(self, names: Collection[str]) -> str | None:
        """The column of the label; None if there is none."""
        if self.label is not None:
            return self.label if self.label in names else None
        return next((name for name in LABELS if name in names), None)

    def weight_among(self, names: Collection[str]) -> str | None:
        """The column of the weight; None if there is none."""
        return _among(names, self.weight, WEIGHT)

    def tag_among(self, names: Collection[str]) -> str | None:
        """The column of the tag; None if there is none."""
        return _among(names, self.tag, TAG)


def meant(name: str, names: Iterable[str]) -> str:
    """` (did you mean …?)` for the closest of `names` to one that is not among them, or nothing."""
    found = closest(name, names)
    return "" if found is None else f" (did you mean '{found}'?)"


def _among(names: Collection[str], given: str | None, usual: str) -> str | None:
    name = usual if given is None else given
    return name if name in names else None


def _lists(value: object) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _tuples(value: object) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
