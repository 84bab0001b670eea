"""AdaGrad with a diagonal metric, the root of each feature's summed squared gradients."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.hints import ClassVar, Self
from sketchnewton.core.parameters import checked, checked_dtype
from sketchnewton.core.state import zeros
from sketchnewton.core.types import Arrays, np
from sketchnewton.learners.bounded import RangedLearner
from sketchnewton.learners.metric_mean import precision
from sketchnewton.learners.table import union
from sketchnewton.losses import Loss


class AdaGrad(RangedLearner):
    """AdaGrad with a diagonal metric: the classical first-order reference.

    w ← w − η g/(σ + √Σg²), feature by feature (Duchi, Hazan and Singer 2011). `CompositeAdaGrad` is the same with
    a penalty, dual averaging or several classes.

    * `eta` (η): the step size. `sigma` (σ): keeps the first steps finite.
    * `loss`: an object or a name such as "squared" or "huber:1".
    * `clip`: None (the algorithm as published), or C for the projection onto |wᵀx| ≤ C in AdaGrad's own metric,
      or `"auto"`: C is learned from the targets as they come, and the step size is η·C.
    * `intercept`: learn a constant too, like the weight of a feature that is always 1.

    Cost per row: O(s) for s non-zeros.

    `dtype`: "float64" or "float32", the precision in which numbers are kept.

    >>> learner = AdaGrad(eta=0.5)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.5]
    """

    _lists_of_features: ClassVar[tuple[str, ...]] = ("features",)
    _takes_views = True

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
        """Σg² adds up. A feature's weight is the mean of both, weighted by its precision Σg²/v² in each.

        v is the mean squared gradient of a row (`metric_mean.precision`). σ² is no knowledge: each side counts for
        its share of the rows in it.
        """
        features, *places = union(self._seen, other._seen)
        sides, common = (self, other), self._common_range(other)
        rows = [side.rows_seen for side in sides]
        w, squares = np.zeros((2, 1 + len(features))), np.zeros((2, 1 + len(features)))  # the constant first
        for i, (side, at) in enumerate(zip(sides, places, strict=True)):
            value, root = side._table.rows[side._seen, :2].T.astype(np.float64)
            constant, its_root = side._state["intercept"]
            w[i, 0], w[i, 1 + at] = constant * common.stretch[i] + common.shift[i], value * common.stretch[i]
            squares[i, 0], squares[i, 1 + at] = its_root**2, root**2
            squares[i] *= common.stretch[i] ** 2
        trust = precision(squares.sum(axis=1).tolist(), rows)
        share = np.array(rows) / sum(rows)
        metric = share[:, None] * self._sigma**2 + trust[:, None] * squares
        metric[:, metric.sum(axis=0) == 0.0] = 1.0  # σ² may be below all numbers
        means = (metric * w).sum(axis=0) / metric.sum(axis=0)
        roots = np.sqrt(squares.sum(axis=0))
        table = np.zeros((len(features), self._table.width), self._table.dtype)
        limits = np.finfo(self._table.dtype)
        table[:, 0], table[:, 1] = means[1:], np.clip(roots[1:], limits.tiny, limits.max)
        counts = np.array([sum(rows), len(features), max(self.dimension, other.dimension)])
        intercept = np.array([means[0], roots[0]]) if self._params["intercept"] else np.zeros(2)
        return {
            "counts": counts,
            "intercept": intercept,
            **common.state,
            "features": features,
            "table": table,
        }

    def _bind(self, clip: float | None = None) -> _native.RowKernel:
        make = _native.adagrad64 if self._params["dtype"] == "float64" else _native.adagrad32
        bound, loss = self.bound / self._unit, self._kernel_loss
        problem = _native.problem(loss.code, loss.parameter, bound if clip is None else clip, 0.0, 0.0, 0.0)
        eta = self._eta * (bound if self._ranged else 1.0)
        return make(problem, eta, self._sigma, self._params["intercept"], self._views())
