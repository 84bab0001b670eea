"""Shampoo as published: Gupta, Koren and Singer, *Shampoo: Preconditioned Stochastic Tensor Optimization*, 2018.

Algorithm 1 for matrices: L ← L + GGᵀ, R ← R + GᵀG, W ← W − η L^-¼ G R^-¼; the initial εI is taken relative to the
largest eigenvalue. With decay β the sums are exponential means, divided by the sum of their weights.
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
