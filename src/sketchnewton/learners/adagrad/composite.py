"""Diagonal AdaGrad with a penalty, by dual averaging, or for several classes."""

from __future__ import annotations

import math

from sketchnewton import _native
from sketchnewton.core.checks import LARGEST_COUNT, are_whole
from sketchnewton.core.hints import Any
from sketchnewton.core.parameters import checked_clip, checked_dtype
from sketchnewton.core.state import Vector
from sketchnewton.core.types import Floats, Integers, np
from sketchnewton.learners.adagrad.diagonal import AdaGrad
from sketchnewton.learners.adagrad.penalty import CompositeLearner, checked_classes, checked_composite
from sketchnewton.learners.base import Learner
from sketchnewton.learners.table import TableLearner
from sketchnewton.losses import Loss, get_loss

PART = 2**20  # kHigh of native/learners/adagrad_penalty.hpp


class CompositeAdaGrad(CompositeLearner, TableLearner):
    """AdaGrad with a diagonal metric, and a penalty, dual averaging or several classes; `AdaGrad` is without them.

    * `eta`, `sigma`, `loss`, `intercept`, `dtype`: as in `AdaGrad`. `clip`: None, or C for the projection onto
      |wᵀx| ≤ C.
    * `penalty`, `penalty_strength`, `l1_ratio`, `form`, `classes`: as in `SketchedAdaGrad`. Everything has a
      closed form feature by feature, and a feature makes up for rounds that it missed when it is met next.

    Cost per row: O(s) for s non-zeros; times the number of classes.

    >>> learner = CompositeAdaGrad(eta=0.5, penalty="l1", penalty_strength=0.1)
    >>> learner.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.475]
    """

    _kernel: _native.PenaltyKernel

    def __init__(
        self,
        *,
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
        if isinstance(clip, str):
            raise ValueError(
                f"clip={clip!r} is invalid: it cannot be combined with a penalty, dual averaging or classes: give "
                "a number, or None for no bound"
            )
        self._clip = checked_clip(clip)
        super().__init__(
            columns=2 * (classes or 1) + 2,
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
        self._kernel = self._bind()

    @classmethod
    def simplest(cls, **parameters: Any) -> Learner:
        """`AdaGrad` if the parameters ask for no penalty, dual averaging or classes."""
        asked = cls.defaults() | parameters
        kept = AdaGrad.defaults()
        names = ("eta", "sigma", "penalty", "penalty_strength", "l1_ratio", "form")
        if asked["classes"] is None and checked_composite(*(asked[name] for name in names)).plain:
            return AdaGrad(**{name: value for name, value in parameters.items() if name in kept})
        return cls(**parameters)

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made."""
        return -self._clip, self._clip

    def _bind(self, clip: float | None = None) -> _native.PenaltyKernel:
        double = self._params["dtype"] == "float64"
        make = _native.composite_adagrad64 if double else _native.composite_adagrad32
        reach = self._clip if clip is None else clip
        problem = _native.problem(self.loss.code, self.loss.parameter, reach, 0.0, 0.0, 0.0)
        return make(problem, self._composite.native(), self._params["intercept"], self._views())

    def _predict_scores(self, rows: _native.Rows, out: Vector) -> None:
        self._bind(clip=math.inf).predict(rows, out)

    def _learned_matrix(self) -> tuple[Integers, Floats]:
        with self._lock:
            features = self._seen.copy()
            values = np.empty((len(features), self.outputs))
            self._kernel.weights(values)
        return features, values

    def _counters_fit(self) -> bool:
        if not super()._counters_fit():
            return False
        if self._params["form"] == "dual_averaging":
            return True
        # The round up to which a weight is known, in two parts.
        high, low = self._table.rows[self._seen].T[2 * self.outputs :][:2].astype(np.float64)
        whole = are_whole(high, 0, LARGEST_COUNT) and are_whole(low, 0, PART - 1)
        return whole and bool((high * PART + low <= self.rows_seen).all())
