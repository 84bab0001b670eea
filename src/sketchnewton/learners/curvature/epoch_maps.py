"""The arrays of `DelayedMaps` (native/curvature/delayed_maps.hpp): maps that wait until a feature is touched."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.checks import check_numbers
from sketchnewton.core.state import State, View, dtype_name, zeros
from sketchnewton.core.types import Arrays

GROUP, LEVELS = 16, 4  # of MapState in native/curvature/delayed_maps.hpp
_ARCHIVES = tuple(f"archive{level}" for level in range(LEVELS - 1))


class MapArrays:
    """Maps of `size` rows of `width` numbers, and the products of their groups; at most 65,536 maps.

    Archives are as long as the maps so far ask for; `reserve` makes room for more.
    """

    def __init__(self, size: int, width: int, dtype: str) -> None:
        self._maps = (size, width)
        self._dtype = dtype

    def fresh(self) -> dict[str, View]:
        """No map yet."""
        return {
            "items": zeros(LEVELS, "int64"),
            "suffix": zeros((LEVELS * GROUP, *self._maps), self._dtype),
            **{name: zeros((0, *self._maps), self._dtype) for name in _ARCHIVES},
        }

    def reserve(self, state: State, more: int) -> dict[str, View]:
        """The arrays that so many more maps ask for, instead of those that are too small."""
        items = state.view("items")
        larger = {}
        for level, name in enumerate(_ARCHIVES):
            most = min(int(items[0]) + more, GROUP**LEVELS) // GROUP**level
            room = len(state.view(name))
            if most > room + GROUP - 1:  # the open group is not in the archive
                size = -(-most // GROUP) * GROUP
                larger[name] = state.resized(name, size, min(room, _closed(items[level])))
        return larger

    def fits(self, state: State, epochs: View) -> bool:
        """Are the counters possible, and those of the features, `epochs`, −1 or whole numbers that have been?"""
        items = state.view("items").tolist()
        return bool(
            0 <= items[0] < GROUP**LEVELS
            and all(items[level + 1] == items[level] // GROUP for level in range(LEVELS - 1))
            and all(len(state.view(name)) == _closed(items[at]) for at, name in enumerate(_ARCHIVES))
            and _native.are_whole(epochs, -1, items[0])
        )

    def saved(self, state: State) -> dict[str, View]:
        """The archives, only as far as they are in use."""
        items = state.view("items")
        return {name: state.head(name, _closed(items[level])) for level, name in enumerate(_ARCHIVES)}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Make room for the archives of a file, which are checked."""
        for name in _ARCHIVES:
            kept = arrays[name]
            if dtype_name(kept) != self._dtype or kept.shape[1:] != self._maps:
                raise ValueError(f"array {name!r} has the wrong type or shape")
            check_numbers(name, kept)
            state.resize(name, len(kept), 0)


def _closed(items: float) -> int:
    """How many of them are in groups that are complete."""
    return int(items) // GROUP * GROUP


def most_epochs(m: int, buffer: int, t: int, following: int, waiting: int, rows: int) -> int:
    """How often a bank's sketch may be updated in so many rows after row t: `stands_for` and `due` in
    native/learners/bank_sketch.hpp, for rows that all go into it if they can."""
    epochs, last = 0, t + rows
    t = max(t + 1, following)
    while m > 0 and t <= last:
        waiting += 1
        if waiting >= min(buffer, 1 + t // 16):
            epochs, waiting = epochs + 1, 0
        t += 1 if t <= 30 * m else max(8, t // 64)
    return epochs
