"""The arrays of a bank's experts with whole matrices (native/learners/bank_full.hpp): least squares."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton.full_places import FULL, FullPlaces

__all__ = ["LOSSES", "PLACES", "fits", "fresh", "moments", "packed", "roots", "unpacked"]

LOSSES = ("squared", "logistic", "hinge", "squared_hinge", "absolute", "quantile", "huber", "poisson")
"""Losses whose banks have these experts."""
UNIT, SIZE = range(2)  # columns of `full_units`
SLOPE, SHIFT, STALE, ODDS = 0, 1, 5, 6  # of `full_odds`; between them the covariance of the first two
SCORES = len(FULL) + 1  # whose log odds are learned: the last is that of the tracking expert
TARGET, WEIGHT, AGE = range(3)  # columns of `full_labels`
LONGEST = 32  # rows in a block
PLACES = FullPlaces(
    ("full_features", "full_units", "full_weights", "full_block", "full_spread"), beside=2, most=384
)

ROOT = 3  # the last column of `full_labels`: √|r|
SUM, SPREAD = range(2)  # columns of `full_spread`


def fresh() -> dict[str, View]:
    """No places yet."""
    return {
        "full_features": zeros(0, "int64"),
        "full_units": zeros((0, 2)),
        "full_weights": zeros((0, len(FULL))),
        "full_moments": zeros(0),
        "full_odds": zeros((SCORES, ODDS)),
        "full_block": zeros((0, LONGEST)),
        "full_labels": zeros((LONGEST, 4)),
        "full_spread": zeros((0, 2)),
    }


def fits(state: State, used: int, waiting: int, features: View) -> bool:
    """Kernels trust these numbers."""
    if not 0 <= waiting < LONGEST:
        return False
    places = state.view("full_features")
    if used <= 0:
        return used >= -1 and len(places) == 0
    labels = state.view("full_labels")
    return (
        used == len(places) == 1 + len(features)
        and _native.are_distinct(places[1:])
        and _native.are_among(places[1:], features)
        and _native.look(state.view("full_units").cast("B").cast("d"))[1] > 0
        and min(labels[row, column] for row in range(LONGEST) for column in (WEIGHT, AGE, ROOT)) >= 0
    )


def moments(state: State, places: int, waiting: int) -> tuple[Floats, Floats]:
    """A and b of each expert, in the units of the places: experts × places × places, experts × places.

    As if the block of rows that wait had ended.
    """
    A, b = unpacked(state["full_moments"], places)
    rows = state["full_block"][: max(places, 0), :waiting]
    targets, weights, ages, _ = state["full_labels"][:waiting].T
    kept = np.array(list(FULL.values())) ** ages.sum()
    weighed = rows * weights
    return kept[:, None, None] * A + weighed @ rows.T, kept[:, None] * b + weighed @ targets


def unpacked(flat: Floats, places: int) -> tuple[Floats, Floats]:
    """A and b of one array."""
    K = len(FULL)
    A, b = np.zeros((K, places, places)), np.zeros((K, places))
    for j in range(places):
        column = flat[PLACES.packed(j) : PLACES.packed(j + 1)].reshape(K, j + 2)
        A[:, : j + 1, j] = A[:, j, : j + 1] = column[:, :-1]
        b[:, j] = column[:, -1]
    return A, b


def roots(state: State, places: int, waiting: int) -> Floats:
    """Σ √|r| x over all rows, as native/learners/spread.hpp has it; that of the constant without one, too."""
    labels = state["full_labels"][:waiting]
    weighed = labels[:, WEIGHT] * labels[:, ROOT]
    sums = (
        state["full_spread"][: max(places, 0), SUM]
        + state["full_block"][: max(places, 0), :waiting] @ weighed
    )
    if places > 0 and not state["full_block"][0, :waiting].any():
        sums[0] += weighed.sum()
    return np.asarray(sums)


def packed(A: Floats, b: Floats) -> Floats:
    """The same as one array."""
    columns = [np.hstack([A[:, : j + 1, j], b[:, j, None]]).ravel() for j in range(b.shape[1])]
    return np.concatenate([np.zeros(0), *columns])
