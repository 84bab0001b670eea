"""The loss of Poisson regression, for counts."""

from __future__ import annotations

import math

from sketchnewton.core.hints import ClassVar, Literal
from sketchnewton.core.types import Floats, np
from sketchnewton.losses.base import Loss

__all__ = ["Poisson"]


class Poisson(Loss):
    """exp(p) − yp for counts y ≥ 0, predicted as exp(p).

    From p = 300 on, the exponential is continued by its tangent and the link stays at exp(300). The loss remains
    convex and finite, and so do the derivative and its square, however wild the prediction.
    """

    name: ClassVar[str] = "poisson"
    smoothness: ClassVar[float] = 1.0  # of a count of one; it grows with the count
    label_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    link_kind: ClassVar[Literal["identity", "logistic", "log"]] = "log"
    link_cap: ClassVar[float] = 300.0

    @property
    def has_second_derivative(self) -> bool:
        """No bounded one: it grows with the count."""
        return False

    def smoothness_growth(self, bound: float) -> float:
        """exp(C), for counts as large as C allows."""
        return min(math.exp(bound), 1e100)

    def needed_bound(self, labels: Floats) -> Floats:
        """The logarithm of each count, at least 1."""
        return np.log(np.maximum(labels, math.e))

    def nearest_label(self, label: float, bound: float) -> float:
        """The largest count that needs no more than `bound`."""
        return math.exp(bound)

    def _value(self, p: Floats, y: Floats) -> Floats:
        return self._link(p) * (1.0 + np.maximum(p - self.link_cap, 0.0)) - y * p

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return self._link(p) - y

    def _curvature(self, c: float) -> float:
        if c > self.link_cap:
            return 0.0
        # Two extreme cases, each scaled by exp(−2C) so that nothing overflows:
        # y = 0, u = C, v = −C    (e^−C − e^C + 2C·e^C) / (2C²·e^2C) = e^−C·2(e^−x − 1 + x)/x² with x = 2C;
        # y = e^C, u = v = −C     e^−C / (e^C − e^−C)².
        across = math.exp(-c) * _second_order_of_exp(2.0 * c)
        at_edge = math.exp(-1.5 * c) / -math.expm1(-2.0 * c)
        return min(across, at_edge * at_edge)

    def _lipschitz(self, c: float) -> float:
        return math.exp(c) if c < 709.0 else math.inf

    def _link(self, p: Floats) -> Floats:
        return np.exp(np.minimum(p, self.link_cap))


def _second_order_of_exp(x: float) -> float:
    """2(e^−x − 1 + x)/x², which tends to 1 for x → 0; by its series where the difference would cancel."""
    if x >= 0.25:
        return 2.0 * ((math.expm1(-x) + x) / x) / x
    total = term = 1.0
    for k in range(3, 14):
        term *= -x / k
        total += term
    return total
