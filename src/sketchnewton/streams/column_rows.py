"""Rows out of columns: what Parquet, Arrow and data frames have in common.

Compiled code makes the rows, by the same rules as those of CSV and JSON; what is wrong with cells is told here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats, Integers
from sketchnewton.features.columns import BOOLEAN, NUMBER
from sketchnewton.features.kinds import (
    EXPECTED,
    Misfit,
    encoded,
    features_of,
    is_missing,
    label_number,
    missing_numbers,
    missing_texts,
    parse_number,
)
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.made_rows import finished, label_code, table_rows
from sketchnewton.streams.reader import ReadOptions

__all__ = ["Cells", "ColumnRows", "Fault", "Faults", "Lists", "Numbers", "Report", "Texts", "column_batches"]


@dataclass
class Numbers:
    """A column of numbers; NaN where there is none."""

    values: Floats


@dataclass
class Texts:
    """A column of texts: each row's number among those in ``data``, −1 where there is none. All are in use.

    ``numbers``: they were numbers, and infinity is no category of theirs.
    """

    codes: Integers
    offsets: Integers
    data: npt.NDArray[np.uint8]
    numbers: bool = False

    def __getitem__(self, code: int) -> bytes:
        return self.data[self.offsets[code] : self.offsets[code + 1]].tobytes()

    @cached_property
    def distinct(self) -> list[bytes]:
        """All of them."""
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        return [whole[begin:end] for begin, end in itertools.pairwise(ends)]

    def rows(self, wanted: Iterable[int]) -> list[int]:
        """The rows that have one of some codes."""
        marked = np.zeros(len(self.offsets), bool)  # and the last, of those that have none
        marked[list(wanted)] = True
        rows: list[int] = np.flatnonzero(marked[self.codes]).tolist()
        return rows


@dataclass
class Lists:
    """A column of lists: where each row's end among the items; and which rows have none, not even an empty one."""

    ends: Integers
    items: Numbers | Texts
    none: npt.NDArray[np.bool_]


class Fault(NamedTuple):
    """What is wrong with a cell: its row and column, what was expected, and what is there."""

    row: int
    column: str
    expected: str
    token: bytes


@dataclass(slots=True)
class Cells:
    """Rows of a table before they are features. Those in ``absent`` do not have a column, as objects may not."""

    features: Mapping[str, Numbers | Texts | Lists]
    label: tuple[str, Numbers | Texts] | None
    weight: tuple[str, Numbers | Texts] | None
    tags: list[bytes] | None
    rows: int
    absent: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


class Faults(NamedTuple):
    """Of some rows: cells that are not of their column's kind, and rows without a usable label or weight."""

    cells: list[Fault]
    rows: list[Fault]


_MISSING, _ABSENT = 1, 2  # states of cells
_INFINITE = (b"inf", b"-inf")
_FINITE = "expected a finite number"

Report = Callable[[Faults], Iterable[int]]
"""Told what is wrong with some rows; gives those to leave out."""


class ColumnRows:
    """Makes batches of columns. ``kinds`` are those of the columns as far as they are known.

    ``in_memory``: nobody has looked at the labels before, and yes and no among them are no numbers.
    """

    def __init__(self, options: ReadOptions, *, in_memory: bool) -> None:
        self.options = options
        self.kinds = options.known_kinds()
        self.missing = missing_texts(options.columns.missing)
        self.missing_numbers = sorted(missing_numbers(options.columns.missing))
        self._in_memory = in_memory
        self._rows = table_rows(options)
        self._columns: dict[str, int] = {}

    def has_values(self, cells: Numbers | Texts) -> bool:
        """Whether some cell is not missing."""
        if isinstance(cells, Numbers):
            return not np.isnan(cells.values).all()
        return not all(is_missing(cells[code], self.missing) for code in range(len(cells.offsets) - 1))

    def batch(self, cells: Cells, report: Report) -> Batch:
        """The rows of some cells; no feature where a value is 0, and ``column=`` where a cell does not fit."""
        columns = _native.TableColumns(self._rows)
        faults = Faults([], [])
        for name, given in cells.features.items():
            states = np.zeros(cells.rows, np.uint8)
            if isinstance(given, Lists):
                faults.rows.extend(self._enter_lists(columns, name, given))
                states[given.none] = _MISSING
            else:
                faults.cells.extend(self._enter(columns, name, given))
            if name in cells.absent:
                states[cells.absent[name]] = _ABSENT
            if states.any():
                columns.set_states(states)
        labels, bad_labels = self.labels(cells)
        weights, bad_weights = self.weights(cells)
        faults.rows.extend(bad_labels + bad_weights)
        kept: npt.NDArray[np.bool_] | None = None
        if any(faults):
            kept = np.ones(cells.rows, bool)
            kept[list(report(faults))] = False
        columns.add_rows(self._rows, labels, weights, cells.tags, kept)
        return finished(self._rows, self.options, None)

    def _enter(self, columns: _native.TableColumns, name: str, cells: Numbers | Texts) -> list[Fault]:
        """A column of the next rows; what is wrong with it, which is missing then."""
        kind = self.kinds.get(name)
        column = self._column(name)
        if kind is not None:
            self._rows.set_kind(column, kind)
        if isinstance(cells, Numbers):
            values, faults = _numbers(name, cells.values, kind)
            columns.add_numbers(self._rows, column, values)
            return faults
        wrong: dict[int, str] = {}
        for code in columns.add_texts(self._rows, column, cells.codes, cells.offsets, cells.data):
            text = cells[code]
            try:
                self._rows.know(column, False, text, features_of(kind or NUMBER, text), False)
            except Misfit as misfit:
                wrong[code] = str(misfit)
                columns.leave_out(code)
        for code in (
            [at for at, text in enumerate(cells.distinct) if text in _INFINITE] if cells.numbers else ()
        ):
            wrong[code] = _FINITE
            columns.leave_out(code)
        return _text_faults(name, cells, wrong)

    def _column(self, name: str) -> int:
        if name not in self._columns:
            number = self.options.features.column_numbers.get(name, 0)
            self._columns[name] = self._rows.add_column(encoded(name), number)
        return self._columns[name]

    def _enter_lists(self, columns: _native.TableColumns, name: str, lists: Lists) -> list[Fault]:
        """A column of lists: bags of words, or numbered features. What is wrong with it, which is no item."""
        column, items = self._column(name), lists.items
        if isinstance(items, Texts):
            columns.add_word_lists(self._rows, column, lists.ends, items.codes, items.offsets, items.data)
            return []
        faults = _infinite(name, items.values)
        columns.add_number_lists(self._rows, column, lists.ends, items.values)
        rows = np.searchsorted(lists.ends, [fault.row for fault in faults], side="right").tolist()
        return [fault._replace(row=row) for fault, row in zip(faults, rows, strict=True)]

    def labels(self, cells: Cells) -> tuple[Floats, list[Fault]]:
        """The labels as numbers, NaN where there is none, and what is wrong with some."""
        if cells.label is None or self.options.ignore_labels:
            return np.full(cells.rows, np.nan), []
        column, given = cells.label
        if isinstance(given, Numbers):
            return given.values, _infinite(column, given.values)
        plain = self._in_memory and self.options.label_codes is None
        code = label_number if plain else partial(label_code, options=self.options)
        return self._looked_up(column, given, code)

    def weights(self, cells: Cells) -> tuple[Floats | None, list[Fault]]:
        """The weights, None if all are 1, and what is wrong with some."""
        if cells.weight is None:
            return None, []
        column, given = cells.weight
        if isinstance(given, Numbers):
            values, faults = given.values, _infinite(column, given.values)
        else:
            values, faults = self._looked_up(column, given, parse_number)
        known = {fault.row for fault in faults}
        for row in np.flatnonzero(~(values >= 0.0)).tolist():
            if row not in known:
                none = np.isnan(values[row])
                expected = EXPECTED[NUMBER] if none else "expected a non-negative number"
                faults.append(Fault(row, column, expected, b"" if none else b"%g" % values[row]))
        return (values if np.any(values != 1.0) else None), faults

    def _looked_up(
        self, column: str, texts: Texts, code: Callable[[bytes], float]
    ) -> tuple[Floats, list[Fault]]:
        """A number for each text, NaN where there is none or where it is wrong."""
        found = np.full(len(texts.offsets), np.nan)  # the last is of those that have none
        wrong: dict[int, str] = {}
        for at, text in enumerate(texts.distinct):
            if not is_missing(text, self.missing):
                try:
                    found[at] = code(text)
                except Misfit as misfit:
                    wrong[at] = str(misfit)
        return found[texts.codes], _text_faults(column, texts, wrong)


def _numbers(column: str, numbers: Floats, kind: str | None) -> tuple[Floats, list[Fault]]:
    """The numbers, NaN where one does not fit, and those that do not."""
    faults = _infinite(column, numbers)
    if kind == BOOLEAN:
        wrong = (numbers != 0.0) & (numbers != 1.0) & np.isfinite(numbers)
        faults += [
            Fault(row, column, EXPECTED[BOOLEAN], b"%g" % numbers[row])
            for row in np.flatnonzero(wrong).tolist()
        ]
    if faults:
        numbers = numbers.copy()
        numbers[[fault.row for fault in faults]] = np.nan
    return numbers, faults


def _infinite(column: str, numbers: Floats) -> list[Fault]:
    rows = np.flatnonzero(np.isinf(numbers)).tolist()
    return [Fault(row, column, _FINITE, b"%g" % numbers[row]) for row in rows]


def _text_faults(column: str, texts: Texts, wrong: Mapping[int, str]) -> list[Fault]:
    codes = ((row, int(texts.codes[row])) for row in (texts.rows(wrong) if wrong else ()))
    return [Fault(row, column, wrong[code], texts[code]) for row, code in codes]


def column_batches(
    make: Callable[[Report], Batch], rows: int, policy: ErrorPolicy, locate: Callable[[Fault], ParseError]
) -> Iterator[Batch]:
    """The batch that ``make`` makes of so many rows; ``locate`` makes an error of a fault.

    Rows up to the first fault if the stream is to stop there. If bad rows are to be skipped, those without a
    usable label or weight are; a cell that does not fit is missing.
    """
    first: Fault | None = None

    def report(faults: Faults) -> Iterable[int]:
        nonlocal first
        if not policy.skips:
            first = min((*faults.rows, *faults.cells), key=lambda fault: fault.row)
            return range(first.row, rows)
        skipped: dict[int, Fault] = {}
        for fault in sorted(faults.rows, key=lambda fault: fault.row):
            if skipped.setdefault(fault.row, fault) is fault:
                policy.report(locate(fault))
        for fault in sorted(faults.cells, key=lambda fault: fault.row):
            if fault.row not in skipped:
                policy.report_misfit(partial(locate, fault))
        return skipped

    batch = make(report)
    if len(batch):
        yield batch
    if first is not None:
        raise locate(first)
