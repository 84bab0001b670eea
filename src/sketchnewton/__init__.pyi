# Made from core/names.py by python -m sketchnewton.core.stubs

from sketchnewton import client as client
from sketchnewton import dask as dask
from sketchnewton import eigen as eigen
from sketchnewton import evaluation as evaluation
from sketchnewton import features as features
from sketchnewton import learners as learners
from sketchnewton import losses as losses
from sketchnewton import model as model
from sketchnewton import river as river
from sketchnewton import sketches as sketches
from sketchnewton import sklearn as sklearn
from sketchnewton import spark as spark
from sketchnewton import streams as streams
from sketchnewton import testing as testing
from sketchnewton import torch as torch
from sketchnewton.core.persistence import load as load
from sketchnewton.learners import AdaGrad as AdaGrad
from sketchnewton.learners import AdaLR as AdaLR
from sketchnewton.learners import CompositeAdaGrad as CompositeAdaGrad
from sketchnewton.learners import FullAdaGrad as FullAdaGrad
from sketchnewton.learners import FullNewton as FullNewton
from sketchnewton.learners import InvariantNewton as InvariantNewton
from sketchnewton.learners import Learner as Learner
from sketchnewton.learners import NewtonBank as NewtonBank
from sketchnewton.learners import OnlineGradient as OnlineGradient
from sketchnewton.learners import RadaGrad as RadaGrad
from sketchnewton.learners import SketchedAdaGrad as SketchedAdaGrad
from sketchnewton.learners import SketchedNewton as SketchedNewton
from sketchnewton.losses import Loss as Loss
from sketchnewton.model import Model as Model
from sketchnewton.sketches import CompensativeFrequentDirections as CompensativeFrequentDirections
from sketchnewton.sketches import ExactCovariance as ExactCovariance
from sketchnewton.sketches import FrequentDirections as FrequentDirections
from sketchnewton.sketches import GreedyDirections as GreedyDirections
from sketchnewton.sketches import OjaSketch as OjaSketch
from sketchnewton.sketches import ParameterizedFrequentDirections as ParameterizedFrequentDirections
from sketchnewton.sketches import RandomProjection as RandomProjection
from sketchnewton.sketches import RobustFrequentDirections as RobustFrequentDirections
from sketchnewton.sketches import Sketch as Sketch
from sketchnewton.sklearn import SketchedAdaGradClassifier as SketchedAdaGradClassifier
from sketchnewton.sklearn import SketchedAdaGradRegressor as SketchedAdaGradRegressor
from sketchnewton.sklearn import SketchedNewtonClassifier as SketchedNewtonClassifier
from sketchnewton.sklearn import SketchedNewtonRegressor as SketchedNewtonRegressor
from sketchnewton.sklearn.decomposition import SketchedPCA as SketchedPCA

__version__: str
