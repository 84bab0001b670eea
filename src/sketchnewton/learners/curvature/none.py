"""No sketch at all: the metric is a multiple of the identity."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.state import View
from sketchnewton.learners.curvature.base import LearnerSketch


class NoSketch(LearnerSketch):
    """m = 0: A = αI, online gradient descent."""

    columns = 0

    def __init__(self, dtype: str) -> None:
        self._make = _native.newton64 if dtype == "float64" else _native.newton32

    def fresh(self) -> dict[str, View]:
        """Nothing."""
        return {}

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views)
