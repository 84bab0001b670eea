"""SketchedNewtonClassifier and SketchedNewtonRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchnewton.core.types import Array, Floats
from sketchnewton.learners import Learner
from sketchnewton.learners.default_learner import (
    checked_learner,
    newton_learner,
    refuse_with_bank,
    shared_learner,
)
from sketchnewton.sklearn.base import GivenParameter, mean_loss
from sketchnewton.sklearn.classifier import OnlineClassifier
from sketchnewton.sklearn.regressor import OnlineRegressor

if TYPE_CHECKING:
    from sketchnewton.sklearn.base import Matrix


class SketchedNewtonClassifier(OnlineClassifier):
    """Online linear classifier with second-order steps and no learning rate.

    A drop-in replacement for `sklearn.linear_model.SGDClassifier` on streams: `partial_fit` takes batches of
    any size, dense, sparse or DataFrames, and no learning rate has to be chosen. More than two classes are
    learned one against the rest.

    Parameters
    ----------
    learner : {"bank", "newton"}, default="bank"
        "bank" is `sketchnewton.NewtonBank`, which needs no tuning; "newton" is `sketchnewton.SketchedNewton`, the
        algorithm of the papers. No other parameter changes the learner: `sketch`, `alpha`, `curvature`,
        `curvature_weight`, `diagonal` and `multi_class_sketch` belong to "newton", and "bank" refuses them.
    loss : str, default="logistic"
        "logistic", "squared" (on labels ±1), "hinge", "squared_hinge".
    clip : float or "auto" or None, default="auto"
        Bound of scores. "auto": "bank" has none but the range of the labels; of "newton" it is 4 for logistic
        loss and 1 for the others, while learning.
    sketch : {"oja", "fd", "rfd", "pfd", "rp", "none"}, default=None
        How "newton" keeps curvature; None: "oja".
    sketch_size : int, default=None
        Directions of curvature to keep; None: 6 for "bank", 10 for "newton".
    alpha : float, default=None
        The metric of directions never seen; 1/alpha is the step size there. None: the data decide. It is not the
        penalty that SGDClassifier calls so.
    curvature : float, default=None
        σ of the sketched online Newton paper; None: that of the loss.
    curvature_weight : float or str, default=None
        η_t of that paper, the weight of curvature beyond the loss's own; None: the loss decides.
    diagonal : bool, default=None
        Rescale each feature by its own gradients first, for features of unlike units. None: True, but False for
        classes with a sketch and a curved loss (squared, logistic, squared hinge), where it gains nothing.
    fit_intercept : bool, default=True
        Learn a constant for each class.
    multi_class_sketch : {"separate", "shared"}, default="separate"
        For more than two classes: each against the rest with a sketch of its own gradients, or all with one sketch
        of the rows, which costs little more than one class does. Every gradient is a multiple of the row, so
        αI + κ·(sketch of Σxxᵀ), where κ is the loss's largest second derivative, is a metric for every class, see
        `sketchnewton.learners.SharedNewton`. "shared" goes with "newton", its sketch "oja", a loss other than
        "hinge", and neither `curvature` nor `curvature_weight`.
    class_weight : dict or "balanced", default=None
        Weights of classes, multiplied with `sample_weight`. "balanced" needs `fit`.
    max_iter : int, default=5
        The largest number of passes of `fit` over the data. `partial_fit` makes one.
    tol : float, default=1e-3
        `fit` stops when in `n_iter_no_change` passes the loss has not improved by `tol` times that of the first
        pass, or with `early_stopping` the score by `tol`. None: never.
    shuffle : bool, default=True
        Whether `fit` takes the rows in a new random order in each pass, so that files sorted by class do no harm.
        Without it, one pass (`max_iter=1`) is `partial_fit`, which never shuffles.
    random_state : int, RandomState or None, default=None
        For `shuffle`, the split of `early_stopping`, and the sketch "rp".
    early_stopping : bool, default=False
        Hold `validation_fraction` of the rows out of `fit`, and stop by their score.
    validation_fraction : float, default=0.1
        The share of rows held out.
    n_iter_no_change : int, default=5
        Passes without improvement before `fit` stops.
    warm_start : bool, default=False
        Whether `fit` continues from the previous fit instead of starting from zero.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the model.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_iter_ : as those of SGDClassifier
    coef_, intercept_ : arrays
        The linear part of what was learned, in the shapes of SGDClassifier. The default learner is more than
        linear: `predict` and the others ask the learner itself, and these are the best of its linear experts.
    t_ : float
        1 + the number of rows learned from.
    loss_curve_ : list of float
        For each pass of `fit`, or call of `partial_fit`, the mean loss of predictions made before their row was
        learned: an honest estimate of the loss on new rows as long as rows are new.

    Notes
    -----
    A row with `sample_weight` h counts as a loss h times as large, taken in one step, not as h steps: weights of
    zero equal leaving the row out, a weight of 2 does not equal learning the row twice. Where `fit` shuffles, the
    default learner takes in rows heavier than the mean one in parts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from sketchnewton import SketchedNewtonClassifier
    >>> X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    >>> model = SketchedNewtonClassifier()
    >>> for start in range(0, len(y), 100):
    ...     _ = model.partial_fit(X[start : start + 100], y[start : start + 100], classes=range(10))
    >>> model.score(X_test, y_test) > 0.93
    True
    """

    def __init__(
        self,
        *,
        learner: str = "bank",
        loss: str = "logistic",
        clip: float | str | None = "auto",
        sketch: str | None = None,
        sketch_size: int | None = None,
        alpha: float | None = None,
        curvature: float | None = None,
        curvature_weight: float | str | None = None,
        diagonal: bool | None = None,
        fit_intercept: bool = True,
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
        self.learner = learner
        self.loss = loss
        self.clip = clip
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.alpha = alpha
        self.curvature = curvature
        self.curvature_weight = curvature_weight
        self.diagonal = diagonal
        self.fit_intercept = fit_intercept
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

    def _new_learner(self, seed: int) -> Learner:
        if not self._shared():
            return _learner(self, seed, classes=True)
        return shared_learner(
            len(self.classes_),
            sketch=self.sketch,
            sketch_size=self.sketch_size,
            alpha=self.alpha,
            loss=self.loss,
            clip=self.clip,
            curvature=self.curvature,
            curvature_weight=self.curvature_weight,
            diagonal=self.diagonal,
            intercept=self.fit_intercept,
            dtype=self.dtype,
        )

    def _shared(self) -> bool:
        if self.multi_class_sketch not in ("separate", "shared"):
            raise ValueError(
                f"multi_class_sketch={self.multi_class_sketch!r} is invalid: must be 'separate' or 'shared'"
            )
        if self.multi_class_sketch == "separate":
            return False
        if checked_learner(self.learner) == "bank":
            refuse_with_bank(multi_class_sketch=self.multi_class_sketch)
        return len(self.classes_) > 2

    def _n_learners(self) -> int:
        return 1 if self._shared() else super()._n_learners()

    def _n_outputs(self) -> int:
        return len(self.classes_) if self._shared() else super()._n_outputs()

    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        if not self._shared():
            return super()._learn_targets(X, targets, weights)
        learner = self._learners[0]
        scores = learner.learn(X, targets.astype(np.float64), weights)
        signs = np.where(targets[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        return mean_loss(learner.loss.value(scores, signs).mean(axis=1), weights)


class SketchedNewtonRegressor(OnlineRegressor):
    """Online linear regression with second-order steps and no learning rate.

    A drop-in replacement for `sklearn.linear_model.SGDRegressor` on streams: no learning rate to choose, and the
    targets may have any scale.

    Parameters
    ----------
    learner, sketch, sketch_size, alpha, curvature, curvature_weight, diagonal, fit_intercept, max_iter, tol,
    shuffle, random_state, early_stopping, validation_fraction, n_iter_no_change, warm_start, dtype :
        As those of SketchedNewtonClassifier.
    loss : str, default="squared"
        "squared", "absolute", "huber:1.0", "quantile:0.9" or, for counts, "poisson".
    clip : float or "auto" or None, default="auto"
        Predictions lie within ±clip. "auto" learns their range from the targets seen so far: a row is predicted
        before its own target counts.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_, n_iter_, t_, loss_curve_ :
        As those of SketchedNewtonClassifier.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sketchnewton import SketchedNewtonRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SketchedNewtonRegressor().fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    >>> model.to_sklearn()
    SGDRegressor()
    """

    alpha = GivenParameter()  # scikit-learn's checks set it where it is an attribute, and the bank refuses it

    def __init__(
        self,
        *,
        learner: str = "bank",
        loss: str = "squared",
        clip: float | str | None = "auto",
        sketch: str | None = None,
        sketch_size: int | None = None,
        alpha: float | None = None,
        curvature: float | None = None,
        curvature_weight: float | str | None = None,
        diagonal: bool | None = None,
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
        self.learner = learner
        self.loss = loss
        self.clip = clip
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.alpha = alpha
        self.curvature = curvature
        self.curvature_weight = curvature_weight
        self.diagonal = diagonal
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
        return _learner(self, seed, classes=False)


def _learner(
    estimator: SketchedNewtonClassifier | SketchedNewtonRegressor, seed: int, *, classes: bool
) -> Learner:
    return newton_learner(
        estimator.learner,
        classes=classes,
        sketch=estimator.sketch,
        sketch_size=estimator.sketch_size,
        alpha=vars(estimator)["alpha"],
        loss=estimator.loss,
        clip=estimator.clip,
        curvature=estimator.curvature,
        curvature_weight=estimator.curvature_weight,
        diagonal=estimator.diagonal,
        intercept=estimator.fit_intercept,
        dtype=estimator.dtype,
        random_state=seed,
    )
