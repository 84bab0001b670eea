"""The hinge loss of support vector machines."""

from __future__ import annotations

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import Line, MarginLoss

__all__ = ["Hinge"]


class Hinge(MarginLoss):
    """max(0, 1 − yp)."""

    name: ClassVar[str] = "hinge"

    def lines(self, labels: Floats) -> tuple[Line, Line]:
        """0 and 1 − yp."""
        return (0 * labels, 0 * labels), (-labels, 0 * labels + 1)

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - y * p)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.where(y * p < 1.0, -y, 0.0)

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return 1.0
