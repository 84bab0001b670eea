"""What all estimators share: validation, passes over the data, when to stop, the weights."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from sketchnewton.core.batch import refuse_masked
from sketchnewton.core.parameters import checked, checked_flag, checked_size
from sketchnewton.core.types import Array, Floats, Integers
from sketchnewton.learners import Learner
from sketchnewton.learners.rows import LARGEST_VALUE, as_rows

if TYPE_CHECKING:
    import pandas as pd
    from onnx import ModelProto
    from scipy.sparse import csr_array
    from sklearn.utils import Tags

    from sketchnewton._native import Rows
    from sketchnewton.sklearn.export import Linear
    from sketchnewton.sklearn.onnx_pipeline import Container, Operator, Scope

    Matrix: TypeAlias = Array | csr_array

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class GivenParameter:
    """A parameter of an estimator that is an attribute only if it was given a value other than None."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, estimator: object, owner: type | None = None) -> object:
        value = self if estimator is None else vars(estimator).get(self._name)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {self._name!r}")
        return value

    def __set__(self, estimator: object, value: object) -> None:
        vars(estimator)[self._name] = value


class OnlineEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """A learner, or one per class, that learns row by row."""

    max_iter: int
    tol: float | None
    shuffle: bool
    random_state: object
    early_stopping: bool
    fit_intercept: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool

    n_features_in_: int
    n_iter_: int
    loss_curve_: list[float]
    _learners: list[Learner]
    _signs: list[float]  # of outputs: −1 where a learner's score is that of all other classes
    _seed: int
    _weights: list[
        Floats
    ]  # coefficients and intercepts; empty when rows were learned since they were computed

    # -- for the kinds of estimators

    @abstractmethod
    def _new_learner(self, seed: int) -> Learner:
        """A learner with the parameters of this estimator, which has seen nothing."""

    @abstractmethod
    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        """Let the learners learn rows in order; return the mean loss of predictions made before learning."""

    @abstractmethod
    def _n_learners(self) -> int: ...

    def _n_outputs(self) -> int:
        """How many scores a row has."""
        return self._n_learners()

    def _row_unit(self) -> float:
        """Learners see rows divided by this."""
        return 1.0

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by their names."""
        given = vars(self)  # where a GivenParameter is None, too
        return {
            name: given[name] if name in given else getattr(self, name) for name in self._get_param_names()
        }

    # -- learning

    def _check_parameters(self) -> None:
        """Refuse what makes no sense among the parameters that the learners do not see."""
        for name in ("shuffle", "early_stopping", "warm_start", "fit_intercept"):
            checked_flag(name, getattr(self, name))
        checked_size("max_iter", self.max_iter)
        checked_size("n_iter_no_change", self.n_iter_no_change)
        if self.tol is not None:
            checked("tol", self.tol)
        self._held_out_share()
        if self.random_state is not np.random and not isinstance(
            self.random_state, np.random.RandomState | None
        ):
            checked_size("random_state", self.random_state, 0)

    def _held_out_share(self) -> float:
        share = checked("validation_fraction", self.validation_fraction)
        if not 0.0 < share < 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} is invalid: must be > 0 and < 1"
            )
        return share

    def _start(self) -> None:
        self._check_parameters()
        seed = self.random_state
        if seed is None:
            seed = 0  # learners that draw numbers draw the same ones each time, unless asked otherwise
        elif not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        self._seed = int(seed)
        self._learners = [self._new_learner(self._seed) for _ in range(self._n_learners())]
        self._signs = [1.0] * self._n_outputs()
        self._weights = []
        self.loss_curve_ = []
        self.n_iter_ = 0

    def _learn(self, X: Matrix, targets: Array, weights: Floats | None) -> None:
        self._weights.clear()
        self.loss_curve_.append(self._learn_targets(X, targets, weights))

    def _passes(self, X: Matrix, targets: Array, weights: Floats | None, y: Array) -> Self:
        """`max_iter` passes, or fewer if the loss, or the score of rows held out, no longer improves."""
        self._check_parameters()
        tol = None if self.tol is None else checked("tol", self.tol)
        random = check_random_state(self.random_state)
        kept, held = np.arange(X.shape[0]), None
        if self.early_stopping:
            kept, held = train_test_split(
                kept,
                test_size=self._held_out_share(),
                random_state=random,
                stratify=self._stratify(targets),
            )
            kept = np.sort(kept)
        parts = weights
        if self.shuffle and weights is not None:
            kept, parts = self._in_parts(kept, weights)
        best, stale, unit = -np.inf, 0, 1.0
        for done in range(1, int(self.max_iter) + 1):
            order = random.permutation(kept) if self.shuffle else kept
            with self._relearning() if done > 1 else contextlib.nullcontext():
                if order is kept and held is None:
                    self._learn(X, targets, weights)
                else:
                    try:
                        self._learn(X[order], targets[order], None if parts is None else parts[order])
                    except ValueError:  # what is refused is not learned, and was given with another number
                        self._learn(X, targets, weights)
                        raise
            self.n_iter_ = done
            if tol is None:
                continue
            value = -self.loss_curve_[-1]
            if held is not None:
                value = self._score_of_rows(X[held], y[held], None if weights is None else weights[held])
            elif done == 1:
                unit = abs(value)  # losses have a unit, scores have none
            stale = stale + 1 if value < best + tol * unit else 0
            best = max(best, value)
            if stale >= self.n_iter_no_change:
                break
        return self

    def _in_parts(self, kept: Integers, weights: Floats) -> tuple[Integers, Floats]:
        """Rows heavier than the mean one, as often as makes them no heavier: at most twice as many in all.

        To a bank a row of weight h is h rows in a row. Of a rare class with `class_weight="balanced"` it would
        learn that labels come in runs, and whichever expert is right about a very heavy row by chance would lead.
        """
        own = weights[kept]
        if not 0 < own.max(initial=0.0) <= LARGEST_VALUE:  # learners say what is wrong
            return kept, weights
        if not all(learner.weight_is_a_run for learner in self._learners):
            return kept, weights
        times = np.ones(len(weights), np.int64)
        times[kept] = np.maximum(np.ceil(own / own[own > 0].mean() - 1e-9), 1)
        return np.repeat(kept, times[kept]), weights / times

    @contextlib.contextmanager
    def _relearning(self) -> Iterator[None]:
        """Only the first pass tells how far labels lie from predictions."""
        with contextlib.ExitStack() as all_of_them:
            for learner in self._learners:
                all_of_them.enter_context(learner.relearning())
            yield

    def _score_of_rows(self, X: Matrix, y: Array, weights: Floats | None) -> float:
        """`score` of rows that were validated and have lost their columns' names on the way."""
        judge = copy.copy(self)
        if hasattr(judge, "feature_names_in_"):
            del judge.feature_names_in_
        return float(judge.score(X, y, weights))

    def _stratify(self, targets: Array) -> Array | None:
        return None

    # -- validation

    def _is_plain(self, X: object) -> TypeGuard[Array]:
        """Is X what the learners take as it is? They check for NaN and infinity themselves."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in _FLOATS
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and not hasattr(self, "feature_names_in_")
        )

    @overload
    def _validated(self, X: object, *, reset: bool) -> Matrix: ...
    @overload
    def _validated(
        self, X: object, y: object, *, reset: bool, y_numeric: bool = False
    ) -> tuple[Matrix, Array]: ...
    def _validated(
        self, X: object, y: object = "no_validation", *, reset: bool, **options: object
    ) -> Matrix | tuple[Matrix, Array]:
        refuse_masked(X)  # as scikit-learn does not
        refuse_masked(y, "y")
        found: Matrix | tuple[Matrix, Array] = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=list(_FLOATS), order="C", **options
        )
        return found

    def _validated_weights(self, sample_weight: object, n: int, *, may_be_zero: bool) -> Floats | None:
        if sample_weight is None:
            return None
        refuse_masked(sample_weight, "sample_weight")
        if np.isscalar(sample_weight):
            sample_weight = np.full(n, sample_weight)
        weights: Floats = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight"
        )
        if weights.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
        if weights.shape != (n,):
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
        check_non_negative(weights, "`sample_weight`")
        if not may_be_zero and not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weights

    # -- what was learned

    @property
    def t_(self) -> float:
        """1 + the number of rows learned from, all passes counted."""
        return 1.0 + max(learner.rows_seen for learner in self._fitted("t_"))

    @property
    def _linear(self) -> tuple[Floats, Floats]:
        """Coefficients, one row per learner, and intercepts."""
        learners = self._fitted("coef_")
        if not self._weights:
            coefficients = np.zeros((self._n_outputs(), self.n_features_in_))
            if len(learners) == len(coefficients):
                for row, learner in zip(coefficients, learners, strict=True):
                    weights = learner.weights
                    row[: len(weights)] = weights
                intercepts = np.array([learner.intercept_ for learner in learners])
            else:  # one learner of several scores
                joint: Any = learners[0]
                weights = joint.weights.T
                coefficients[:, : weights.shape[1]] = weights
                intercepts = joint.intercepts
            signs = np.array(self._signs)
            self._weights += [signs[:, None] * coefficients / self._row_unit(), signs * intercepts]
        coefficients, intercepts = self._weights
        return coefficients, intercepts

    def _answers(self, X: object, ask: Callable[[Learner, Rows], Floats]) -> Floats:
        """What the learners answer to rows, one column per output."""
        check_is_fitted(self)
        if self._is_plain(X):
            try:
                return self._asked(X, ask)
            except ValueError:
                pass  # scikit-learn says what is wrong, in its own words
        return self._asked(self._validated(X, reset=False), ask)

    def _asked(self, X: Matrix, ask: Callable[[Learner, Rows], Floats]) -> Floats:
        rows = as_rows(divided(X, self._row_unit()))
        return np.column_stack([ask(learner, rows) for learner in self._learners])

    def _scores(self, X: object) -> Floats:
        """The scores of the learners, before they are clipped where a learner clips its sum."""
        scores = self._answers(X, lambda learner, rows: learner.decision_function(rows))
        return scores if min(self._signs) > 0 else scores * self._signs

    def _fitted(self, name: str) -> list[Learner]:
        if not hasattr(self, "_learners"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._learners

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learners")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- export

    def to_sklearn(self) -> Linear:
        """A plain scikit-learn linear model with `coef_` and `intercept_`, for places without this package."""
        from sketchnewton.sklearn import export  # few programs need it

        check_is_fitted(self)
        return export.to_sklearn(self)

    def to_onnx(self) -> ModelProto:
        """An ONNX model (extra `onnx`) of the same predictions; its input `X` is float64, n × features."""
        from sketchnewton.sklearn import export  # few programs need it

        check_is_fitted(self)
        return export.to_onnx(self)

    def onnx_converter(self) -> Callable[[Scope, Operator, Container], None]:
        """What `skl2onnx.to_onnx` asks for, so that pipelines with this estimator export as they are."""
        from sketchnewton.sklearn import onnx_pipeline  # few programs need it

        return onnx_pipeline.convert

    def onnx_shape_calculator(self) -> Callable[[Operator], None]:
        """What `skl2onnx.to_onnx` asks for."""
        from sketchnewton.sklearn import onnx_pipeline  # few programs need it

        return onnx_pipeline.shapes

    def to_frame(self) -> pd.DataFrame:
        """The weights as a pandas DataFrame: a row per feature, by name where names are known."""
        from sketchnewton.sklearn import export  # few programs need it

        check_is_fitted(self)
        return export.to_frame(self)


def divided(X: Matrix, unit: float) -> Matrix:
    """The rows in another unit, sparse ones with the bits of dense ones: SciPy multiplies by 1/unit."""
    if unit == 1.0:
        return X
    if isinstance(X, np.ndarray):
        return np.asarray(X / unit)
    return type(X)((X.data / unit, X.indices, X.indptr), shape=X.shape)


def mean_loss(losses: Floats, weights: Floats | None) -> float:
    """The mean of the rows' losses, weighted; 0 if no row has a weight."""
    if weights is None:
        return float(losses.mean())
    return float(np.average(losses, weights=weights)) if weights.any() else 0.0
