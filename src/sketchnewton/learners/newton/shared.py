"""Sketched Online Newton for several classes with one sketch for all of them."""

from __future__ import annotations

import math

from sketchnewton import _native
from sketchnewton.core.hints import Self
from sketchnewton.core.parameters import checked, checked_clip, checked_dtype, checked_size
from sketchnewton.core.state import Buffers, State, filled, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.class_learner import ClassLearner, check_signs, checked_class_count
from sketchnewton.learners.curvature.base import SketchParameters, padded4
from sketchnewton.learners.curvature.oja import OjaSketchState
from sketchnewton.learners.metric_mean import metric_mean
from sketchnewton.learners.newton.table_newton import FIRST_SQUARE, lengths_fit, merged_lengths
from sketchnewton.learners.rows import checked_scan
from sketchnewton.learners.table import LARGE, TableLearner, union
from sketchnewton.losses import Loss


class SharedNewton(ClassLearner, TableLearner):
    """Each class against the rest, as `OneVsAll` of `SketchedNewton`, but one sketch of the rows for all classes.

    The gradient of every class is a multiple of the row x, and the loss bends by at most κ = max ℓ'' (2 for
    squared loss, ¼ for logistic loss), so A = αI + κ·(Oja's sketch of Σxxᵀ) is a metric for every class at once:
    the step of class k is A⁻¹x times its own slope. A bounds the Hessian of each class from above; for squared
    loss it is the Hessian: where the sketch is exact and nothing is clipped, this is recursive least squares.
    The sketches of `OneVsAll` are of gradients instead: each class has a metric of its own, which grows
    more slowly where its predictions are good.

    Labels are the numbers 0…`classes` − 1; predictions are rows of `classes` scores.

    Parameters are those of `SketchedNewton`; `loss` must have a largest second derivative (`squared`, `logistic`,
    `squared_hinge`). A row of weight h counts h times in the sketch. `diagonal` rescales by D = 0.1 + κΣx².

    Cost per row with s non-zeros: O((m + classes)s + m² + m·classes), where separate sketches cost
    O(classes·(ms + m²)); memory: m + classes + 1 numbers per feature.

    These are `sketch_size` (m), `alpha` (α), `clip`, `intercept` and `dtype`.

    >>> learner = SharedNewton(3)
    >>> X = np.eye(3)
    >>> for _ in range(5):
    ...     scores = learner.learn(X, [2, 0, 1])
    >>> learner.predict(X).argmax(axis=1).tolist()
    [2, 0, 1]
    """

    _pack_from = LARGE

    def __init__(
        self,
        classes: int,
        sketch_size: int = 10,
        *,
        alpha: float | None = None,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        diagonal: bool = False,
        intercept: bool = False,
        dtype: str = "float32",
    ) -> None:
        m = checked_size("sketch_size", sketch_size, 1)
        self.classes = checked_class_count(classes)
        self._m, self._clip = m, checked_clip(clip)
        super().__init__(
            columns=2 + m + self.outputs - 1,
            classes=self.classes,
            sketch_size=m,
            alpha=alpha,
            loss=loss,
            clip=clip,
            diagonal=bool(diagonal),
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
        )
        check_signs(self.loss)
        self._kappa = self.loss.smoothness
        if not math.isfinite(self._kappa):
            raise ValueError(
                f"loss={self.loss.spec!r} is invalid: one sketch for all classes needs a loss without kinks: "
                "squared, logistic or squared_hinge"
            )
        given = 0.0 if alpha is None else checked("alpha", alpha, positive=True)
        self._sketch = OjaSketchState(SketchParameters(m, checked_dtype(dtype)))
        self._state.update(self._sketch.fresh() | {"c": zeros((self.outputs, padded4(m)))})
        self._state["alpha"] = filled([1.0 if alpha is None and diagonal else given])
        self._state["lengths"] = zeros(3)  # what rows have set α to, their Σ‖x‖² and their number
        self._state["intercepts"] = zeros(self.outputs)
        self._state["metric"] = filled([self._kappa if intercept else 0.0])  # of the intercepts
        self._kernel = self._bind()

    @property
    def intercepts(self) -> Floats:
        """The constants that are added to the scores, one per class."""
        values: Floats = self._state["intercepts"].copy()
        return values

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest score that can be given."""
        return -self._clip, self._clip

    @property
    def alpha_(self) -> float:
        """The α in force: given, or taken from the lengths of rows (0 before the first)."""
        return float(self._state.view("alpha")[0])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch of κΣxxᵀ, largest first."""
        with self._lock:
            return self._sketch.spectrum(self._state)

    def decision_function(self, X: object) -> Floats:
        """The scores of the classes: what `predict` gives before it is clipped."""
        rows = self._rows(X)
        checked_scan(rows)
        scores = np.empty(self._shape(len(rows)))
        with self._lock:
            self._bind(clip=math.inf).predict(rows, scores)
        return scores

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            features = self._seen.copy()
            rows = self._table.rows_of_active(len(features)).astype(np.float64)
            b = self._state["c"][:, : self._m] @ self._state["F"][:, : self._m]
        others = slice(2 + self._m, 2 + self._m + self.outputs - 1)
        values = np.hstack([rows[:, :1], rows[:, others]]) + rows[:, 2 : 2 + self._m] @ b.T
        if self._params["diagonal"]:
            values /= rows[:, 1:2]
        return features, values

    def _merged(self, other: Self) -> Arrays:
        """κΣxxᵀ adds up. Weights are the mean in these metrics, in which α is shared out by rows seen."""
        sides = [self, other]
        rows = [side.rows_seen for side in sides]
        share = np.array(rows) / sum(rows)
        features, *places = union(self._seen, other._seen)
        squares, weights, factors = np.zeros(len(features)), [], []
        diagonal = self._params["diagonal"]
        for side, at in zip(sides, places, strict=True):
            _, values = side._learned_weights()
            table = side._table.rows_of_active(side.features_seen).astype(np.float64)
            scales = table[:, 1] if diagonal else np.ones(len(table))
            squares[at] += scales**2 - FIRST_SQUARE if diagonal else 0.0
            S = side._sketch.factor(side._state, table[:, 2 : 2 + self._m])
            w, wide = np.zeros((len(features), self.outputs)), np.zeros((len(S), len(features)))
            w[at], wide[:, at] = values, S * scales
            weights.append(w)
            factors.append(wide)
        scale = np.sqrt(squares + FIRST_SQUARE) if diagonal else np.ones(len(features))
        S1, S2 = (factor / scale for factor in factors)
        alphas = share * np.array([side.alpha_ for side in sides])
        means = metric_mean([w * scale[:, None] for w in weights], (S1, S2), alphas, share)
        merged = self._sketch.merged(self._state, other._state, (S1, S2), float(alphas.sum()))
        table = np.zeros((len(features), self._table.width))
        table[:, 0], table[:, 1], table[:, 2 : 2 + self._m] = means[:, 0], scale, merged.columns
        table[:, 2 + self._m : 1 + self._m + self.outputs] = means[:, 1:]
        metrics = np.array([side._state["metric"][0] for side in sides])
        fresh = self._kappa if self._params["intercept"] else 0.0
        known = metrics - fresh + share * fresh
        constants = np.array([side._state["intercepts"] for side in sides])
        return {
            **{name: np.array(array) for name, array in self._state.arrays().items()},
            **State(self._sketch.saved(merged.state)).arrays(),
            "c": np.zeros_like(self._state["c"]),
            "counts": np.array([sum(rows), len(features), max(self.dimension, other.dimension)]),
            "alpha": np.array([merged.alpha]),
            "lengths": merged_lengths(self._state, other._state, share),
            "intercepts": known @ constants / known.sum() if fresh else np.zeros(self.outputs),
            "metric": np.array([known.sum() if fresh else 0.0]),
            "features": features,
            "table": table.astype(self._table.dtype),
        }

    def _bind(self, clip: float | None = None) -> _native.RowKernel:
        make = _native.shared_newton64 if self._params["dtype"] == "float64" else _native.shared_newton32
        bound = self._clip if clip is None else clip
        problem = _native.problem(self.loss.code, self.loss.parameter, bound, 0.0, 0.0, 0.0)
        follows_rows = self._params["alpha"] is None and not self._params["diagonal"]
        first_alpha = self._kappa if follows_rows else 0.0
        return make(problem, self._kappa, first_alpha, self._params["diagonal"], self._views())

    def _all_arrays(self) -> Buffers:
        return {**super()._all_arrays(), **self._sketch.saved(self._state)}

    def _counters_fit(self) -> bool:
        columns = self._table.rows_of_active(self.features_seen)[:, 2 : 2 + self._m]
        small = all(np.isfinite(self._state[name]).all() for name in ("F", "energy", "c", "alpha", "metric"))
        return (
            small and lengths_fit(self._state) and self._sketch.fits(self._state, self._seen, lambda: columns)
        )
