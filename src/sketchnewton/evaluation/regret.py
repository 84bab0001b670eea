"""Regret: how much a learner lost by not knowing the best fixed weights from the start, and what theory allows.

The comparators are all w with |wᵀx_t| ≤ C on the whole stream, as in the paper of sketched online Newton ("SON",
Luo, Agarwal, Cesa-Bianchi and Langford 2016). `sketchnewton.evaluation` has these functions too.

>>> from sketchnewton import FullNewton
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((500, 4))
>>> y = np.clip(X @ [0.3, -0.2, 0.1, 0.0] + 0.1 * rng.standard_normal(500), -1, 1)
>>> learner = FullNewton(alpha=1.0)
>>> 0 < regret(learner, X, y) < regret_bound(learner, X, y)
True
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sketchnewton.core.types import Floats, Integers
from sketchnewton.learners import FullNewton, Learner, SketchedNewton
from sketchnewton.learners.newton.schedule import checked_curvature_weight
from sketchnewton.losses import Loss, get_loss
from sketchnewton.losses.base import Line

__all__ = ["Comparator", "best_fixed", "regret", "regret_bound"]


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
    """
    loss, rows, labels, C = get_loss(loss), _dense(X), np.asarray(y, np.float64), _checked_clip(clip)
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


def regret(
    learner: Any, X: Any, y: ArrayLike, *, clip: float | None = None, tolerance: float = TOLERANCE
) -> float:
    """Total loss of `learner` on the stream, each row predicted before it is learned, minus that of `best_fixed`.

    Works on a copy: the learner stays as it is. `clip` (C) is that of the learner unless it is given. A learner
    with an intercept is compared with weights that have one too.
    """
    params = getattr(learner, "params", {})
    C = _checked_clip(params.get("clip") if clip is None else clip)
    predictions = np.asarray(copy.deepcopy(learner).learn(X, y), np.float64)
    labels = np.asarray(y, np.float64)
    loss = get_loss(learner.loss)
    rows = _dense(X)
    if params.get("intercept"):
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    suffered = float(loss.value(predictions, labels).sum())
    return suffered - best_fixed(loss, rows, labels, C, tolerance=tolerance).total_loss


def regret_bound(learner: Learner, X: object, y: ArrayLike) -> float:
    """What theory allows `regret(learner, X, y)` to be at most, for a learner that has seen nothing yet.

    * `FullNewton`: SON Theorem 2.
    * `SketchedNewton("fd")`: SON Theorem 3, with the k that makes it least. The sketch shrinks every m rows here,
      so up to 2m − 1 directions may be in it at the end; where there are more than m, they take m's place in the
      logarithm.
    * `SketchedNewton("rfd", alpha=…)`: Theorem 5 of Luo, Chen, Zhang, Li and Zhang (2019). Its proof takes
      ‖w_t − w‖ ≤ 2C for granted, which |wᵀx| ≤ C does not imply; where it is violated, the largest distance met
      takes the place of 2C. For the same reason as above 2m − 1 stands for m where shrinks are summed.

    The learner runs on a copy, because the bounds are in terms of the gradients and shrinks that it meets. Errors
    say which assumption does not hold: a clip, labels within it, α > 0, no more curvature than the loss has.
    """
    kind = learner.params.get("sketch")
    if not isinstance(learner, FullNewton) and kind not in ("fd", "rfd"):
        raise ValueError(
            f"no regret bound is known for {learner!r}: there are some for FullNewton, fd and rfd"
        )
    run = _Run.of(learner, X, y)
    if isinstance(learner, FullNewton):
        trace = run.least * float((run.gradients**2).sum())
        return run.common + run.logarithms(run.gradients.shape[1], trace)
    return _bound_fd(run) if kind == "fd" else _bound_rfd(run)


class _Run(NamedTuple):
    """What the bounds need to know about a run."""

    C: float
    L: float
    alpha: float  # at the start
    least: float  # of σ + η_t
    common: float  # ½α‖w‖² + 2(CL)²Σ η_t
    gradients: Floats  # g_t as rows
    energies: Floats  # (σ + η_t)‖g_t‖²
    learner: Learner  # after the run
    rho: Floats  # the shrinks, where they grow a ridge,
    ridge: Floats  # the ridge after each, and
    distance: float  # the largest ‖w_t − w‖ at one of them

    @classmethod
    def of(cls, learner: Learner, X: object, y: ArrayLike) -> _Run:
        params, loss, labels = learner.params, learner.loss, np.asarray(y, np.float64)
        C = _checked_clip(params.get("clip"))
        _check_assumptions(learner, loss, labels, C)
        rows = _dense(X)
        w = best_fixed(loss, rows, labels, C).weights
        sigma = loss.curvature(C) if params.get("curvature") is None else float(params["curvature"])
        schedule = checked_curvature_weight(params.get("curvature_weight"), loss, C, sigma)
        trained = copy.deepcopy(learner)
        predictions, rho, ridge, distance = _watched(trained, rows, labels, w)
        gradients = loss.derivative(predictions, labels)[:, None] * rows
        seen = _features_seen(trained, rows)
        eta = np.array([schedule.at(t, int(d)) for t, d in enumerate(seen, 1)])
        L = loss.lipschitz(C)
        alpha = float(params["alpha"]) if params.get("alpha") else _alpha(trained) - rho.sum() / 2
        return cls(
            C=C,
            L=L,
            alpha=alpha,
            least=sigma + float(eta.min(initial=math.inf)),
            common=alpha / 2 * float(w @ w) + 2 * (C * L) ** 2 * float(eta.sum()),
            gradients=gradients,
            energies=(sigma + eta) * np.einsum("ij,ij->i", gradients, gradients),
            learner=trained,
            rho=rho,
            ridge=ridge,
            distance=distance,
        )

    def logarithms(self, n: int, trace: float) -> float:
        """n/(2(σ + η_T))·ln(1 + trace/(nα)); its limit for σ + η_T → 0."""
        if self.least == 0:
            return float((self.gradients**2).sum()) / (2 * self.alpha)
        return n / (2 * self.least) * math.log1p(trace / (n * self.alpha)) if n else 0.0


def _bound_fd(run: _Run) -> float:
    m, spectrum = int(run.learner.params["sketch_size"]), run.learner.spectrum
    if m == 0 or run.least == 0:
        return run.common + run.logarithms(0, 0.0)
    length = np.linalg.norm(run.gradients, axis=1)
    weights = np.divide(np.sqrt(run.energies), length, out=np.zeros_like(length), where=length > 0)
    squares = np.linalg.svd(weights[:, None] * run.gradients, compute_uv=False) ** 2
    tails = squares.sum() - np.concatenate([[0.0], np.cumsum(squares)])  # Ω_k, k = 0, 1, …
    omega = min(max(tails[min(k, len(squares))], 0.0) / (m - k) for k in range(m))
    logarithms = run.logarithms(max(m, len(spectrum)), float(spectrum.sum()))
    return run.common + logarithms + float(m * omega / (2 * run.least * run.alpha))


def _bound_rfd(run: _Run) -> float:
    m, spectrum = int(run.learner.params["sketch_size"]), run.learner.spectrum
    if m == 0 or run.least == 0:
        return run.common + run.logarithms(0, 0.0)
    n, d = max(m, len(spectrum)), run.gradients.shape[1]
    grown = float(run.alpha + run.rho.sum() / 2) / run.alpha  # α_T/α_0
    logarithms = n * math.log(float(spectrum.sum()) / (n * run.alpha) + grown) + max(d - n, 0) * math.log(
        grown
    )
    shrinks = (2 * m - 1) / 2 * float((run.rho / run.ridge).sum())
    moved = float(max(run.C, run.distance / 2) ** 2 * run.rho.sum())
    return float(run.common + (logarithms + shrinks) / (2 * run.least) + moved)


def _watched(
    learner: Learner, rows: Floats, labels: Floats, w: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Let `learner` learn; return its predictions, and the shrinks that grew its ridge (see `_Run`)."""
    if learner.params.get("sketch") != "rfd" or not isinstance(learner, SketchedNewton):
        return learner.learn(rows, labels), np.empty(0), np.empty(0), 0.0
    predictions, rho, ridge, distance = np.empty(len(labels)), [], [], 0.0
    for t in range(len(labels)):
        before = learner.alpha_
        predictions[t] = learner.learn(rows[t : t + 1], labels[t : t + 1])[0]
        if learner.alpha_ > before:
            rho.append(2 * (learner.alpha_ - before))
            ridge.append(learner.alpha_)
            distance = max(
                distance, float(np.linalg.norm(_before_step(learner, rows[t], labels[t], predictions[t]) - w))
            )
    return predictions, np.array(rho), np.array(ridge), distance


def _before_step(learner: SketchedNewton, x: Floats, label: float, prediction: float) -> Floats:
    """w_t, from which the last step A⁻¹g was taken; the sketch has just shrunk to its eigenvectors."""
    g = float(learner.loss.derivative(prediction, label)) * x
    alpha, V, values = learner.alpha_, _widened(learner.basis, len(x)), learner.spectrum
    step = (g - V.T @ (values / (alpha + values) * (V @ g))) / alpha
    return _widened(learner.weights, len(x)) + step


def _check_assumptions(learner: Learner, loss: Loss, labels: Floats, C: float) -> None:
    params = learner.params
    if learner.rows_seen:
        raise ValueError(f"the learner has seen {learner.rows_seen} rows: the bounds hold from the start")
    for name in ("diagonal", "intercept"):
        if params.get(name):
            raise ValueError(f"no regret bound is known with {name}=True")
    if params.get("sketch") == "rfd" and not params.get("alpha"):
        raise ValueError("the bound of rfd needs alpha > 0")
    sigma, largest = params.get("curvature"), loss.curvature(C)
    if params.get("project") is False:
        raise ValueError("no regret bound is known with project=False")
    if sigma == "local":
        raise ValueError("no regret bound is known with curvature='local'")
    if sigma is not None and sigma > largest:
        raise ValueError(f"curvature={sigma!r} is more than the {largest:g} of the {loss.name} loss")
    slopes = np.abs([loss.derivative(p, labels) for p in (-C, C)])
    if slopes.max(initial=0.0) > loss.lipschitz(C) * (1 + 1e-12):
        raise ValueError(f"labels must be within the clip C={C:g}: the {loss.name} loss is too steep")


def _features_seen(learner: Learner, rows: Floats) -> Integers:
    """d of the schedule, for every row."""
    present = np.logical_or.accumulate(rows != 0, axis=0)
    if isinstance(learner, SketchedNewton):
        return np.asarray(present.sum(axis=1), np.int64)
    return np.asarray(np.where(present, np.arange(1, rows.shape[1] + 1), 0).max(axis=1, initial=0), np.int64)


def _alpha(learner: Learner) -> float:
    return learner.alpha_ if isinstance(learner, SketchedNewton) else float(learner.params["alpha"])


def _widened(array: Floats, width: int) -> Floats:
    """Zeros for the features that have not come yet."""
    wide = np.zeros((*array.shape[:-1], width))
    wide[..., : array.shape[-1]] = array
    return wide


def _dense(X: object) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def _checked_clip(clip: float | str | None) -> float:
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
