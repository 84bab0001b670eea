"""The learners as scikit-learn estimators: they adapt and validate; learners learn.

>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> from sketchnewton import SketchedNewtonClassifier
>>> X, y = load_breast_cancer(return_X_y=True)
>>> model = make_pipeline(StandardScaler(), SketchedNewtonClassifier()).fit(X, y)
>>> model.score(X, y) > 0.95
True
"""

from sketchnewton.sklearn.adagrad import SketchedAdaGradClassifier, SketchedAdaGradRegressor
from sketchnewton.sklearn.newton import SketchedNewtonClassifier, SketchedNewtonRegressor

__all__ = [
    "SketchedAdaGradClassifier",
    "SketchedAdaGradRegressor",
    "SketchedNewtonClassifier",
    "SketchedNewtonRegressor",
]
