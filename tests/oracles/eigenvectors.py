"""Garber, Hazan and Ma's algorithms as they print them, on dense arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

Array = NDArray[np.float64]


def perturbed_leader(matrices: list[Array], N: Array) -> list[Array]:
    """Algorithm 3: the matrices x_t x_tᵀ, which do not depend on the sign of x_t."""
    total, played = N.copy(), []
    for A in matrices:
        x = np.linalg.eigh(total)[1][:, -1]
        played.append(np.outer(x, x))
        total += A
    return played


def epoch_power_method(matrices: list[Array], v: Array, block: int) -> list[Array]:
    """Algorithm 2, with v for the arbitrary play of the first epoch: the vectors x_t."""
    played = [v] * min(block, len(matrices))
    x = v  # x_(2)
    for tau in range(2, -(-len(matrices) // block) + 1):
        mean = sum(matrices[: (tau - 1) * block]) / ((tau - 1) * block)
        following = v
        for _ in range((tau - 1) * block, min(tau * block, len(matrices))):
            played.append(x)
            following = mean @ following
            following /= np.linalg.norm(following)
        x = following
    return played


def multiplicative_weights(matrices: list[Array], eta: float) -> list[Array]:
    """The density matrices exp(ηS)/tr exp(ηS) before each round."""
    total, played = np.zeros_like(matrices[0]), []
    for A in matrices:
        X = expm(eta * total)
        played.append(X / np.trace(X))
        total += A
    return played


def frank_wolfe(matrices: list[Array], eta: float, first_leader: Array) -> list[Array]:
    """The density matrices of online conditional gradient before each round, X₁ = I/n."""
    n = len(matrices[0])
    X, first, total, played = np.eye(n) / n, np.eye(n) / n, np.zeros((n, n)), []
    for t, A in enumerate(matrices, 1):
        played.append(X)
        gradient = -eta * total + 2 * (X - first)
        v = np.linalg.eigh(-gradient)[1][:, -1] if t > 1 else first_leader
        step = min(1.0, 2 / np.sqrt(t))
        X = (1 - step) * X + step * np.outer(v, v)
        total = total + A
    return played


def oja(matrices: list[Array], x: Array) -> list[Array]:
    """x ← (x + A x/√t)/‖·‖: the vectors before each round."""
    played = []
    for t, A in enumerate(matrices, 1):
        played.append(x)
        x = x + A @ x / np.sqrt(t)
        x = x / np.linalg.norm(x)
    return played
