"""Regret bounds of online Newton: SON Theorems 2 and 3 and Corollary 1, RFD Theorems 5, 6 and 7.

All follow from one inequality (SON Proposition 1): with A_t the metric of round t and A_0 the first,

    2 R_T(w) ≤ ‖w‖²_{A_0} + Σ gᵀA_t†g + Σ (w_t − w)ᵀ(A_t − A_{t−1} − σ_t ggᵀ)(w_t − w)

Where a theorem as it is printed does not follow, its function says what was corrected.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import ArrayLike

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.sketch_kinds import epoch_rounds
from sketchnewton.core.types import Floats, Integers
from sketchnewton.evaluation.comparator import best_fixed, checked_clip, dense
from sketchnewton.learners import Learner, SketchedNewton
from sketchnewton.learners.newton.schedule import checked_curvature_weight
from sketchnewton.losses import Loss

__all__ = ["Run", "frequent_directions", "full", "invariant", "robust", "robust_without_alpha"]


class Run(NamedTuple):
    """What the bounds need to know about a run."""

    C: float
    L: float
    alpha: float  # at the start
    sigma: float
    eta: Floats  # η_t of every round
    common: float  # ½α‖w‖² + 2(CL)²Σ η_t
    gradients: Floats  # g_t as rows
    learner: Learner  # after the run
    shrinks: Shrinks

    @classmethod
    def of(cls, learner: Learner, X: object, y: ArrayLike) -> Run:
        """Let a copy of the learner learn."""
        params, loss, labels = learner.params, learner.loss, np.asarray(y, np.float64)
        C = checked_clip(params.get("clip"))
        _check_assumptions(learner, loss, labels, C)
        rows = dense(X)
        w = best_fixed(loss, rows, labels, C).weights
        sigma = loss.curvature(C) if params.get("curvature") is None else float(params["curvature"])
        schedule = checked_curvature_weight(params.get("curvature_weight"), loss, C, sigma)
        trained = copy.deepcopy(learner)
        predictions, shrinks = _watched(trained, rows, labels, w)
        seen = _features_seen(trained, rows)
        eta = np.array([schedule.at(t, int(d)) for t, d in enumerate(seen, 1)])
        L = loss.lipschitz(C)
        alpha = params.get("alpha") or 0.0
        return cls(
            C=C,
            L=L,
            alpha=float(alpha),
            sigma=sigma,
            eta=eta,
            common=alpha / 2 * float(w @ w) + 2 * (C * L) ** 2 * float(eta.sum()),
            gradients=loss.derivative(predictions, labels)[:, None] * rows,
            learner=trained,
            shrinks=shrinks,
        )

    @property
    def least(self) -> float:
        """The least σ + η_t."""
        return self.sigma + float(self.eta.min(initial=math.inf))

    def logarithms(self, n: int, trace: float) -> float:
        """n/(2(σ + η_T))·ln(1 + trace/(nα)); its limit for σ + η_T → 0."""
        if self.least == 0:
            return float((self.gradients**2).sum()) / (2 * self.alpha)
        return n / (2 * self.least) * math.log1p(trace / (n * self.alpha)) if n else 0.0


class Shrinks(NamedTuple):
    """The shrinks of a run that made its ridge grow."""

    when: Integers  # the round, from 1 on
    rho: Floats
    ridge: Floats  # after each
    distance: float  # the largest ‖w_t − w‖ at one of them


def full(run: Run) -> float:
    """SON Theorem 2."""
    return run.common + run.logarithms(run.gradients.shape[1], run.least * float((run.gradients**2).sum()))


def invariant(run: Run) -> float:
    """SON Corollary 1, in the form that Eq. 8 and Theorem 4 give for any σ and η_t."""
    if run.least == 0:
        raise ValueError("no regret bound is known where σ + η_t becomes 0")
    return run.common + _pseudo_inverse_sum(run.gradients) / (2 * run.least)


def frequent_directions(run: Run) -> float:
    """SON Theorem 3, least over k.

    Between shrinks more than m directions may be in the sketch; where there are at the end, they take m's place in
    the logarithm.
    """
    m, spectrum = int(run.learner.params["sketch_size"]), run.learner.spectrum
    if m == 0 or run.least == 0:
        return run.common + run.logarithms(0, 0.0)
    weighted = np.sqrt(run.sigma + run.eta)[:, None] * run.gradients
    squares = np.linalg.svd(weighted, compute_uv=False) ** 2
    tails = squares.sum() - np.concatenate([[0.0], np.cumsum(squares)])  # Ω_k, k = 0, 1, …
    omega = min(max(tails[min(k, len(squares))], 0.0) / (m - k) for k in range(m))
    logarithms = run.logarithms(max(m, len(spectrum)), float(spectrum.sum()))
    return run.common + logarithms + float(m * omega / (2 * run.least * run.alpha))


def robust(run: Run) -> float:
    """RFD Theorem 5, α₀ > 0.

    Its proof takes ‖w_t − w‖ ≤ 2C for granted, which |wᵀx| ≤ C does not imply; where it is violated, the largest
    distance met takes the place of 2C. Up to m − 1 + k directions lose length in a shrink where these are k rounds
    apart, so that this stands for m where shrinks are summed: m itself for shrinks in every row, as in the paper.
    """
    if int(run.learner.params["sketch_size"]) == 0 or run.least == 0:
        return run.common + run.logarithms(0, 0.0)
    return run.common + _with_a_ridge(run, run.alpha, 0) + _moved(run)


def robust_without_alpha(run: Run) -> float:
    """RFD Theorem 7, α₀ = 0; Theorem 6 where nothing was shrunk. Round T' has the first shrink.

    Up to T' the metric is Σ(μ + η_t)ggᵀ ⪰ (μ + η_T')Σggᵀ; Theorem 6 has η_1 and the largest μ_t in the place of
    η_T' and the least, with which it is false (at η_t = 1/t it allows O(ln T) in one dimension). Of σ*, the proof
    needs the least in all rounds up to T', as SON Theorem 4 says, not that of the last; and the rank of the
    gradients is in place of m − 1, which it exceeds in round T'. In that round the shrink takes up to half of the
    metric away: gᵀH⁻¹g is at most twice gᵀ(Σ(μ + η_t)ggᵀ)†g ≤ 1/(μ + η_t).

    After T', det H is at least (α^(T'))^d, so that this α is the α₀ of Theorem 5; Theorem 7 has det H itself in
    its place. It also adds ½‖w^(T')‖²_H, where its proof, of two separate sums, needs the distance from w; one
    sum over all rounds needs neither. As in Theorem 5, distances that were met stand for 2C, and m − 1 + k for m.
    """
    if int(run.learner.params["sketch_size"]) == 0 or run.least == 0:
        raise ValueError("no regret bound is known for rfd without alpha where sketch_size or σ + η_t is 0")
    when, _, ridge, _ = run.shrinks
    first = int(when[0]) if len(when) else len(run.gradients)
    begun = _pseudo_inverse_sum(run.gradients[:first]) + (1.0 if len(when) else 0.0)
    bound = run.common + begun / (2 * (run.sigma + float(run.eta[:first].min(initial=math.inf))))
    return bound + _with_a_ridge(run, float(ridge[0]), 1) + _moved(run) if len(when) else bound


def _with_a_ridge(run: Run, alpha: float, after: int) -> float:
    """½Σ gᵀH⁻¹g from where the ridge was `alpha`, that many shrinks being over (RFD Eq. 26)."""
    m, spectrum, (_, rho, ridge, _) = (
        int(run.learner.params["sketch_size"]),
        run.learner.spectrum,
        run.shrinks,
    )
    n, d = max(m, len(spectrum)), run.gradients.shape[1]
    grown = float(ridge[-1]) / alpha if len(ridge) else 1.0  # α_T/α_0
    logarithms = n * math.log(float(spectrum.sum()) / (n * alpha) + grown)
    logarithms += max(d - n, 0) * math.log(grown)
    directions = m - 1 + epoch_rounds(run.learner.params["shrink"], m)
    shrinks = directions / 2 * float((rho / ridge)[after:].sum())
    return float(logarithms + shrinks) / (2 * run.least)


def _moved(run: Run) -> float:
    """What the growing ridge adds to the distance from the comparator: C²Σρ."""
    return float(max(run.C, run.shrinks.distance / 2) ** 2 * run.shrinks.rho.sum())


def _pseudo_inverse_sum(gradients: Floats) -> float:
    """SON Theorem 4's bound of Σ gᵀÂ_t†g, Â_t = Σ_{s≤t} ggᵀ."""
    r, least = _least_eigenvalue(gradients)
    if r == 0:
        return 0.0
    pairs = r * (1 + r) / 2
    return r + pairs * math.log1p(float((gradients**2).sum()) / (pairs * least))


def _least_eigenvalue(gradients: Floats) -> tuple[int, float]:
    """The rank r of Â_T, and λ*, the least nonzero eigenvalue of any Â_t.

    Eigenvalues grow while the rank stays, so it is one of a round with a gradient outside the span of the earlier
    ones. Where rounding hides it, what is sure: it is no less than that of the gradients outside alone.
    """
    d = gradients.shape[1]
    Q, R, least = np.empty((0, d)), np.empty((0, 0)), math.inf
    for t, g in enumerate(gradients):
        length = float(np.linalg.norm(g))
        inside, rest = np.zeros(len(Q)), g
        for _ in range(2):
            part = Q @ rest
            inside, rest = inside + part, rest - part @ Q
        outside = float(np.linalg.norm(rest))
        if len(Q) == d or outside <= 1e-10 * length:
            continue
        Q = np.vstack([Q, rest / outside])
        R = np.block([[R, np.zeros((len(R), 1))], [inside[None, :], np.array([[outside]])]])
        sizes = np.linalg.svd(gradients[: t + 1] @ Q.T, compute_uv=False)
        sure = sizes[-1] > 1e-12 * sizes[0]
        least = min(least, float(sizes[-1] if sure else 1 / np.linalg.norm(np.linalg.inv(R))) ** 2)
    return len(Q), least


def _watched(learner: Learner, rows: Floats, labels: Floats, w: Floats) -> tuple[Floats, Shrinks]:
    """Let `learner` learn; return its predictions, and the shrinks that grew its ridge."""
    when, rho, ridge, distance = [], [], [], 0.0
    if learner.params.get("sketch") != "rfd" or not isinstance(learner, SketchedNewton):
        predictions = learner.learn(rows, labels)
    else:
        predictions = np.empty(len(labels))
        for t in range(len(labels)):
            before = learner.alpha_
            predictions[t] = learner.learn(rows[t : t + 1], labels[t : t + 1])[0]
            if learner.alpha_ > before:
                when.append(t + 1)
                rho.append(2 * (learner.alpha_ - before))
                ridge.append(learner.alpha_)
                w_t = _before_step(learner, rows[t], labels[t], predictions[t])
                distance = max(distance, float(np.linalg.norm(w_t - w)))
    return predictions, Shrinks(np.array(when, np.int64), np.array(rho), np.array(ridge), distance)


def _before_step(learner: SketchedNewton, x: Floats, label: float, prediction: float) -> Floats:
    """w_t, from which the last step A⁻¹g was taken."""
    g = float(learner.loss.derivative(prediction, label)) * x
    alpha, S = learner.alpha_, _widened(learner.matrix, len(x))
    step = (g - S.T @ np.linalg.solve(alpha * np.eye(len(S)) + S @ S.T, S @ g)) / alpha
    return _widened(learner.weights, len(x)) + step


def _check_assumptions(learner: Learner, loss: Loss, labels: Floats, C: float) -> None:
    params = learner.params
    if learner.rows_seen:
        raise ValueError(f"the learner has seen {learner.rows_seen} rows: the bounds hold from the start")
    for name in ("diagonal", "intercept"):
        if params.get(name):
            raise ValueError(f"no regret bound is known with {name}=True")
    kind, alpha = params.get("sketch"), params.get("alpha")
    if alpha == "auto" or (kind == "fd" and alpha is None):  # then it follows the rows
        raise ValueError(f"no regret bound is known for {kind} with alpha={alpha!r}: give a number")
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


def _widened(array: Floats, width: int) -> Floats:
    """Zeros for the features that have not come yet."""
    wide = np.zeros((*array.shape[:-1], width))
    wide[..., : array.shape[-1]] = array
    return wide
