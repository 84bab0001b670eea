"""What online Newton learners over a feature table share: α, the problem that follows from C, merging."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

from sketchnewton import _native
from sketchnewton.core.hints import Any, Self
from sketchnewton.core.parameters import checked
from sketchnewton.core.state import Buffers, State, filled, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.base import first_metric
from sketchnewton.learners.bounded import CommonRange, RangedLearner
from sketchnewton.learners.curvature.base import LearnerSketch
from sketchnewton.learners.metric_mean import metric_mean, precision
from sketchnewton.learners.newton.schedule import checked_curvature, checked_curvature_weight
from sketchnewton.learners.table import LARGE, union

FIRST_SQUARE = 0.1  # D_1 of SON §5.2
LEAST_SCALE, LARGEST_SCALE = 0.99 * math.sqrt(FIRST_SQUARE), 1e150
_WIDEST = 1e12  # range in its unit that α follows: weights grow with its square, which float32 must hold


class TableNewton(RangedLearner):
    """An online Newton learner whose metric is αI + SᵀS, S being a sketch in the columns of the feature table.

    `parameters` are those of the learner: `alpha`, `loss`, `clip`, `diagonal`, `intercept`, `dtype`, and what else
    it has; without `curvature`, `curvature_weight` and `project`, the loss decides, and weights are projected.
    """

    _kernel: _native.SketchKernel
    _takes_views = True

    @abstractmethod
    def __init__(self, sketch: LearnerSketch, /, **parameters: Any) -> None:
        self._sketch = sketch
        self._curvature = parameters.get("curvature")
        self._curvature_weight = parameters.get("curvature_weight")
        self._project: bool = parameters.get("project", True)
        self._diagonal: bool = parameters["diagonal"]
        self._pack_from = LARGE if sketch.packs else math.inf
        super().__init__(columns=2 + sketch.columns, **parameters)
        alpha, intercept = parameters["alpha"], parameters["intercept"]
        robust = sketch.grows_alpha
        automatic = alpha == "auto" or (alpha is None and not robust)
        given = 0.0 if automatic or alpha is None else checked("alpha", alpha, positive=not robust)
        bend = self._problem_now()[1]
        self._state["intercept"] = filled([0.0, bend if intercept else 0.0])
        # With diagonal adaptation rows have no unit, so neither has α. Robust FD grows its own.
        self._alpha_at_start = 1.0 if automatic and self._diagonal else given
        self._follows = automatic and (not self._diagonal or (self._ranged and self.loss.shift_invariant))
        self._state["alpha"] = zeros(1)
        self._state["lengths"] = zeros(3)  # what data have set α to, rows' Σ‖x‖² and their number
        self._start_alpha()
        self._state.update(sketch.fresh())
        self._kernel = self._bind()

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            (weights, scales, columns), features = self._settled(), self._seen.copy()
            values = weights + columns @ self._sketch.coefficients(self._state)
        if self._diagonal:
            values /= scales
        return features, values * self._unit

    @property
    def alpha_(self) -> float:
        """The α in force: given, taken from rows' lengths (0 before the first), of the range, or grown (`rfd`)."""
        return float(self._state.view("alpha")[0])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch SᵀS, largest first."""
        with self._lock:
            return self._sketch.spectrum(self._state)

    @property
    def basis(self) -> Floats:
        """Orthonormal rows that span the sketch, computed from the feature table itself."""
        with self._lock:
            part = self._sketch.basis(self._state, self._settled()[2])
            V = np.zeros((len(part), self.dimension))
            V[:, self._seen] = part
        return V

    @property
    def matrix(self) -> Floats:
        """S: rows with SᵀS the sketch of Σĝĝᵀ; `matrix[:, i]` belongs to feature i."""
        with self._lock:
            part = self._sketch.factor(self._state, self._settled()[2])
            S = np.zeros((len(part), self.dimension))
            S[:, self._seen] = part
        return S

    @property
    def error_bound(self) -> float | None:
        """Certified bound of ‖Σĝĝᵀ − (SᵀS + (α − α₀)I)‖₂: the running sum of shrinks, half of it for `rfd`,
        and an allowance for the rounding of the table.

        None for sketches that have no such certificate.
        """
        with self._lock:
            return self._sketch.error_bound(self._state)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        seed = self._params.get("random_state")
        if self._sketch.random and other._params.get("random_state") == seed:
            raise ValueError(
                f"cannot merge two random projections of random_state={seed}: each learner needs its own"
            )

    def _merged(self, other: Self) -> Arrays:
        """Curvature adds up. Weights are the mean in both metrics, in which α is shared out by rows seen."""
        sides, common = [self, other], self._common_range(other)
        rows = [side.rows_seen for side in sides]
        robust = self._sketch.grows_alpha
        known = np.array([side.rows_seen if robust or side.alpha_ > 0 else 0 for side in sides])
        share = known / max(known.sum(), 1)
        base = np.array([side._first_alpha() for side in sides])
        grown = common.curvature * (np.array([side.alpha_ for side in sides]) - base)

        features, *places = union(self._seen, other._seen)
        scale, w, S = _aligned(sides, len(features), places, common)
        masses = [
            side._sketch.mass(side._state, factor, float(c))
            for side, factor, c in zip(sides, S, common.curvature, strict=True)
        ]
        trust = precision(masses, rows)
        trusted = [np.sqrt(t) * factor for t, factor in zip(trust, S, strict=True)]
        weights = metric_mean(w, trusted, base * share + trust * grown, share)

        common_base = base[0] if base[0] == base[1] else float(base @ share)  # shares of one number, rounded
        alpha = float(common_base + grown.sum())
        merged = self._sketch.merged(self._state, other._state, S, alpha)
        self._sketch.place(merged.state, weights, scale)
        table = np.zeros((len(features), self._table.width))
        table[:, 0], table[:, 1], table[:, 2 : 2 + self._sketch.columns] = weights, scale, merged.columns
        return {
            "counts": np.array([sum(rows), len(features), max(self.dimension, other.dimension)]),
            "intercept": self._merged_intercept(other, share, trust, common),
            "alpha": np.array([merged.alpha]),
            "lengths": merged_lengths(self._state, other._state, share),
            **common.state,
            **State(self._sketch.saved(merged.state)).arrays(),
            "features": features,
            "table": table.astype(self._table.dtype),
        }

    def _first_alpha(self) -> float:
        """α without what it has gained, which is curvature."""
        if not self._sketch.grows_alpha:
            return self.alpha_
        if self._follows:
            return float(self._state.view("lengths")[0])
        return self._alpha_at_start

    def _merged_intercept(self, other: Self, share: Floats, trust: Floats, common: CommonRange) -> Floats:
        """A block of the metric of its own, one number wide."""
        if not self._params["intercept"]:
            return np.zeros(2)
        fresh = np.array([side._problem_now()[1] for side in (self, other)])
        if not fresh.all():
            return np.zeros(2)
        values, metrics = np.array([self._state["intercept"], other._state["intercept"]]).T
        gained = common.curvature * np.maximum(metrics - fresh, 0.0)
        known = trust * gained + share * fresh
        if not known.any():
            known = share + 0.5
        values = common.stretch * values + common.shift
        return np.array([known @ values / known.sum(), gained.sum() + (share @ fresh or fresh[0])])

    def _settled(self) -> tuple[Floats, Floats, Floats]:
        """Weights, scales and sketch columns of the features seen, up to date."""
        kept = self._sketch.settled(self._state, self.features_seen)
        if kept is not None:
            return kept
        width = self._table.width
        rows = np.empty((len(self._seen), width + self._sketch.extra), self._table.dtype)
        self._kernel.settled(rows)
        own = [*range(2, 2 + self._sketch.columns), *range(width, width + self._sketch.extra)]
        return rows[:, 0].astype(np.float64), rows[:, 1].astype(np.float64), rows[:, own].astype(np.float64)

    def _problem_now(self, clip: float | None = None) -> tuple[_native.Problem, float]:
        """The loss with the constants that follow from the bound C, and the metric of a first step."""
        C, loss = self.bound / self._unit, self._kernel_loss
        sigma = checked_curvature(self._curvature, loss, C)
        schedule = checked_curvature_weight(self._curvature_weight, loss, C, sigma)
        reach = C if clip is None else clip
        problem = _native.problem(loss.code, loss.parameter, reach, sigma, *schedule, project=self._project)
        bend = first_metric(loss, C, sigma + schedule.first)
        if self._ranged:  # labels as large as the bound allows
            bend *= loss.smoothness_growth(C)
        return problem, bend

    def _bind(self, clip: float | None = None) -> _native.SketchKernel:
        problem, bend = self._problem_now(clip)
        first_alpha = 0.0
        if self._follows:
            first_alpha = self._alpha_of_range() if self._diagonal else bend
        return self._sketch.kernel(problem, first_alpha, self._diagonal, self._views())

    def _widen(self, bound: float) -> None:
        first = self._state["range"][1] == 0
        super()._widen(bound)
        if first:  # all targets were the same, so nothing has moved: the metric starts at the right scale
            bend = self._problem_now()[1]
            self._state["intercept"][1] = bend if self._params["intercept"] else 0.0
            self._start_alpha()

    @property
    def _unit_matters(self) -> bool:
        """A sketch of the first rows is in coordinates of which the diagonal has changed since."""
        return self._diagonal and self.loss.shift_invariant

    def _start_alpha(self) -> None:
        start = self._alpha_at_start
        self._state.view("alpha")[0] = start
        for at, value in enumerate((start if self._follows else 0.0, 0.0, 0.0)):
            self._state.view("lengths")[at] = value

    def _alpha_of_range(self) -> float:
        """α where rows have no unit: 1 if the range is as wide as its unit, and then with 1/(C·L(C)).

        Steps g/(α Σg²) so grow with the range C, as the targets do.
        """
        C, loss = min(self.bound / self._unit, _WIDEST), self._kernel_loss
        return loss.lipschitz(1.0) / (C * loss.lipschitz(C))

    def _reserve(self, largest: int, widest: int) -> None:
        capacity = self._table.capacity
        more = self._sketch.reserve(self._state, capacity if largest < capacity else largest + 1, widest)
        if more:
            self._replace(more)
        super()._reserve(largest, widest)

    def _all_arrays(self) -> Buffers:
        return {**super()._all_arrays(), **self._sketch.saved(self._state)}

    def _restore(self, arrays: Arrays) -> None:
        arrays = self._sketch.restored(arrays)
        for name in ("recent", "slots", "group", "few"):  # as long as they are needed
            if name in self._state:
                self._state.resize(name, len(arrays[name]), 0)
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        seen = self._table.listed(self.features_seen)
        _, least, largest, _ = _native.look(self._table.column(1, len(seen)))
        # Roots of sums never fall, and their squares must be in range.
        low, high = (LEAST_SCALE, LARGEST_SCALE) if self._params["diagonal"] else (1.0, 1.0)
        usual = not len(seen) or low <= least <= largest <= high
        usual = usual and lengths_fit(self._state) and super()._counters_fit()
        usual = usual and not (self._follows and self._diagonal and self._state.view("lengths")[0] == 0.0)
        return usual and self._sketch.fits(self._state, seen, self._columns_of_seen)

    def _columns_of_seen(self) -> NDArray[Any]:
        return self._table.rows_of_active(self.features_seen)[:, 2 : 2 + self._sketch.columns]

    @property
    def _only_reads(self) -> bool:
        return self._sketch.only_reads


def merged_lengths(mine: State, theirs: State, share: Floats) -> Floats:
    """The rows of both; α is shared out by rows seen."""
    both = np.array([mine["lengths"], theirs["lengths"]])
    return np.array([share @ both[:, 0], *both[:, 1:].sum(axis=0)])


def lengths_fit(state: State) -> bool:
    """Are they lengths?"""
    return all(0 <= length < math.inf for length in state.view("lengths").tolist())


def _aligned(
    sides: Sequence[TableNewton], count: int, places: list[NDArray[np.int64]], common: CommonRange
) -> tuple[Floats, list[Floats], tuple[Floats, Floats]]:
    """The scales of the features of both, and in these scales the weights and the sketch of each."""
    diagonal = sides[0]._diagonal
    squares, weights, factors = np.zeros(count), [], []
    for i, (side, at) in enumerate(zip(sides, places, strict=True)):
        values, scales, columns = side._settled()
        if diagonal:
            squares[at] += common.stretch[i] ** 2 * (scales**2 - FIRST_SQUARE)
        values = values + columns @ side._sketch.coefficients(side._state)
        S = side._sketch.factor(side._state, columns)
        w, wide = np.zeros(count), np.zeros((len(S), count))
        w[at], wide[:, at] = common.stretch[i] * values / scales, np.sqrt(common.curvature[i]) * S * scales
        weights.append(w)
        factors.append(wide)
    scale = np.sqrt(squares + FIRST_SQUARE) if diagonal else np.ones(count)
    return scale, [w * scale for w in weights], (factors[0] / scale, factors[1] / scale)
