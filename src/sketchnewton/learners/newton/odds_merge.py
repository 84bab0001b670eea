"""How sure the whole-matrix experts of several banks are of their scores, as one would be (docs/merging.md).

Each expert's log odds are θ = (slope, shift) of a logistic regression of its scores with covariance P
(native/learners/score_odds.hpp). A bank that began with θ₀, P₀ stopped where its new rows' loss ℓ has the slope
−∇ℓ(θ) = κ P₀⁻¹ (θ − θ₀), and P⁻¹ = κ P₀⁻¹ + ∇²ℓ(θ), where κ is what it has not forgotten of its start. One
regression minimises all ℓ together. Quadratic ones would not do: rows that are told apart well bend the loss
less the surer one is of them, and banks of few rows are not sure yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton import bank_full

__all__ = ["merged"]

_FIRST = np.array([2.0, 0.0])  # slope and shift of a bank that knows nothing, with a covariance of 1
_CERTAIN = 1e-100  # variance of what rows of huge weight have told
_UNSURE = 20.0  # rows in which the first slope counts: `kUnsure` of the kernel
_FARTHEST = 9.2  # log odds beyond which the logistic loss bends no less: `kLeastCurvature` of the kernel
_STEPS, _HALVINGS, _NEAR = 50, 30, 1e-13  # of Newton's method


class _Rows(NamedTuple):
    """Rows of one score, as a regression has learned them."""

    x: Floats  # the score and 1
    curvature: float  # of their loss
    odds: float  # at which it was that


def merged(sides: Sequence[Floats], base: Floats | None, learned: Sequence[float]) -> Floats:
    """The numbers of each expert; `learned` are the rows of the base and of each side.

    A regression that remembers half of the rows so far keeps ((T₀ + 20)/(T + 20))² of what it knew at row T₀. So
    one that has all rows keeps as much of the base, and of what each side knew at its last row: the side's scores
    were made of so many rows, and tell less apart than those that are merged.
    """
    odds = sides[0].copy()
    begun, *ended = learned
    whole = begun + sum(end - begun for end in ended)
    left, *kept = [((begun + _UNSURE) / (end + _UNSURE)) ** 2 for end in (whole, *ended)]
    faded = [((end + _UNSURE) / (whole + _UNSURE)) ** 2 for end in ended]
    for g, its in enumerate(odds):
        start, before = (_FIRST, np.eye(2)) if base is None else _known(base[g])
        pull, rows = np.zeros(2), []
        for side, share, fade in zip(sides, kept, faded, strict=True):
            theta, known = _known(side[g])
            pull += fade * share * before @ (theta - start)
            rows += _typical(fade * (known - share * before), theta)
        with np.errstate(over="ignore", invalid="ignore"):  # edited files: such steps are not taken
            theta, known = _least(start, left * before, pull, rows)
        values, vectors = np.linalg.eigh(known)
        covariance = (vectors / np.maximum(values, 1.0)) @ vectors.T
        its[[bank_full.SLOPE, bank_full.SHIFT]] = theta
        its[[2, 3, 4]] = covariance[[0, 0, 1], [0, 1, 1]]
        if sides[0][g][4] == 0.0:  # without a constant there is no shift
            its[[bank_full.SHIFT, 3, 4]] = 0.0
        its[bank_full.STALE] = 0.0
    return odds


def _known(odds: Floats) -> tuple[Floats, Floats]:
    """Slope and shift, and the inverse of their covariance; without a constant the shift is none."""
    ss, sc, cc = odds[2:5]
    if cc == 0.0:
        return odds[:2], np.diag([1.0 / max(ss, _CERTAIN), 0.0])
    values, vectors = np.linalg.eigh([[ss, sc], [sc, cc]])  # of rows of huge weight nothing may be left
    return odds[:2], (vectors / np.maximum(values, max(1e-15 * values[-1], _CERTAIN))) @ vectors.T


def _typical(curvature: Floats, theta: Floats) -> list[_Rows]:
    """Rows of the scores t and −t whose losses have this curvature together, as any is that of two such scores."""
    values, vectors = np.linalg.eigh(curvature)
    (ss, sc), (_, cc) = (vectors * np.maximum(values, 0.0)) @ vectors.T
    if not cc > 0:  # no constant: scores of either sign are the same
        return [_Rows(np.array([1.0, 0.0]), ss, float(theta[0]))] if ss > 0 else []
    t = np.sqrt(ss / cc)
    lean = sc / t if t > 0 else 0.0
    both = ((np.array([t, 1.0]), 0.5 * (cc + lean)), (np.array([-t, 1.0]), 0.5 * (cc - lean)))
    return [_Rows(x, bend, float(x @ theta)) for x, bend in both if bend > 0]


def _least(start: Floats, known: Floats, pull: Floats, rows: Sequence[_Rows]) -> tuple[Floats, Floats]:
    """Where the losses of all sides and what is left of the start have their least sum; the curvature there."""
    x = np.array([its.x for its in rows]).reshape(-1, 2)
    odds = np.array([its.odds for its in rows])
    count = np.array([its.curvature for its in rows]) / _bend(odds)
    reached = _slope(odds)

    def slope(theta: Floats) -> Floats:
        return np.asarray(known @ (theta - start) - pull + x.T @ (count * (_slope(x @ theta) - reached)))

    def curvature(theta: Floats) -> Floats:
        return np.asarray(known + (x.T * (count * _bend(x @ theta))) @ x)

    theta, rest = start, slope(start)
    for _ in range(_STEPS):
        step = _solved(curvature(theta), -rest)
        for _ in range(_HALVINGS):
            tried = slope(theta + step)
            if tried @ tried < rest @ rest:
                break
            step = 0.5 * step
        else:
            break
        theta, rest = theta + step, tried
        if np.abs(step).max() <= _NEAR * np.abs(theta).max():
            break
    return theta, curvature(theta)


def _solved(curvature: Floats, slope: Floats) -> Floats:
    """A step of Newton's method. Directions in which nothing is known are left alone."""
    values, vectors = np.linalg.eigh(curvature)
    least = max(1e-15 * values[-1], _CERTAIN)
    return np.asarray(vectors @ (vectors.T @ slope / np.maximum(values, least)))


def _slope(odds: Floats) -> Floats:
    """The integral of `_bend`: the slope of the logistic loss, but for a constant."""
    near = np.clip(odds, -_FARTHEST, _FARTHEST)
    return np.asarray(1.0 / (1.0 + np.exp(-near)) + _bend(near) * (odds - near))


def _bend(odds: Floats) -> Floats:
    """The curvature of the logistic loss."""
    p = 1.0 / (1.0 + np.exp(-np.clip(odds, -_FARTHEST, _FARTHEST)))
    return np.asarray(p * (1.0 - p))
