"""No sketch at all: the metric is a multiple of the identity."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.state import View
from sketchnewton.learners.curvature.base import LearnerSketch, SketchParameters, newton_kernel


class NoSketch(LearnerSketch):
    """m = 0: A = αI, online gradient descent."""

    columns = 0
    only_reads = True
    packs = False  # two numbers per feature: their place would be half as much

    def __init__(self, parameters: SketchParameters) -> None:
        self._make = newton_kernel("newton", parameters.dtype)

    def fresh(self) -> dict[str, View]:
        """Nothing."""
        return {}

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views)
