"""The arrays of the experts with whole matrices of a bank of classes (native/learners/class_bank_full.hpp)."""

from __future__ import annotations

from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Floats, Integers, np
from sketchnewton.learners.newton.full_places import FULL, FullPlaces

__all__ = ["PLACES", "fits", "fresh", "weights"]

UNIT, SIZE = range(2)  # columns of `full_units`
SLOPE, SHIFT, ODDS = 0, 1, 5  # of `full_odds`; after the first two their covariance
PLACES = FullPlaces(("full_features", "full_units", "full_weights", "full_sums"), beside=1, most=128)


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
