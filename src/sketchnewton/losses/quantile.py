"""The quantile (pinball) loss."""

from __future__ import annotations

from sketchnewton.core.hints import ClassVar
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import Line, ResidualLoss

__all__ = ["Quantile"]


class Quantile(ResidualLoss):
    """tau·(y − p) below the label, (1 − tau)·(p − y) above it; the tau-quantile is the best constant."""

    name: ClassVar[str] = "quantile"
    parameter_name: ClassVar[str] = "tau"
    default_parameter: ClassVar[float] = 0.5

    def _check(self) -> None:
        if not 0.0 < self.parameter < 1.0:
            raise ValueError(f"tau={self.parameter!r} is invalid: quantile loss needs 0 < tau < 1")

    @property
    def central(self) -> bool:
        """The median is; another quantile of the very best model may have an R² below 0."""
        return self.parameter == 0.5

    def lines(self, labels: Floats) -> tuple[Line, Line]:
        """tau·(y − p) and (1 − tau)·(p − y)."""
        tau = self.parameter
        return (0 * labels - tau, tau * labels), (0 * labels + 1 - tau, (tau - 1) * labels)

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.where(y >= p, self.parameter * (y - p), (1.0 - self.parameter) * (p - y))

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.where(y > p, -self.parameter, np.where(y < p, 1.0 - self.parameter, 0.0))

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return max(self.parameter, 1.0 - self.parameter)
