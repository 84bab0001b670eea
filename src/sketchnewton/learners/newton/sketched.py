"""Sketched Online Newton: second-order learning in time proportional to a row's non-zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from sketchnewton import _native
from sketchnewton.core.parameters import checked, checked_dtype, checked_share, checked_size
from sketchnewton.core.state import Buffers, State, filled
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.base import first_metric
from sketchnewton.learners.bounded import RangedLearner
from sketchnewton.learners.curvature.base import LearnerSketch
from sketchnewton.learners.curvature.frequent_directions import FrequentState
from sketchnewton.learners.curvature.none import NoSketch
from sketchnewton.learners.curvature.oja import OjaSketchState
from sketchnewton.learners.curvature.projection import ProjectionState
from sketchnewton.learners.newton.schedule import checked_curvature, checked_eta
from sketchnewton.learners.table import union
from sketchnewton.losses.all import Loss, Poisson

FIRST_SQUARE = 0.1  # D_1 of SON §5.2
SKETCHES = ("none", "oja", "fd", "rfd", "pfd", "rp")


class SketchedNewton(RangedLearner):
    """Sketched Online Newton (SON), for streams of sparse or dense rows.

    The metric A = αI + SᵀS, with S a sketch of the gradients seen, tells in which directions the weights are
    known well already; each step is A⁻¹ times the gradient. Before a row is predicted, the weights are projected
    (in the norm of A, in closed form) to where |wᵀx| ≤ `clip`.

    Parameters (the paper's symbol, Luo et al. 2016, in parentheses):

    * `sketch`: `"oja"`; Frequent Directions `"fd"`, robust `"rfd"` (a ridge that grows by half of each shrink) or
      parameterised `"pfd"`; Gaussian random projection `"rp"`; or `"none"` for online gradient descent with the
      same projection onto |wᵀx| ≤ C.
    * `sketch_size` (m): how many directions of curvature are kept.
    * `alpha` (α): the metric of directions never seen; 1/α is the step size there. None: ℓ''‖x₁‖², the
      largest second derivative of the loss along the first row, so that the unit of the features does not matter
      (with `diagonal`, where it never does: 1). `"rfd"`: 0, and it grows by itself; with `"auto"` it grows from
      where the other sketches have it, so that first steps in each new direction are not too long.
    * `loss`: a name (`squared`, `logistic`, `hinge`, `quantile:0.9`, …) or a `Loss`.
    * `clip` (C): bound on predictions; None for none; `"auto"` learns the range of the targets as they come.
    * `curvature` (σ): None takes what the loss has on |p| ≤ C; `"local"` what it has at the prediction made
      (RFD's μ_t), so that the sketch is one of √ℓ''·x and a small gradient in a new direction makes no long step.
      `eta` (η_t): a number, `"1/t"`, `"1/sqrt(t)"` or `"sqrt(d/(C^2 L^2 t))"`, d being the features seen; None
      is 0 where the loss is curved, else 1/(CL√t).
    * `diagonal`: feed D^-½x instead of x, with D = 0.1 + Σg² per feature (SON §5.2).
    * `intercept`: learn a constant too; it is not penalised by α.
    * `beta` (β): the share of directions that shrink in `"pfd"`.
    * `oja_rate` (Γ_t): `"adaptive"` gives each direction its own rate 1/max(tΛ, ‖ĝ‖²); a number c is the
      shared rate c/t (the paper's experiments: 1.0); a sequence of m numbers gives one per direction.
    * `block`: update Oja's sketch every so many rows (SON §3).
    * `dtype`: precision of the feature table; small matrices are always float64.
    * `random_state`: seed of `"rp"`; the other sketches use no randomness.
    * `project`: False leaves the weights where they are and only clips predictions, at which the loss is then
      taken. No theorem covers it, but on classes ±1 it often errs less: a row beyond its label moves nothing.
      Vowpal Wabbit's OjaNewton does it, and so do SON's published experiments.

    Cost per row with s non-zeros: O(ms + m²); memory: one cache line per feature up to m = 14 in
    float32 (Frequent Directions: up to m = 12).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20)) * np.geomspace(1, 30, 20)
    >>> y = np.sign(X @ (rng.standard_normal(20) / np.geomspace(1, 30, 20)))
    >>> def error(learner):  # in the second half of one pass
    ...     return np.mean(np.sign(learner.learn(X, y)[500:]) != y[500:])
    >>> print(f"{error(SketchedNewton('none')):.2f} {error(SketchedNewton('oja')):.2f}")
    0.25 0.11

    Limits: values beyond ±1e30, NaN and infinity are refused. Predictions are bounded by `clip`, so targets of a
    regression must be scaled to it. A feature index i needs room for i + 1 table rows of address space. `"rp"` in
    float32 overflows if α is smaller than ‖x‖² by a factor of 10²⁰ or more.
    """

    _kernel: _native.SketchKernel

    def __init__(
        self,
        sketch: str = "oja",
        sketch_size: int = 10,
        alpha: float | str | None = None,
        loss: str | Loss = "squared",
        clip: float | str | None = 1.0,
        curvature: float | str | None = None,
        eta: float | str | None = None,
        diagonal: bool = False,
        intercept: bool = False,
        beta: float = 0.2,
        oja_rate: str | float | Sequence[float] = "adaptive",
        block: int = 1,
        dtype: str = "float32",
        random_state: int = 0,
        project: bool = True,
    ) -> None:
        if sketch not in SKETCHES:
            raise ValueError(f"sketch={sketch!r} is invalid: must be one of {', '.join(SKETCHES)}")
        if not isinstance(oja_rate, str | float | int):
            oja_rate = [float(rate) for rate in oja_rate]
        m = checked_size("sketch_size", sketch_size, 0)
        self._sketch = _make_sketch(sketch, m, checked_dtype(dtype), beta, oja_rate, block, random_state)
        super().__init__(
            columns=2 + self._sketch.columns,
            sketch=sketch,
            sketch_size=m,
            alpha=alpha,
            loss=loss,
            clip=clip,
            curvature=curvature,
            eta=eta,
            diagonal=bool(diagonal),
            intercept=bool(intercept),
            beta=beta,
            oja_rate=oja_rate,
            block=block,
            dtype=checked_dtype(dtype),
            random_state=random_state,
            project=bool(project),
        )
        robust = sketch == "rfd" and m > 0
        automatic = alpha == "auto" or (alpha is None and not robust)
        given = 0.0 if automatic or alpha is None else checked("alpha", alpha, positive=not robust)
        self._curvature, self._eta = curvature, eta
        bend = self._problem_now()[1]
        self._state["intercept"] = filled([0.0, bend if intercept else 0.0])
        # With diagonal adaptation rows have no unit, so neither has α. Robust FD grows its own.
        self._alpha_at_start = 1.0 if automatic and diagonal else given
        self._state["alpha"] = filled([self._alpha_at_start])
        self._grows_alpha, self._first_row_sets_alpha = robust, automatic
        self._state.update(self._sketch.fresh())
        self._kernel = self._bind()

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            (weights, scales, columns), features = self._settled(), self._seen.copy()
            values = weights + columns @ self._sketch.coefficients(self._state)
        if self._params["diagonal"]:
            values /= scales
        return features, values * self._unit

    @property
    def alpha_(self) -> float:
        """The α in force: given, taken from the first row (0 before it), or grown by shrinks (`rfd`)."""
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
        if self._params.get("sketch") == "rp" and other._params.get("random_state") == seed:
            raise ValueError(
                f"cannot merge two random projections of random_state={seed}: each learner needs its own"
            )

    def _merged(self, other: Self) -> Arrays:
        """(Σ A_i') w = Σ A_i' w_i, with A_i' = S_iᵀS_i + a_i I, where α is shared out by rows seen."""
        rounds = self.rows_seen + other.rows_seen
        robust = self._grows_alpha
        sides = [self, other]
        known = np.array([side.rows_seen if robust or side.alpha_ > 0 else 0 for side in sides])
        share = known / max(known.sum(), 1)
        base = np.array([side._first_alpha() for side in sides])
        a = base * share + (np.array([side.alpha_ for side in sides]) - base)

        features, *places = union(self._seen, other._seen)
        scale, w, S = _aligned(sides, len(features), places)
        _, sizes, V = np.linalg.svd(np.vstack(S), full_matrices=False)
        rank = np.count_nonzero(sizes > 1e-13 * sizes.max(initial=0.0))
        squares, V = sizes[:rank] ** 2, V[:rank]
        inside = [V @ part for part in w]
        outside = [part - known @ V for part, known in zip(w, inside, strict=True)]
        pull = sum(
            (a[i] * inside[i] + (S[i] @ V.T).T @ ((S[i] @ V.T) @ inside[i]) for i in range(2)), np.zeros(rank)
        )
        rest = a / a.sum() if a.sum() > 0 else share
        weights = (pull / (a.sum() + squares)) @ V + rest[0] * outside[0] + rest[1] * outside[1]

        merged = self._sketch.merged(self._state, other._state, S, float(a.sum()))
        rows = np.zeros((len(features), self._table.width))
        rows[:, 0], rows[:, 1], rows[:, 2 : 2 + self._sketch.columns] = weights, scale, merged.columns
        return {
            "counts": np.array([rounds, len(features), max(self.dimension, other.dimension)]),
            "intercept": self._merged_intercept(other, share),
            "alpha": np.array([merged.alpha]),
            **State(self._sketch.saved(merged.state)).arrays(),
            "features": features,
            "table": rows.astype(self._table.dtype),
        }

    def _first_alpha(self) -> float:
        """α without what it has gained, which is curvature."""
        if not self._grows_alpha:
            return self.alpha_
        if self._first_row_sets_alpha:
            return max(self.alpha_ - self._sketch.ridge(self._state), 0.0)
        return float(self._params.get("alpha") or 0.0)

    def _merged_intercept(self, other: Self, share: Floats) -> Floats:
        """A block of the metric of its own, one number wide."""
        fresh = float(type(self)(**self._params)._state.view("intercept")[1])
        if fresh == 0:
            return np.zeros(2)
        values, metrics = np.array([self._state["intercept"], other._state["intercept"]]).T
        known = metrics - fresh + share * fresh
        return np.array([known @ values / known.sum(), known.sum()])

    def _settled(self) -> tuple[Floats, Floats, Floats]:
        """Weights, scales and sketch columns of the features seen, up to date."""
        width = self._table.width
        rows = np.empty((len(self._seen), width + self._sketch.extra), self._table.dtype)
        self._kernel.settled(rows)
        own = [*range(2, 2 + self._sketch.columns), *range(width, width + self._sketch.extra)]
        return rows[:, 0].astype(np.float64), rows[:, 1].astype(np.float64), rows[:, own].astype(np.float64)

    def _problem_now(self, clip: float | None = None) -> tuple[_native.Problem, float]:
        """The loss with the constants that follow from the bound C, and the metric of a first step."""
        C, loss = self.bound / self._unit, self._kernel_loss
        sigma = checked_curvature(self._curvature, loss, C)
        schedule = checked_eta(self._eta, loss, C, sigma)
        reach = C if clip is None else clip
        problem = _native.problem(
            loss.code, loss.parameter, reach, sigma, *schedule, project=self._params.get("project", True)
        )
        bend = first_metric(loss, C, sigma + schedule.first)
        if self._ranged and isinstance(self.loss, Poisson):
            bend *= min(math.exp(C), 1e100)  # counts as large as the bound allows
        return problem, bend

    def _bind(self, clip: float | None = None) -> _native.SketchKernel:
        problem, bend = self._problem_now(clip)
        first_alpha = bend if self._first_row_sets_alpha else 0.0
        return self._sketch.kernel(problem, first_alpha, self._params["diagonal"], self._views())

    def _widen(self, bound: float) -> None:
        first = self._state["range"][1] == 0
        super()._widen(bound)
        if first:  # all targets were the same, so nothing has moved: the metric starts at the right scale
            bend = self._problem_now()[1]
            self._state["intercept"][1] = bend if self._params["intercept"] else 0.0
            self._state["alpha"][0] = self._alpha_at_start

    def _reserve(self, largest: int, widest: int) -> None:
        if self._sketch.reserve(self._state, max(largest + 1, self._table.capacity), widest):
            self._kernel = self._bind()
        super()._reserve(largest, widest)

    def _all_arrays(self) -> Buffers:
        return {**super()._all_arrays(), **self._sketch.saved(self._state)}

    def _restore(self, arrays: Arrays) -> None:
        arrays = self._sketch.restored(arrays)
        for name in ("recent", "slots", "group"):  # as long as they are needed
            if name in self._state:
                self._state.resize(name, len(arrays[name]), 0)
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        columns = self._table.rows[self._seen, 2 : 2 + self._sketch.columns]
        return super()._counters_fit() and self._sketch.fits(self._state, self._seen, columns)


def _aligned(
    sides: Sequence[SketchedNewton], count: int, places: list[NDArray[np.int64]]
) -> tuple[Floats, list[Floats], tuple[Floats, Floats]]:
    """The scales of the features of both, and in these scales the weights and the sketch of each."""
    diagonal = sides[0]._params["diagonal"]
    squares, weights, factors = np.zeros(count), [], []
    for side, at in zip(sides, places, strict=True):
        values, scales, columns = side._settled()
        squares[at] += scales**2 - FIRST_SQUARE if diagonal else 0.0
        values = values + columns @ side._sketch.coefficients(side._state)
        S = side._sketch.factor(side._state, columns)
        w, wide = np.zeros(count), np.zeros((len(S), count))
        w[at], wide[:, at] = values / scales, S * scales
        weights.append(w)
        factors.append(wide)
    scale = np.sqrt(squares + FIRST_SQUARE) if diagonal else np.ones(count)
    return scale, [w * scale for w in weights], (factors[0] / scale, factors[1] / scale)


class OnlineGradient(SketchedNewton):
    """Online gradient descent with step 1/α and the projection of SON: `SketchedNewton(sketch="none")`."""

    def __init__(
        self,
        alpha: float = 1.0,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        diagonal: bool = False,
        intercept: bool = False,
        dtype: str = "float32",
    ) -> None:
        super().__init__("none", 0, alpha, loss, clip, diagonal=diagonal, intercept=intercept, dtype=dtype)
        keep = ("alpha", "loss", "clip", "diagonal", "intercept", "dtype")
        self._params = {name: self._params[name] for name in keep}


def _make_sketch(
    kind: str, m: int, dtype: str, beta: float, oja_rate: str | float | Sequence[float], block: int, seed: int
) -> LearnerSketch:
    """The table of kinds."""
    block = checked_size("block", block)
    beta = checked_share("beta", beta)
    seed = checked_size("random_state", seed, 0)
    if kind == "none" or m == 0:
        return NoSketch(dtype)
    if kind == "oja":
        return OjaSketchState(m, dtype, oja_rate, block)
    if kind == "rp":
        return ProjectionState(m, dtype, seed)
    share, ridge = {"fd": (1.0, 0.0), "rfd": (1.0, 0.5), "pfd": (beta, 0.0)}[kind]
    return FrequentState(m, dtype, share, ridge)
