# Made from core/names.py by python -m sketchnewton.core.stubs

from sketchnewton.learners.adagrad.composite import CompositeAdaGrad as CompositeAdaGrad
from sketchnewton.learners.adagrad.diagonal import AdaGrad as AdaGrad
from sketchnewton.learners.adagrad.full import FullAdaGrad as FullAdaGrad
from sketchnewton.learners.adagrad.low_rank import AdaLR as AdaLR
from sketchnewton.learners.adagrad.low_rank import RadaGrad as RadaGrad
from sketchnewton.learners.adagrad.sketched import SketchedAdaGrad as SketchedAdaGrad
from sketchnewton.learners.base import Learner as Learner
from sketchnewton.learners.class_learner import ClassLearner as ClassLearner
from sketchnewton.learners.multiclass import OneVsAll as OneVsAll
from sketchnewton.learners.newton.bank import NewtonBank as NewtonBank
from sketchnewton.learners.newton.class_bank import ClassBank as ClassBank
from sketchnewton.learners.newton.full import FullNewton as FullNewton
from sketchnewton.learners.newton.invariant import InvariantNewton as InvariantNewton
from sketchnewton.learners.newton.online_gradient import OnlineGradient as OnlineGradient
from sketchnewton.learners.newton.shared import SharedNewton as SharedNewton
from sketchnewton.learners.newton.sketched import SketchedNewton as SketchedNewton
