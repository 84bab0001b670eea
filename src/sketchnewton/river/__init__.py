"""The learners as River models: dictionaries in, predictions out (extra `river`).

>>> from river import datasets, evaluate, metrics
>>> from sketchnewton.river import SketchedNewtonClassifier
>>> model = SketchedNewtonClassifier()
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.87
True
"""

from __future__ import annotations

try:
    import river as _river  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"sketchnewton.river needs River: pip install 'sketchnewton[river]' ({error})"
    ) from error

from sketchnewton.river.model import ModelClassifier, ModelRegressor
from sketchnewton.river.newton import SketchedNewtonClassifier, SketchedNewtonRegressor

__all__ = ["ModelClassifier", "ModelRegressor", "SketchedNewtonClassifier", "SketchedNewtonRegressor"]
