"""The arrays of `DelayedMaps` (native/curvature/delayed_maps.hpp): maps that wait until a feature is touched."""

from __future__ import annotations

from typing import Any

from sketchnewton.core.checks import are_whole, check_numbers
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Arrays, NDArray

GROUP, LEVELS = 16, 4  # of MapState in native/curvature/delayed_maps.hpp


class MapArrays:
    """Maps of `size` rows of `width` numbers: room for 65,536 epochs and for the products of their groups."""

    def __init__(self, size: int, width: int, dtype: str) -> None:
        self._maps = (size, width)
        self._dtype = dtype

    def fresh(self) -> dict[str, View]:
        """No epoch yet; archives are zero pages until they are used."""
        return {
            "items": zeros(LEVELS, "int64"),
            "suffix": zeros((LEVELS * GROUP, *self._maps), self._dtype),
            **{
                f"archive{level}": zeros((GROUP ** (LEVELS - level), *self._maps), self._dtype)
                for level in range(LEVELS - 1)
            },
        }

    def fits(self, state: State, epochs: NDArray[Any]) -> bool:
        """Are the counters possible, and those of the features, `epochs`, whole numbers that have been?"""
        items = state["items"]
        return bool(
            0 <= items[0] < GROUP**LEVELS
            and all(items[level + 1] == items[level] // GROUP for level in range(LEVELS - 1))
            and are_whole(epochs, 0, items[0])
        )

    def saved(self, state: State) -> dict[str, View]:
        """The archives, only as far as they are in use."""
        items = state.view("items")
        used = {f"archive{level}": int(items[level]) // GROUP * GROUP for level in range(LEVELS - 1)}
        return {name: state.head(name, length) for name, length in used.items()}

    def restored(self, arrays: Arrays) -> Arrays:
        """Room again for all maps."""
        room = State(self.fresh())
        for level in range(LEVELS - 1):
            name = f"archive{level}"
            kept, full = arrays[name], room[name]
            if kept.dtype != full.dtype or kept.shape[1:] != full.shape[1:] or len(kept) > len(full):
                raise ValueError(f"array {name!r} has the wrong type or shape")
            check_numbers(name, kept)
            full[: len(kept)] = kept
        return {**arrays, **{name: room[name] for name in room if name.startswith("archive")}}
