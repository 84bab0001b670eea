"""Shampoo as published: Gupta, Koren and Singer, *Shampoo: Preconditioned Stochastic Tensor Optimization*, 2018.

Algorithm 1 for matrices: L ← L + GGᵀ, R ← R + GᵀG, W ← W − η L^-¼ G R^-¼; the initial εI is taken relative to the
largest eigenvalue. With decay β the sums are exponential means, divided by the sum of their weights.

And SOAP: Vyas et al., *SOAP: Improving and Stabilizing Shampoo using Adam*, 2024: Adam on QᴸᵀGQᴿ, where Qᴸ and Qᴿ
are the eigenvectors of L and R. SOAP leaves the first step out; here it is Adam's, with Q = I. Entries of a
direction are at most 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def inverse_fourth_root(A: np.ndarray, ridge: float) -> np.ndarray:
    eigenvalues, V = np.linalg.eigh(A)
    damped = np.maximum(eigenvalues, 0) + ridge * eigenvalues[-1]
    return (V * damped**-0.25) @ V.T


def shampoo(
    gradient: Callable[[np.ndarray, int], np.ndarray],
    start: np.ndarray,
    eta: float,
    steps: int,
    ridge: float,
    beta: float = 1.0,
    every: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All iterates, and L and R in the end."""
    W = start.copy()
    L, R = np.zeros((len(W), len(W))), np.zeros((W.shape[1], W.shape[1]))
    total = 0.0
    iterates = []
    for t in range(steps):
        G = gradient(W, t)
        if t % every == 0:
            weight = 1 - beta if beta < 1 else 1.0
            L, R = beta * L + weight * G @ G.T, beta * R + weight * G.T @ G
            total = beta * total + weight
        scale = total if beta < 1 else 1.0
        W = W - eta * inverse_fourth_root(L / scale, ridge) @ G @ inverse_fourth_root(R / scale, ridge)
        iterates.append(W.copy())
    return np.array(iterates), L, R


def eigenvectors(A: np.ndarray) -> np.ndarray:
    """Those of large eigenvalues first."""
    return np.linalg.eigh(A)[1][:, ::-1]


def soap(
    gradient: Callable[[np.ndarray, int], np.ndarray],
    start: np.ndarray,
    eta: float,
    steps: int,
    betas: tuple[float, float],
    every: int = 1,
    eps: float = 1e-8,
) -> np.ndarray:
    """All iterates. The basis is refreshed after a step, squares stay with their number in it."""
    W = start.copy()
    a, b = W.shape
    L, R, QL, QR = np.zeros((a, a)), np.zeros((b, b)), np.eye(a), np.eye(b)
    mean, squares = np.zeros((a, b)), np.zeros((a, b))
    (beta1, beta2), iterates = betas, []
    for t in range(steps):
        G = gradient(W, t)
        mean = beta1 * mean + (1 - beta1) * G
        squares = beta2 * squares + (1 - beta2) * (QL.T @ G @ QR) ** 2
        rotated = QL.T @ (mean / (1 - beta1 ** (t + 1))) @ QR
        direction = rotated / (np.sqrt(squares / (1 - beta2 ** (t + 1))) + eps)
        W = W - eta * QL @ np.clip(direction, -1, 1) @ QR.T
        iterates.append(W.copy())
        if t % every == 0:
            L, R = beta2 * L + (1 - beta2) * G @ G.T, beta2 * R + (1 - beta2) * G.T @ G
            QL, QR = eigenvectors(L), eigenvectors(R)
    return np.array(iterates)
