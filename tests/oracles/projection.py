"""RP-SON, dense: S ← S + ρĝᵀ with ρ ~ N(0, I/m), and the metric αI + SᵀS (SON, NIPS text, §3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchnewton._native import normal_row

from .common import DERIVATIVES, Vector, excess
from .frequent import inverse_times


def projection_son(
    X: NDArray[np.float64],
    y: Vector,
    *,
    m: int,
    alpha: float,
    loss: str = "squared",
    C: float = 1.0,
    sigma: float = 0.125,
    diagonal: bool = False,
    seed: int = 0,
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights. The draws are the learner's own."""
    T, d = X.shape
    w, S, D = np.zeros(d), np.zeros((m, d)), np.full(d, 0.1)
    predictions = np.zeros(T)
    for t in range(T):
        x = X[t] / np.sqrt(D) if diagonal else X[t]
        score = w @ x
        if abs(score) > C:
            Px = inverse_times(alpha, S, x)
            w = w - excess(score, C) / (x @ Px) * Px
        predictions[t] = np.clip(score, -C, C)
        slope = DERIVATIVES[loss](predictions[t], y[t])
        if diagonal:
            D += (slope * X[t]) ** 2
            x = X[t] / np.sqrt(D)
        S = S + np.outer(normal_row(seed, t, m) / np.sqrt(m), np.sqrt(sigma) * slope * x)
        w = w - slope * inverse_times(alpha, S, x)
    return predictions, (w / np.sqrt(D) if diagonal else w)
