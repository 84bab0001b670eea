"""The logistic loss, for probabilities."""

from __future__ import annotations

import math

from sketchnewton.core.hints import ClassVar, Literal
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import MarginLoss

__all__ = ["Logistic"]


class Logistic(MarginLoss):
    """log(1 + exp(−yp)), without overflow for any p."""

    name: ClassVar[str] = "logistic"
    link_kind: ClassVar[Literal["identity", "logistic", "log"]] = "logistic"
    softmax: ClassVar[bool] = True
    class_bound: ClassVar[float] = 4.0  # probabilities from 2 to 98 percent
    smoothness: ClassVar[float] = 0.25
    curved: ClassVar[bool] = True

    def _value(self, p: Floats, y: Floats) -> Floats:
        margin = y * p
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return -y * self._link(-y * p)

    def _curvature(self, c: float) -> float:
        # Where the margin is −C the loss is least curved for its slope: ℓ''/ℓ'² = exp(−C).
        return math.exp(-c)

    def _lipschitz(self, c: float) -> float:
        return 1.0 / (1.0 + math.exp(-c))

    def _link(self, p: Floats) -> Floats:
        e = np.exp(-np.abs(p))
        return np.where(p >= 0.0, 1.0, e) / (1.0 + e)
