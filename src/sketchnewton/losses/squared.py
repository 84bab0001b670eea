"""The squared loss, for means and, on labels −1 and +1, for classes."""

from __future__ import annotations

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats
from sketchnewton.losses.base import ResidualLoss, inverse_square

__all__ = ["Squared"]


class Squared(ResidualLoss):
    """(p − y)²."""

    name: ClassVar[str] = "squared"
    smoothness: ClassVar[float] = 2.0
    curved: ClassVar[bool] = True

    def _value(self, p: Floats, y: Floats) -> Floats:
        return (p - y) * (p - y)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return 2.0 * (p - y)

    def _curvature(self, c: float) -> float:
        return inverse_square(c) / 8.0

    def _lipschitz(self, c: float) -> float:
        return 4.0 * c
