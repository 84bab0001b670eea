"""Online learners: a row comes in, a prediction goes out, the model learns from the answer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton.learners.adaptive import AdaGrad
    from sketchnewton.learners.adaptive_dense import AdaLR, FullAdaGrad, RadaGrad
    from sketchnewton.learners.adaptive_sketch import SketchedAdaGrad
    from sketchnewton.learners.bank import NewtonBank
    from sketchnewton.learners.base import Learner
    from sketchnewton.learners.full import FullNewton
    from sketchnewton.learners.invariant import InvariantNewton
    from sketchnewton.learners.newton import OnlineGradient, SketchedNewton
    from sketchnewton.learners.one_vs_all import OneVsAll
    from sketchnewton.learners.shared import SharedNewton

# Imported on first use: a command needs one or two of them, and starting must be quick.
_HOME = {
    "AdaGrad": "adaptive",
    "AdaLR": "adaptive_dense",
    "FullAdaGrad": "adaptive_dense",
    "FullNewton": "full",
    "InvariantNewton": "invariant",
    "Learner": "base",
    "NewtonBank": "bank",
    "OneVsAll": "one_vs_all",
    "OnlineGradient": "newton",
    "RadaGrad": "adaptive_dense",
    "SharedNewton": "shared",
    "SketchedAdaGrad": "adaptive_sketch",
    "SketchedNewton": "newton",
}

__all__ = [
    "AdaGrad",
    "AdaLR",
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
