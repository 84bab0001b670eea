"""The exact Online Newton Step, the quadratic-cost reference that the sketches approximate."""

from __future__ import annotations

import numpy as np

from sketchnewton import _native
from sketchnewton.learners.base import Arrays, Learner, checked, checked_clip, checked_eta, first_metric
from sketchnewton.learners.rows import Floats
from sketchnewton.losses import Loss

LARGEST = 100_000  # coordinates; beyond, not even the attempt to get the memory is sensible


class FullNewton(Learner):
    """Exact Online Newton Step: A = αI + Σ(σ + η)ggᵀ, nothing sketched (SON Equations 1 and 2).

    Parameters are those of `SketchedNewton`. A is kept as its Cholesky factor, which stays accurate however
    features are scaled. Cost per row: O(d²) time; memory: one d × d matrix. Meant for d up to a few thousand.

    >>> learner = FullNewton(alpha=1.0)
    >>> learner.learn([[1.0], [1.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        curvature: float | None = None,
        eta: float | str | None = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha, loss=loss, clip=clip, curvature=curvature, eta=eta, intercept=bool(intercept)
        )
        self._alpha = checked("alpha", alpha, positive=True)
        C = checked_clip(clip)
        sigma = self.loss.curvature(C) if curvature is None else checked("curvature", curvature)
        first, power = checked_eta(eta, self.loss, C, sigma)
        self._problem = _native.problem(self.loss.code, self.loss.parameter, C, sigma, first, power)
        self._intercept_metric = first_metric(self.loss, C, sigma + first)
        self._arrays = {"counts": np.zeros(2, np.int64)}  # rounds, dimension
        self._resize(1)

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return int(self._arrays["counts"][1])

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        w: Floats = self._arrays["w"][1 : 1 + self.dimension].copy()
        return w

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return float(self._arrays["w"][0])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of A − αI, largest first."""
        d = 1 + self.dimension
        U = self._arrays["U"][:d, :d]
        moments = (U.T @ U)[1:, 1:] - self._alpha * np.eye(d - 1)
        return np.asarray(np.linalg.eigvalsh(moments)[::-1], np.float64)

    def _resize(self, size: int) -> None:
        """Coordinate 0 is the intercept, coordinate i + 1 is feature i; those never seen have metric α."""
        try:
            if size > LARGEST:
                raise MemoryError
            metric = np.full(size, self._alpha)
            metric[0] = self._intercept_metric
            fresh = {"w": np.zeros(size), "U": np.diag(np.sqrt(metric))}
        except MemoryError:
            message = (
                f"{size - 1} features need {8 * size**2 / 2**30:.3g} GB in FullNewton: use SketchedNewton"
            )
            raise MemoryError(message) from None
        if "w" in self._arrays:
            old = len(self._arrays["w"])
            fresh["w"][:old] = self._arrays["w"]
            fresh["U"][:old, :old] = self._arrays["U"]
        self._arrays |= fresh
        self._bind()

    def _bind(self) -> None:
        self._kernel = _native.full_newton(self._problem, self._params["intercept"], dict(self._arrays))

    def _reserve(self, largest: int, widest: int) -> None:
        size = len(self._arrays["w"])
        if largest + 2 > size:
            self._resize(max(largest + 2, min(2 * size, largest + 1024)))

    def _learn(self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats) -> None:
        self._kernel.learn(rows, labels, weights, out)

    def _predict(self, rows: _native.Rows, out: Floats) -> None:
        self._kernel.predict(rows, out)

    def _restore(self, arrays: Arrays) -> None:
        self._resize(len(arrays["w"]))
        super()._restore(arrays)
        rounds, dimension = self._arrays["counts"]
        if rounds < 0 or not 0 <= dimension < len(self._arrays["w"]):
            raise ValueError("its counters contradict its arrays")
        self._bind()
