"""AdaGrad in float64 with singular value decompositions: what can be asked of a learner in that precision.

A learner is held to exact arithmetic (`tests/oracles/exact`) wherever these are close to it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sketchnewton.losses import get_loss

Floats = NDArray[np.float64]
#: All singular values and vectors of what stands for (Σggᵀ)^½, and the ridge α, given one more gradient.
Metric = Callable[[Floats], tuple[Floats, Floats, float]]


def full(d: int) -> Metric:
    """ADA-FULL."""
    S = np.zeros((0, d))

    def take(g: Floats) -> tuple[Floats, Floats, float]:
        nonlocal S
        _, s, Vt = np.linalg.svd(np.vstack([S, g]), full_matrices=False)
        S = s[:, None] * Vt
        return s, Vt, 0.0

    return take


def frequent(d: int, m: int, robust: bool) -> Metric:
    """ADA-FD, which shrinks every m rounds; `robust` with a ridge."""
    S, rounds, ridge = np.zeros((0, d)), 0, 0.0

    def take(g: Floats) -> tuple[Floats, Floats, float]:
        nonlocal S, rounds, ridge
        S, rounds = np.vstack([S, g]), rounds + 1
        _, s, Vt = np.linalg.svd(S, full_matrices=False)
        if rounds == m:
            last = s[m - 1] if len(s) >= m else 0.0
            s, Vt, rounds = np.sqrt((s[: m - 1] - last) * (s[: m - 1] + last)), Vt[: m - 1], 0
            S, ridge = s[:, None] * Vt, ridge + 0.5 * robust * last**2
        return s, Vt, ridge

    return take


def projected(R: Floats, d: int, data: Floats | None = None) -> Metric:
    """ADA-GP, or ADA-DP of these rows: R has the random vector of each round as a row."""
    S, t = np.zeros((R.shape[1], d)), 0

    def take(g: Floats) -> tuple[Floats, Floats, float]:
        nonlocal S, t
        S, t = S + np.outer(R[t], g if data is None else data[t]), t + 1
        _, s, Vt = np.linalg.svd(S, full_matrices=False)
        return s, Vt, 0.0

    return take


def predictions(
    X: Floats,
    y: Floats,
    metric: Metric,
    *,
    eta: float,
    sigma: float,
    loss: str = "squared",
    form: str = "mirror_descent",
    l2: float = 0.0,
) -> Floats:
    """The prediction for each row before it was learned from."""
    slope = get_loss(loss).derivative
    beta, total, out = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(len(y))
    for t, x in enumerate(X):
        out[t] = beta @ x
        if not abs(out[t]) < 1e100:  # the algorithm itself diverges
            return np.full(len(y), np.inf)
        g = float(np.atleast_1d(slope(out[t], y[t]))[0]) * x
        s, Vt, ridge = metric(g)
        total += g
        averaging = form == "dual_averaging"
        v, decay = (total, eta * (t + 1) * l2) if averaging else (g + l2 * beta, eta * l2)
        z = Vt @ v
        outside = (v - Vt.T @ z) / (sigma + np.sqrt(ridge) + decay)
        step = eta * (Vt.T @ (z / (sigma + np.hypot(s, np.sqrt(ridge)) + decay)) + outside)
        beta = -step if averaging else beta - step
    return out
