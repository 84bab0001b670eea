"""The experts of several banks that follow classes whose meaning drifts, as one (docs/merging.md).

Each believes w ~ N(w, C) and lets w wander (native/learners/bank_tracking.hpp). Where rows tell j about each, the
precision p of a direction walks from 1 as p' = j − ε p (p − 1), and weights come nearer to what the rows say: of
the distance, the share r = p₀/p · exp(−ε ∫ (p − 1)) is left. One bank would have walked on through the rows of all
banks. So its precision is a function of the mean precision of the banks, and its weights are the base's and
(1 − r)/(1 − r') times the mean of the banks' moves, where r' is what one bank's rows have left: where rows tell
next to nothing, moves add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sketchnewton.core.types import Arrays, Floats, Integers, np
from sketchnewton.learners.newton import bank_full, bank_tracking
from sketchnewton.learners.newton.full_merge import spread_share

if TYPE_CHECKING:
    from sketchnewton.learners.newton.bank import NewtonBank

__all__ = ["Tracked", "merged", "tracked_of"]

_DRIFT = 5e-5  # ε: `kDrift` of the kernel
_HALVINGS = 100  # of an interval that has the rate of a walk
_CERTAIN = 1e-12  # variance: as little as rows of any weight leave
_NEAR = 1e-6  # a share of the distance: below it moves add up, and what is told may be rounding
_NO_ROWS = 1e-100  # of rows: too few to divide by
_FARTHEST = 1e100  # spreads: their squares are numbers


class Tracked(NamedTuple):
    """What such an expert knows; place 0 is the constant. Features are as they come."""

    features: Integers
    weights: Floats  # for features that are centred and divided by their spread
    covariance: Floats
    centre: Floats
    spread: Floats
    clock: float  # the weight of all rows so far


class _View(NamedTuple):
    """The same for the features of all banks, centred and scaled as one bank would have them."""

    weights: Floats
    precision: Floats


def tracked_of(bank: NewtonBank, clock: float) -> Tracked | None:
    """None if the expert is gone."""
    its, places = bank._state, bank_tracking.used(bank._state)
    if places < 0 or not bank._tracks:
        return None
    units = its["full_units"][:places, bank_full.UNIT]
    numbers = its["tracking"][:places]
    return Tracked(
        features=its["full_features"][1 : max(places, 1)].copy(),
        weights=numbers[:, bank_tracking.WEIGHT].copy(),
        covariance=bank_tracking.covariance(its["tracking_covariance"], places),
        centre=numbers[:, bank_tracking.CENTRE] * units,
        spread=units / numbers[:, bank_tracking.PER],
        clock=clock,
    )


def merged(sides: Sequence[Tracked | None], base: Tracked | None, full: Arrays | None) -> Arrays:
    """Arrays of one that knows the rows of all sides, which began with `base`.

    `full` are those of the experts with whole matrices; None if they are gone, and so is this one then.
    """
    known = [side for side in sides if side is not None]
    places = 0 if full is None else len(full["full_features"])
    if full is None or len(known) < len(sides) or places > bank_tracking.MOST:
        gone = bank_tracking.fresh(there=False)
        return {name: np.array(array) for name, array in gone.items()}
    features, units = full["full_features"][1:], full["full_units"][:, bank_full.UNIT]
    centre, spread = _measures(full)
    views = [_view(side, features, centre * units, spread * units) for side in known]
    first = None if base is None else _view(base, features, centre * units, spread * units)
    begun = 0.0 if base is None else base.clock
    weights, covariance = _together(views, first, begun, np.array([side.clock for side in known]))
    return {
        "tracked": np.array([places], np.int64),
        "tracking": np.column_stack(
            [np.clip(weights, -bank_tracking.LARGEST, bank_tracking.LARGEST), centre, 1.0 / spread]
        ),
        "tracking_covariance": bank_tracking.packed(covariance),
    }


def _measures(full: Arrays) -> tuple[Floats, Floats]:
    """Means and spreads by the moments of all rows, in the units of places."""
    A, _ = bank_full.unpacked(full["full_moments"], len(full["full_features"]))
    every, rows = A[0], A[0, 0, 0]
    sizes = full["full_units"][:, bank_full.SIZE] / full["full_units"][:, bank_full.UNIT]
    centre = every[0] / rows if rows > 0 else np.zeros(len(every))
    centre[0] = 0.0  # the constant is as it is
    return np.asarray(centre), np.append(1.0, (sizes * np.sqrt(spread_share(every)))[1:])


def _view(side: Tracked, features: Integers, centre: Floats, spread: Floats) -> _View:
    """With other means and spreads the row is another, linear in the old one: weights and covariance follow."""
    at = np.concatenate([[0], 1 + np.searchsorted(features, side.features)])[: len(side.weights)].astype(int)
    weights, covariance = np.zeros(len(centre)), np.eye(len(centre))
    with np.errstate(over="ignore", divide="ignore"):  # of values 10³⁰⁰ times as large on another side
        turn = np.diag(spread[at] / side.spread)
        turn[1:, :1] = ((centre[at] - side.centre) / side.spread)[1:, None]
    turn = np.clip(turn, -_FARTHEST, _FARTHEST)
    weights[at] = turn.T @ side.weights
    covariance[np.ix_(at, at)] = turn.T @ side.covariance @ turn
    values, vectors = np.linalg.eigh(covariance)
    return _View(weights, (vectors / np.clip(values, _CERTAIN, 1.0)) @ vectors.T)


def _together(
    sides: Sequence[_View], base: _View | None, begun: float, clocks: Floats
) -> tuple[Floats, Floats]:
    """Weights and covariance; `begun` is the clock of the base."""
    one = np.eye(len(sides[0].weights))
    start = np.zeros(len(one)) if base is None else base.weights
    new = np.maximum(clocks - begun, 0.0)
    parts = new / new.sum() if new.sum() > _NO_ROWS else np.full(len(new), 1.0 / len(new))
    told = [side.precision - one for side in sides]
    # Rows of a bank count as many as those of others: labels at random would else tell most.
    inverse = np.linalg.inv(one + np.tensordot(parts, told, 1))
    heard = np.maximum([np.sum(inverse * its) for its in told], _NEAR)
    parts_heard = parts * (parts @ heard) / heard
    mean, pull = one.copy(), np.zeros(len(one))
    for part, loud, side, its in zip(parts, parts_heard, sides, told, strict=True):
        mean += loud * its
        pull += (part * one + loud * its) @ (side.weights - start)
    values, V = np.linalg.eigh(mean)
    values = np.maximum(values, 1.0)
    typical, whole = float(parts @ new), float(new.sum())
    p, by = values, np.ones(len(values))
    if typical > _NO_ROWS:
        rate = _rate(values, begun + typical)
        p = _walk(rate, begun + whole)
        near, far = (_moved(rate, begun, rows) for rows in (typical, whole))
        by = np.where(near > _NEAR, far / np.maximum(near, _NEAR), whole / typical)
    half = V / np.sqrt(p)
    return np.asarray(start + V @ (by / values * (V.T @ pull))), np.asarray(half @ half.T)


# --- the walk p' = j − ε p (p − 1) from 1 on, which is x' = ε (r² − x²) for x = p − ½ and r² = j/ε + ¼


def _walk(rate: Floats, rows: float) -> Floats:
    r = np.sqrt(rate / _DRIFT + 0.25)
    t = np.tanh(_DRIFT * r * rows)
    return np.asarray(np.maximum(0.5 + r * (0.5 + r * t) / (r + 0.5 * t), 1.0))


def _log_distance(rate: Floats, rows: float, begun: float = 0.0) -> Floats:
    """What so many rows leave of the distance to what rows say, after others: its logarithm, −ln p − ε ∫ (p − 1).

    In the end the integral grows by ε(r − ½) with every row. That part is taken of these rows alone, which others
    may outweigh by far.
    """
    r = np.sqrt(rate / _DRIFT + 0.25)

    def settled(t: float) -> Floats:
        """All but that part, after t rows; `grown` is e^−εrt (cosh εrt + sinh(εrt)/2r)."""
        grown = 0.5 * ((1.0 + 0.5 / r) + (1.0 - 0.5 / r) * np.exp(-2.0 * _DRIFT * r * t))
        return np.asarray(np.log(grown) + np.log(_walk(rate, t)))

    return np.asarray(settled(begun) - settled(begun + rows) - rate * rows / (r + 0.5))


def _moved(rate: Floats, begun: float, rows: float) -> Floats:
    """By how much of the distance weights move in so many rows."""
    return np.asarray(-np.expm1(_log_distance(rate, rows, begun)))


def _rate(p: Floats, rows: float) -> Floats:
    """The rate at which the walk comes to p in so many rows."""
    low, high = np.zeros(len(p)), _DRIFT * p * p + (p - 1.0) / rows  # more than enough
    for _ in range(_HALVINGS):
        rate = 0.5 * (low + high)
        short = _walk(rate, rows) < p
        low, high = np.where(short, rate, low), np.where(short, high, rate)
    return np.asarray(low)
