"""Online gradient descent with the projection of SON: Oja-SON at m = 0, but said in its own words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector, excess


def online_gradient(
    X: NDArray[np.float64], y: Vector, *, alpha: float, loss: str = "squared", C: float = 1.0
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights."""
    w = np.zeros(X.shape[1])
    predictions = np.zeros(len(y))
    for t, x in enumerate(X):
        if x.any():
            w = w - excess(w @ x, C) / (x @ x) * x
        predictions[t] = w @ x
        w = w - DERIVATIVES[loss](predictions[t], y[t]) * x / alpha
    return predictions, w
