"""The arrays in which a bank tracks how far labels lie from its predictions (native/learners/residuals.hpp)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sketchnewton import _native
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Arrays, Floats, np
from sketchnewton.learners.rows import checked_scan
from sketchnewton.losses import Loss

__all__ = ["NAMES", "fits", "fresh", "merged", "widths"]

NAMES = ("residuals", "residual_scalars", "residual_levels")
EXPERTS, BINS, BLOCKS, LEVELS = 5, 64, 8, 25
BY_FEATURES = 4
"""The last expert, which leaves when features become many."""
UNIT, ABSOLUTE, SQUARES, ROWS, SHARE, WIDTH = range(BINS + BLOCKS, BINS + BLOCKS + 6)
CLOCK, MEAN, DEVIATION, SLOPE, BEND, FIRST, BOTH, SECOND, NUMBERS, SCALARS = range(10)
_FORGETS = (2, 3)  # experts whose histograms forget
_MOST, _RIDGE, _LARGEST = 3.0, 10.0, 1e8  # coefficients; what their information begins with and stays below
_STEP = 0.1  # of levels, at most: how far they leave [0, 1]


def fresh(loss: Loss) -> dict[str, View]:
    """Nothing seen; nothing to be seen if labels are classes."""
    experts = 0 if loss.sign_labels else EXPERTS
    return {
        "residuals": zeros((experts, WIDTH)),
        "residual_scalars": zeros(SCALARS),
        "residual_levels": zeros(LEVELS),
    }


def fits(state: State) -> bool:
    """Kernels trust these numbers, all of them finite."""
    experts, scalars, levels = (state.view(name) for name in NAMES)
    if not len(experts):
        return not any(scalars) and not any(levels)
    return (
        all(_expert_fits([experts[g, k] for k in range(WIDTH)]) for g in range(EXPERTS))
        and all(experts[g, SHARE] > 0 for g in range(BY_FEATURES))
        and math.isclose(sum(experts[g, SHARE] for g in range(EXPERTS)), 1.0, rel_tol=1e-5)
        and min(scalars[CLOCK], scalars[DEVIATION], scalars[FIRST], scalars[SECOND]) >= 0
        and max(scalars[FIRST], abs(scalars[BOTH]), scalars[SECOND]) <= _LARGEST
        and scalars[BOTH] ** 2 < (_RIDGE + scalars[FIRST]) * (_RIDGE + scalars[SECOND])
        and max(abs(scalars[SLOPE]), abs(scalars[BEND])) <= _MOST
        and scalars[NUMBERS] in (0.0, 1.0)
        and all(abs(level - 0.5) <= 0.5 + _STEP for level in levels)
    )


def _expert_fits(expert: list[float]) -> bool:
    """Bins add up to their blocks."""
    each = BINS // BLOCKS
    sums = (sum(expert[k * each : (k + 1) * each]) for k in range(BLOCKS))
    return (
        min(expert) >= 0
        and all(
            math.isclose(block, s, rel_tol=1e-6, abs_tol=1e-200)
            for block, s in zip(expert[BINS:UNIT], sums, strict=True)
        )
        and expert[UNIT] >= 1
    )


def widths(kernel: _native.BankKernel, rows: _native.Rows | None) -> Floats | None:
    """How wide the distributions of the labels of rows are, by their features; None: nothing is known."""
    if rows is None:
        return None
    checked_scan(rows)
    found = np.empty(len(rows))
    return found if kernel.stretches(rows, found) else None


def merged(states: Sequence[State], base: State | None, *, few: bool) -> Arrays:
    """Of all rows together: sums add up, what forgets and what is a mean becomes the mean over rows.

    If features are not `few`, the expert that goes by them leaves.
    """
    if not len(states[0]["residuals"]):
        return {name: states[0][name].copy() for name in NAMES}
    clocks = np.array([state["residual_scalars"][CLOCK] for state in states])
    if not clocks.any():
        return {name: states[0][name].copy() for name in NAMES}
    parts = clocks / clocks.sum()
    experts, scalars, levels = (np.tensordot(parts, [_plain(s)[name] for s in states], 1) for name in NAMES)
    whole = [_plain(state) for state in states]
    start = None if base is None else _plain(base)
    added = {name: _added(whole, start, name) for name in NAMES[:2]}
    sums = [*range(BINS + BLOCKS), ABSOLUTE, SQUARES, ROWS]
    for g in set(range(EXPERTS)) - set(_FORGETS):
        experts[g, sums] = added["residuals"][g, sums]
    blocks = experts[:, :BINS].reshape(EXPERTS, BLOCKS, -1).sum(axis=2)
    experts[:, BINS : BINS + BLOCKS] = blocks
    if not few or any(state["residuals"][BY_FEATURES, SHARE] == 0 for state in states):
        experts[BY_FEATURES] = 0.0
    experts[:, SHARE] /= experts[:, SHARE].sum()
    experts[:, UNIT] = 1.0  # a mean of ones may be less
    scalars[CLOCK] = added["residual_scalars"][CLOCK]
    scalars[NUMBERS] = max(float(state["residual_scalars"][NUMBERS]) for state in states)
    return {"residuals": experts, "residual_scalars": scalars, "residual_levels": levels}


def _plain(state: State) -> dict[str, Floats]:
    """The arrays, with masses in units of the latest row."""
    experts = state["residuals"].copy()
    experts[:, : BINS + BLOCKS] /= experts[:, UNIT, None]
    experts[:, UNIT] = 1.0
    return {
        "residuals": experts,
        "residual_scalars": state["residual_scalars"],
        "residual_levels": state["residual_levels"],
    }


def _added(whole: Sequence[dict[str, Floats]], base: dict[str, Floats] | None, name: str) -> Floats:
    """What all have seen, with what they began with once."""
    total = np.sum([state[name] for state in whole], axis=0)
    return np.asarray(total if base is None else np.maximum(total - (len(whole) - 1) * base[name], 0.0))
