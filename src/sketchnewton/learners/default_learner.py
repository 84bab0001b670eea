"""The learner that follows from what a user of an ecosystem's class asks for."""

from __future__ import annotations

from typing import TypedDict, cast

from sketchnewton.core.parameters import checked_flag
from sketchnewton.learners.base import Learner
from sketchnewton.learners.newton.bank import NewtonBank
from sketchnewton.learners.newton.shared import SharedNewton
from sketchnewton.learners.newton.sketched import SketchedNewton
from sketchnewton.losses import Loss, get_loss

LEARNERS = ("bank", "newton")


def newton_learner(
    learner: str,
    *,
    classes: bool,
    sketch: str | None,
    sketch_size: int | None,
    alpha: float | str | None,
    loss: str | Loss,
    clip: float | str | None,
    curvature: float | None,
    curvature_weight: float | str | None,
    diagonal: bool | None,
    intercept: bool,
    dtype: str,
    random_state: int,
) -> Learner:
    """`NewtonBank`, which needs no tuning, or `SketchedNewton`: nothing but `learner` changes the learner.

    `clip="auto"` is learned from the targets, but for `SketchedNewton` of ±1 labels (`classes`) a constant.
    `diagonal=None` is False for classes with a curved loss and a sketch, where rescaling features costs time and
    gains nothing. `alpha=None` is taken from the lengths of rows, for "rfd" too.
    """
    intercept = checked_flag("intercept", intercept)
    if checked_learner(learner) == "bank":
        refuse_with_bank(
            sketch=sketch,
            alpha=alpha,
            curvature=curvature,
            curvature_weight=curvature_weight,
            diagonal=diagonal,
        )
        bound = None if clip == "auto" else clip
        return NewtonBank(loss=loss, clip=bound, intercept=intercept, dtype=dtype, **_size(sketch_size))
    facts = get_loss(loss)
    sketch = "oja" if sketch is None else sketch
    if classes and clip == "auto":
        clip = facts.class_bound
    if sketch == "rfd" and alpha is None:
        alpha = "auto"
    if diagonal is None:
        diagonal = not (classes and sketch != "none" and facts.curved)
    diagonal = checked_flag("diagonal", diagonal)
    return SketchedNewton(
        sketch,
        alpha=alpha,
        loss=loss,
        clip=clip,
        curvature=curvature,
        curvature_weight=curvature_weight,
        diagonal=diagonal,
        intercept=intercept,
        dtype=dtype,
        random_state=random_state,
        **_size(sketch_size),
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
    alpha: float | None,
    loss: str | Loss,
    clip: float | str | None,
    diagonal: bool | None,
    curvature: float | None,
    curvature_weight: float | str | None,
    intercept: bool,
    dtype: str,
) -> SharedNewton:
    """One learner of several classes with one sketch for all of them."""
    if sketch not in (None, "oja"):
        raise ValueError(f"sketch={sketch!r} is invalid: one sketch for all classes is 'oja'")
    for name, value in {"curvature": curvature, "curvature_weight": curvature_weight}.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is invalid: one sketch for all classes is of rows, not of gradients"
            )
    bound = get_loss(loss).class_bound if clip == "auto" else cast("float | None", clip)  # or it is refused
    return SharedNewton(
        classes,
        alpha=alpha,
        loss=loss,
        clip=bound,
        diagonal=diagonal is not None and checked_flag("diagonal", diagonal),
        intercept=checked_flag("intercept", intercept),
        dtype=dtype,
        **_size(sketch_size),
    )


class _Size(TypedDict, total=False):
    sketch_size: int


def _size(sketch_size: int | None) -> _Size:
    return {} if sketch_size is None else {"sketch_size": sketch_size}
