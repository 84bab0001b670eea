"""The absolute loss, for medians."""

from __future__ import annotations

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import Line, ResidualLoss

__all__ = ["Absolute"]


class Absolute(ResidualLoss):
    """|p − y|."""

    name: ClassVar[str] = "absolute"

    def lines(self, labels: Floats) -> tuple[Line, Line]:
        """p − y and y − p."""
        return (0 * labels + 1, -labels), (0 * labels - 1, labels)

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.abs(p - y)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.sign(p - y)

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return 1.0
