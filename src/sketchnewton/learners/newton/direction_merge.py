"""What the steps of several banks add up to, direction by direction (docs/merging.md).

A long step moves weights along G x, G an expert's metric, until the row's score is the label. So rows bring
weights a share D/(1 + D) of the way to where they should be, where D is a multiple of Σ G xxᵀ/xᵀGx: nearly all of
it in directions that many rows have, next to nothing in others. Banks that went all the way are averaged, moves of
those that have hardly begun add up. While there are few features, whole matrices know Σ xxᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats, Integers, np
from sketchnewton.learners.newton import bank_layout as layout
from sketchnewton.learners.newton.full_merge import Moments

__all__ = ["Kind", "kinds", "merged_moves", "met", "metric"]

_NO_WEIGHT = 1e-100  # of all rows of a side: too little to divide by
_ALL = 0  # the expert with a whole matrix that forgets nothing


class Kind(NamedTuple):
    """f = steady + root/√t in the metric a + f(U λ Uᵀ), and whether the constant is larger."""

    steady: float
    root: float
    heavy: bool


def met(side: Moments, base: Moments, rows: int, features: Integers, scales: Floats) -> Floats | None:
    """Σ xxᵀ of the rows of a side since its base, of these features, scaled, then the constant.

    They are so many `rows`, and count as rows of weight 1 on average. None if they have no weight.
    """
    weight = side.clock - base.clock
    if not weight > _NO_WEIGHT:
        return None
    found = np.zeros((len(features) + 1, len(features) + 1))
    sizes = np.append(scales, 1.0)
    for sign, its in ((1.0, side), (-1.0, base)):
        if not len(its.units):
            continue
        at = np.append(len(features), np.searchsorted(features, its.features))
        units = its.units / sizes[at]
        found[at[:, None], at] += sign * its.A[_ALL] * np.outer(units, units)
    return found * (rows / weight)


def kinds() -> dict[Kind, list[int]]:
    """Experts by their metric.

    An averaged expert has the mean of weights that move in the metric of the next. Rare ones have none.
    """
    experts = list(layout.EXPERTS.values())
    found: dict[Kind, list[int]] = {}
    for k, expert in enumerate(experts):
        view = expert[-1]
        steady, root = experts[k + 1 if view == layout.MEAN else k][:2]
        if view != layout.RARE:
            found.setdefault(Kind(steady, root, view in layout.HEAVY_VIEWS), []).append(k)
    return found


def metric(directions: Floats, curvature: Floats, flat: float) -> Floats:
    """G⁻¹ of an expert: so much in the directions of the sketch, and the same in all."""
    return np.asarray(flat * np.eye(directions.shape[1]) + (directions.T * curvature) @ directions)


def merged_moves(
    moves: Sequence[Floats], met: Sequence[Floats], lengths: Sequence[float], metric: Floats, known: float
) -> Floats | None:
    """(1 + Σ D_i)⁻¹ Σ (1 + D_i) Δ_i for the moves Δ_i of each side: features × experts of one metric.

    Sides have met rows with these Σ xxᵀ, and of these mean squared lengths, in which wild values are bounded. Of
    xᵀGx the sums tell only what share of xᵀx it is. `known` is how much one row tells of where it has its length.
    None if rounding leaves nothing of the answer, as where rows' weights differ by a factor of 10³⁰.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = _merged_moves(moves, met, lengths, metric, known)
    except np.linalg.LinAlgError:
        return None
    return found if np.isfinite(found).all() else None


def _merged_moves(
    moves: Sequence[Floats], met: Sequence[Floats], lengths: Sequence[float], metric: Floats, known: float
) -> Floats:
    inverse = np.linalg.inv(metric)
    whole, moved = metric.copy(), np.zeros_like(moves[0])
    for move, squares, length in zip(moves, met, lengths, strict=True):
        total = float(np.trace(squares))
        q = float(np.sum(inverse * squares)) / total * length if total > 0 else 0.0
        its = known / q * squares if q > 0 else np.zeros_like(squares)
        whole += its
        moved += (metric + its) @ move
    return np.asarray(np.linalg.solve(whole, moved), np.float64)
