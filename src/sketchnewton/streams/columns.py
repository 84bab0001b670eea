"""Which column of a table, or key of a JSON object, is what."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

LABELS = ("label", "y", "target")
"""The column of the label, if none is named, is the first of these that is there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of CSV, Parquet and Arrow tables, and the keys of JSON lines, stand for.

    A column named ``space|name`` belongs to a namespace. All columns that are not mentioned here are features:
    numbers as they are, texts hashed as ``column=value``; an empty cell is no feature.
    """

    label: str | None = None
    """None: ``label``, ``y`` or ``target``, if there is one; rows without a label have NaN."""
    weight: str | None = None
    tag: str | None = None
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    categorical: tuple[str, ...] = ()
    """Columns whose numbers are to be treated as texts."""

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as JSON has it."""
        return {
            f.name: list(value) if isinstance(value := getattr(self, f.name), tuple) else value
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Columns:
        """What ``to_dict`` gave."""
        options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**options)

    def label_among(self, names: list[str]) -> str | None:
        """The column of the label; None if there is none."""
        if self.label is not None:
            return self.label if self.label in names else None
        return next((name for name in LABELS if name in names), None)
