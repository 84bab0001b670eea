"""The mean of weights in the metrics of those that learned them: how the papers' learners merge.

A learner's metric is made of squared gradients, so one that errs more seems to know more. By the theory of
weighted least squares its weights have the precision Σĝĝᵀ/v², where v is its mean squared gradient: dividing by v
once gives the moments of the rows, twice counts the errors against it (docs/merging.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.types import Floats, np

__all__ = ["metric_mean", "precision"]


def precision(masses: Sequence[float], rows: Sequence[int]) -> Floats:
    """By how much each learner's curvature counts: (v̄/v)², for sums of squared gradients over so many rows.

    All ones if one of them had no gradient at all: its curvature is zero anyway.
    """
    mass, count = np.asarray(masses, np.float64), np.asarray(rows, np.float64)
    if not mass.all():
        return np.ones(len(mass))
    return np.asarray((mass.sum() / count.sum() / (mass / count)) ** 2)


def metric_mean(
    weights: Sequence[Floats], factors: Sequence[Floats], ridges: Floats, shares: Floats
) -> Floats:
    """w of (Σ A_i) w = Σ A_i w_i with A_i = S_iᵀS_i + a_i I; `factors` are S_i and `ridges` a_i.

    Weights are vectors, or matrices with a column for each class. Where nobody knows anything, in directions
    outside all S_i without a ridge, they are averaged by `shares`.
    """
    U, sizes, V = np.linalg.svd(np.vstack(list(factors)), full_matrices=False)
    rank = np.count_nonzero(sizes > 1e-13 * sizes.max(initial=0.0))
    U, sizes, V = U[:, :rank], sizes[:rank], V[:rank]
    total = ridges.sum()
    rest = ridges / total if total > 0 else shares
    mean = sum((r * w for r, w in zip(rest, weights, strict=True)), np.zeros_like(weights[0]))
    apart = [w - mean for w in weights]
    # A problem of least squares, solved as one: with SᵀS instead of S, digits would be lost twice.
    known = np.concatenate([S @ v for S, v in zip(factors, apart, strict=True)])
    ridged = sum((a * v for a, v in zip(ridges, apart, strict=True)), np.zeros_like(mean))
    pull = ((U.T @ known).T * sizes).T + V @ ridged
    return np.asarray(mean + V.T @ (pull.T / (total + sizes**2)).T)
