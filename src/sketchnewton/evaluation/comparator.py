"""The comparator of regret: the best fixed weights within a bound, found with all labels known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sketchnewton.core.batch import is_frame
from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats
from sketchnewton.losses import Loss, get_loss
from sketchnewton.losses.base import Line

__all__ = ["TOLERANCE", "Comparator", "best_fixed", "checked_clip", "dense"]


TOLERANCE = 1e-8


class Comparator(NamedTuple):
    """Fixed weights, chosen with all labels known, and the loss they suffer on the stream."""

    weights: Floats
    total_loss: float


def best_fixed(
    loss: str | Loss, X: object, y: ArrayLike, clip: float, *, tolerance: float = TOLERANCE
) -> Comparator:
    """The weights with |wᵀx_t| ≤ `clip` for all rows whose total loss is least, shortest for their predictions.

    The total loss is within `tolerance`·max(1, total loss) of the least one. Losses with kinks are linear
    programs; for the others Newton's method is used with a logarithmic barrier, whose distance from the optimum is
    known.
    Cost: O(T r²) per step for T rows of rank r, all of them dense in memory.

    `X` are the rows, `y` their labels, `loss` an object or a name.
    """
    loss, rows, labels, C = get_loss(loss), dense(X), np.asarray(y, np.float64), checked_clip(clip)
    loss.check_labels(labels)
    # p = Xw = Uz with orthonormal columns in U: no unit or correlation of features makes the problem ill-posed.
    U, sizes, V = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.count_nonzero(sizes > 1e-12 * sizes.max(initial=0.0)))
    U, sizes, V = U[:, :rank], sizes[:rank], V[:rank]
    lines = loss.lines(labels)
    if not rank:
        z = np.zeros(0)
    else:
        z = _barrier(loss, U, labels, C, tolerance) if lines is None else _linear_program(lines, U, C)
    z *= min(1.0, C / max(np.abs(U @ z).max(initial=0.0), C))  # within C to the last digit
    return Comparator((z / sizes) @ V, float(loss.value(U @ z, labels).sum()))


def dense(X: object) -> Floats:
    """Rows as an array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") and not is_frame(X) else X, np.float64)


def checked_clip(clip: float | str | None) -> float:
    """C, which must be a finite number."""
    if clip is None or isinstance(clip, str) or not 0 < clip < math.inf:
        raise ValueError(
            f"clip={clip!r} is invalid: regret needs a finite bound of the predictions, clip > 0"
        )
    return float(clip)


def _linear_program(lines: tuple[Line, Line], U: Floats, C: float) -> Floats:
    """Minimise Σs_t with s_t above both lines, over z and s."""
    from scipy.optimize import linprog  # heavy, and seldom needed
    from scipy.sparse import block_array, csr_array, eye_array

    T, r = U.shape
    above = [[csr_array(slope[:, None] * U), -eye_array(T)] for slope, _ in lines]
    within = [[csr_array(sign * U), csr_array((T, T))] for sign in (1.0, -1.0)]
    solution = linprog(
        np.concatenate([np.zeros(r), np.ones(T)]),
        A_ub=block_array(above + within, format="csr"),
        b_ub=np.concatenate([*(-offset for _, offset in lines), np.full(2 * T, C)]),
        bounds=[(None, None)] * (r + T),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        raise ValueError(f"the best fixed weights were not found: {solution.message}")
    return np.asarray(solution.x[:r], np.float64)


def _barrier(loss: Loss, U: Floats, y: Floats, C: float, tolerance: float) -> Floats:
    """Minimise Σℓ(p) − μΣ ln(C² − p²) over z, p = Uz, for μ → 0: the minimiser is within 2Tμ of the optimum."""
    T, r = U.shape
    z, p = np.zeros(r), np.zeros(T)

    def objective(p: Floats, mu: float) -> float:
        return float(loss.value(p, y).sum() - mu * np.log((C - p) * (C + p)).sum())

    mu = max(objective(p, 0.0), 1.0) / T
    while True:
        for _ in range(100):
            slope = loss.derivative(p, y) + mu * 2 * p / ((C - p) * (C + p))
            bend = _second_derivative(loss, p, y, C) + mu * 2 * (C * C + p * p) / ((C - p) * (C + p)) ** 2
            gradient = U.T @ slope
            step = np.linalg.solve(U.T @ (bend[:, None] * U), gradient)
            decrement = float(gradient @ step)
            move, length, here = U @ step, 1.0, objective(p, mu)
            # As far as the walls allow, then back until the objective has fallen enough.
            room = np.where(move > 0, C + p, C - p) / np.maximum(np.abs(move), 1e-300)
            length = min(1.0, 0.99 * float(room.min()))
            while length > 1e-12 and objective(p - length * move, mu) > here - 0.25 * length * decrement:
                length /= 2
            if length <= 1e-12:
                break
            z, p = z - length * step, p - length * move
            if decrement <= T * mu * 1e-3:
                break
        if 3 * T * mu <= tolerance * max(1.0, objective(p, 0.0)):
            return z
        mu /= 10


def _second_derivative(loss: Loss, p: Floats, y: Floats, C: float) -> Floats:
    h = 1e-6 * C
    difference = loss.derivative(p + h, y) - loss.derivative(p - h, y)
    return np.maximum(difference / (2 * h), 0.0)
