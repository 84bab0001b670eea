"""Rows out of columns: what CSV, Parquet and Arrow have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, Integers
from sketchnewton.features.columns import Columns, meant
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features

NUMBER, TEXT = "number", "text"


@dataclass(frozen=True, slots=True)
class Roles:
    """Which of a table's columns is what."""

    label: str | None
    weight: str | None
    tag: str | None
    features: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str], columns: Columns) -> Roles:
        """Find the columns of a table; ``ValueError`` names the first that is not there."""
        known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        doubles = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        if doubles:
            raise ValueError(f"column names must differ, but '{min(doubles)}' comes twice")
        for name in columns.named:
            if name not in names and name not in columns.optional:
                raise ValueError(f"no column is named '{name}'{meant(name, names)}; there are {known}")
        roles = columns.label_among(names), columns.weight_among(names), columns.tag_among(names)
        taken = {*roles, *columns.drop}
        return cls(*roles, tuple(name for name in names if name not in taken))


@dataclass(slots=True)
class Numbers:
    """A column of numbers; NaN where there is none."""

    values: Floats


@dataclass(slots=True)
class Texts:
    """A column of texts: each row's number in ``distinct``, −1 where there is none."""

    codes: npt.NDArray[np.int64]
    distinct: list[bytes]


@dataclass
class RowMaker:
    """Makes batches of columns, hashing names as VW text does: ``space|name`` belongs to a namespace."""

    features: Features
    names: Names | None
    types: dict[str, str] = field(default_factory=dict)

    def batch(
        self,
        columns: Mapping[str, Numbers | Texts],
        labels: Floats,
        weights: Floats | None,
        tags: list[bytes] | None,
        first_line: int | None = None,
    ) -> Batch:
        """Numbers as they are, texts as 1 at ``column=value``; no feature where a cell is empty or 0."""
        shape = (len(labels), len(columns))
        indices = np.zeros(shape, np.int64)
        values = np.zeros(shape, np.float64)
        entries = np.zeros(shape, np.int64) if self.names is not None else None
        spaces = np.full(len(columns), ord(" "), np.uint8)
        parts = [_Part(column, cells) for column, cells in columns.items()]
        if self.names is not None:
            self._enter(parts, self.names)
        for k, part in enumerate(parts):
            if part.space:
                spaces[k] = part.space[0]
            if not part.names:
                continue
            if self.names is None:
                part.indices = self._hashes(part.space, part.names)
            indices[:, k] = part.indices[part.codes]
            values[:, k] = part.values
            if entries is not None:
                entries[:, k] = part.entries[part.codes]
        present = values != 0.0
        indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1, dtype=np.int64))))
        batch = Batch(
            indptr,
            indices[present],
            values[present],
            labels,
            weights if weights is not None and np.any(weights != 1.0) else None,
            first_line=first_line,
            tags=tags if tags is not None and any(tags) else None,
        )
        if not self.features.expands:
            return batch
        every = np.broadcast_to(spaces, shape)[present]
        return self.features.expanded(batch, every, None if entries is None else entries[present], self.names)

    def _enter(self, parts: list[_Part], names: Names) -> None:
        """Name what is in the cells, from row to row: then it does not matter how many rows there are."""
        found = []
        for k, part in enumerate(parts):
            part.indices = np.zeros(len(part.names), np.int64)
            part.entries = np.zeros(len(part.names), np.int64)
            present = np.flatnonzero(part.values)
            codes, first = np.unique(part.codes[present], return_index=True)
            found += [(int(present[f]), k, int(code)) for code, f in zip(codes, first, strict=True)]
        for _, k, code in sorted(found):
            name = [parts[k].names[code]]
            index, entry = names.enter(name, parts[k].space, self._hashes(parts[k].space, name))
            parts[k].indices[code], parts[k].entries[code] = index[0], entry[0]

    def _hashes(self, space: bytes, names: list[bytes]) -> Integers:
        return _native.hash_names(names, _native.name_hash(space, 0), self.features.mask)


class _Part:
    """One column: its different names, and the number of the name and the value of each cell."""

    def __init__(self, column: str, cells: Numbers | Texts) -> None:
        self.space, name = split_column(column)
        self.indices = self.entries = np.zeros(0, np.int64)
        if isinstance(cells, Numbers):
            self.names = [name]
            self.codes = np.zeros(len(cells.values), np.int64)
            self.values = np.nan_to_num(cells.values, nan=0.0)
        else:
            self.names = [name + b"=" + text for text in cells.distinct]
            self.codes = cells.codes
            self.values = (cells.codes >= 0).astype(np.float64)


def split_column(column: str) -> tuple[bytes, bytes]:
    """The namespace and the name of a column."""
    space, bar, name = column.encode("utf-8", "surrogateescape").partition(b"|")
    return (space, name) if bar else (b"", space)
