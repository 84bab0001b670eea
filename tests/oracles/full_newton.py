"""The exact Online Newton Step of SON Equations 1 and 2: a linear system is solved in every round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess


def full_newton(
    X: NDArray[np.float64],
    y: Vector,
    *,
    alpha: float,
    loss: str = "squared",
    C: float = 1.0,
    sigma: float = 0.125,
    eta: Callable[[int], float] = lambda t: 0.0,
    importance: Vector | None = None,
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights."""
    d = X.shape[1]
    A, w = alpha * np.eye(d), np.zeros(d)
    predictions = np.zeros(len(y))
    for t, x in enumerate(X):
        h = 1.0 if importance is None else importance[t]
        if abs(w @ x) > C:
            Px = np.linalg.solve(A, x)
            w = w - excess(w @ x, C) / (x @ Px) * Px
        predictions[t] = w @ x
        g = h * DERIVATIVES[loss](predictions[t], y[t]) * x
        A += (sigma / h + eta(t + 1)) * np.outer(g, g)
        w = w - np.linalg.solve(A, g)
    return predictions, w
