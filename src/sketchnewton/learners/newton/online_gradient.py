"""Online gradient descent, the first-order reference of the sketches."""

from __future__ import annotations

from sketchnewton.core.parameters import checked_dtype
from sketchnewton.learners.curvature.base import SketchParameters
from sketchnewton.learners.curvature.none import NoSketch
from sketchnewton.learners.newton.table_newton import TableNewton
from sketchnewton.losses import Loss


class OnlineGradient(TableNewton):
    """Online gradient descent with step 1/α and the projection of SON: `SketchedNewton(sketch="none")`.

    Cost per row: O(s) for s non-zeros.

    >>> learner = OnlineGradient(alpha=4.0)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.5]
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        diagonal: bool = False,
        intercept: bool = False,
        dtype: str = "float32",
    ) -> None:
        precision = checked_dtype(dtype)
        super().__init__(
            NoSketch(SketchParameters(0, precision)),
            alpha=alpha,
            loss=loss,
            clip=clip,
            diagonal=bool(diagonal),
            intercept=bool(intercept),
            dtype=precision,
        )
