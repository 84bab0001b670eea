"""One sketch of the rows for all classes, dense: SON's steps with a metric that bounds every class's Hessian.

For class k the loss ℓ(w_kᵀx, ±1) has the second derivative ℓ''·xxᵀ ⪯ κ·xxᵀ, where κ is the largest ℓ''. So
A = αI + κΣxxᵀ is a metric for all of them; only the slopes ℓ' differ. Where the sketch is exact, for squared loss
with nothing to clip, this is recursive least squares, for which A is the Hessian itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess, orthonormal_rows
from .oja import INDEPENDENT

Matrix = NDArray[np.float64]
SMOOTHNESS = {"squared": 2.0, "logistic": 0.25}  # κ


def shared_oja(
    X: Matrix,
    y: NDArray[np.intp],
    *,
    classes: int,
    m: int,
    alpha: float,
    loss: str = "squared",
    C: float = 1.0,
    diagonal: bool = False,
    intercept: bool = False,
    importance: Vector | None = None,
) -> tuple[Matrix, Matrix, Vector, float]:
    """Return the scores before each update, the final weights and intercepts, the share of scores projected."""
    T, d = X.shape
    kappa = SMOOTHNESS[loss]
    W, bias = np.zeros((d, classes)), np.zeros(classes)
    V, E = np.zeros((0, d)), np.zeros(0)  # SᵀS = Vᵀdiag(E)V
    D = np.full(d, 0.1)
    metric = kappa if intercept else np.inf  # of the intercepts: a block of its own, one number wide
    scores, projected = np.zeros((T, classes)), 0

    def inverse_metric(v: Vector) -> Vector:  # (αI + VᵀEV)⁻¹v
        return np.asarray((v - V.T @ (E / (alpha + E) * (V @ v))) / alpha)

    for t in range(T):
        h = 1.0 if importance is None else importance[t]
        x = X[t] / np.sqrt(D) if diagonal else X[t]

        # Each class is projected onto |w_kᵀx + b_k| ≤ C in the norm of A.
        scores[t] = x @ W + bias
        Px = inverse_metric(x)
        for k in range(classes):
            if abs(scores[t, k]) > C:
                projected += 1
                step = excess(scores[t, k], C) / (x @ Px + 1 / metric)
                W[:, k] -= step * Px
                bias[k] -= step / metric
        scores[t] = np.clip(scores[t], -C, C)
        slopes = [h * DERIVATIVES[loss](scores[t, k], 1.0 if k == y[t] else -1.0) for k in range(classes)]

        # The sketch sees √(κh)x, whatever the class; how it takes it in is as in oja.py.
        if diagonal:
            D += kappa * h * X[t] ** 2
            x = X[t] / np.sqrt(D)
        g_hat = np.sqrt(kappa * h) * x
        if g_hat.any():
            if len(V) < m:
                rest = g_hat - V.T @ (V @ g_hat)
                rest -= V.T @ (V @ rest)
                if rest @ rest > INDEPENDENT * (g_hat @ g_hat):
                    V, E = np.vstack([V, rest / np.linalg.norm(rest)]), np.append(E, 0.0)
            along = V @ g_hat
            E = E + along**2
            V = orthonormal_rows(V + np.outer(along / np.maximum(E, g_hat @ g_hat), g_hat))

        W = W - np.outer(inverse_metric(x), slopes)
        if intercept:
            metric += kappa * h
            bias = bias - np.array(slopes) / metric
    return scores, (W / np.sqrt(D)[:, None] if diagonal else W), bias, projected / (T * classes)
