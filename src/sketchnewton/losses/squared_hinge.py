"""The squared hinge loss."""

from __future__ import annotations

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import MarginLoss

__all__ = ["SquaredHinge"]


class SquaredHinge(MarginLoss):
    """max(0, 1 − yp)²."""

    name: ClassVar[str] = "squared_hinge"
    smoothness: ClassVar[float] = 2.0
    curved: ClassVar[bool] = True

    def _value(self, p: Floats, y: Floats) -> Floats:
        short = np.maximum(0.0, 1.0 - y * p)
        return short * short

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * p)

    def _curvature(self, c: float) -> float:
        if c <= 1.0:  # the flat part is out of reach: squared loss with residuals up to 1 + C
            return 0.5 / ((1.0 + c) * (1.0 + c))
        # The worst pair of margins is u = −C and v = C, across the flat part: (3C − 1)/(8C²(1 + C)).
        return (3.0 - 1.0 / c) / (8.0 * c) / (1.0 + c)

    def _lipschitz(self, c: float) -> float:
        return 2.0 * (1.0 + c)
