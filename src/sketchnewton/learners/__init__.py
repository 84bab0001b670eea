"""Online learners: a row comes in, a prediction goes out, the model learns from the answer."""

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
