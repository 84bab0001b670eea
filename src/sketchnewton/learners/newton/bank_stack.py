"""What a bank's experts say together, if labels are classes (native/learners/bank_stack.hpp): stacking."""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Floats, np

__all__ = ["fits", "fresh", "merged", "shares", "weights"]

INPUTS = 12  # columns: what the rule would play, then the experts; the rows are C, θ and shares
_THETA, _SHARES, _ROWS = INPUTS, INPUTS + 1, INPUTS + 2
_LARGEST = 1e6  # of θ: `kLargest` of the kernel
_LEAST_SHARE = 1e-300  # so that it has a logarithm
_CERTAIN = 1e-15  # of the largest variance, below which one is rounding


def fresh() -> View:
    """What the rule would play counts as it is, experts beside it do not."""
    stack = zeros((_ROWS, INPUTS))
    for i in range(INPUTS):
        stack[i, i] = 1.0
    stack[_THETA, 0] = 1.0
    stack[_SHARES, 0] = stack[_SHARES, 1] = 0.5
    return stack


def fits(state: State) -> bool:
    """Kernels trust these numbers, all of them finite. Variances fall, from 1 on."""
    *C, theta, its = state.view("stack").tolist()
    return (
        all(abs(value) <= 1.0 + 1e-6 for row in C for value in row)
        and max(map(abs, theta)) <= _LARGEST
        and min(its) >= 0
        and abs(sum(its[:2]) - 1) < 1e-6
        and not any(its[2:])
    )


def weights(state: State) -> Floats:
    """θ: of the log odds of what the rule would play, then of the experts' predictions."""
    return np.array(state["stack"][_THETA])


def shares(state: State) -> Floats:
    """The weight of what the rule would play, and of what experts say together."""
    return np.array(state["stack"][_SHARES, :2])


def merged(states: Sequence[State], base: State | None, rows: Floats) -> Floats:
    """Of all rows together: what is known of θ adds up, as that of normal distributions does.

    `rows` are those that each side has learned since the base.
    """
    begun = np.array(fresh()) if base is None else base["stack"]
    each = [state["stack"] for state in states]
    before, known = _precision(begun), [_precision(its) for its in each]
    precision = before + sum(own - before for own in known)
    pull = before @ begun[_THETA]
    pull = pull + sum(own @ its[_THETA] - pull for own, its in zip(known, each, strict=True))
    values, vectors = np.linalg.eigh(precision)
    values = np.maximum(values, 1.0)  # what was known at first, but for rounding
    whole = np.zeros((_ROWS, INPUTS))
    whole[:INPUTS] = (vectors / values) @ vectors.T
    whole[_THETA] = np.clip(whole[:INPUTS] @ pull, -_LARGEST, _LARGEST)
    parts = rows / rows.sum() if rows.any() else np.full(len(rows), 1.0 / len(rows))
    logs = parts @ np.log(np.maximum([its[_SHARES, :2] for its in each], _LEAST_SHARE))
    of_each = np.exp(logs - logs.max())
    whole[_SHARES, :2] = of_each / of_each.sum()
    return whole


def _precision(stack: Floats) -> Floats:
    values, vectors = np.linalg.eigh(stack[:INPUTS])
    return np.asarray((vectors / np.maximum(values, _CERTAIN * values[-1])) @ vectors.T)
