"""The experts with whole matrices of several banks as one: their moments add up (docs/merging.md)."""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.hints import TYPE_CHECKING, NamedTuple
from sketchnewton.core.types import Arrays, Floats, Integers, np
from sketchnewton.learners.newton import bank_full
from sketchnewton.learners.newton import bank_layout as layout
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.newton.odds_merge import merged as merged_odds

if TYPE_CHECKING:
    from sketchnewton.learners.newton.bank import NewtonBank

__all__ = ["Moments", "merged", "moments_of", "spread_share"]

_FEW = 64  # features, whatever rows are like: `kFew` of the kernel
_DENSE, _COST = 8.0, 1024.0  # features, and their square, for each non-zero of a row: `kDense`, `kCost`
_LOST = 1e-13  # of a feature's own square, below which what others leave of it is rounding: `kLost`
_NO_WEIGHT = 1e-100  # of all rows of a side: too little to divide by


class Moments(NamedTuple):
    """What the experts with whole matrices of one bank know; place 0 is the constant."""

    features: Integers
    units: Floats
    A: Floats
    b: Floats
    roots: Floats
    odds: Floats
    offset: float  # from which the targets in b are counted
    clock: float  # the weight of all rows so far

    def counted_from(self, offset: float) -> Floats:
        """b of targets that are counted from another number."""
        return np.asarray(self.b + (self.offset - offset) * self.A[:, :, :1].sum(axis=2))


def moments_of(bank: NewtonBank) -> Moments | None:
    """None if they are gone."""
    its, places = bank._state, bank._places
    if not bank._whole:
        return None
    waiting = int(its["bank_counts"][layout.WAITING])
    A, b = bank_full.moments(its, places, waiting)
    return Moments(
        features=its["full_features"][1 : max(places, 1)].copy(),
        units=its["full_units"][:places, bank_full.UNIT].copy(),
        A=A,
        b=b,
        roots=bank_full.roots(its, places, waiting),
        odds=its["full_odds"].copy(),
        offset=float(its["scalars"][layout.OFFSET]),
        clock=float(its["scalars"][layout.CLOCK]),
    )


def merged(
    sides: Sequence[Moments | None],
    base: Moments | None,
    learned: Sequence[float],
    features: Integers,
    counts: Floats,
    means: Floats,
    offset: float,
) -> Arrays | None:
    """Arrays of experts that know the rows of all sides, which began with `base`; None if they are gone.

    `learned` are the rows of the base and of each side, `features` those of all sides, sorted, `counts` the rows
    that had them, and `means` their mean sizes.
    """
    known = [side for side in sides if side is not None]
    begun, *ended = learned
    rows = begun + sum(end - begun for end in ended)
    needed = max(len(features) / _DENSE, len(features) ** 2 / _COST)  # non-zeros of a row
    few = len(features) <= _FEW or rows * needed <= counts.sum()
    if len(known) < len(sides) or len(features) > bank_full.PLACES.most or not few:
        return None
    places = 1 + len(features)
    units = np.ones(places)
    for side in known:
        units[_places(side, features)] = side.units
    A, b, roots = np.zeros((len(FULL), places, places)), np.zeros((len(FULL), places)), np.zeros(places)
    own, of_base = _parts(known, base)
    for part, side in [*zip(own, known, strict=True), *([] if base is None else [(of_base, base)])]:
        at = _places(side, features)
        ratio = side.units / units[at]
        A[:, at[:, None], at] += part[:, None, None] * side.A * np.outer(ratio, ratio)
        b[:, at] += part[:, None] * side.counted_from(offset) * ratio
        roots[at] += part[0] * side.roots * ratio
    sizes = np.concatenate([[1.0], means])
    return {
        "full_features": np.concatenate([[0], features]).astype(np.int64),
        "full_units": np.column_stack([units, sizes]),
        "full_weights": np.array(
            [_solved(one + _ridge(one, sizes / units), its) for one, its in zip(A, b, strict=True)]
        ).T.copy(),
        "full_moments": bank_full.packed(A, b),
        "full_odds": merged_odds([side.odds for side in known], None if base is None else base.odds, learned),
        "full_block": np.zeros((places, bank_full.LONGEST)),
        "full_spread": np.column_stack([roots, _spread(A[0], sizes / units, roots)]),
    }


def _ridge(A: Floats, sizes: Floats) -> Floats:
    """What is added to the moments before weights are computed, as native/learners/mean_ridge.hpp has it."""
    squares, rows = np.diag(A), A[0, 0]
    there = squares > 0
    own = np.where(there, squares, 1.0)
    ridge = sizes**2 * np.where(there, np.minimum(1.0, len(A) * sizes**2 / own), 1.0) ** 2
    if rows <= 0:
        return np.diag(ridge)
    mean = A[0] / rows * min(1.0, len(A) / rows)
    return np.diag(np.append(0.0, (spread_share(A) * ridge)[1:])) + np.outer(mean, mean)


def spread_share(A: Floats) -> Floats:
    """The share of Σ x² that is not the mean's, as native/learners/mean_ridge.hpp has it; 1 without a constant."""
    squares, rows = np.diag(A), A[0, 0]
    there = squares > 0
    if rows <= 0:
        return np.ones(len(A))
    share = 1.0 - A[0] / np.where(there, squares, 1.0) * (A[0] / rows)
    return np.where(there, np.clip(share, 1.0 / max(1.0, rows), 1.0), 1.0)


def _spread(A: Floats, sizes: Floats, roots: Floats) -> Floats:
    """Weights of widths by features, as native/learners/spread.hpp has it."""
    target = roots.copy()
    if A[0, 0] <= 0:  # there is no constant: its place has the sum of all roots only
        target[0] = 0.0
    weights = _solved(A + _ridge(A, sizes), target)
    mean = float(weights @ roots)
    return weights * (roots[0] / mean) if mean > 0 else np.zeros(len(roots))


def _solved(A: Floats, b: Floats) -> Floats:
    """A⁻¹b, without directions that rounding has eaten."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(scale[:, None] * A * scale)
    inverse = np.where(values > _LOST, 1.0 / np.maximum(values, _LOST), 0.0)
    return np.asarray(scale * (vectors @ (inverse * (vectors.T @ (scale * b)))))


def _parts(sides: Sequence[Moments], base: Moments | None) -> tuple[list[Floats], Floats]:
    """What the moments of each side and of the base are multiplied by, for each expert.

    A side has forgotten all but γ^n of the base while it learned n rows, and remembers s(n) = 1 + γ + … of those.
    One bank would have forgotten all but γ^N in the rows of all sides, and remember s(N) of them. So much the
    sides now have together, each according to its rows. Without forgetting s(n) = n, and moments just add up.
    """
    gamma = np.array(list(FULL.values()))
    begun = 0.0 if base is None else base.clock
    new = [max(side.clock - begun, 0.0) for side in sides]

    def remembered(rows: float) -> Floats:
        forgets = gamma < 1.0
        return np.where(forgets, -np.expm1(rows * np.log(gamma)) / np.where(forgets, 1.0 - gamma, 1.0), rows)

    whole = sum(new)
    own = [
        remembered(whole) * rows / (whole * remembered(rows)) if rows > _NO_WEIGHT else np.zeros(len(gamma))
        for rows in new
    ]
    carried = [part * gamma**rows for part, rows in zip(own, new, strict=True)]
    return own, np.asarray(gamma**whole - sum(carried))


def _places(side: Moments, features: Integers) -> Integers:
    if not len(side.units):
        return np.zeros(0, np.int64)
    return np.concatenate([[0], 1 + np.searchsorted(features, side.features)]).astype(np.int64)
