"""The three perturbations of the leader: rank-one (EIG section 5), uniform (4.1), exponential (4.2).

>>> rng = np.random.default_rng(0)
>>> N = exponential(4, 2.0, rng)
>>> N.shape, bool((N == N.T).all())
((4, 4), True)
"""

from __future__ import annotations

import math

import numpy as np

from sketchnewton.core.types import Floats

__all__ = ["NOISES", "dimension", "exponential", "rank_one", "scale_for", "spectral_ball", "uniform"]

NOISES = ("rank_one", "uniform", "exponential")


def dimension(n: int) -> int:
    """Of the space of symmetric n×n matrices."""
    return n * (n + 1) // 2


def scale_for(noise: str, n: int, horizon: int) -> float:
    """The scale of the noise that the theorems choose for `horizon` rounds: c of Theorem 3, or 1/ε.

    For "uniform", ε balances T·ε·n^{3/2} against 2n/ε; for "exponential", T·ε against n(n+1)/2ε.
    """
    if noise == "rank_one":
        return math.sqrt(horizon / n * max(1.0, math.log(horizon / n)))
    if noise == "uniform":
        return math.sqrt(horizon * math.sqrt(n) / 2)
    return math.sqrt(horizon / dimension(n))


def rank_one(n: int, rng: np.random.Generator) -> Floats:
    """The vector v with independent N(0, 1) entries of N = c·vvᵀ."""
    return rng.standard_normal(n)


def uniform(n: int, scale: float, rng: np.random.Generator) -> Floats:
    """Entries on and below the diagonal uniform on [0, 1/ε], mirrored; `scale` is 1/ε."""
    lower = np.tril(rng.uniform(0.0, scale, (n, n)))
    return lower + np.tril(lower, -1).T


def exponential(n: int, scale: float, rng: np.random.Generator) -> Floats:
    """A symmetric matrix with density ∝ exp(−ε‖N‖), `scale` being 1/ε.

    The norm of such a matrix is Gamma distributed with shape n(n+1)/2, the dimension of the space (the paper's n²
    is that of all matrices), and independent of the direction, which is that of a uniform point of the unit ball.
    """
    ball = spectral_ball(n, rng)
    radius = rng.gamma(dimension(n), scale)
    return np.asarray(ball * (radius / np.abs(np.linalg.eigvalsh(ball)).max()))


def spectral_ball(n: int, rng: np.random.Generator) -> Floats:
    """A uniform point of {X symmetric: ‖X‖ ≤ 1}, in O(n³).

    For Wishart matrices W₁, W₂ with m degrees of freedom and R the Cholesky factor of their sum, R⁻ᵀW₁R⁻¹ has the
    matrix Beta density ∝ det(B)^a det(I − B)^a on 0 ⪯ B ⪯ I with a = (m − n − 1)/2: constant for m = n + 1. Its
    eigenvalues therefore have the density ∏|λᵢ − λⱼ| of the Jacobi ensemble, its eigenvectors are Haar. R and the
    quotient come from one QR decomposition of stacked Gaussian blocks: W₁ − W₂ becomes Q₁ᵀQ₁ − Q₂ᵀQ₂ = 2B − I.
    """
    q, r = np.linalg.qr(rng.standard_normal((2 * n + 2, n)))
    q *= np.sign(np.diagonal(r))  # Cholesky's R has a positive diagonal; LAPACK's signs depend on the data
    difference = q[: n + 1].T @ q[: n + 1] - q[n + 1 :].T @ q[n + 1 :]
    return np.asarray((difference + difference.T) / 2)
