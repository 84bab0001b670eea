"""The exact Online Newton Step, the quadratic-cost reference that the sketches approximate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchnewton import _native
from sketchnewton.learners.base import Arrays, Learner, checked, checked_clip, checked_eta, steepest_curvature
from sketchnewton.learners.rows import Floats
from sketchnewton.losses import Loss

REFRESH = 1024  # rounds between fresh inversions of A


class FullNewton(Learner):
    """Exact Online Newton Step: A = αI + Σ(σ + η)ggᵀ, nothing sketched (SON Equations 1 and 2).

    Parameters are those of `SketchedNewton`. A⁻¹ is updated by the Sherman–Morrison formula and recomputed from A
    every 1,024 rounds. Cost per row: O(d²) time; memory: two d × d matrices. Meant for d up to a few thousand.

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
        self._intercept_metric = steepest_curvature(self.loss, C, sigma + first)
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
        moments = self._arrays["A"][1:d, 1:d] - self._alpha * np.eye(d - 1)
        eigenvalues: Floats = np.linalg.eigvalsh(moments)[::-1]
        return eigenvalues

    def _resize(self, size: int) -> None:
        """Coordinate 0 is the intercept, coordinate i + 1 is feature i; those never seen have metric α."""
        metric = np.full(size, self._alpha)
        metric[0] = self._intercept_metric
        try:
            fresh = {"w": np.zeros(size), "P": np.diag(1 / metric), "A": np.diag(metric)}
        except MemoryError:
            message = (
                f"{size - 1} features need {16 * size**2 / 2**30:.3g} GB in FullNewton: use SketchedNewton"
            )
            raise MemoryError(message) from None
        if "w" in self._arrays:
            old = len(self._arrays["w"])
            fresh["w"][:old] = self._arrays["w"]
            fresh["P"][:old, :old] = self._arrays["P"]
            fresh["A"][:old, :old] = self._arrays["A"]
        self._arrays |= fresh
        self._bind()

    def _bind(self) -> None:
        self._kernel = _native.full_newton(self._problem, self._params["intercept"], dict(self._arrays))

    def _reserve(self, largest: int, widest: int) -> None:
        size = len(self._arrays["w"])
        if largest + 2 > size:
            self._resize(max(largest + 2, min(2 * size, largest + 1024)))

    def _learn(self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats) -> None:
        begin = 0
        while begin < len(rows):
            end = min(len(rows), begin + REFRESH - self.rows_seen % REFRESH)
            before = self.rows_seen
            self._kernel.learn(rows, begin, end, labels, weights, out)
            if self.rows_seen > before and self.rows_seen % REFRESH == 0:
                self._invert()
            begin = end

    def _invert(self) -> None:
        # Only what has been seen, so that the bits do not depend on how much room there is.
        d = 1 + self.dimension
        A: NDArray[np.float64] = self._arrays["A"][:d, :d].copy()
        scale = 1 / np.sqrt(np.diag(A))
        P = np.linalg.inv(A * scale * scale[:, None]) * scale * scale[:, None]
        self._arrays["P"][:d, :d] = (P + P.T) / 2

    def _predict(self, rows: _native.Rows, out: Floats) -> None:
        self._kernel.predict(rows, out)

    def _restore(self, arrays: Arrays) -> None:
        self._resize(len(arrays["w"]))
        super()._restore(arrays)
        rounds, dimension = self._arrays["counts"]
        if rounds < 0 or not 0 <= dimension < len(self._arrays["w"]):
            raise ValueError("its counters contradict its arrays")
        self._bind()
