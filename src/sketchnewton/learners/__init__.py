"""Online learners: a row comes in, a prediction goes out, the model learns from the answer."""

from sketchnewton.learners.adaptive import AdaGrad
from sketchnewton.learners.bank import NewtonBank
from sketchnewton.learners.base import Learner
from sketchnewton.learners.full import FullNewton
from sketchnewton.learners.newton import OnlineGradient, SketchedNewton

__all__ = ["AdaGrad", "FullNewton", "Learner", "NewtonBank", "OnlineGradient", "SketchedNewton"]
