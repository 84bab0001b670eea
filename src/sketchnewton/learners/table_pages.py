"""Pages of 2 MB for feature tables: when they are worth the time that they take."""

from __future__ import annotations

import math

from sketchnewton import _native
from sketchnewton.core.state import State, View

FIRST_LARGE = 1 << 16  # features of a table: the pages of so many a processor knows by heart
SMALL_PAGE = 1 << 12
SOON, LATE = 8, 2
"""How many bytes of large pages each use of a feature pays for: where they are made quickly, and anywhere."""


class TablePages:
    """Looks after the pages of one feature table.

    A non-zero loses about 2 ns by small pages. To make large ones of those in use takes 0.6 ns per byte, but where
    the machine gives back free memory up to 5: after 8 uses of rows of 64 bytes it is tried, after 32 it is done,
    and again whenever there are twice as many features. Pages that a packed table is about to use cost
    nothing, and are large from the first on, unless these take long, too.
    """

    def __init__(self, memory: State) -> None:
        self._rows = memory.view("table")
        self._places = memory.view("places") if "places" in memory else None
        self._row_bytes = self._rows.itemsize * (self._rows.shape[1] if self._rows.shape else 0)
        packed = self._places is not None
        self._prefer_at = FIRST_LARGE if packed else math.inf
        self._settle_at: float = FIRST_LARGE
        self._spread_at = FIRST_LARGE if packed else math.inf
        self.due: float = FIRST_LARGE
        """How many features the table has when there is something to do."""

    def expect(self, count: int) -> None:
        """The first `count` rows are about to be used: of a table that is not packed, here and there, but all."""
        if count > FIRST_LARGE:
            _native.prefer_large_pages(self._rows, FIRST_LARGE, count, self._places is not None)
            self._prefer_at = max(self._prefer_at, count)

    def tend(self, count: int, uses: int) -> None:
        """The table has `count` features, which were used so often together."""
        if count >= self._prefer_at:
            _native.prefer_large_pages(self._rows, count + 1, 2 * count, True)
            self._prefer_at = 2 * count
        if count >= self._settle_at and self._settle(self._rows, count, uses, self._places is None):
            self._settle_at = 2 * count
        if (
            self._places is not None
            and count >= self._spread_at
            and self._settle(self._places, count, uses, True)
        ):
            self._spread_at = 2 * count
        self.due = min(self._prefer_at, self._settle_at, self._spread_at)

    def _settle(self, array: View, count: int, uses: int, scattered: bool) -> bool:
        used = min(array.nbytes, count * (SMALL_PAGE if scattered else self._row_bytes))
        if uses * SOON < used:
            return False
        return _native.use_large_pages(array, uses * LATE < used)
