"""The paths that the bank's steps follow (docs/untuned-theory.md)."""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega


def travel(loss: str, parameter: float, p: float, y: float, rate: float, miss: float) -> float:
    """How far the score moves towards the label in a step that is `rate` long, taken in infinitely many parts."""
    distance = y - p
    if loss == "squared":
        return float((p - y) * np.expm1(-2 * rate))
    if loss == "logistic":
        start = y * p
        z = 8 * rate + start + np.exp(start)
        m = float(z - wrightomega(z))  # m + exp(m) = z
        return y * (m - start)
    if loss == "poisson":  # dp/du = 4 (y - exp(p)) / dispersion
        u, mu = 4 * rate / miss, np.exp(p)
        return float(-np.log1p(mu * u) if y == 0 else -np.log(mu / y + (1 - mu / y) * np.exp(-y * u)))
    if loss == "huber":  # at a constant speed while the residual is beyond delta, then ever more slowly
        speed = 2 * max(parameter, miss)
        straight = max(0.0, abs(distance) - parameter) / speed  # how long that takes
        if rate <= straight:
            return float(np.sign(distance) * speed * rate)
        rest = min(abs(distance), parameter)
        return float(
            np.sign(distance) * (abs(distance) - rest * np.exp(-speed / parameter * (rate - straight)))
        )
    tau = parameter if loss == "quantile" else 0.5
    speed = 4 * miss * (tau if distance > 0 else 1 - tau)
    return float(np.sign(distance) * min(abs(distance), speed * rate))
