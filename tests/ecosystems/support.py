"""One table of estimators and settings: what every estimator promises is tested over it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchnewton import (
    SketchedAdaGradClassifier,
    SketchedAdaGradRegressor,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
)

NEWTON = partial(SketchedNewtonClassifier, learner="newton")
NEWTON_REGRESSOR = partial(SketchedNewtonRegressor, learner="newton")

CLASSIFIERS: dict[str, Any] = {
    "newton": SketchedNewtonClassifier(),
    "newton, squared": SketchedNewtonClassifier(loss="squared"),
    "newton, hinge": SketchedNewtonClassifier(loss="hinge"),
    "newton, float64": SketchedNewtonClassifier(dtype="float64"),
    "oja": NEWTON(sketch="oja"),
    "newton, float64, no intercept": SketchedNewtonClassifier(dtype="float64", fit_intercept=False),
    "oja, float64, no intercept": NEWTON(sketch="oja", dtype="float64", fit_intercept=False),
    "oja, logistic": NEWTON(sketch="oja", loss="logistic", sketch_size=5),
    "fd, squared hinge": NEWTON(sketch="fd", loss="squared_hinge", clip=None),
    "rfd": NEWTON(sketch="rfd"),
    "pfd, passes": NEWTON(sketch="pfd", max_iter=20, early_stopping=True, validation_fraction=0.3),
    "rp, diagonal": NEWTON(sketch="rp", diagonal=True, random_state=3),
    "none, hinge": NEWTON(sketch="none", loss="hinge"),
    "oja, shared": NEWTON(sketch="oja", multi_class_sketch="shared"),
    "oja, shared, logistic": NEWTON(loss="logistic", multi_class_sketch="shared", diagonal=True),
    "adagrad": SketchedAdaGradClassifier(),
    "adagrad, squared": SketchedAdaGradClassifier(loss="squared", eta=0.5),
    "adagrad, fd, softmax": SketchedAdaGradClassifier(sketch="fd", multi_class="softmax"),
    "adagrad, data, shared": SketchedAdaGradClassifier(
        sketch="rp", multi_class_sketch="shared", penalty="l2"
    ),
}

REGRESSORS: dict[str, Any] = {
    "newton": SketchedNewtonRegressor(),
    "newton, quantile": SketchedNewtonRegressor(loss="quantile:0.6", clip=None),
    "newton, huber": SketchedNewtonRegressor(loss="huber"),
    "oja": NEWTON_REGRESSOR(sketch="oja"),
    "oja, float64": NEWTON_REGRESSOR(sketch="oja", dtype="float64", diagonal=False),
    "fd": NEWTON_REGRESSOR(sketch="fd"),
    "rfd, absolute": NEWTON_REGRESSOR(sketch="rfd", loss="absolute"),
    "rp, huber": NEWTON_REGRESSOR(sketch="rp", loss="huber"),
    # The checks set alpha=0.01, a step size of 100: without a bound, more random directions than features.
    "rp, huber, no clip": SketchedNewtonRegressor(
        learner="newton", sketch="rp", sketch_size=20, loss="huber", clip=None
    ),
    "oja, float64, no intercept": SketchedNewtonRegressor(
        learner="newton", sketch="oja", dtype="float64", fit_intercept=False
    ),
    "none, early stopping": SketchedNewtonRegressor(
        learner="newton", sketch="none", early_stopping=True, max_iter=20
    ),
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
