"""The exact Online Newton Step, the quadratic-cost reference that the sketches approximate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sketchnewton import _native
from sketchnewton.core.batch import IndexTooLarge
from sketchnewton.core.hints import Any, Self
from sketchnewton.core.parameters import checked, checked_clip
from sketchnewton.core.state import Buffers, Vector, View, zeros
from sketchnewton.core.types import Arrays, Floats, np
from sketchnewton.learners.base import Learner, first_metric
from sketchnewton.learners.metric_mean import precision
from sketchnewton.learners.newton.schedule import Schedule, checked_curvature, checked_curvature_weight
from sketchnewton.losses import Loss

LARGEST = 100_000  # coordinates; beyond, not even the attempt to get the memory is sensible


class MatrixLearner(Learner):
    """A Newton learner that keeps whole matrices: O(d²) time per row and memory.

    Coordinate 0 is the intercept, coordinate i + 1 is feature i. All arrays but `counts` have `size` rows, with
    spare room for features to come.
    """

    _kernel: _native.RowKernel

    def __init__(self, counters: int, **parameters: Any) -> None:
        super().__init__(**parameters)
        C, curvature = checked_clip(parameters["clip"]), parameters["curvature"]
        self._sigma = checked_curvature(curvature, self.loss, C)
        self._schedule: Schedule = checked_curvature_weight(
            parameters["curvature_weight"], self.loss, C, self._sigma
        )
        self._problem = _native.problem(self.loss.code, self.loss.parameter, C, self._sigma, *self._schedule)
        self._clip = C
        self._state["counts"] = zeros(counters, "int64")  # rounds, dimension, …

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return int(self._state.view("counts")[1])

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made."""
        return -self._clip, self._clip

    @abstractmethod
    def _fresh(self, size: int) -> Arrays:
        """The arrays of `size` coordinates that have seen nothing."""

    @property
    @abstractmethod
    def _make(self) -> Callable[[_native.Problem, bool, dict[str, View]], _native.RowKernel]:
        """The kernel's constructor."""

    @property
    def _size(self) -> int:
        return next((self._state.shape(name)[0] for name in self._state if name != "counts"), 0)

    def _wide(self, size: int) -> Arrays:
        """The arrays but `counts`, with room for `size` coordinates."""
        fresh, old = self._fresh(size), min(self._size, size)
        for name, array in fresh.items():
            corner = (slice(old),) * array.ndim
            array[corner] = self._state[name][corner]
        return fresh

    def _resize(self, size: int) -> None:
        try:
            if size > LARGEST:
                raise MemoryError
            fresh = self._wide(size) if self._size else self._fresh(size)
        except MemoryError:
            needed = 8 * size**2 / 2**30
            raise IndexTooLarge(
                size - 2,
                f"needs a matrix of {needed:.3g} GB in {type(self).__name__}: "
                "number the features from 0, as exact names do, hash them to fewer bits, or use a sketch",
            ) from None
        self._kernel = self._state.replaced(fresh, self._bind)

    def _bind(self) -> _native.RowKernel:
        return self._make(self._problem, self._params["intercept"], self._state.views())

    def _reserve(self, largest: int, widest: int) -> None:
        size = self._size
        if largest + 2 > size:
            self._resize(max(largest + 2, min(2 * size, largest + 1024)))

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        self._kernel.learn(rows, labels, weights, out)

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        self._kernel.predict(rows, out)

    def _all_arrays(self) -> Buffers:
        """Without the room for features to come."""
        size = 1 + self.dimension
        arrays = self._state.arrays()
        corners = {n: a[(slice(size),) * a.ndim] for n, a in arrays.items() if n != "counts"}
        return {"counts": arrays["counts"], **{n: np.ascontiguousarray(a) for n, a in corners.items()}}

    def _restore(self, arrays: Arrays) -> None:
        sizes = {len(array) for name, array in arrays.items() if name != "counts"}
        if len(sizes) != 1:
            raise ValueError("its arrays differ in length")
        self._resize(sizes.pop())
        super()._restore(arrays)
        if not self._counters_fit():
            raise ValueError("its counters contradict its arrays")
        self._kernel = self._bind()

    def _counters_fit(self) -> bool:
        rounds, dimension = self._state["counts"][:2].tolist()
        return bool(rounds >= 0 and 0 <= dimension < self._size)


class FullNewton(MatrixLearner):
    """Exact Online Newton Step: A = αI + Σ(σ + η)ggᵀ, nothing sketched (SON Equations 1 and 2).

    Parameters are those of `SketchedNewton`. A is kept as its Cholesky factor, which stays accurate however
    features are scaled. Cost per row: O(d²) time; memory: one d × d matrix. Meant for d up to a few thousand.

    `alpha` (α), `loss`, `clip` (C), `curvature` (σ), `curvature_weight` (η_t) and `intercept` are as in
    `SketchedNewton`.

    >>> learner = FullNewton(alpha=1.0)
    >>> learner.learn([[1.0], [1.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        curvature: float | str | None = None,
        curvature_weight: float | str | None = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(
            2,
            alpha=alpha,
            loss=loss,
            clip=clip,
            curvature=curvature,
            curvature_weight=curvature_weight,
            intercept=bool(intercept),
        )
        self._alpha = checked("alpha", alpha, positive=True)
        self._intercept_metric = first_metric(self.loss, self._clip, self._sigma + self._schedule.first)
        self._resize(1)

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        w: Floats = self._state["w"][1 : 1 + self.dimension].copy()
        return w

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return float(self._state.view("w")[0])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of A − αI, largest first."""
        d = 1 + self.dimension
        U = self._state["U"][:d, :d]
        moments = (U.T @ U)[1:, 1:] - self._alpha * np.eye(d - 1)
        return np.asarray(np.linalg.eigvalsh(moments)[::-1], np.float64)

    def _merged(self, other: Self) -> Arrays:
        """A − A₀ adds up; weights are the mean in the metrics of both, in which A₀ is shared out by rows seen."""
        d = 1 + max(self.dimension, other.dimension)
        prior = self._fresh(d)["U"] ** 2  # diagonal
        rows = [self.rows_seen, other.rows_seen]
        gained, weights = [], []
        for learner in (self, other):
            arrays = learner._wide(d)
            U = np.triu(arrays["U"])
            gained.append(U.T @ U - prior)
            weights.append(arrays["w"])
        trust = precision([float(np.trace(part[1:, 1:])) for part in gained], rows)
        metrics = [t * part + n / sum(rows) * prior for t, part, n in zip(trust, gained, rows, strict=True)]
        pull = metrics[0] @ weights[0] + metrics[1] @ weights[1]
        L, unit = _cholesky(metrics[0] + metrics[1])
        w = np.linalg.solve(L.T, np.linalg.solve(L, pull / unit)) / unit
        L, unit = _cholesky(gained[0] + gained[1] + prior)
        return {"counts": np.array([sum(rows), d - 1]), "w": w, "U": L.T * unit}

    @property
    def _make(self) -> Callable[[_native.Problem, bool, dict[str, View]], _native.RowKernel]:
        return _native.full_newton

    def _fresh(self, size: int) -> Arrays:
        """Coordinates never seen have metric α."""
        metric = np.full(size, self._alpha)
        metric[0] = self._intercept_metric
        return {"w": np.zeros(size), "U": np.diag(np.sqrt(metric))}


def _cholesky(A: Floats) -> tuple[Floats, Floats]:
    """L and u of A = diag(u) L Lᵀ diag(u): features may have any scale."""
    unit = np.sqrt(np.diag(A))
    return np.linalg.cholesky(A / np.outer(unit, unit)), unit
