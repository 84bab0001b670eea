"""The arrays of a bank's experts with whole matrices (native/learners/bank_full.hpp): least squares."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Arrays, Floats, np

__all__ = ["FULL", "LOSSES", "fits", "fresh", "moments", "packed", "reserve", "restore", "saved"]

FULL = {"full": 1.0, "full 1000": 0.999, "full 100": 0.99}
"""Names, and γ: how much of a row remains after the next."""
LOSSES = ("squared", "logistic", "hinge", "squared_hinge")
"""Losses whose banks have these experts."""
MOST = 129  # places for features and the constant: `kMost` of the kernel
UNIT, SIZE = range(2)  # columns of `full_units`
SLOPE, SHIFT, STALE, ODDS = 0, 1, 5, 6  # of `full_odds`; between them the covariance of the first two
TARGET, WEIGHT = range(2)  # columns of `full_labels`
LONGEST = 32  # rows in a block
_AHEAD = 8  # places at a time
_BY_PLACE = ("full_features", "full_units", "full_weights", "full_block")


def _packed(places: int) -> int:
    """Numbers of so many columns of moments: place j has j + 2 for each expert."""
    return len(FULL) * (places * (places + 3) // 2)


def fresh() -> dict[str, View]:
    """No places yet."""
    return {
        "full_features": zeros(0, "int64"),
        "full_units": zeros((0, 2)),
        "full_weights": zeros((0, len(FULL))),
        "full_moments": zeros(0),
        "full_odds": zeros((len(FULL), ODDS)),
        "full_block": zeros((0, LONGEST)),
        "full_labels": zeros((LONGEST, 2)),
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
        and min(labels[row, WEIGHT] for row in range(LONGEST)) >= 0
    )


def moments(state: State, places: int, waiting: int) -> tuple[Floats, Floats]:
    """A and b of each expert, in the units of the places: experts × places × places, experts × places.

    As if the block of rows that wait had ended.
    """
    flat, K = state["full_moments"], len(FULL)
    A, b = np.zeros((K, places, places)), np.zeros((K, places))
    for j in range(places):
        column = flat[_packed(j) : _packed(j + 1)].reshape(K, j + 2)
        A[:, : j + 1, j] = A[:, j, : j + 1] = column[:, :-1]
        b[:, j] = column[:, -1]
    rows = state["full_block"][: max(places, 0), :waiting]
    targets, weights = state["full_labels"][:waiting].T
    kept = np.array(list(FULL.values())) ** weights.sum()
    weighed = rows * weights
    return kept[:, None, None] * A + weighed @ rows.T, kept[:, None] * b + weighed @ targets


def packed(A: Floats, b: Floats) -> Floats:
    """The same as one array."""
    columns = [np.hstack([A[:, : j + 1, j], b[:, j, None]]).ravel() for j in range(b.shape[1])]
    return np.concatenate([np.zeros(0), *columns])
