"""Dicts of numbers, texts, true and false whose columns are known: the rows that `ObjectRows` makes, sooner.

A server and River ask for one record at a time, and most of that time went into finding out again what columns are
and hashing the same names. What one value of a column becomes is decided by `ObjectRows` once and kept here.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import LABELS, NUMBER
from sketchnewton.features.kinds import missing_numbers, split_column
from sketchnewton.streams.object_rows import BadValue, ObjectRows
from sketchnewton.streams.reader import ReadOptions

__all__ = ["PlainRecords"]

_LARGEST = sys.float_info.max
_MOST_KEPT = 1 << 17  # values of columns, after which all are forgotten

_Cells = tuple[tuple[int, float], ...]
_Rows = tuple[list[int], list[int], list[float], list[object]]


class PlainRecords:
    """Rows of records under these options; None is given back for what has to be looked at more closely."""

    def __init__(self, options: ReadOptions) -> None:
        columns = options.columns
        self._options = options
        self.kinds = options.known_kinds()
        # Exact names are counted in their order, and interactions are of whole rows.
        odd = options.names is not None or options.features.expands or bool(missing_numbers(columns.missing))
        self._usable = not (odd or columns.weight)
        self._labels = frozenset(LABELS if columns.label is None else (columns.label,)).difference(
            columns.drop
        )
        self._others = frozenset(("_weight", "_tag", *filter(None, (columns.tag,))))
        self._dropped = frozenset(columns.drop)
        self._numbers: dict[str, int] = {}
        self._texts: dict[tuple[str, str], _Cells] = {}
        self._booleans: dict[tuple[str, bool | None], _Cells] = {}

    def rows(self, records: Sequence[dict[str, object]]) -> tuple[Batch, list[object]] | None:
        """The rows, without labels, and the value of each record's label, None where there is none."""
        if not self._usable:
            return None
        made: _Rows = [0], [], [], []
        for record in records:
            if not self._add(record, made):
                return None
        ends, indices, values, labels = made
        batch = Batch(
            memoryview(array("q", ends)),
            memoryview(array("q", indices)),
            memoryview(array("d", values)),
            memoryview(array("d", [math.nan]) * len(labels)),
        )
        return batch, labels

    def _add(self, record: dict[str, object], made: _Rows) -> bool:
        """One record more; False if it is not plain."""
        ends, indices, values, labels = made
        numbers, texts = self._numbers, self._texts
        labels.append(None)
        for key, value in record.items():
            kind = type(value)
            if (kind is float or kind is int) and key in numbers:
                if not -_LARGEST <= value <= _LARGEST:  # type: ignore[operator]
                    return False
                if value:
                    indices.append(numbers[key])
                    values.append(value)  # type: ignore[arg-type]
            elif kind is str and (cells := texts.get((key, value))) is not None:  # type: ignore[arg-type]
                for at, number in cells:
                    indices.append(at)
                    values.append(number)
            elif not self._add_other(key, value, made):
                return False
        ends.append(len(indices))
        return True

    def _add_other(self, key: str, value: object, made: _Rows) -> bool:
        """A value that is not known yet, or no feature; False if it is not plain."""
        _, indices, values, labels = made
        if key in self._labels:
            known, labels[-1] = labels[-1], value
            return known is None and value is not None  # neither two labels nor a missing one
        if key in self._dropped:
            return True
        if type(key) is not str or key in self._others or key not in self.kinds:
            return False
        if type(value) is float or type(value) is int:
            if self.kinds[key] != NUMBER:
                return False
            self._numbers[key] = self._index(*split_column(key))
            return self._add_number(self._numbers[key], value, made)
        for at, number in (cells := self._cells(key, value)) or ():
            indices.append(at)
            values.append(number)
        return cells is not None

    @staticmethod
    def _add_number(at: int, value: float, made: _Rows) -> bool:
        if not -_LARGEST <= value <= _LARGEST:
            return False
        if value:
            made[1].append(at)
            made[2].append(value)
        return True

    def _cells(self, key: str, value: object) -> _Cells | None:
        """The features of a text, of true or false, or of a missing value."""
        if value is None or isinstance(value, bool):
            known = self._booleans.get((key, value))
            if known is None:
                known = self._decided(key, value)
                if known is not None:
                    self._booleans[key, value] = known
            return known
        if type(value) is not str:
            return None
        made = self._decided(key, value)
        if made is not None:
            if len(self._texts) >= _MOST_KEPT:
                self._texts.clear()
            self._texts[key, value] = made
        return made

    def _decided(self, key: str, value: object) -> _Cells | None:
        """What `ObjectRows` makes of a record of this value alone."""
        rows = ObjectRows.of(self._options._replace(kinds=dict(self.kinds)))
        try:
            rows._feature(key, value)
        except BadValue:
            return None
        if rows.kinds != self.kinds:
            return None
        distinct = list(rows.distinct)
        return tuple(
            (self._index(*distinct[slot][:2]), number)
            for slot, number in zip(rows.slots, rows.values, strict=True)
        )

    def _index(self, space: bytes, name: bytes) -> int:
        return _native.name_hash(name, _native.name_hash(space, 0)) & self._options.features.mask
