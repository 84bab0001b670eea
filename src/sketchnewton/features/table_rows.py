"""Rows out of columns: what Parquet, Arrow and data frames have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, Integers
from sketchnewton.features.columns import BOOLEAN, CATEGORY, NUMBER, Columns
from sketchnewton.features.kinds import (
    EXPECTED,
    MISSING_NAME,
    Cell,
    Misfit,
    category,
    expected_class,
    features_of,
    is_missing,
    label_number,
    missing_texts,
    parse_number,
    split_column,
)
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.features.roles import Roles

Bools = npt.NDArray[np.bool_]
_T = TypeVar("_T", bound=np.generic)


@dataclass(slots=True)
class Numbers:
    """A column of numbers; NaN where there is none."""

    values: Floats


@dataclass(slots=True)
class Texts:
    """A column of texts: each row's number in ``distinct``, −1 where there is none."""

    codes: npt.NDArray[np.int64]
    distinct: list[bytes]


class Fault(NamedTuple):
    """What is wrong with a cell: its row and column, what was expected, and what is there."""

    row: int
    column: str
    expected: str
    token: bytes


@dataclass(slots=True)
class Cells:
    """Rows of a table before they are features."""

    features: Mapping[str, Numbers | Texts]
    label: tuple[str, Numbers | Texts] | None
    weight: tuple[str, Numbers | Texts] | None
    tags: list[bytes] | None
    rows: int


class Faults(NamedTuple):
    """Of some rows: cells that are not of their column's kind, and rows without a usable label or weight."""

    cells: list[Fault]
    rows: list[Fault]


Report = Callable[[Faults], Iterable[int]]
"""Told what is wrong with some rows; gives those to leave out."""


@dataclass
class RowMaker:
    """Makes batches of columns, hashing names as VW text does: ``space|name`` belongs to a namespace.

    ``kinds`` are those of the columns as far as they are known. ``label_codes`` has the code of each label, where
    labels are not numbers; labels that are not wanted at all are NaN.
    """

    features: Features
    names: Names | None
    columns: Columns
    kinds: dict[str, str] = field(default_factory=dict)
    label_codes: Mapping[bytes, float] | None = None
    labels_wanted: bool = True
    only_labels: bool = False
    in_memory: bool = False
    """Nobody has looked at the labels before: yes and no among them are no numbers."""

    def __post_init__(self) -> None:
        self.missing = missing_texts(self.columns.missing)

    def roles(self, names: Sequence[str]) -> Roles:
        """Which of a table's columns is what; ``ValueError`` names the first that is not there."""
        joined = self.features.column_numbers if self.labels_wanted else ()
        return Roles.of(names, self.columns, joined, self.only_labels)

    def has_values(self, cells: Numbers | Texts) -> bool:
        """Whether some cell is not missing."""
        if isinstance(cells, Numbers):
            return not np.isnan(cells.values).all()
        return not all(is_missing(text, self.missing) for text in cells.distinct)

    def batch(self, cells: Cells, report: Report, first_line: int | None = None) -> Batch:
        """The rows of some cells; no feature where a value is 0, and ``column=`` where a cell does not fit."""
        parts = [self._part(column, given) for column, given in cells.features.items()]
        labels, bad_labels = self.labels(cells)
        weights, bad_weights = self.weights(cells)
        faults = Faults([fault for part in parts for fault in part.faults], bad_labels + bad_weights)
        kept: Bools | None = None
        if any(faults):
            kept = np.ones(cells.rows, bool)
            kept[list(report(faults))] = False
            for part in parts:
                part.leave_out(~kept)
        batch = self._assembled(parts, labels, weights, cells, first_line)
        return batch if kept is None or kept.all() else batch.keep(kept)

    def _part(self, column: str, cells: Numbers | Texts) -> _Part:
        kind = self.kinds.get(column, NUMBER)  # if it is not known yet, all cells are missing
        if isinstance(cells, Numbers):
            return _number_part(column, cells.values, kind)
        if kind == CATEGORY:
            return _category_part(column, cells, self.missing)
        return _text_part(column, cells, kind, self.missing)

    def labels(self, cells: Cells) -> tuple[Floats, list[Fault]]:
        """The labels as numbers, NaN where there is none, and what is wrong with some."""
        if cells.label is None or not self.labels_wanted:
            return np.full(cells.rows, np.nan), []
        column, given = cells.label
        if isinstance(given, Numbers):
            return given.values, _infinite(column, given.values)
        codes = self.label_codes

        def code(text: bytes) -> float:
            if codes is None:
                return label_number(text) if self.in_memory else parse_number(text)
            found = codes.get(category(text))
            if found is None:
                raise Misfit(expected_class(codes))
            return found

        return _looked_up(column, given, code, self.missing)

    def weights(self, cells: Cells) -> tuple[Floats | None, list[Fault]]:
        """The weights, None if all are 1, and what is wrong with some."""
        if cells.weight is None:
            return None, []
        column, given = cells.weight
        if isinstance(given, Numbers):
            values, faults = given.values, _infinite(column, given.values)
        else:
            values, faults = _looked_up(column, given, parse_number, self.missing)
        known = {fault.row for fault in faults}
        for row in np.flatnonzero(~(values >= 0.0)).tolist():
            if row not in known:
                none = np.isnan(values[row])
                expected = EXPECTED[NUMBER] if none else "expected a non-negative number"
                faults.append(Fault(row, column, expected, b"" if none else b"%g" % values[row]))
        return (values if np.any(values != 1.0) else None), faults

    def _assembled(
        self,
        parts: list[_Part],
        labels: Floats,
        weights: Floats | None,
        cells: Cells,
        first_line: int | None,
    ) -> Batch:
        if self.names is not None:
            self._enter(parts, self.names)
        else:
            for part in parts:
                part.indices = self._hashes(part.space, part.names)
        rows, values, at = _row_by_row(parts, cells.rows)
        batch = Batch(
            np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=cells.rows)))),
            _chosen([part.indices[part.codes] for part in parts], at, np.int64),
            values,
            labels,
            weights,
            first_line=first_line,
            tags=cells.tags if cells.tags is not None and any(cells.tags) else None,
        )
        if not self.features.expands:
            return batch
        spaces = _chosen([part.spaces() for part in parts], at, np.uint8)
        entries = None
        if self.names is not None:
            entries = _chosen([part.entries[part.codes] for part in parts], at, np.int64)
        columns = None
        if numbers := self.features.column_numbers:
            filled = [np.full(len(part.codes), numbers.get(part.column, 0), np.uint8) for part in parts]
            columns = _chosen(filled, at, np.uint8)
        return self.features.expanded(batch, spaces, entries, self.names, columns)

    def _enter(self, parts: list[_Part], names: Names) -> None:
        """Name what is in the cells, from row to row: then it does not matter how many rows there are."""
        found = []
        for k, part in enumerate(parts):
            part.indices = np.zeros(len(part.names), np.int64)
            part.entries = np.zeros(len(part.names), np.int64)
            present = np.flatnonzero(part.values)
            codes, first = np.unique(part.codes[present], return_index=True)
            where = present[first]
            rows = where if part.rows is None else part.rows[where]
            found += list(zip(rows.tolist(), [k] * len(rows), where.tolist(), codes.tolist(), strict=True))
        for _, k, _, code in sorted(found):
            name = [parts[k].names[code]]
            index, entry = names.enter(name, parts[k].space, self._hashes(parts[k].space, name))
            parts[k].indices[code], parts[k].entries[code] = index[0], entry[0]

    def _hashes(self, space: bytes, names: list[bytes]) -> Integers:
        return _native.hash_names(names, _native.name_hash(space, 0), self.features.mask)


# --- columns


@dataclass
class _Part:
    """One column: its different names, and the number of the name and the value of each of its features.

    Where ``rows`` is None there is one per row.
    """

    column: str
    names: list[bytes]
    codes: npt.NDArray[np.int64]
    values: Floats
    faults: list[Fault]
    rows: npt.NDArray[np.int64] | None = None
    indices: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    entries: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def space(self) -> bytes:
        """The namespace."""
        return split_column(self.column)[0]

    def spaces(self) -> npt.NDArray[np.uint8]:
        """The first byte of the namespace, for each feature."""
        return np.full(len(self.codes), (self.space or b" ")[0], np.uint8)

    def leave_out(self, rows: Bools) -> None:
        """So that what is only there is not even named."""
        self.values = np.where(rows if self.rows is None else rows[self.rows], 0.0, self.values)


def _number_part(column: str, numbers: Floats, kind: str) -> _Part:
    name = split_column(column)[1]
    none = np.isnan(numbers)
    values = np.where(none, 1.0, numbers)
    faults = _infinite(column, numbers)
    if kind == BOOLEAN:
        for row in np.flatnonzero(~none & (values != 0.0) & (values != 1.0) & np.isfinite(values)).tolist():
            faults.append(Fault(row, column, EXPECTED[BOOLEAN], b"%g" % numbers[row]))
    for fault in faults:
        none[fault.row], values[fault.row] = True, 1.0
    return _Part(column, [name, name + MISSING_NAME], none.astype(np.int64), values, faults)


def _infinite(column: str, numbers: Floats) -> list[Fault]:
    rows = np.flatnonzero(np.isinf(numbers)).tolist()
    return [Fault(row, column, "expected a finite number", b"%g" % numbers[row]) for row in rows]


def _category_part(column: str, texts: Texts, missing: frozenset[bytes]) -> _Part:
    """The usual case of `_text_part`, where nothing can be wrong."""
    start = split_column(column)[1] + b"="
    names = [
        start if text in missing or text.strip() in missing else start + category(text)
        for text in texts.distinct
    ]
    names.append(start)  # of a missing one
    codes = np.where(texts.codes < 0, len(names) - 1, texts.codes)
    return _Part(column, names, codes, np.ones(len(codes)), [])


def _text_part(column: str, texts: Texts, kind: str, missing: frozenset[bytes]) -> _Part:
    """Each different text is looked at once; the last of all stands for a missing one."""
    name = split_column(column)[1]
    none: Cell = [(MISSING_NAME, 1.0)]
    cells: list[Cell] = []
    wrong: dict[int, str] = {}
    for code, text in enumerate(texts.distinct):
        cell = none
        if not is_missing(text, missing):
            try:
                cell = features_of(kind, text)
            except Misfit as misfit:
                wrong[code] = str(misfit)
        cells.append(cell)
    cells.append(none)
    codes = np.where(texts.codes < 0, len(cells) - 1, texts.codes)
    faults = [
        Fault(row, column, wrong[code], texts.distinct[code])
        for row, code in ((row, int(codes[row])) for row in _where(codes, wrong, len(cells)))
    ]
    numbers: dict[bytes, int] = {}
    lengths = np.array([len(cell) for cell in cells])
    flat = np.array(
        [numbers.setdefault(ending, len(numbers)) for cell in cells for ending, _ in cell], np.int64
    )
    values = np.array([value for cell in cells for _, value in cell])
    names = [name + ending for ending in numbers]
    if lengths.min() == lengths.max() == 1:
        return _Part(column, names, flat[codes], values[codes], faults)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    counts = lengths[codes]
    rows = np.repeat(np.arange(len(codes)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = starts[codes][rows] + within
    return _Part(column, names, flat[at], values[at], faults, rows)


def _looked_up(
    column: str, texts: Texts, code: Callable[[bytes], float], missing: frozenset[bytes]
) -> tuple[Floats, list[Fault]]:
    """A number for each text, NaN where there is none or where it is wrong."""
    found = np.full(len(texts.distinct) + 1, np.nan)
    wrong: dict[int, str] = {}
    for at, text in enumerate(texts.distinct):
        if not is_missing(text, missing):
            try:
                found[at] = code(text)
            except Misfit as misfit:
                wrong[at] = str(misfit)
    rows = _where(texts.codes, wrong, len(found))
    found_codes = texts.codes[rows].tolist()
    faults = [
        Fault(row, column, wrong[at], texts.distinct[at]) for row, at in zip(rows, found_codes, strict=True)
    ]
    return found[texts.codes], faults


def _where(codes: npt.NDArray[np.int64], wrong: Mapping[int, str], count: int) -> list[int]:
    """The rows whose code is among the wrong ones."""
    if not wrong:
        return []
    marked = np.zeros(count, bool)
    marked[list(wrong)] = True
    rows: list[int] = np.flatnonzero(marked[codes]).tolist()
    return rows


def _row_by_row(parts: list[_Part], rows: int) -> tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.intp]]:
    """Of all features that are not 0, the rows, the values, and where they are, one row after the other."""
    values = np.concatenate([part.values for part in parts]) if parts else np.zeros(0)
    if all(part.rows is None for part in parts):
        present = (values != 0.0).reshape(len(parts), rows).T
        row, part = np.nonzero(present)
        at = part * rows + row
        return row, values[at], at
    every = np.concatenate([np.arange(rows) if part.rows is None else part.rows for part in parts])
    order = np.argsort(every, kind="stable")
    at = order[values[order] != 0.0]
    return every[at], values[at], at


def _chosen(arrays: list[npt.NDArray[_T]], at: npt.NDArray[np.intp], kind: type[_T]) -> npt.NDArray[_T]:
    return np.concatenate([np.zeros(0, kind), *arrays])[at]
