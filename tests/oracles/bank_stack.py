"""What the bank's experts say together, if labels are classes: a logistic regression of their predictions."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from .common import Vector


class Stack:
    """Log odds θᵀz beside what the aggregating rule plays; the two are weighed by their losses."""

    def __init__(self, loss: str, clip: float, inputs: int) -> None:
        self.mixable = loss in ("squared", "logistic")
        self.logistic, self.largest = loss == "logistic", min(clip, 20.0) if loss == "logistic" else 20.0
        self.theta, self.C = np.eye(inputs)[0], np.eye(inputs)
        self.v = np.array([0.5, 0.5])

    def play(self, P: float, p: Vector, *, classes: bool) -> float:
        """Where the rule would play P."""
        self.heard = classes and self.mixable
        if not self.heard:
            return P
        with np.errstate(divide="ignore"):
            odds = P if self.logistic else float(np.clip(logit((1 + P) / 2), -20, 20))
        self.z = np.zeros(len(self.theta))
        self.z[: len(p) + 1] = [odds, *p]  # experts with whole matrices may have left
        self.odds = float(np.clip(self.theta @ self.z, -self.largest, self.largest))
        self.opinions = np.array([P, self.odds if self.logistic else 2 * expit(self.odds) - 1])
        if self.logistic:
            return float(np.log(self.v @ expit(self.opinions)) - np.log(self.v @ expit(-self.opinions)))
        return float(self.v @ self.opinions)

    def learn(self, y: float, h: float, clock: float) -> None:
        """A label that is no class teaches nothing."""
        if not self.heard or abs(y) != 1:
            return
        both = self.opinions
        cost = h * (np.logaddexp(0, -y * both) if self.logistic else (both - y) ** 2 / 8)
        v, dealt = self.v * np.exp(cost.min() - cost), 1 / (clock + 1) ** 2
        self.v = (1 - dealt) * v / v.sum() + dealt / 2
        h, u = min(h, 100.0), self.C @ self.z
        q = float(u @ self.z)
        slope, curvature = h * y * expit(-y * self.odds), h * expit(self.odds) * expit(-self.odds)
        self.theta = self.theta + slope / (1 + h * q / 4) * u
        self.C = self.C - curvature / (1 + curvature * q) * np.outer(u, u)
