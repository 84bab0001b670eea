"""What every algorithm of SON has in common: losses' derivatives, the projection, the extra weights η_t."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

DERIVATIVES: dict[str, Callable[[float, float], float]] = {
    "squared": lambda p, y: 2 * (p - y),
    "logistic": lambda p, y: -y / (1 + np.exp(y * p)),
    "hinge": lambda p, y: -y if y * p < 1 else 0.0,
    "absolute": lambda p, y: float(np.sign(p - y)),
}


def excess(score: float, C: float) -> float:
    """τ_C of SON Lemma 1: by how much a score lies outside [−C, C]."""
    return float(np.sign(score) * max(abs(score) - C, 0.0))


def orthonormal_rows(V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gram–Schmidt on the rows, in order: the QR factorisation whose R has a positive diagonal."""
    Q, R = np.linalg.qr(V.T)
    return np.asarray((Q * np.sign(np.diag(R))).T)
