"""The numbers by which scores become calibrated probabilities (native/learners/calibration.hpp).

One row of `WIDTH` numbers for each side of a bank, one alone for several classes; of a bank also corrections.
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton import _native
from sketchnewton.core.checks import LARGEST_COUNT
from sketchnewton.core.hints import Any, cast
from sketchnewton.core.state import State, Vector, View, zeros
from sketchnewton.core.types import ArrayLike, Arrays, Floats, np
from sketchnewton.losses import Loss

__all__ = ["WIDTH", "ClassCalibration", "fits", "fits_bank", "fresh", "fresh_bank", "merged", "merged_banks"]

SIDES, NODES = 2, 17
DOUBT, FARTHEST = 30.0, 4.0  # as in native/learners/calibration.hpp
BETA, GAMMA, BB, BG, GG, RAW, TEMPERED, ROWS, CLOCK, WIDTH = range(10)
_START = (1.0, 1.0, 1.0, 0.0, 1.0, 0.5, 0.5, 0.0, 0.0)
MEMORY = 50.0  # rows for each class, after which Laplace's rule counts no more of them
_LEAST_BETA, _MOST = 0.05, 20.0
_DECAY = 19  # row t leaves a share of 1 − 1/(t + 19) of the curvatures before it
_LARGEST_CLOCK, _LARGEST_NODE, _LEAST_WEIGHT = 1e60, 1e90, 1e-61  # beyond what weights that are taken lead to


def fresh(sides: int) -> View:
    """Nothing learned: probabilities are what scores say."""
    made = zeros((sides, WIDTH))
    for side in range(sides):
        for at, number in enumerate(_START):
            made[side, at] = number
    return made


def fits(sides: Vector) -> bool:
    """Kernels trust these numbers, all of them finite."""
    return all(_side_fits(side) for side in cast("list[list[float]]", sides.tolist()))


def _side_fits(side: list[float]) -> bool:
    return (
        _LEAST_BETA <= side[BETA] <= _MOST
        and 0 <= side[GAMMA] <= _MOST
        and min(side[BB], side[GG]) >= 0
        and min(side[RAW], side[TEMPERED]) >= _LEAST_WEIGHT
        and abs(side[RAW] + side[TEMPERED] - 1) < 1e-6
        and 0 <= side[ROWS] <= LARGEST_COUNT
        and 0 <= side[CLOCK] <= _LARGEST_CLOCK
    )


def fresh_bank() -> dict[str, View]:
    """Both sides, and no corrections."""
    corrections = zeros((NODES + 1, 2))
    corrections[NODES, 0] = corrections[NODES, 1] = 0.5
    return {"calibration": fresh(SIDES), "corrections": corrections}


def fits_bank(state: State) -> bool:
    """Corrections are means of numbers within ±1; as they are and corrected, probabilities have some weight."""
    rows: Any = state.view("corrections").tolist()  # without NumPy, which loading does not import
    *nodes, mixed = rows
    return (
        fits(state.view("calibration"))
        and all(abs(total) <= (1 + 1e-6) * weight <= _LARGEST_NODE for weight, total in nodes)
        and min(mixed) >= _LEAST_WEIGHT
        and abs(sum(mixed) - 1) < 1e-6
    )


def merged_banks(states: Sequence[State], base: State | None) -> Arrays:
    """Of all rows together, as `merged`; what nodes count is in units of the rows so far, and adds up."""
    sides = [state["calibration"] for state in states]
    whole = merged(sides, None if base is None else base["calibration"])
    clocks = np.array([side[:, CLOCK].sum() for side in sides])
    if not clocks.any():
        return {"calibration": whole, "corrections": np.array(states[0]["corrections"])}
    each = np.array([state["corrections"] for state in states])
    corrections = np.tensordot(clocks / clocks.sum(), each, 1)
    begun = np.zeros((NODES, 2)) if base is None else base["corrections"][:NODES]
    units = np.where(clocks > 0, clocks, 1.0)[:, None, None]
    corrections[:NODES] = begun + whole[:, CLOCK].sum() * ((each[:, :NODES] - begun) / units).sum(axis=0)
    corrections[:NODES, 0] = np.maximum(corrections[:NODES, 0], np.abs(corrections[:NODES, 1]))
    return {"calibration": whole, "corrections": corrections}


def merged(all_sides: Sequence[Floats], base: Floats | None) -> Floats:
    """Of all rows together: counts and curvatures add up, with what all began with once; the rest is a mean."""
    each = np.asarray(all_sides)
    clocks = each[:, :, CLOCK]
    total = clocks.sum(axis=0)
    parts = np.where(total > 0, clocks / np.where(total > 0, total, 1.0), 1.0 / len(each))
    whole = (parts[:, :, None] * each).sum(axis=0)
    counts = each[:, :, [ROWS, CLOCK]].sum(axis=0)
    if base is not None:
        counts = np.maximum(counts - (len(each) - 1) * base[:, [ROWS, CLOCK]], 0.0)
    whole[:, [ROWS, CLOCK]] = counts
    begun = np.array(fresh(each.shape[1])) if base is None else base
    kept = (begun[:, ROWS] + _DECAY) / (each[:, :, ROWS] + _DECAY)
    curvatures = [BB, BG, GG]
    own = each[:, :, curvatures] - kept[:, :, None] * begun[:, curvatures]
    left = (begun[:, ROWS] + _DECAY) / (whole[:, ROWS] + _DECAY)
    whole[:, curvatures] = left[:, None] * begun[:, curvatures] + own.sum(axis=0)
    whole[:, [BB, GG]] = np.maximum(whole[:, [BB, GG]], 0.0)  # of rounding
    whole[:, BETA] = np.clip(whole[:, BETA], _LEAST_BETA, _MOST)  # a mean of bounds may round beyond them
    whole[:, GAMMA] = np.clip(whole[:, GAMMA], 0.0, _MOST)
    return np.asarray(whole)


class ClassCalibration:
    """Probabilities of several classes by the scores of learners of each against the rest, learned row by row."""

    def __init__(self, loss: Loss, numbers: Floats | None = None) -> None:
        self._logistic = loss.link_kind == "logistic"
        self.numbers = np.array(fresh(1)) if numbers is None else np.array(numbers, order="C")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a pickle, whose arrays joblib may have mapped from a file that is only read."""
        vars(self).update(state, numbers=np.array(state["numbers"]))

    def learn(self, scores: Floats, classes: ArrayLike, weights: ArrayLike | None) -> None:
        """Rows with the scores that they had before they were learned, rows × classes."""
        labels = np.ascontiguousarray(classes, np.float64)
        counts = None if weights is None else np.ascontiguousarray(weights, np.float64)
        _native.calibrate_classes(self.numbers, self._logistic, _plain(scores), labels, counts)

    def probabilities(self, scores: Floats) -> Floats:
        """Of each class, for rows × classes scores; they sum to one, and the largest score has the largest."""
        found = np.empty(scores.shape)
        _native.class_chances(self.numbers, self._logistic, _plain(scores), found)
        return found


def _plain(scores: Floats) -> Floats:
    return np.ascontiguousarray(scores, np.float64)
