"""The learner that follows from what a user of an ecosystem's class asks for."""

from __future__ import annotations

from typing import Any

from sketchnewton.learners.base import Learner
from sketchnewton.learners.newton import SketchedNewton
from sketchnewton.losses import get_loss

# C of each loss where ±1 is to be predicted: squared and hinge losses want no more than the label itself.
_CLASS_BOUND = {"logistic": 4.0}
_CURVED = ("squared", "logistic", "squared_hinge")


def newton_learner(
    *,
    classes: bool,
    sketch: str | None,
    sketch_size: int | None,
    loss: Any,
    clip: Any,
    diagonal: bool | None,
    **others: Any,
) -> Learner:
    """`SketchedNewton` with what the estimators leave open decided.

    `clip="auto"` is a constant for ±1 labels (`classes`), and learned from the targets otherwise. `diagonal=None`
    is False for classes with a curved loss and a sketch, where rescaling features costs time and gains nothing.
    """
    size: dict[str, Any] = {} if sketch_size is None else {"sketch_size": sketch_size}
    name = get_loss(loss).name
    if classes and clip == "auto":
        clip = _CLASS_BOUND.get(name, 1.0)
    if diagonal is None:
        diagonal = not (classes and sketch != "none" and name in _CURVED)
    return SketchedNewton(sketch or "oja", loss=loss, clip=clip, diagonal=diagonal, **size, **others)
