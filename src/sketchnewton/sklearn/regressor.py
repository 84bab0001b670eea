"""Targets that are numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self, overload

import numpy as np
from sklearn.base import RegressorMixin

from sketchnewton.core.types import Array, ArrayLike, Floats
from sketchnewton.losses import Loss, get_loss
from sketchnewton.sklearn.base import OnlineEstimator, mean_loss

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from sketchnewton._native import Rows
    from sketchnewton.learners import Learner
    from sketchnewton.sklearn.base import Matrix


class OnlineRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """One learner."""

    loss: str | Loss

    def fit(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> Self:
        """Learn `X` in `max_iter` passes, forgetting what was learned before unless `warm_start`.

        One pass without `shuffle` gives the same model, bit for bit, as `partial_fit` in batches of any size.
        """
        rows, numbers = self._validated(X, y, reset=True, y_numeric=True)
        weights = self._validated_weights(sample_weight, len(numbers), may_be_zero=False)
        if not (self.warm_start and hasattr(self, "_learners")):
            self._start()
        return self._passes(rows, self._targets(numbers), weights, numbers)

    def partial_fit(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows, in order."""
        if (
            hasattr(self, "_learners")
            and self._is_plain(X)
            and sample_weight is None
            and type(y) is np.ndarray
            and y.dtype.kind in "iuf"
            and y.shape == X.shape[:1]
        ):
            try:  # a learner checks a batch before it learns any of it
                self._learn(X, self._targets(y), None)
                return self
            except ValueError:
                pass  # scikit-learn says what is wrong, in its own words
        first = not hasattr(self, "_learners")
        rows, numbers = self._validated(X, y, reset=first, y_numeric=True)
        weights = self._validated_weights(sample_weight, len(numbers), may_be_zero=True)
        if first:
            self._start()
        self._learn(rows, self._targets(numbers), weights)
        return self

    @overload
    def predict(self, X: object) -> Floats: ...
    @overload
    def predict(self, X: object, *, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def predict(self, X: object, *, interval: float | Sequence[float]) -> tuple[Floats, Floats]: ...
    def predict(
        self, X: object, *, return_std: bool = False, interval: float | Sequence[float] | None = None
    ) -> Floats | tuple[Floats, Floats]:
        """What the learner predicts; for poisson loss, its exponential.

        With `return_std`, also the root mean square of what targets of such rows are off by. With `interval`, a
        coverage such as 0.9, also lower and upper bounds of the targets: rows × 2, of several coverages
        rows × 2 × coverages (docs/intervals.md). The default learner has both, others have neither.
        """
        if return_std and interval is not None:
            raise ValueError("return_std and interval cannot be combined")
        beside: list[Floats] = []  # the last is that of rows that were valid

        def ask(learner: Learner, rows: Rows) -> Floats:
            scores = learner.predict(rows)
            if return_std:
                beside.append(learner.deviations(scores, rows))
            if interval is not None:
                beside.append(learner.interval(scores, interval, rows))
            return scores

        scores = self._answers(X, ask)[:, 0]
        predictions = np.asarray(self._learners[0].loss.link(scores))
        return (predictions, beside[-1]) if beside else predictions

    @property
    def coef_(self) -> Floats:
        """The weight of each feature in the linear part of what was learned."""
        coefficients: Floats = self._linear[0][0]
        return coefficients

    @property
    def intercept_(self) -> Floats:
        """The constant, as an array of one."""
        return self._linear[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        with contextlib.suppress(TypeError, ValueError):  # fit says what is wrong with a loss
            loss = get_loss(self.loss)
            tags.target_tags.positive_only = loss.label_range[0] >= 0.0
            tags.regressor_tags.poor_score = not loss.central
        return tags

    def _n_learners(self) -> int:
        return 1

    def _targets(self, y: object) -> Array:
        return np.asarray(y, np.float64)

    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        learner = self._learners[0]
        return mean_loss(learner.loss.value(learner.learn(X, targets, weights), targets), weights)
