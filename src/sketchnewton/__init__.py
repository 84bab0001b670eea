"""Second-order online learning at first-order cost.

>>> import numpy as np
>>> from sketchnewton import SketchedNewton
>>> learner = SketchedNewton(sketch="oja", sketch_size=2)
>>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
>>> predictions = learner.learn(X, [1.0, -1.0, 1.0])   # each made before its row was learned
>>> learner.predict(X).shape
(3,)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton import eigen as eigen
    from sketchnewton import evaluation as evaluation
    from sketchnewton import features as features
    from sketchnewton import learners as learners
    from sketchnewton import losses as losses
    from sketchnewton import model as model
    from sketchnewton import river as river
    from sketchnewton import sketches as sketches
    from sketchnewton import sklearn as sklearn
    from sketchnewton import streams as streams
    from sketchnewton import testing as testing
    from sketchnewton import torch as torch
    from sketchnewton.core.persistence import load
    from sketchnewton.learners import (
        AdaGrad,
        AdaLR,
        CompositeAdaGrad,
        FullAdaGrad,
        FullNewton,
        InvariantNewton,
        Learner,
        NewtonBank,
        OnlineGradient,
        RadaGrad,
        SketchedAdaGrad,
        SketchedNewton,
    )
    from sketchnewton.losses import Loss
    from sketchnewton.model import Model
    from sketchnewton.sketches import (
        CompensativeFrequentDirections,
        ExactCovariance,
        FrequentDirections,
        GreedyDirections,
        OjaSketch,
        ParameterizedFrequentDirections,
        RandomProjection,
        RobustFrequentDirections,
        Sketch,
    )
    from sketchnewton.sklearn import (
        SketchedAdaGradClassifier,
        SketchedAdaGradRegressor,
        SketchedNewtonClassifier,
        SketchedNewtonRegressor,
    )
    from sketchnewton.sklearn.decomposition import SketchedPCA

__version__ = "0.1.0"

# Imported on first use, so that `import sketchnewton` and `skn --version` stay cheap.
_SUBPACKAGES = (
    *("eigen", "evaluation", "features", "learners", "losses", "model"),
    *("river", "sketches", "sklearn", "streams", "testing", "torch"),
)
_HOME = {
    "AdaGrad": "learners",
    "AdaLR": "learners",
    "CompositeAdaGrad": "learners",
    "FullAdaGrad": "learners",
    "FullNewton": "learners",
    "InvariantNewton": "learners",
    "Learner": "learners",
    "Model": "model",
    "NewtonBank": "learners",
    "OnlineGradient": "learners",
    "RadaGrad": "learners",
    "SketchedAdaGrad": "learners",
    "SketchedNewton": "learners",
    "Loss": "losses",
    "load": "core.persistence",
    "SketchedPCA": "sklearn.decomposition",
    "SketchedAdaGradClassifier": "sklearn",
    "SketchedAdaGradRegressor": "sklearn",
    "SketchedNewtonClassifier": "sklearn",
    "SketchedNewtonRegressor": "sklearn",
    "CompensativeFrequentDirections": "sketches",
    "ExactCovariance": "sketches",
    "FrequentDirections": "sketches",
    "GreedyDirections": "sketches",
    "OjaSketch": "sketches",
    "ParameterizedFrequentDirections": "sketches",
    "RandomProjection": "sketches",
    "RobustFrequentDirections": "sketches",
    "Sketch": "sketches",
}

__all__ = [
    "AdaGrad",
    "AdaLR",
    "CompensativeFrequentDirections",
    "CompositeAdaGrad",
    "ExactCovariance",
    "FrequentDirections",
    "FullAdaGrad",
    "FullNewton",
    "GreedyDirections",
    "InvariantNewton",
    "Learner",
    "Loss",
    "Model",
    "NewtonBank",
    "OjaSketch",
    "OnlineGradient",
    "ParameterizedFrequentDirections",
    "RadaGrad",
    "RandomProjection",
    "RobustFrequentDirections",
    "Sketch",
    "SketchedAdaGrad",
    "SketchedAdaGradClassifier",
    "SketchedAdaGradRegressor",
    "SketchedNewton",
    "SketchedNewtonClassifier",
    "SketchedNewtonRegressor",
    "SketchedPCA",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"sketchnewton.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'sketchnewton' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sketchnewton.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    from importlib.util import find_spec

    # What `help` asks for must be there, also where River or PyTorch is not installed.
    there = [name for name in _SUBPACKAGES if name not in ("river", "torch") or find_spec(name)]
    return sorted([*__all__, *there])
