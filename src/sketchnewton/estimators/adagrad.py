"""SketchedAdaGradClassifier and SketchedAdaGradRegressor."""

from __future__ import annotations

from typing import Any

from sketchnewton.estimators.classifier import OnlineClassifier
from sketchnewton.estimators.regressor import OnlineRegressor
from sketchnewton.learners import AdaGrad, Learner


class SketchedAdaGradClassifier(OnlineClassifier):
    """Linear classification with AdaGrad's metric."""

    def __init__(
        self,
        *,
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str = "logistic",
        clip: float | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 5,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        random_state: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.eta = eta
        self.sigma = sigma
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.dtype = dtype

    def _new_learner(self, seed: int) -> Learner:
        return _learner(self)


class SketchedAdaGradRegressor(OnlineRegressor):
    """Linear regression with AdaGrad's metric."""

    def __init__(
        self,
        *,
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str = "squared",
        clip: float | str | None = "auto",
        fit_intercept: bool = True,
        max_iter: int = 5,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        random_state: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.eta = eta
        self.sigma = sigma
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.dtype = dtype

    def _new_learner(self, seed: int) -> Learner:
        return _learner(self)


def _learner(estimator: Any) -> Learner:
    return AdaGrad(
        eta=estimator.eta,
        sigma=estimator.sigma,
        loss=estimator.loss,
        clip=estimator.clip,
        intercept=estimator.fit_intercept,
        dtype=estimator.dtype,
    )
