"""Learners with AdaGrad's metric, the square root of the gradients' second moments."""

from __future__ import annotations

import numpy as np

from sketchnewton import _native
from sketchnewton.learners.base import checked
from sketchnewton.learners.table import table_dtype
from sketchnewton.learners.target_range import RangedLearner
from sketchnewton.losses import Loss


class AdaGrad(RangedLearner):
    """AdaGrad with a diagonal metric: the classical first-order reference.

    w ← w − η g/(σ + √Σg²), feature by feature (Duchi, Hazan and Singer 2011).

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
        eta: float = 0.1,
        sigma: float = 1e-8,
        loss: str | Loss = "squared",
        clip: float | str | None = None,
        intercept: bool = False,
        dtype: str = "float32",
    ) -> None:
        super().__init__(
            columns=2,
            eta=eta,
            sigma=sigma,
            loss=loss,
            clip=clip,
            intercept=bool(intercept),
            dtype=table_dtype(dtype),
        )
        self._eta = checked("eta", eta, positive=True)
        self._sigma = checked("sigma", sigma, positive=True)
        self._arrays["intercept"] = np.zeros(2)  # value, √Σg²
        self._kernel = self._bind()

    def _bind(self, clip: float | None = None) -> _native.TableKernel:
        make = _native.adagrad64 if self._params["dtype"] == "float64" else _native.adagrad32
        reach = self.bound if clip is None else clip
        problem = _native.problem(self.loss.code, self.loss.parameter, reach, 0.0, 0.0, 0.0)
        eta = self._eta * self.bound if self._ranged else self._eta
        return make(problem, eta, self._sigma, self._params["intercept"], self._views())
