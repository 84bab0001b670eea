"""Frequent Directions and its variants, as printed: RFD Algorithms 1, 2, 4, 5 and 8; Desai et al. for PFD and CFD.

One SVD per shrink, rows one by one, no attempt at speed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def frequent_directions(
    A: Matrix, m: int, *, kind: str = "fd", beta: float = 0.2, buffer: int = 1, decay: float = 1.0
) -> tuple[Matrix, float, float]:
    """Return B, the ridge α and Σσ_m². `buffer` = 1 shrinks at every row; m + 1 is Algorithm 4."""
    d = A.shape[1]
    B, total = np.zeros((0, d)), 0.0

    def shrink(B: Matrix) -> tuple[Matrix, float]:
        _, sigma, Vt = np.linalg.svd(B, full_matrices=False)
        if len(sigma) < m:  # fewer columns than m: nothing is lost
            return np.vstack([sigma[:, None] * Vt, np.zeros((m - 1 - len(sigma), d))]), 0.0
        rho = sigma[m - 1] ** 2
        first = {"fd": 0, "rfd": 0, "cfd": 0, "pfd": m - max(1, int(beta * m)), "greedy": m}[kind]
        squares = sigma[: m - 1] ** 2
        squares[first:] -= rho
        return np.sqrt(np.maximum(squares, 0))[:, None] * Vt[: m - 1], rho

    for a in A:
        B, total = np.vstack([np.sqrt(decay) * B, a]), decay * total
        if len(B) == m - 1 + buffer:
            B, rho = shrink(B)
            total += rho
    if len(B) > m:  # what waits in the buffer
        B, rho = shrink(B)
        total += rho
    if kind == "cfd":
        _, sigma, Vt = np.linalg.svd(B, full_matrices=False)
        B = (np.sqrt(sigma**2 + total)[:, None] * Vt)[sigma > 1e-12 * sigma.max(initial=0)]
    return B, total / 2 if kind == "rfd" else 0.0, total
