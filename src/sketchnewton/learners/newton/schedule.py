"""η_t: what a gradient adds to the metric beyond the curvature of its loss."""

from __future__ import annotations

import math

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.parameters import checked
from sketchnewton.losses import Loss


class Schedule(NamedTuple):
    """η_t = first/t^power, times √d if `by_dimension`, with d the number of features seen so far."""

    first: float
    power: float = 0.0
    by_dimension: bool = False

    def at(self, t: int, d: int) -> float:
        """η_t when `d` features have been seen (`FullNewton`, `InvariantNewton`: 1 + the largest index)."""
        return self.first * (math.sqrt(d) if self.by_dimension else 1.0) / math.pow(t, self.power)


_THEORY = "sqrt(d/(C^2 L^2 t))"
SCHEDULES = ("1/t", "1/sqrt(t)", _THEORY)
"""The schedules that have a name."""


def checked_curvature(curvature: float | str | None, loss: Loss, clip: float) -> float:
    """σ of Assumption 2; None: what the loss has on |p| ≤ C; infinite: `"local"`, ℓ''/ℓ'² at each prediction."""
    if curvature is None:
        return loss.curvature(clip)
    if curvature != "local":
        return checked("curvature", curvature)
    if not loss.has_second_derivative:
        raise ValueError(f"curvature='local' is invalid: {loss.name} loss has no bounded second derivative")
    return math.inf


def checked_curvature_weight(
    weight: float | str | None, loss: Loss, clip: float, curvature: float
) -> Schedule:
    """The schedule of a name or number; None: 0 for a curved loss, else 1/(CL√t).

    `"sqrt(d/(C^2 L^2 t))"` is what SON's Theorem 2 asks for where there is no curvature.
    """
    scale = clip * loss.lipschitz(clip) if math.isfinite(clip) else math.inf
    if weight is None:
        return Schedule(0.0) if curvature > 0 else Schedule(1.0 / scale if math.isfinite(scale) else 1.0, 0.5)
    if not isinstance(weight, str):
        return Schedule(checked("curvature_weight", weight))
    if weight == "1/t":
        return Schedule(1.0, 1.0)
    if weight == "1/sqrt(t)":
        return Schedule(1.0, 0.5)
    if weight.replace(" ", "") != _THEORY.replace(" ", ""):
        raise ValueError(
            f"curvature_weight={weight!r} is invalid: must be a number, {', '.join(map(repr, SCHEDULES))} or None"
        )
    if not math.isfinite(scale):
        raise ValueError(
            f"curvature_weight={weight!r} is invalid: needs a finite clip C and a loss with bounded slope L on it"
        )
    return Schedule(1.0 / scale, 0.5, True)
