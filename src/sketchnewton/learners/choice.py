"""The learner that follows from what a user of an ecosystem's class asks for."""

from __future__ import annotations

from typing import Any

from sketchnewton.learners.bank import LOSSES, NewtonBank
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
    intercept: bool,
    dtype: str,
    random_state: int,
    clip: Any,
    diagonal: bool | None,
    **tuning: Any,
) -> Learner:
    """The bank that needs no tuning, or `SketchedNewton` if a sketch is named or something is to be tuned.

    `clip="auto"` is a constant for ±1 labels (`classes`), and learned from the targets otherwise. `diagonal=None`
    is False for classes with a curved loss and a sketch, where rescaling features costs time and gains nothing.
    """
    size: dict[str, Any] = {} if sketch_size is None else {"sketch_size": sketch_size}
    name = get_loss(loss).name
    untuned = clip == "auto" and diagonal is None and all(value is None for value in tuning.values())
    if sketch is None and untuned and name in LOSSES:
        return NewtonBank(loss=loss, intercept=intercept, dtype=dtype, **size)
    if classes and clip == "auto":
        clip = _CLASS_BOUND.get(name, 1.0)
    if diagonal is None:
        diagonal = not (classes and sketch != "none" and name in _CURVED)
    return SketchedNewton(
        sketch or "oja",
        loss=loss,
        clip=clip,
        diagonal=diagonal,
        intercept=intercept,
        dtype=dtype,
        random_state=random_state,
        **size,
        **tuning,
    )
