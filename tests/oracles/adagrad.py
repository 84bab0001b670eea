"""AdaGrad with a diagonal metric H = σI + diag(Σ g²)^½ (ADA §2), optionally with SON's projection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess


def adagrad(
    X: NDArray[np.float64],
    y: Vector,
    *,
    eta: float,
    sigma: float,
    loss: str = "squared",
    C: float = np.inf,
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights."""
    d = X.shape[1]
    w, squares = np.zeros(d), np.zeros(d)
    predictions = np.zeros(len(y))
    for t, x in enumerate(X):
        H = sigma + np.sqrt(squares)
        if abs(w @ x) > C:
            w = w - excess(w @ x, C) / (x @ (x / H)) * x / H
        predictions[t] = w @ x
        g = DERIVATIVES[loss](predictions[t], y[t]) * x
        squares += g**2
        w = w - eta * g / (sigma + np.sqrt(squares))
    return predictions, w
