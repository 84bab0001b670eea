"""Gradient descent at clipped predictions, as Vowpal Wabbit's OjaNewton does it with a sketch of size 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def clipped_gradient(X: Floats, y: Floats, alpha: float, clip: float, diagonal: bool) -> Floats:
    """Predictions before each row: (p − y)² at the clipped p; D starts at 0.1 and has this row's gradient."""
    w, D, predictions = np.zeros(X.shape[1]), np.full(X.shape[1], 0.1), []
    for x, label in zip(X, y, strict=True):
        p = float(np.clip(w @ (x / np.sqrt(D) if diagonal else x), -clip, clip))
        predictions.append(p)
        g = 2.0 * (p - label) * x
        D += g**2
        w -= g / np.sqrt(D) / alpha if diagonal else g / alpha
    return np.array(predictions)
