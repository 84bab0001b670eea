"""FD-, RFD- and PFD-SON, dense: SON Algorithms 1, 2 and 6, RFD Algorithm 6, with the metric αI + BᵀB."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess

Matrix = NDArray[np.float64]


def shrink(B: Matrix, m: int, share: float = 1.0) -> tuple[Matrix, float]:
    """Keep at most m − 1 rows; `share` of the m directions, from the smallest up, lose ρ = σ_m²."""
    _, sigma, V = np.linalg.svd(B, full_matrices=False)
    rounding = 1e-13 * sigma[0] ** 2
    rho = sigma[m - 1] ** 2 if len(sigma) >= m and sigma[m - 1] ** 2 > rounding else 0.0
    squares = sigma[: m - 1] ** 2
    squares[m - int(share * m + 1e-9) :] -= rho
    squares = np.maximum(squares, 0.0)
    kept = squares > rounding
    return np.sqrt(squares[kept])[:, None] * V[: m - 1][kept], rho


def inverse_times(alpha: float, B: Matrix, v: Vector) -> Vector:
    """(αI + BᵀB)⁻¹v by Woodbury's formula; for α = 0 the pseudo-inverse, where rounding counts as zero."""
    if alpha > 0:
        return (v - B.T @ np.linalg.solve(alpha * np.eye(len(B)) + B @ B.T, B @ v)) / alpha
    _, sigma, V = np.linalg.svd(B, full_matrices=False)
    V, sigma = V[sigma > 1e-6 * sigma.max(initial=0)], sigma[sigma > 1e-6 * sigma.max(initial=0)]
    return V.T @ (V @ v / sigma**2)


def frequent_son(
    X: Matrix,
    y: Vector,
    *,
    m: int,
    alpha: float,
    ridge: float = 0.0,
    share: float = 1.0,
    loss: str = "squared",
    C: float = 1.0,
    sigma: float = 0.125,
    eta: Callable[[int], float] = lambda t: 0.0,
    diagonal: bool = False,
    when: str = "rounds",
) -> tuple[Vector, Vector, float]:
    """Return the predictions before each update, the final weights, and the ridge at the end.

    `ridge` is the part of each shrink that α gains: ½ for RFD, 0 for FD and PFD (`share` = β). `when` it shrinks:
    every m rounds, "row" in every one, "2m" when B has 2m rows, of which m are empty at the start.
    """
    T, d = X.shape
    w, B, D = np.zeros(d), np.zeros((0, d)), np.full(d, 0.1)
    every, waiting = {"rounds": (m, 0), "row": (1, 0), "2m": (m + 1, 1)}[when]
    predictions = np.zeros(T)
    for t in range(T):
        x = X[t] / np.sqrt(D) if diagonal else X[t]
        score = w @ x
        if abs(score) > C:  # Lemma 1, and Lemma 2 where A is singular
            direction = inverse_times(alpha, B, x)
            outside = x - B.T @ (B @ direction) if alpha == 0 else np.zeros(d)  # (I − A†A)x
            if outside @ outside > 1e-12 * (x @ x):
                direction = outside
            w = w - excess(score, C) / (x @ direction) * direction
        predictions[t] = np.clip(score, -C, C)
        slope = DERIVATIVES[loss](predictions[t], y[t])
        if abs(slope) < 1e-12:  # the prediction is the label, but for rounding
            slope = 0.0
        if diagonal:
            D += (slope * X[t]) ** 2
            x = X[t] / np.sqrt(D)
        B = np.vstack([B, np.sqrt(sigma + eta(t + 1)) * slope * x])
        waiting += 1
        if waiting == every:  # rounds are counted, with a gradient or without
            B, rho = shrink(B, m, share)
            waiting = 0
            alpha += ridge * rho
        w = w - slope * inverse_times(alpha, B, x)
    return predictions, (w / np.sqrt(D) if diagonal else w), alpha
