"""The learner that follows from what a user of an ecosystem's class asks for."""

from __future__ import annotations

from typing import Any

from sketchnewton.learners.base import Learner
from sketchnewton.learners.newton.bank import NewtonBank
from sketchnewton.learners.newton.shared import SharedNewton
from sketchnewton.learners.newton.sketched import SketchedNewton
from sketchnewton.losses import get_loss

LEARNERS = ("bank", "newton")


def newton_learner(
    learner: str,
    *,
    classes: bool,
    sketch: str | None,
    sketch_size: int | None,
    loss: Any,
    intercept: bool,
    dtype: str,
    random_state: int,
    clip: Any,
    **tuning: Any,
) -> Learner:
    """`NewtonBank`, which needs no tuning, or `SketchedNewton`: nothing but `learner` changes the learner.

    `clip="auto"` is learned from the targets, but for `SketchedNewton` of ±1 labels (`classes`) a constant.
    `diagonal=None` is False for classes with a curved loss and a sketch, where rescaling features costs time and
    gains nothing. `alpha=None` is taken from the lengths of rows, for "rfd" too.
    """
    if checked_learner(learner) == "bank":
        refuse_with_bank(sketch=sketch, **tuning)
        bound = None if clip == "auto" else clip
        return NewtonBank(loss=loss, clip=bound, intercept=intercept, dtype=dtype, **_size(sketch_size))
    facts = get_loss(loss)
    sketch = "oja" if sketch is None else sketch
    if classes and clip == "auto":
        clip = facts.class_bound
    if sketch == "rfd" and tuning.get("alpha") is None:
        tuning["alpha"] = "auto"
    if tuning.get("diagonal") is None:
        tuning["diagonal"] = not (classes and sketch != "none" and facts.curved)
    return SketchedNewton(
        sketch,
        loss=loss,
        clip=clip,
        intercept=intercept,
        dtype=dtype,
        random_state=random_state,
        **_size(sketch_size),
        **tuning,
    )


def checked_learner(learner: str) -> str:
    """The name of a learner, or an error that has the names."""
    if learner not in LEARNERS:
        raise ValueError(f"learner={learner!r} is invalid: must be one of {', '.join(LEARNERS)}")
    return learner


def refuse_with_bank(**given: object) -> None:
    """Refuse parameters that `SketchedNewton` has and the bank has not; None is not given."""
    for name, value in given.items():
        if value is None:
            continue
        why = "has nothing to tune"
        if name == "alpha":
            why += " and needs no penalty, as SGDClassifier's alpha is"
        raise ValueError(
            f"{name}={value!r} is invalid: the default learner, NewtonBank, {why}; leave {name} out, or set "
            f"learner='newton' for SketchedNewton, which has {name}"
        )


def shared_learner(
    classes: int,
    *,
    sketch: str | None,
    sketch_size: int | None,
    loss: Any,
    clip: Any,
    diagonal: bool | None,
    curvature: float | None,
    curvature_weight: Any,
    **parameters: Any,
) -> SharedNewton:
    """One learner of several classes with one sketch for all of them."""
    if sketch not in (None, "oja"):
        raise ValueError(f"sketch={sketch!r} is invalid: one sketch for all classes is 'oja'")
    for name, value in {"curvature": curvature, "curvature_weight": curvature_weight}.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is invalid: one sketch for all classes is of rows, not of gradients"
            )
    if clip == "auto":
        clip = get_loss(loss).class_bound
    return SharedNewton(
        classes, loss=loss, clip=clip, diagonal=bool(diagonal), **_size(sketch_size), **parameters
    )


def _size(sketch_size: int | None) -> dict[str, Any]:
    return {} if sketch_size is None else {"sketch_size": sketch_size}
