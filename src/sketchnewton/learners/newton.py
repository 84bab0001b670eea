"""Sketched Online Newton: second-order learning in time proportional to a row's non-zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sketchnewton import _native
from sketchnewton.learners.base import (
    Arrays,
    checked,
    checked_clip,
    checked_eta,
    checked_size,
    first_metric,
)
from sketchnewton.learners.rows import Floats
from sketchnewton.learners.table import TableLearner, table_dtype
from sketchnewton.losses import Loss

SKETCHES = ("none", "oja")


class SketchedNewton(TableLearner):
    """Sketched Online Newton (SON), for streams of sparse or dense rows.

    The metric A = αI + SᵀS, with S a sketch of the gradients seen, tells in which directions the weights are
    known well already; each step is A⁻¹ times the gradient. Before a row is predicted, the weights are projected
    (in the norm of A, in closed form) to where |wᵀx| ≤ `clip`.

    Parameters (the paper's symbol, Luo et al. 2016, in parentheses):

    * `sketch`: `"oja"`, or `"none"` for online gradient descent with the same projection.
    * `sketch_size` (m): how many directions of curvature are kept.
    * `alpha` (α): the metric of directions never seen; 1/α is the step size there. None: ℓ''‖x₁‖², the
      largest second derivative of the loss along the first row, so that the unit of the features does not matter
      (with `diagonal`, where it never does: 1).
    * `loss`: a name (`squared`, `logistic`, `hinge`, `quantile:0.9`, …) or a `Loss`.
    * `clip` (C): bound on predictions; None for none.
    * `curvature` (σ): None takes what the loss has on |p| ≤ C. `eta` (η_t): a number, `"1/t"`, `"1/sqrt(t)"`;
      None is 0 where the loss is curved, else 1/(CL√t).
    * `diagonal`: feed D^-½x instead of x, with D = 0.1 + Σg² per feature (SON §5.2).
    * `intercept`: learn a constant too; it is not penalised by α.
    * `oja_rate` (Γ_t): `"adaptive"` gives each direction its own rate 1/max(tΛ, ‖ĝ‖²); a number c is the
      shared rate c/t (the paper's experiments: 1.0); a sequence of m numbers gives one per direction.
    * `block`: update the sketch every so many rows (SON §3).
    * `dtype`: precision of the feature table; small matrices are always float64.
    * `random_state`: seed of random sketches; `"oja"` and `"none"` use no randomness.

    Cost per row with s non-zeros: O(ms + m²); memory: one cache line per feature up to m = 14 in float32.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20)) * np.geomspace(1, 30, 20)
    >>> y = np.sign(X @ (rng.standard_normal(20) / np.geomspace(1, 30, 20)))
    >>> def error(learner):  # in the second half of one pass
    ...     return np.mean(np.sign(learner.learn(X, y)[500:]) != y[500:])
    >>> print(error(SketchedNewton(sketch="none")), error(SketchedNewton(sketch="oja")))
    0.246 0.11

    Limits: values beyond ±1e30, NaN and infinity are refused. Predictions are bounded by `clip`, so targets of a
    regression must be scaled to it. A feature index i needs room for i + 1 table rows of address space.
    """

    def __init__(
        self,
        sketch: str = "oja",
        sketch_size: int = 10,
        alpha: float | None = None,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        curvature: float | None = None,
        eta: float | str | None = None,
        diagonal: bool = False,
        intercept: bool = False,
        oja_rate: str | float | Sequence[float] = "adaptive",
        block: int = 1,
        dtype: str = "float32",
        random_state: int = 0,
    ) -> None:
        if sketch not in SKETCHES:
            raise ValueError(f"sketch={sketch!r} is invalid: must be one of {', '.join(SKETCHES)}")
        if not isinstance(oja_rate, str | float | int):
            oja_rate = [float(rate) for rate in oja_rate]
        m = 0 if sketch == "none" else checked_size("sketch_size", sketch_size, 0)
        block = checked_size("block", block, 1)
        super().__init__(
            columns=2 + m + (block if m and block > 1 else 0),
            sketch=sketch,
            sketch_size=checked_size("sketch_size", sketch_size, 0),
            alpha=alpha,
            loss=loss,
            clip=clip,
            curvature=curvature,
            eta=eta,
            diagonal=bool(diagonal),
            intercept=bool(intercept),
            oja_rate=oja_rate,
            block=block,
            dtype=table_dtype(dtype),
            random_state=random_state,
        )
        self._m, self._block = m, block
        given = 0.0 if alpha is None else checked("alpha", alpha, positive=True)
        C = checked_clip(clip)
        sigma = self.loss.curvature(C) if curvature is None else checked("curvature", curvature)
        first, power = checked_eta(eta, self.loss, C, sigma)
        self._rate = _rates(oja_rate, self._m)
        self._problem = _native.problem(self.loss.code, self.loss.parameter, C, sigma, first, power)
        bend = first_metric(self.loss, C, sigma + first)
        self._arrays["intercept"] = np.array([0.0, bend if intercept else 0.0])
        # With diagonal adaptation rows have no unit, so neither has α.
        self._arrays["alpha"] = np.array([1.0 if alpha is None and diagonal else given])
        self._first_alpha = bend
        if self._m:
            self._arrays |= _fresh_oja(self._m, self._block)
        self._kernel = self._bind()

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        seen = self._seen
        rows = self._table.rows[seen].astype(np.float64)
        values = rows[:, 0]
        if self._m:
            values += rows[:, 2 : 2 + self._m] @ (self._arrays["c"][: self._m] @ self._arrays["F"])[: self._m]
        if self._params["diagonal"]:
            values /= rows[:, 1]
        weights = np.zeros(self.dimension)
        weights[seen] = values
        return weights

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues tΛ of the sketch SᵀS, largest first."""
        return np.sort(self._arrays["energy"][: self._rank])[::-1] if self._m else np.empty(0)

    @property
    def basis(self) -> Floats:
        """V: the sketch's directions as orthonormal rows, computed from the feature table itself."""
        V = np.zeros((self._rank, self.dimension))
        if self._rank:
            Z = self._table.rows[self._seen, 2 : 2 + self._m].astype(np.float64)
            V[:, self._seen] = self._arrays["F"][: self._rank, : self._m] @ Z.T
        return V

    @property
    def _rank(self) -> int:
        return int(self._arrays["sketch_counts"][1]) if self._m else 0

    def _bind(self) -> _native.TableKernel:
        make = _native.newton64 if self._params["dtype"] == "float64" else _native.newton32
        views = self._views() if self._rate is None else {**self._views(), "rate": self._rate}
        return make(self._problem, self._first_alpha, self._params["diagonal"], self._block, views)

    def _reserve(self, largest: int, widest: int) -> None:
        if self._m and self._block > 1 and len(self._arrays["recent"]) < self._block * widest:
            recent = np.zeros(self._block * widest, np.int64)
            recent[: len(self._arrays["recent"])] = self._arrays["recent"]
            self._arrays["recent"] = recent
            self._kernel = self._bind()
        super()._reserve(largest, widest)

    def _restore(self, arrays: Arrays) -> None:
        if "recent" in self._arrays:
            self._arrays["recent"] = np.zeros(len(arrays["recent"]), np.int64)
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        if not self._m:
            return True
        updates, rank, touched, filled, recent = self._arrays["sketch_counts"]
        used = self._arrays["recent"][:recent]
        return bool(
            min(updates, rank, touched, filled, recent) >= 0
            and rank <= self._m
            and filled < self._block
            and recent <= len(self._arrays["recent"])
            and np.isin(used, self._seen).all()
        )


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


def _fresh_oja(m: int, block: int) -> Arrays:
    width = -(-m // 4) * 4  # rows of small matrices are padded to whole vectors
    return {
        "sketch_counts": np.zeros(5, np.int64),
        "growth": np.zeros(1),
        "F": np.zeros((m, width)),
        "energy": np.zeros(width),
        "c": np.zeros(width),
        "Y": np.zeros((block, width)),
        "G": np.zeros((block, block)),
        "recent": np.zeros(0, np.int64),
    }


def _rates(oja_rate: str | float | Sequence[float], m: int) -> Floats | None:
    if isinstance(oja_rate, str):
        if oja_rate != "adaptive":
            raise ValueError(f"oja_rate={oja_rate!r} is invalid: must be 'adaptive', a number or {m} numbers")
        return None
    given = np.atleast_1d(np.asarray(oja_rate, np.float64))
    if given.shape not in ((1,), (m,)) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"oja_rate={oja_rate!r} is invalid: must be a positive number or {m} of them")
    rates = np.zeros(-(-m // 4) * 4)
    rates[:m] = given
    return rates
