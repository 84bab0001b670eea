"""AdaGrad with a diagonal metric, the root of each feature's summed squared gradients."""

from __future__ import annotations

from typing import Self

from sketchnewton import _native
from sketchnewton.core.parameters import checked, checked_dtype
from sketchnewton.core.state import zeros
from sketchnewton.core.types import Arrays, np
from sketchnewton.learners.bounded import RangedLearner
from sketchnewton.learners.table import union
from sketchnewton.losses import Loss


class AdaGrad(RangedLearner):
    """AdaGrad with a diagonal metric: the classical first-order reference.

    w ← w − η g/(σ + √Σg²), feature by feature (Duchi, Hazan and Singer 2011). `CompositeAdaGrad` is the same with
    a penalty, dual averaging or several classes.

    * `eta` (η): the step size. `sigma` (σ): keeps the first steps finite.
    * `clip`: None (the algorithm as published), or C for the projection onto |wᵀx| ≤ C in AdaGrad's own metric,
      or `"auto"`: C is learned from the targets as they come, and the step size is η·C.
    * `intercept`: learn a constant too, like the weight of a feature that is always 1.

    Cost per row: O(s) for s non-zeros.

    >>> learner = AdaGrad(eta=0.5)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.5]
    """

    def __init__(
        self,
        *,
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str | Loss = "squared",
        clip: float | str | None = None,
        intercept: bool = False,
        dtype: str = "float32",
    ) -> None:
        self._eta, self._sigma = checked("eta", eta, positive=True), checked("sigma", sigma, positive=True)
        super().__init__(
            columns=2,
            eta=eta,
            sigma=sigma,
            loss=loss,
            clip=clip,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
        )
        self._state["intercept"] = zeros(2)  # value, √Σg²
        self._kernel = self._bind()

    def _merged(self, other: Self) -> Arrays:
        """Σg² adds up. A feature's weight is the mean of both, weighted by its metric σ + √Σg² in each.

        σ is no curvature: each side counts for its share of the rows in it.
        """
        features, mine, theirs = union(self._seen, other._seen)
        share = self.rows_seen / (self.rows_seen + other.rows_seen)
        w, root = np.zeros((2, len(features))), np.zeros((2, len(features)))
        for i, (learner, at) in enumerate(((self, mine), (other, theirs))):
            w[i, at], root[i, at] = learner._table.rows[learner._seen, :2].T.astype(np.float64)
        sigma = self._sigma * np.array([share, 1 - share])
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
        make = _native.adagrad64 if self._params["dtype"] == "float64" else _native.adagrad32
        bound, loss = self.bound / self._unit, self._kernel_loss
        problem = _native.problem(loss.code, loss.parameter, bound if clip is None else clip, 0.0, 0.0, 0.0)
        eta = self._eta * (bound if self._ranged else 1.0)
        return make(problem, eta, self._sigma, self._params["intercept"], self._views())
