"""One table of estimators and settings: what every estimator promises is tested over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchnewton import (
    SketchedAdaGradClassifier,
    SketchedAdaGradRegressor,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
)

CLASSIFIERS: dict[str, Any] = {
    "newton": SketchedNewtonClassifier(),
    "newton, logistic": SketchedNewtonClassifier(loss="logistic"),
    "newton, float64": SketchedNewtonClassifier(dtype="float64"),
    "oja": SketchedNewtonClassifier(sketch="oja"),
    "newton, float64, no intercept": SketchedNewtonClassifier(dtype="float64", fit_intercept=False),
    "oja, float64, no intercept": SketchedNewtonClassifier(
        sketch="oja", dtype="float64", fit_intercept=False
    ),
    "oja, logistic": SketchedNewtonClassifier(sketch="oja", loss="logistic", sketch_size=5),
    "fd, squared hinge": SketchedNewtonClassifier(sketch="fd", loss="squared_hinge", clip=None),
    "rfd": SketchedNewtonClassifier(sketch="rfd"),
    "pfd, passes": SketchedNewtonClassifier(
        sketch="pfd", max_iter=20, early_stopping=True, validation_fraction=0.3
    ),
    "rp, diagonal": SketchedNewtonClassifier(sketch="rp", diagonal=True, random_state=3),
    "none, hinge": SketchedNewtonClassifier(sketch="none", loss="hinge"),
    "oja, shared": SketchedNewtonClassifier(sketch="oja", multi_class_sketch="shared"),
    "oja, shared, logistic": SketchedNewtonClassifier(
        loss="logistic", multi_class_sketch="shared", diagonal=True
    ),
    "adagrad": SketchedAdaGradClassifier(),
    "adagrad, squared": SketchedAdaGradClassifier(loss="squared", eta=0.5),
    "adagrad, fd, softmax": SketchedAdaGradClassifier(sketch="fd", multi_class="softmax"),
    "adagrad, data, shared": SketchedAdaGradClassifier(
        sketch="rp", multi_class_sketch="shared", penalty="l2"
    ),
}

REGRESSORS: dict[str, Any] = {
    "newton": SketchedNewtonRegressor(),
    "oja": SketchedNewtonRegressor(sketch="oja"),
    "oja, float64": SketchedNewtonRegressor(sketch="oja", dtype="float64", diagonal=False),
    "fd": SketchedNewtonRegressor(sketch="fd"),
    "rfd, absolute": SketchedNewtonRegressor(sketch="rfd", loss="absolute"),
    "rp, huber": SketchedNewtonRegressor(sketch="rp", loss="huber"),
    # The checks set alpha=0.01, a step size of 100: without a bound, more random directions than features.
    "rp, huber, no clip": SketchedNewtonRegressor(sketch="rp", sketch_size=20, loss="huber", clip=None),
    "oja, float64, no intercept": SketchedNewtonRegressor(sketch="oja", dtype="float64", fit_intercept=False),
    "none, early stopping": SketchedNewtonRegressor(sketch="none", early_stopping=True, max_iter=20),
    "adagrad": SketchedAdaGradRegressor(),
    "adagrad, rp": SketchedAdaGradRegressor(sketch="rp"),
    "adagrad, quantile": SketchedAdaGradRegressor(loss="quantile:0.6"),
    "adagrad, rfd, quantile": SketchedAdaGradRegressor(sketch="rfd", loss="quantile:0.6"),
}

ESTIMATORS = {
    **{f"classifier: {name}": estimator for name, estimator in CLASSIFIERS.items()},
    **{f"regressor: {name}": estimator for name, estimator in REGRESSORS.items()},
}


def rows(n: int, d: int, classes: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows with correlated features, and a class for each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    scores = X @ rng.standard_normal((d, classes)) + rng.standard_normal((n, classes))
    return X, scores.argmax(axis=1)
