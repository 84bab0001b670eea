"""The learners as River models: dictionaries in, predictions out (extra `river`).

>>> from river import datasets, evaluate, metrics
>>> from sketchnewton.river import SketchedNewtonClassifier
>>> model = SketchedNewtonClassifier()
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.87
True
"""

from __future__ import annotations

from sketchnewton.core.extras import needs

with needs("river", "sketchnewton.river needs River", "river"):
    from sketchnewton.river.model import ModelClassifier, ModelRegressor
    from sketchnewton.river.newton import SketchedNewtonClassifier, SketchedNewtonRegressor

__all__ = ["ModelClassifier", "ModelRegressor", "SketchedNewtonClassifier", "SketchedNewtonRegressor"]
