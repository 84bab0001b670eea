"""What a bank's experts say together, if labels are classes (native/learners/bank_stack.hpp): stacking."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from sketchnewton.core.hints import Any
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Floats, np

__all__ = ["fits", "fresh", "merged", "shares", "weights"]

INPUTS = 12  # columns: what the rule would play, then the experts; the rows are C, θ and shares
_THETA, _SHARES, _ROWS = INPUTS, INPUTS + 1, INPUTS + 2
_LARGEST = 1e6  # of θ: `kLargest` of the kernel
_LEAST_SHARE = 1e-300  # so that it has a logarithm
_FARTHEST = 700.0  # two logarithms of shares
_ROUNDING = 1e-9  # of C, which may add up over very many rows
_CERTAIN = 1e-15  # of the largest variance, below which one is rounding


def fresh() -> View:
    """What the rule would play counts as it is, experts beside it do not."""
    stack = zeros((_ROWS, INPUTS))
    for i in range(INPUTS):
        stack[i, i] = 1.0
    stack[_THETA, 0] = 1.0
    stack[_SHARES, 0] = stack[_SHARES, 1] = 0.5
    return stack


def fits(state: State, inputs: int) -> bool:
    """Kernels trust these numbers, all of them finite, the first `inputs` of which are in use.

    Variances fall, from 1 on; where C is no covariance, steps would make it grow without bound.
    """
    rows: Any = state.view("stack").tolist()  # without NumPy, which loading does not import
    *C, theta, its = rows
    return (
        all(abs(value) <= 1.0 + 1e-6 for row in C for value in row)
        and max(map(abs, theta)) <= _LARGEST
        and min(its) >= 0
        and abs(sum(its[:2]) - 1) < 1e-6
        and not any(its[2:])
        and _is_covariance([row[:inputs] for row in C[:inputs]])
    )


def _is_covariance(C: list[list[float]]) -> bool:
    """Whether C is symmetric and has no negative eigenvalue, but for rounding: by Cholesky's factors."""
    L: list[list[float]] = []
    for i, row in enumerate(C):
        factor: list[float] = []
        for j in range(i):
            if abs(row[j] - C[j][i]) > _ROUNDING:
                return False
            factor.append((row[j] - math.fsum(map(operator.mul, factor, L[j]))) / L[j][j])
        pivot = row[i] + _ROUNDING - math.fsum(one * one for one in factor)
        if not pivot > 0:
            return False
        L.append([*factor, math.sqrt(pivot)])
    return True


def weights(state: State) -> Floats:
    """θ: of the log odds of what the rule would play, then of the experts' predictions."""
    return np.array(state["stack"][_THETA])


def shares(state: State) -> Floats:
    """The weight of what the rule would play, and of what experts say together."""
    return np.array(state["stack"][_SHARES, :2])


def merged(states: Sequence[State], base: State | None, inputs: int, rows: Floats, clock: float) -> Floats:
    """Of all rows together; `rows` are those that each side has met since the base, `clock` counts all.

    All sides have so many `inputs` at least. Others were there, if at all, while there were experts with whole
    matrices; what was known of them is of no use.

    What sides have learned since the base adds up, as what is known of normal distributions does, and so does by
    how much either opinion was better. Without a base their experts have little in common, nor with those of all
    rows together: k sides then count as √k of their mean, half way between evidence that adds up and evidence
    that does not.
    """
    each = [_used(state["stack"], inputs) for state in states]
    begun = np.array(fresh()) if base is None else _used(base["stack"], inputs)
    parts = rows / rows.sum() if rows.any() else np.full(len(rows), 1.0 / len(rows))
    counts = np.sqrt(len(each)) * parts if base is None else np.ones(len(each))
    known = before = _precision(begun)
    pull = pulled = before @ begun[_THETA]
    lead = led = _lead(begun)
    for count, its in zip(counts, each, strict=True):
        own = _precision(its)
        known = known + count * (own - before)
        pull = pull + count * (own @ its[_THETA] - pulled)
        lead += count * (_lead(its) - led)
    whole = begun.copy()
    whole[:INPUTS] = _covariance(known)
    whole[_THETA] = np.clip(whole[:INPUTS] @ pull, -_LARGEST, _LARGEST)
    second = 1.0 / (1.0 + np.exp(-np.clip(lead, -_FARTHEST, _FARTHEST)))
    dealt = (clock + 1.0) ** -2.0
    whole[_SHARES, :2] = (1.0 - dealt) * np.array([1.0 - second, second]) + 0.5 * dealt
    return whole


def _used(stack: Floats, inputs: int) -> Floats:
    """As if there had never been more."""
    used = np.array(fresh())
    used[:inputs, :inputs], used[_THETA, :inputs] = stack[:inputs, :inputs], stack[_THETA, :inputs]
    used[_SHARES] = stack[_SHARES]
    return used


def _lead(stack: Floats) -> float:
    """By how much the second opinion was better, as a logarithm."""
    rule, own = np.log(np.maximum(stack[_SHARES, :2], _LEAST_SHARE))
    return float(own - rule)


def _precision(stack: Floats) -> Floats:
    values, vectors = np.linalg.eigh(stack[:INPUTS])
    return np.asarray((vectors / np.maximum(values, _CERTAIN * values[-1])) @ vectors.T)


def _covariance(precision: Floats) -> Floats:
    """No less is known than at first, but for rounding."""
    values, vectors = np.linalg.eigh(precision)
    return np.asarray((vectors / np.maximum(values, 1.0)) @ vectors.T)
