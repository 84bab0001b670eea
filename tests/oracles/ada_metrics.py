"""The steps w ← w − η H⁻¹g of ADA §2 and Algorithm 1 with every matrix written out, for any function of w.

Each `…_step` starts a run: it returns a function that takes the next gradient and returns H⁻¹g.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Step = Callable[[Vector], Vector]


def descend(
    step: Step, gradient: Callable[[Vector, int], Vector], w: Vector, eta: float, steps: int
) -> Matrix:
    """All iterates, one per row, after each of the steps; the gradient may depend on the number of the step."""
    path = []
    for t in range(steps):
        w = w - eta * step(gradient(w, t))
        path.append(w)
    return np.array(path)


def root(G: Matrix) -> Matrix:
    """The symmetric square root of a positive semidefinite matrix."""
    eigenvalues, V = np.linalg.eigh(G)
    return (V * np.sqrt(np.maximum(eigenvalues, 0))) @ V.T


def root_of_gram(S: Matrix) -> Matrix:
    """(SᵀS)^½, from S itself: eigenvalues of SᵀS that are rounding would have roots that are not."""
    _, s, Vt = np.linalg.svd(S, full_matrices=False)
    return (Vt.T * s) @ Vt


def diagonal_step(d: int, sigma: float) -> Step:
    G = np.zeros((d, d))

    def step(g: Vector) -> Vector:
        nonlocal G
        G = G + np.outer(g, g)
        return np.linalg.solve(sigma * np.eye(d) + np.diag(np.sqrt(np.diag(G))), g)

    return step


def full_step(d: int, sigma: float) -> Step:
    G = np.zeros((d, d))

    def step(g: Vector) -> Vector:
        nonlocal G
        G = G + np.outer(g, g)
        return np.linalg.solve(sigma * np.eye(d) + root(G), g)

    return step


def projected_step(d: int, sigma: float, draw: Callable[[int], Vector]) -> Step:
    """ADA-GP. `draw(t)` is the t-th random vector r, from 0 on."""
    S, t = np.zeros((len(draw(0)), d)), 0

    def step(g: Vector) -> Vector:
        nonlocal S, t
        S, t = S + np.outer(draw(t), g), t + 1
        return np.linalg.solve(sigma * np.eye(d) + root_of_gram(S), g)

    return step


def frequent_step(d: int, sigma: float, m: int) -> Step:
    """ADA-FD: a zero row of S takes the gradient, then all m squared singular values lose the last of them."""
    S = np.zeros((m, d))

    def step(g: Vector) -> Vector:
        nonlocal S
        S[-1] = g
        _, s, Vt = np.linalg.svd(S, full_matrices=False)
        rho = s[m - 1] ** 2 if len(s) == m else 0.0
        S[: len(s)] = np.sqrt(np.maximum(s**2 - rho, 0))[:, None] * Vt
        S[len(s) :] = 0
        return np.linalg.solve(sigma * np.eye(d) + root_of_gram(S), g)

    return step


def radagrad_step(d: int, sigma: float, Pi: Matrix) -> Step:
    """RADAGRAD (Krummenacher et al. 2016, Algorithm 2), the QR decomposition recomputed. Pi has τ rows."""
    G = np.zeros((d, len(Pi)))

    def step(g: Vector) -> Vector:
        nonlocal G
        G = G + np.outer(g, Pi @ g)
        Q, _ = np.linalg.qr(G)
        B = G.T @ Q
        _, s, Wt = np.linalg.svd(B)
        kept = s > 1e-13 * s[0]  # what the range finder has not found is outside
        V = (Q @ Wt.T)[:, kept]
        correction = g - V @ (V.T @ g)
        return V @ ((V.T @ g) / (np.sqrt(s[kept]) + sigma)) + correction

    return step


def hadamard(n: int) -> Matrix:
    """Sylvester's matrix of order n, a power of two."""
    H = np.ones((1, 1))
    while len(H) < n:
        H = np.block([[H, H], [H, -H]])
    return H
