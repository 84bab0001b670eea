"""The Huber loss, for means that outliers do not move."""

from __future__ import annotations

import math

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import ResidualLoss, inverse_square

__all__ = ["Huber"]


class Huber(ResidualLoss):
    """½r² for a residual |r| ≤ delta, delta·(|r| − ½delta) beyond: outliers pull with bounded force."""

    name: ClassVar[str] = "huber"
    parameter_name: ClassVar[str] = "delta"
    default_parameter: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 1.0

    def in_unit(self, unit: float) -> Huber:
        """The loss of labels and predictions that are divided by `unit`: delta has the labels' unit."""
        return Huber(self.parameter / unit)

    def _check(self) -> None:
        if not 0.0 < self.parameter < math.inf:
            raise ValueError(f"delta={self.parameter!r} is invalid: huber loss needs 0 < delta < inf")

    def _value(self, p: Floats, y: Floats) -> Floats:
        r = np.abs(p - y)
        near = np.minimum(r, self.parameter)
        return near * (r - 0.5 * near)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.clip(p - y, -self.parameter, self.parameter)

    def _curvature(self, c: float) -> float:
        # One sloped straight piece within reach of |p − y| ≤ 2C and there is no curvature left.
        return 0.25 * inverse_square(c) if 2.0 * c <= self.parameter else 0.0

    def _lipschitz(self, c: float) -> float:
        return min(2.0 * c, self.parameter)
