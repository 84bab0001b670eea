"""How sure the bank's experts with whole matrices are of classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .bank_paths import travel
from .common import Vector

Matrix = NDArray[np.float64]


@dataclass
class Odds:
    """Log odds of a class, given a score within [-1, 1]: logistic regression that remembers half of the rows."""

    P: Matrix
    theta: Vector = field(default_factory=lambda: np.array([2.0, 0.0]))

    def of(self, score: float) -> float:
        return float(self.theta @ [np.clip(score, -1, 1), 1.0])

    def learn(self, score: float, y: float, h: float, T: int) -> None:
        z = np.array([np.clip(score, -1, 1), 1.0])
        now, u = self.of(score), self.P @ z
        q = float(z @ u)
        if q == 0:
            return
        self.theta = self.theta + travel("logistic", 0.0, now, y, h * q / 8, 1.0) / q * u
        c = h * max(expit(now) * expit(-now), 1e-4)
        self.P = self.P - c / (1 + c * q) * np.outer(u, u)
        self.P *= max(1.0, min(1 + 2 * h / (T + 20), 1 / self.P.diagonal().max()))
