"""ADA-LR and RADAGRAD as printed (ADA section 2, Krummenacher et al. 2016): all matrices afresh in every round."""

from __future__ import annotations

import numpy as np

from .adaptive import Matrix
from .common import DERIVATIVES, Vector


def ada_lr(
    X: Matrix, y: Vector, Pi: Matrix, *, eta: float, sigma: float, loss: str = "squared"
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights; Π is d × τ."""
    d = X.shape[1]
    beta, G, predictions = np.zeros(d), np.zeros((d, d)), np.zeros(len(y))
    for t, x in enumerate(X):
        predictions[t] = beta @ x
        g = DERIVATIVES[loss](predictions[t], y[t]) * x
        G += np.outer(g, g)
        Q, _ = np.linalg.qr(G @ Pi)
        _, S, Vt = np.linalg.svd(Q.T @ G, full_matrices=False)
        beta = beta - eta * Vt.T @ ((Vt @ g) / (np.sqrt(S) + sigma))
    return predictions, beta


def radagrad(
    X: Matrix, y: Vector, Pi: Matrix, *, eta: float, sigma: float, loss: str = "squared"
) -> tuple[Vector, Vector]:
    """The same for RADAGRAD: only G̃ = Σ g(Πᵀg)ᵀ is kept, and the complement gets a gradient step."""
    d, m = Pi.shape
    beta, G_tilde, predictions = np.zeros(d), np.zeros((d, m)), np.zeros(len(y))
    for t, x in enumerate(X):
        predictions[t] = beta @ x
        g = DERIVATIVES[loss](predictions[t], y[t]) * x
        G_tilde += np.outer(g, Pi.T @ g)
        V, S, _ = np.linalg.svd(G_tilde, full_matrices=False)  # QR and SVD of B = G̃ᵀQ in one
        beta = beta - eta * V @ ((V.T @ g) / (np.sqrt(S) + sigma)) - eta * (g - V @ (V.T @ g))
    return predictions, beta
