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
    from sketchnewton.decomposition import SketchedPCA
    from sketchnewton.learners import AdaGrad, FullNewton, Learner, NewtonBank, OnlineGradient, SketchedNewton
    from sketchnewton.losses import Loss
    from sketchnewton.model_file import load
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

__version__ = "0.1.0"

# Imported on first use, so that `import sketchnewton` and `skn --version` stay cheap.
_HOME = {
    "AdaGrad": "learners",
    "FullNewton": "learners",
    "Learner": "learners",
    "NewtonBank": "learners",
    "OnlineGradient": "learners",
    "SketchedNewton": "learners",
    "Loss": "losses",
    "load": "model_file",
    "SketchedPCA": "decomposition",
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
    "CompensativeFrequentDirections",
    "ExactCovariance",
    "FrequentDirections",
    "FullNewton",
    "GreedyDirections",
    "Learner",
    "Loss",
    "NewtonBank",
    "OjaSketch",
    "OnlineGradient",
    "ParameterizedFrequentDirections",
    "RandomProjection",
    "RobustFrequentDirections",
    "Sketch",
    "SketchedNewton",
    "SketchedPCA",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sketchnewton' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sketchnewton.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
