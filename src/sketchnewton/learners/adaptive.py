"""Learners with AdaGrad's metric, the square root of the gradients' second moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchnewton import _native
from sketchnewton.learners.base import checked_clip
from sketchnewton.learners.composite import CompositeLearner, checked_classes, checked_composite
from sketchnewton.learners.rows import Floats
from sketchnewton.learners.table import TableLearner, table_dtype
from sketchnewton.losses import Loss, get_loss


class AdaGrad(CompositeLearner, TableLearner):
    """AdaGrad with a diagonal metric: the classical first-order reference.

    w ← w − η g/(σ + √Σg²), feature by feature (Duchi, Hazan and Singer 2011).

    * `eta` (η): the step size. `sigma` (σ): keeps the first steps finite.
    * `clip`: None (the algorithm as published), or C for the projection onto |wᵀx| ≤ C in AdaGrad's own metric.
    * `intercept`: learn a constant too, like the weight of a feature that is always 1.
    * `penalty`, `penalty_strength`, `l1_ratio`, `form`, `classes`: as in `SketchedAdaGrad`. Everything has a
      closed form feature by feature, and a feature makes up for rounds that it missed when it is met next.

    Cost per row: O(s) for s non-zeros.

    >>> learner = AdaGrad(eta=0.5)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.5]
    """

    _kernel: Any  # of its own kind for each of the two tables

    def __init__(
        self,
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str | Loss = "squared",
        clip: float | None = None,
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
            dtype=table_dtype(dtype),
            penalty=penalty,
            penalty_strength=penalty_strength,
            l1_ratio=l1_ratio,
            form=form,
            classes=classes,
        )
        self._problem = _native.problem(
            self.loss.code, self.loss.parameter, checked_clip(clip), 0.0, 0.0, 0.0
        )
        # value, √Σg²; or value, √Σg², −Σg of each class
        self._arrays["intercept"] = np.zeros(2 if self._plain else (self._outputs, 3))
        self._kernel = self._bind()

    def _bind(self) -> Any:
        double = self._params["dtype"] == "float64"
        if self._plain:
            make = _native.adagrad64 if double else _native.adagrad32
            c = self._composite
            return make(self._problem, c.eta, c.sigma, self._params["intercept"], self._views())
        make_composite = _native.composite_adagrad64 if double else _native.composite_adagrad32
        return make_composite(
            self._problem, self._composite.native(), self._params["intercept"], self._views()
        )

    def _learn(self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats) -> None:
        self._kernel.learn(rows, labels, weights, out if self._plain else self._scores(out))

    def _predict(self, rows: _native.Rows, out: Floats) -> None:
        self._kernel.predict(rows, out if self._plain else self._scores(out))

    def _learned_matrix(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            seen = self._seen.copy()
            if self._plain:
                return seen, self._table.rows[seen, :1].astype(np.float64)
            values = np.empty((len(seen), self._outputs))
            self._kernel.weights(values)
            return seen, values
