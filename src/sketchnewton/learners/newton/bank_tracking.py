"""The arrays of a bank's expert that follows classes whose meaning drifts (native/learners/bank_tracking.hpp)."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Arrays, Floats, np

__all__ = [
    "LARGEST",
    "LOSSES",
    "TRACKING",
    "covariance",
    "fits",
    "fresh",
    "packed",
    "reserve",
    "restore",
    "saved",
    "size",
]

LOSSES = ("squared", "squared_hinge", "logistic")
"""Losses whose banks have this expert, as long as labels are classes."""
TRACKING = "tracking"
"""Its name."""
WEIGHT, CENTRE, PER = range(3)  # columns of `tracking`: features are counted from centre, times per
MOST = 129  # places: features and the constant
WILD = 16.0  # spreads that a value is off at most
LARGEST = 1e6  # weight: `kLargest` of the kernel


def fresh(*, there: bool) -> dict[str, View]:
    """No places yet; -1 if the bank does not have the expert."""
    tracked = zeros(1, "int64")
    tracked[0] = 0 if there else -1
    return {"tracked": tracked, "tracking": zeros((0, 3)), "tracking_covariance": zeros(0)}


def size(places: int) -> int:
    """Numbers of so many rows of the lower half of the covariance: each is padded to the next four columns."""
    fours, rest = divmod(places, 4)
    return 8 * fours * (fours + 1) + 4 * rest * (fours + 1)


def used(state: State) -> int:
    """Places in use; -1: the expert is gone."""
    return int(state.view("tracked")[0])


def reserve(state: State, needed: int) -> dict[str, View]:
    """The arrays of so many places, or as many as there may be; of none if the expert is gone."""
    places, room = used(state), len(state.view("tracking"))
    if places < 0:
        return _resized(state, 0, 0) if room else {}
    needed = min(needed, MOST)
    return _resized(state, min(-(-needed // 8) * 8, MOST), places) if needed > room else {}


def saved(state: State) -> dict[str, View]:
    """The places in use."""
    places = max(used(state), 0)
    return {
        "tracking": state.head("tracking", places),
        "tracking_covariance": state.head("tracking_covariance", size(places)),
    }


def restore(state: State, arrays: Arrays) -> None:
    """Make room for the arrays of a file."""
    places = len(arrays["tracking"])
    if places > MOST:
        raise ValueError("its counters contradict its arrays")
    state.update(_resized(state, places, 0))


def fits(state: State, places: int, *, may_be: bool) -> bool:
    """Kernels trust these numbers; `places` are those of the experts with whole matrices."""
    its = used(state)
    if its == -1:
        return len(state.view("tracking")) == 0
    numbers = state.view("tracking")
    return (
        may_be
        and its == places == len(numbers)
        and all(numbers[place, PER] > 0 for place in range(its))
        and all(abs(numbers[place, WEIGHT]) <= LARGEST for place in range(its))
        and _native.is_covariance(state.view("tracking_covariance"), its)
    )


def covariance(flat: Floats, places: int) -> Floats:
    """The whole matrix."""
    whole = np.zeros((places, places))
    for i in range(places):
        whole[i, : i + 1] = whole[: i + 1, i] = flat[size(i) : size(i) + i + 1]
    return whole


def packed(whole: Floats) -> Floats:
    """The lower half as one array."""
    whole = np.tril(whole) + np.tril(whole, -1).T
    flat = np.zeros(size(len(whole)))
    for i in range(len(whole)):
        end = min(len(whole), i // 4 * 4 + 4)
        flat[size(i) : size(i) + end] = whole[i, :end]
    return flat


def _resized(state: State, places: int, kept: int) -> dict[str, View]:
    return {
        "tracking": state.resized("tracking", places, kept),
        "tracking_covariance": state.resized("tracking_covariance", size(places), size(kept)),
    }
