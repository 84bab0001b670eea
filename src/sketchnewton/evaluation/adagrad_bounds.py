"""Regret bounds of AdaGrad with a random projection of the data: ADA Theorems 1 and 2.

"ADA" is Wan and Zhang, *Accelerating adaptive online learning by matrix approximation*, 2019. With X_t = Σxxᵀ and
S_t the sketch, both theorems are about runs in which, for all t and some ε < 1,

    (1 − ε)(αI + X_t) ⪯ αI + S_tᵀS_t ⪯ (1 + ε)(αI + X_t)

with α = 0 in Theorem 1 and 0 < α ≤ σ² in Theorem 2, and say how many directions τ make that probable. Here ε is
what the run had, as two numbers: how much too small the sketch was, ε₋ < 1, and how much too large, ε₊.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import ArrayLike

from sketchnewton.core.checks import DivergedError
from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats
from sketchnewton.evaluation.comparator import best_fixed, checked_clip, dense
from sketchnewton.learners import SketchedAdaGrad

__all__ = ["data_projection", "deviation"]

SHARES = (1.0, 1e-2, 1e-4, 1e-6, 1e-8)
"""α of Theorem 2, in units of σ²: any will do, the one of the least bound is taken."""


def data_projection(learner: SketchedAdaGrad, X: object, y: ArrayLike, clip: float | None) -> float:
    """The least of Theorems 1 and 2 for a run of ADA-DP; infinite if the run diverges beyond all numbers.

    The proofs take √(1 − ε) ≥ 1 − ε/2 for granted, the opposite of which is true: √(1 + ε₊) − √(1 − ε₋) stands for
    ε before Σ‖X_t^½‖. Theorem 2's last term is √(εα)T, as its proof has it.
    """
    _check_assumptions(learner)
    loss, labels, rows = learner.loss, np.asarray(y, np.float64), dense(X)
    best = best_fixed(
        loss, rows, labels, checked_clip(learner.params["clip"] if clip is None else clip)
    ).weights
    eta, sigma = float(learner.params["eta"]), float(learner.params["sigma"])
    alphas = [0.0, *(share * sigma**2 for share in SHARES)]
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            run = _watched(learner, rows, labels, best, alphas)
        except DivergedError:
            return math.inf
        first = sigma / (2 * eta) * (best @ best) + run.distance / (2 * eta) * run.trace
        bounds = [math.inf]
        for alpha, down, up in zip(alphas, run.below, run.above, strict=True):
            if down < 1:
                steps = 2 * eta / np.sqrt(1 - down) * run.slope * run.trace
                drift = (np.sqrt(1 + up) - np.sqrt(1 - down)) / 2 * run.norms
                floor = (np.sqrt(up * alpha) + np.sqrt(down * alpha)) / 2 * len(rows)
                bounds.append(first + steps + run.distance / eta * (drift + floor))
    return float(np.nanmin(bounds))


class _Run(NamedTuple):
    """What the bounds need to know about a run."""

    distance: float  # the largest ‖β* − β_t‖²
    slope: float  # the largest ℓ'²
    norms: float  # Σ‖X_t^½‖
    trace: float  # tr X_T^½
    below: Floats  # ε₋, one for each α
    above: Floats  # ε₊


def _watched(
    learner: SketchedAdaGrad, rows: Floats, labels: Floats, best: Floats, alphas: list[float]
) -> _Run:
    """Let a copy of `learner` learn."""
    trained, params, d = copy.deepcopy(learner), learner.params, rows.shape[1]
    below, above, total = np.zeros(len(alphas)), np.zeros(len(alphas)), np.zeros((d, d))
    distance, slope, norms, trace = float(best @ best), 0.0, 0.0, 0.0
    for x, label in zip(rows, labels, strict=True):
        prediction = trained.learn(x[None, :], np.array([label]))[0]
        derivative = np.float64(learner.loss.derivative(prediction, label))
        S = np.zeros((int(params["sketch_size"]), d))
        S[:, : trained.dimension] = trained.sketch
        beta = float(params["eta"]) * _solve(
            S, float(params["sigma"]), derivative * x
        )  # what the step has taken
        beta[: trained.dimension] += trained.weights
        total += np.outer(x, x)
        values, V = np.linalg.eigh(total)
        values = np.maximum(values, 0.0)
        for i, alpha in enumerate(alphas):
            down, up = deviation(values, S @ V, alpha)
            below[i], above[i] = max(below[i], down), max(above[i], up)
        distance = max(distance, float((beta - best) @ (beta - best)))
        slope = max(slope, float(derivative**2))
        norms, trace = norms + math.sqrt(values[-1]), float(np.sqrt(values).sum())
    return _Run(distance, slope, norms, trace, below, above)


def deviation(values: Floats, S: Floats, alpha: float) -> tuple[float, float]:
    """ε₋ and ε₊ of αI + SᵀS against αI + diag(values): the least that are true.

    Without α, eigenvalues that may be rounding leave it open whether the sketch spans the same space: ε₋ = 1.
    """
    present = values > 1e-10 * values[-1]
    if alpha == 0 and (values[~present] > 1e-14 * values[-1]).any():
        return 1.0, 0.0
    if alpha > 0:
        present[:] = True
    lengths, kept = alpha + values[present], S[:, present]
    scaled = kept / np.sqrt(lengths)
    ratios = np.linalg.eigvalsh(scaled.T @ scaled + np.diag(alpha / lengths))
    return (max(1 - ratios[0], 0.0), max(ratios[-1] - 1, 0.0)) if len(ratios) else (0.0, 0.0)


def _solve(S: Floats, sigma: float, g: Floats) -> Floats:
    """H⁻¹g with H = σI + (SᵀS)^½."""
    _, sizes, V = np.linalg.svd(S, full_matrices=False)
    return np.asarray((g - (sizes / (sigma + sizes) * (V @ g)) @ V) / sigma, np.float64)


def _check_assumptions(learner: SketchedAdaGrad) -> None:
    params = learner.params
    if learner.rows_seen:
        raise ValueError(f"the learner has seen {learner.rows_seen} rows: the bounds hold from the start")
    for name, plain in (
        ("penalty", None),
        ("form", "mirror_descent"),
        ("classes", None),
        ("intercept", False),
    ):
        if params[name] != plain:
            raise ValueError(f"no regret bound is known with {name}={params[name]!r}")
    if params["clip"] == "auto":
        raise ValueError("no regret bound is known with clip='auto'")
    if not params["sigma"] > 0:
        raise ValueError("the bound needs sigma > 0")
