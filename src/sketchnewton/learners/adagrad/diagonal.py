"""Learners with AdaGrad's metric, the square root of the gradients' second moments."""

from __future__ import annotations

import math
from typing import Any, Self

from sketchnewton import _native
from sketchnewton.core.parameters import checked_dtype
from sketchnewton.core.state import Vector, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.adagrad.penalty import CompositeLearner, checked_classes, checked_composite
from sketchnewton.learners.base import Learner
from sketchnewton.learners.bounded import RangedLearner
from sketchnewton.learners.table import union
from sketchnewton.losses import Loss, get_loss


class AdaGrad(CompositeLearner, RangedLearner):
    """AdaGrad with a diagonal metric: the classical first-order reference.

    w ← w − η g/(σ + √Σg²), feature by feature (Duchi, Hazan and Singer 2011).

    * `eta` (η): the step size. `sigma` (σ): keeps the first steps finite.
    * `clip`: None (the algorithm as published), or C for the projection onto |wᵀx| ≤ C in AdaGrad's own metric,
      or `"auto"`: C is learned from the targets as they come, and the step size is η·C.
    * `intercept`: learn a constant too, like the weight of a feature that is always 1.
    * `penalty`, `penalty_strength`, `l1_ratio`, `form`, `classes`: as in `SketchedAdaGrad`. Everything has a
      closed form feature by feature, and a feature makes up for rounds that it missed when it is met next.

    Cost per row: O(s) for s non-zeros.

    >>> learner = AdaGrad(eta=0.5)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.5]
    """

    def __init__(
        self,
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str | Loss = "squared",
        clip: float | str | None = None,
        intercept: bool = False,
        dtype: str = "float32",
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        l1_ratio: float = 0.5,
        form: str = "mirror_descent",
        classes: int | None = None,
    ) -> None:
        self._composite = checked_composite(eta, sigma, penalty, penalty_strength, l1_ratio, form)
        classes = checked_classes(classes, get_loss(loss), clip, form)
        # The classical algorithm has a kernel of its own, with the narrowest table.
        self._plain = self._composite.plain and classes is None
        super().__init__(
            columns=2 if self._plain else 2 * (classes or 1) + 2,
            eta=eta,
            sigma=sigma,
            loss=loss,
            clip=clip,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
            penalty=penalty,
            penalty_strength=penalty_strength,
            l1_ratio=l1_ratio,
            form=form,
            classes=classes,
        )
        if self._ranged and not self._plain:
            raise ValueError(
                "clip='auto' is invalid: it goes with neither a penalty, nor dual averaging, nor classes"
            )
        # value, √Σg²; or value, √Σg², −Σg of each class
        self._state["intercept"] = zeros(2 if self._plain else (self._outputs, 3))
        self._kernel = self._bind()

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return self._offset + self._unit * super().intercept_

    def score(self, X: Any) -> Floats:
        """wᵀx + b for each row: what `predict` gives before it is clipped."""
        return RangedLearner.score(self, X) if self._plain else CompositeLearner.score(self, X)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if not self._plain:
            raise ValueError("cannot merge learners with a penalty, dual averaging or several classes")

    def _merged(self, other: Self) -> Arrays:
        """Σg² adds up. A feature's weight is the mean of both, weighted by its metric σ + √Σg² in each.

        σ is no curvature: each side counts for its share of the rows in it.
        """
        if not self._plain:
            raise ValueError("AdaGrad with a penalty, dual averaging or classes cannot be merged")
        features, mine, theirs = union(self._seen, other._seen)
        share = self.rows_seen / (self.rows_seen + other.rows_seen)
        w, root = np.zeros((2, len(features))), np.zeros((2, len(features)))
        for i, (learner, at) in enumerate(((self, mine), (other, theirs))):
            w[i, at], root[i, at] = learner._table.rows[learner._seen, :2].T.astype(np.float64)
        sigma = self._composite.sigma * np.array([share, 1 - share])
        metric = sigma[:, None] + root
        rows = np.zeros((len(features), self._table.width), self._table.dtype)
        largest = np.finfo(self._table.dtype).max
        rows[:, 0] = (metric * w).sum(axis=0) / metric.sum(axis=0)
        rows[:, 1] = np.clip(np.hypot(*root), np.finfo(self._table.dtype).tiny, largest)
        values = np.array([learner._state["intercept"] for learner in (self, other)])
        known = sigma + values[:, 1]
        counts = np.array(
            [self.rows_seen + other.rows_seen, len(features), max(self.dimension, other.dimension)]
        )
        intercept = np.array([known @ values[:, 0] / known.sum(), np.hypot(*values[:, 1])])
        return {"counts": counts, "intercept": intercept, "features": features, "table": rows}

    def _bind(self, clip: float | None = None) -> _native.RowKernel:
        double = self._params["dtype"] == "float64"
        bound, loss = self.bound / self._unit, self._kernel_loss
        problem = _native.problem(loss.code, loss.parameter, bound if clip is None else clip, 0.0, 0.0, 0.0)
        intercept, views = self._params["intercept"], self._views()
        if self._plain:
            make = _native.adagrad64 if double else _native.adagrad32
            eta = self._composite.eta * (bound if self._ranged else 1.0)
            return make(problem, eta, self._composite.sigma, intercept, views)
        make_composite = _native.composite_adagrad64 if double else _native.composite_adagrad32
        return make_composite(problem, self._composite.native(), intercept, views)

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        if self._plain:
            super()._learn(rows, labels, weights, out)
        else:
            self._kernel.learn(rows, labels, weights, self._scores(out))

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        kind = RangedLearner if self._plain else Learner
        return kind._learn_one(self, row, label)

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        if self._plain:
            super()._predict(rows, out)
        else:
            self._kernel.predict(rows, self._scores(out))

    def _predict_scores(self, rows: _native.Rows, out: Vector) -> None:
        kernel = self._bind(clip=math.inf)
        kernel.predict(rows, out if self._plain else self._scores(out))
        scores = np.asarray(out)
        scores *= self._unit
        scores += self._offset

    def _learned_matrix(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            seen = self._seen.copy()
            if not isinstance(self._kernel, _native.PenaltyKernel):
                return seen, self._unit * self._table.rows[seen, :1].astype(np.float64)
            values = np.empty((len(seen), self._outputs))
            self._kernel.weights(values)
            return seen, values
