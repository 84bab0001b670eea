"""Online Newton with α = 0 (SON Lemma 2 and Appendix D): the pseudo-inverse written out, and one amendment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .common import DERIVATIVES, Vector


def invariant_newton(
    X: NDArray[np.float64],
    y: Vector,
    *,
    loss: str = "squared",
    C: float = 1.0,
    sigma: float = 0.125,
    eta: Callable[[int], float] = lambda t: 0.0,
    importance: Vector | None = None,
    as_printed: bool = False,
) -> tuple[Vector, Vector]:
    """Return the predictions before each update and the final weights.

    While A is singular the minimiser of Lemma 2 is a whole affine set. The paper takes its shortest member, which
    is not the same point in other coordinates; `as_printed` does so. Otherwise a row x outside the range of A,
    where moving costs nothing, always moves w along (I − A†A)x, to where the prediction is 0.
    """
    d = X.shape[1]
    A, w = np.zeros((d, d)), np.zeros(d)
    predictions = np.zeros(len(y))
    for t, x in enumerate(X):
        h = 1.0 if importance is None else importance[t]
        inverse = np.linalg.pinv(A, rcond=1e-12, hermitian=True)
        outside = x - A @ (inverse @ x)
        score = w @ x
        if outside @ outside > 1e-16 * (x @ x):
            predictions[t] = np.clip(score, -C, C) if as_printed else 0.0
            w = w - (score - predictions[t]) / (x @ outside) * outside
        elif x.any():
            predictions[t] = np.clip(score, -C, C)
            w = w - (score - predictions[t]) / (x @ inverse @ x) * (inverse @ x)
        g = h * DERIVATIVES[loss](predictions[t], y[t]) * x
        A += (sigma / h + eta(t + 1)) * np.outer(g, g)
        w = w - np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ g
    return predictions, w
