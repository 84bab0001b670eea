"""Experts with whole matrices: their names, and the room that features take in their arrays."""

from __future__ import annotations

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.state import State, View
from sketchnewton.core.types import Arrays

__all__ = ["FULL", "FullPlaces"]

FULL = {"full": 1.0, "full 1000": 0.999, "full 100": 0.99}
"""Names, and γ: how much of a row remains after the next."""
_AHEAD = 8  # places at a time


class FullPlaces(NamedTuple):
    """How the arrays of a kind of bank grow, are saved and loaded."""

    by_place: tuple[str, ...]
    """Arrays with a row for each place."""
    beside: int
    """Column j of `full_moments` has j + `beside` numbers for each expert."""
    most: int
    """Features at most: `kMost` of the kernel."""

    def packed(self, places: int) -> int:
        """Numbers of so many columns of moments."""
        return len(FULL) * (places * (places - 1) // 2 + self.beside * places)

    def reserve(self, state: State, needed: int, used: int) -> dict[str, View]:
        """The arrays of so many places, instead of those that are too small; of none if the experts are gone."""
        room = len(state.view("full_features"))
        if used < 0 and room:
            return self._resized(state, 0, 0)
        if needed <= room:
            return {}
        return self._resized(state, min(-(-needed // _AHEAD) * _AHEAD, 1 + self.most), used)

    def saved(self, state: State, used: int) -> dict[str, View]:
        """The places in use."""
        used = max(used, 0)
        heads = {name: state.head(name, used) for name in self.by_place}
        return {**heads, "full_moments": state.head("full_moments", self.packed(used))}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Make room for the arrays of a file."""
        places = len(arrays["full_features"])
        if places > 1 + self.most:  # and the constant
            raise ValueError("its counters contradict its arrays")
        state.update(self._resized(state, places, 0))

    def _resized(self, state: State, places: int, used: int) -> dict[str, View]:
        arrays = {name: state.resized(name, places, used) for name in self.by_place}
        moments = state.resized("full_moments", self.packed(places), self.packed(used))
        return {**arrays, "full_moments": moments}
