"""The learner that follows from what a user of an ecosystem's class asks for."""

from __future__ import annotations

from typing import Any

from sketchnewton.learners.base import Learner
from sketchnewton.learners.newton import SketchedNewton
from sketchnewton.losses import get_loss

# C of each loss where ±1 is to be predicted: squared and hinge losses want no more than the label itself.
_CLASS_BOUND = {"logistic": 4.0}


def newton_learner(*, classes: bool, sketch: str | None, clip: Any, loss: Any, **parameters: Any) -> Learner:
    """A learner for ±1 labels (`classes`) or numbers; `clip="auto"` is then a constant or learned."""
    name = get_loss(loss).name
    if classes and clip == "auto":
        clip = _CLASS_BOUND.get(name, 1.0)
    return SketchedNewton(sketch or "oja", clip=clip, loss=loss, **parameters)
