"""The arrays of the experts with whole matrices of a bank of classes (native/learners/class_bank_full.hpp)."""

from __future__ import annotations

from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Arrays, Floats, Integers, np
from sketchnewton.learners.newton.bank_full import FULL, MOST

__all__ = ["fits", "fresh", "reserve", "restore", "saved", "weights"]

UNIT, SIZE = range(2)  # columns of `full_units`
SLOPE, SHIFT, ODDS = 0, 1, 5  # of `full_odds`; after the first two their covariance
_AHEAD = 8  # places at a time
_BY_PLACE = ("full_features", "full_units", "full_weights", "full_sums")


def _packed(places: int) -> int:
    """Numbers of so many columns of moments: place j has j + 1 for each expert."""
    return len(FULL) * (places * (places + 1) // 2)


def fresh(classes: int) -> dict[str, View]:
    """No places yet."""
    return {
        "full_features": zeros(0, "int64"),
        "full_units": zeros((0, 2)),
        "full_weights": zeros((0, len(FULL), classes)),
        "full_moments": zeros(0),
        "full_sums": zeros((0, len(FULL), classes + 1)),
        "full_odds": zeros((len(FULL), classes, ODDS)),
        "full_lift": zeros(len(FULL)),
    }


def _resized(state: State, places: int, used: int) -> dict[str, View]:
    arrays = {name: state.resized(name, places, used) for name in _BY_PLACE}
    return {**arrays, "full_moments": state.resized("full_moments", _packed(places), _packed(used))}


def reserve(state: State, needed: int, used: int) -> dict[str, View]:
    """The arrays of so many places, instead of those that are too small; of none if the experts are gone."""
    room = len(state.view("full_features"))
    if used < 0 and room:
        return _resized(state, 0, 0)
    if needed <= room:
        return {}
    return _resized(state, min(-(-needed // _AHEAD) * _AHEAD, MOST), used)


def saved(state: State, used: int) -> dict[str, View]:
    """The places in use."""
    used = max(used, 0)
    heads = {name: state.head(name, used) for name in _BY_PLACE}
    return {**heads, "full_moments": state.head("full_moments", _packed(used))}


def restore(state: State, arrays: Arrays) -> None:
    """Make room for the arrays of a file."""
    places = len(arrays["full_features"])
    if places > MOST:
        raise ValueError("its counters contradict its arrays")
    state.update(_resized(state, places, 0))


def fits(state: State, used: int, features: Integers) -> bool:
    """Kernels trust these numbers."""
    places = state["full_features"]
    if used <= 0:
        return bool(used >= -1 and len(places) == 0)
    return bool(
        used == len(places)
        and np.array_equal(np.sort(places[1:]), np.sort(features))
        and (state["full_units"] > 0).all()
        and (state["full_lift"] >= 1).all()
    )


def weights(state: State, places: int) -> Floats:
    """Weights of log odds, in the unit of the features: experts × classes × places."""
    found = state["full_weights"][:places] / state["full_units"][:places, UNIT, None, None]
    return np.asarray(np.moveaxis(found, 0, -1) * state["full_odds"][:, :, SLOPE, None])
