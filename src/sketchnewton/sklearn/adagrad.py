"""SketchedAdaGradClassifier and SketchedAdaGradRegressor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from sketchnewton.core.parameters import checked_size
from sketchnewton.core.types import Array, Floats
from sketchnewton.learners import CompositeAdaGrad, Learner, SketchedAdaGrad
from sketchnewton.learners.adagrad.sketched import OF
from sketchnewton.learners.probabilities import cross_entropy
from sketchnewton.sklearn.base import divided, mean_loss
from sketchnewton.sklearn.classifier import OnlineClassifier
from sketchnewton.sklearn.regressor import OnlineRegressor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sketchnewton.sklearn.base import Matrix


class SketchedAdaGradClassifier(OnlineClassifier):
    """Online linear classifier with AdaGrad's steps, in a full-matrix metric approximated by a sketch.

    Parameters
    ----------
    sketch : {"rp", "fd", "rfd", None}, default=None
        How the metric is kept, see `sketchnewton.SketchedAdaGrad`. None: the classical, diagonal one, which takes
        features of any scale; a sketch wants them scaled, or a `sigma` of the size of their gradients.
    sketch_size : int, default=10
        Directions of the metric to keep.
    of : {"gradients", "data"}, default="gradients"
        What is sketched.
    eta : float, default=0.1
        The step size.
    sigma : float, default=None
        The metric of directions never seen. None: 1, or 1e-8 without a sketch.
    penalty : {None, "l1", "l2", "elasticnet"}, default=None
        Of the weights, times `penalty_strength`; `l1_ratio` is the share of l1 in "elasticnet".
    form : {"mirror_descent", "dual_averaging"}, default="mirror_descent"
        Which of AdaGrad's two forms.
    loss : str, default="logistic"
        "logistic", "squared" (on labels ±1), "hinge" or "squared_hinge".
    clip : float, default=None
        Bound of scores while learning.
    multi_class : {"ovr", "softmax"}, default="ovr"
        More than two classes: each against the rest, or all at once by the cross-entropy of their softmax.
    multi_class_sketch : {"separate", "shared"}, default="separate"
        "shared": one `sketch` of the data serves all classes, which are then learned by softmax.
    fit_intercept, class_weight, max_iter, tol, shuffle, random_state, early_stopping, validation_fraction, \
n_iter_no_change, warm_start, dtype :
        As those of SketchedNewtonClassifier, which also describes the attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchnewton import SketchedAdaGradClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SketchedAdaGradClassifier(sketch="rp", multi_class_sketch="shared", random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        sketch: str | None = None,
        sketch_size: int = 10,
        of: str = "gradients",
        eta: float = 0.1,
        sigma: float | None = None,
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        l1_ratio: float = 0.5,
        form: str = "mirror_descent",
        loss: str = "logistic",
        clip: float | None = None,
        fit_intercept: bool = True,
        multi_class: str = "ovr",
        multi_class_sketch: str = "separate",
        class_weight: object = None,
        max_iter: int = 5,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        random_state: object = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.of = of
        self.eta = eta
        self.sigma = sigma
        self.penalty = penalty
        self.penalty_strength = penalty_strength
        self.l1_ratio = l1_ratio
        self.form = form
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.multi_class_sketch = multi_class_sketch
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

    def _by_softmax(self) -> bool:
        if self.multi_class not in ("ovr", "softmax"):
            raise ValueError(f"multi_class={self.multi_class!r} is invalid: must be 'ovr' or 'softmax'")
        if self.multi_class_sketch not in ("separate", "shared"):
            raise ValueError(
                f"multi_class_sketch={self.multi_class_sketch!r} is invalid: must be 'separate' or 'shared'"
            )
        return len(self.classes_) > 2 and "softmax" in (self.multi_class, self._shared and "softmax")

    @property
    def _shared(self) -> bool:
        return self.multi_class_sketch == "shared"

    def _n_learners(self) -> int:
        return 1 if self._by_softmax() else super()._n_learners()

    def _n_outputs(self) -> int:
        return len(self.classes_) if self._by_softmax() else super()._n_outputs()

    def _new_learner(self, seed: int) -> Learner:
        if not self._by_softmax():
            return _learner(self, seed)
        return _learner(self, seed, classes=len(self.classes_), of="data" if self._shared else self.of)

    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        if not self._by_softmax():
            return super()._learn_targets(X, targets, weights)
        scores = self._learners[0].learn(X, targets.astype(np.float64), weights)
        return mean_loss(cross_entropy(scores, targets), weights)


class SketchedAdaGradRegressor(OnlineRegressor):
    """Online linear regression with AdaGrad's steps, in a full-matrix metric approximated by a sketch.

    Parameters
    ----------
    sketch, sketch_size, of, eta, sigma, penalty, penalty_strength, l1_ratio, form, fit_intercept, max_iter, tol, \
shuffle, random_state, early_stopping, validation_fraction, n_iter_no_change, warm_start, dtype :
        As those of SketchedAdaGradClassifier. If `clip="auto"`, `eta` is in units of the targets' range, and rows
        are measured in units of the first one's length: a step of AdaGrad has a length of its own, which would be
        too long for long rows and too short for short ones.
    loss : str, default="squared"
        "squared", "absolute", "huber:1.0" or "quantile:0.9".
    clip : float or "auto" or None, default="auto"
        Predictions lie within ±clip. "auto" learns their range from the targets seen so far; it goes with a
        penalty or dual averaging only if there is a sketch (and mirror descent).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sketchnewton import SketchedAdaGradRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> SketchedAdaGradRegressor(random_state=0).fit(X, y).score(X, y) > 0.3
    True
    """

    def __init__(
        self,
        *,
        sketch: str | None = None,
        sketch_size: int = 10,
        of: str = "gradients",
        eta: float = 0.1,
        sigma: float | None = None,
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        l1_ratio: float = 0.5,
        form: str = "mirror_descent",
        loss: str = "squared",
        clip: float | str | None = "auto",
        fit_intercept: bool = True,
        max_iter: int = 5,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        random_state: object = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.of = of
        self.eta = eta
        self.sigma = sigma
        self.penalty = penalty
        self.penalty_strength = penalty_strength
        self.l1_ratio = l1_ratio
        self.form = form
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

    _length: float  # of the first row learned from; 0 if it was not needed yet

    def _start(self) -> None:
        super()._start()
        self._length = 0.0

    def _row_unit(self) -> float:
        return self._length or 1.0

    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        if self.clip != "auto":
            return super()._learn_targets(X, targets, weights)
        length = self._length or _first_length(X, weights)
        loss = super()._learn_targets(divided(X, length or 1.0), targets, weights)
        self._length = length  # a batch that is refused leaves no trace
        return loss

    def _new_learner(self, seed: int) -> Learner:
        return _learner(self, seed)


def _first_length(X: Matrix, weights: Floats | None) -> float:
    """‖x‖ of the first row that has a length and a weight; 0 if none has."""
    for i in range(X.shape[0]) if weights is None else np.flatnonzero(weights):
        row = X[i] if not issparse(X) else _entries(X[[int(i)]])
        length = math.sqrt(float(np.square(row[row != 0], dtype=np.float64).sum()))
        if length != 0:
            return length
    return 0.0


def _entries(row: csr_array) -> Array:
    """The entries of a row as those of a dense one: in order, and those that come twice added up."""
    row.sum_duplicates()
    return np.asarray(row.data)


def _learner(
    estimator: SketchedAdaGradClassifier | SketchedAdaGradRegressor,
    seed: int,
    classes: int | None = None,
    of: str | None = None,
) -> Learner:
    shared: dict[str, Any] = {
        "eta": estimator.eta,
        "loss": estimator.loss,
        "clip": estimator.clip,
        "intercept": estimator.fit_intercept,
        "dtype": estimator.dtype,
        "penalty": estimator.penalty,
        "penalty_strength": estimator.penalty_strength,
        "l1_ratio": estimator.l1_ratio,
        "form": estimator.form,
        "classes": classes,
    }
    if estimator.sigma is not None:
        shared["sigma"] = estimator.sigma
    size = checked_size("sketch_size", estimator.sketch_size)
    if estimator.of not in OF:
        raise ValueError(f"of={estimator.of!r} is invalid: must be one of {', '.join(map(repr, OF))}")
    if estimator.sketch is None:
        return CompositeAdaGrad.simplest(**shared)
    return SketchedAdaGrad(estimator.sketch, size, of=of or estimator.of, random_state=seed, **shared)
