"""Online learners: a row comes in, a prediction goes out, the model learns from the answer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton.learners.adagrad.composite import CompositeAdaGrad
    from sketchnewton.learners.adagrad.diagonal import AdaGrad
    from sketchnewton.learners.adagrad.full import FullAdaGrad
    from sketchnewton.learners.adagrad.low_rank import AdaLR, RadaGrad
    from sketchnewton.learners.adagrad.sketched import SketchedAdaGrad
    from sketchnewton.learners.base import Learner
    from sketchnewton.learners.class_learner import ClassLearner
    from sketchnewton.learners.multiclass import OneVsAll
    from sketchnewton.learners.newton.bank import NewtonBank
    from sketchnewton.learners.newton.full import FullNewton
    from sketchnewton.learners.newton.invariant import InvariantNewton
    from sketchnewton.learners.newton.online_gradient import OnlineGradient
    from sketchnewton.learners.newton.shared import SharedNewton
    from sketchnewton.learners.newton.sketched import SketchedNewton

# Imported on first use: a command needs one or two of them, and starting must be quick.
_HOME = {
    "AdaGrad": "adagrad.diagonal",
    "AdaLR": "adagrad.low_rank",
    "ClassLearner": "class_learner",
    "CompositeAdaGrad": "adagrad.composite",
    "FullAdaGrad": "adagrad.full",
    "FullNewton": "newton.full",
    "InvariantNewton": "newton.invariant",
    "Learner": "base",
    "NewtonBank": "newton.bank",
    "OneVsAll": "multiclass",
    "OnlineGradient": "newton.online_gradient",
    "RadaGrad": "adagrad.low_rank",
    "SharedNewton": "newton.shared",
    "SketchedAdaGrad": "adagrad.sketched",
    "SketchedNewton": "newton.sketched",
}

__all__ = [
    "AdaGrad",
    "AdaLR",
    "ClassLearner",
    "CompositeAdaGrad",
    "FullAdaGrad",
    "FullNewton",
    "InvariantNewton",
    "Learner",
    "NewtonBank",
    "OneVsAll",
    "OnlineGradient",
    "RadaGrad",
    "SharedNewton",
    "SketchedAdaGrad",
    "SketchedNewton",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sketchnewton.learners' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sketchnewton.learners.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
