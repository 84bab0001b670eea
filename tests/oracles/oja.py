"""Oja-SON, dense: SON Algorithms 1 and 3, with the choices that the paper leaves open written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess, orthonormal_rows

INDEPENDENT = 0.01  # a gradient opens a new direction if this share of its energy is outside the span


def oja_son(
    X: NDArray[np.float64],
    y: Vector,
    *,
    m: int,
    alpha: float,
    loss: str = "squared",
    C: float = 1.0,
    sigma: float = 0.125,
    eta: Callable[[int], float] = lambda t: 0.0,
    rate: str | float | list[float] = "adaptive",
    block: int = 1,
    diagonal: bool = False,
    importance: Vector | None = None,
    intercept_ridge: float | None = None,
) -> tuple[Vector, Vector, float]:
    """Return the predictions before each update, the final weights, and the share of rounds projected."""
    T, d = X.shape
    derivative = DERIVATIVES[loss]
    w, V, E = np.zeros(d), np.zeros((0, d)), np.zeros(0)  # E = tΛ: the squared lengths of the sketch's rows
    D = np.full(d, 0.1)  # SON §5.2, footnote 6
    G: list[Vector] = []  # to-sketch vectors of the current block
    bias, curvature = 0.0, intercept_ridge or 0.0
    blocks = projected = 0
    predictions = np.zeros(T)

    def inverse_metric(v: Vector) -> Vector:  # (αI + VᵀEV)⁻¹ v
        return (v - V.T @ (E / (alpha + E) * (V @ v))) / alpha

    for t in range(T):
        h = 1.0 if importance is None else importance[t]
        x = X[t] / np.sqrt(D) if diagonal else X[t]

        # Projection onto |wᵀx + bias| ≤ C in the norm of A_{t−1} (Lemma 1); the intercept is its own block.
        score = w @ x + bias
        if abs(score) > C:
            projected += 1
            Px = inverse_metric(x)
            Pb = 1 / curvature if intercept_ridge else 0.0
            step = excess(score, C) / (x @ Px + Pb)
            w, bias = w - step * Px, bias - step * Pb
        predictions[t] = np.clip(score, -C, C)
        slope = h * derivative(predictions[t], y[t])

        if diagonal:  # the current gradient joins D before the step
            D += (slope * X[t]) ** 2
            x = X[t] / np.sqrt(D)

        # The sketch sees ĝ = √(σ + η_t) g_t; a loss of importance h has curvature σ/h.
        scale = np.sqrt(sigma / h + eta(t + 1)) * slope
        g_hat = scale * x
        if len(V) < m:
            rest = g_hat - V.T @ (V @ g_hat)
            rest -= V.T @ (V @ rest)
            if rest @ rest > INDEPENDENT * (g_hat @ g_hat):
                V, E = np.vstack([V, rest / np.linalg.norm(rest)]), np.append(E, 0.0)
        G.append(g_hat)  # a round without a gradient counts too
        if len(G) == block:
            blocks += 1
            Y = np.array(G) @ V.T  # one row per to-sketch vector
            energy = (Y**2).sum(axis=0)
            if isinstance(rate, str):  # adaptive: Γ = (tΛ)⁻¹, no direction moving by more than its length
                E = E + energy
                gamma = 1 / np.maximum(E, max((np.array(G) ** 2).sum(), 1e-300))
            else:  # Γ_t = rate/t, Equation 4
                step_size = np.minimum(1.0, np.broadcast_to(rate, (m,))[: len(V)] / blocks)
                E = blocks * ((1 - step_size) * E / max(blocks - 1, 1) + step_size * energy)
                gamma = step_size / block
            V = orthonormal_rows(V + gamma[:, None] * (Y.T @ np.array(G)))
            G = []

        w = w - slope * inverse_metric(x)
        if intercept_ridge:
            curvature += scale**2
            bias -= slope / curvature

    return predictions, (w / np.sqrt(D) if diagonal else w), projected / T
