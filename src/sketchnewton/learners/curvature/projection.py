"""The Gaussian random projection inside a learner (SON, NIPS text, section 3)."""

from __future__ import annotations

from typing import Any

from sketchnewton import _native
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.base import Arrays
from sketchnewton.learners.curvature.base import LearnerSketch, Merged, padded4


class ProjectionState(LearnerSketch):
    """S = Σ ρ_t ĝ_tᵀ with ρ_t ~ N(0, I/m) drawn from (seed, t); the table's columns hold S itself."""

    def __init__(self, m: int, dtype: str, seed: int) -> None:
        self._m, self._seed = m, seed
        self.columns = m
        self._make = _native.projection_newton64 if dtype == "float64" else _native.projection_newton32

    def fresh(self) -> Arrays:
        """The small arrays of a learner that has seen nothing."""
        width = padded4(self._m)
        return {
            "sketch_counts": np.zeros(2, np.int64),  # rows, touched
            "G": np.zeros((self._m, width)),
            "b": np.zeros(width),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views, self._seed)

    def coefficients(self, arrays: Arrays) -> Floats:
        """The weights' part in the sketch is Sᵀb."""
        b: Floats = arrays["b"][: self._m]
        return b

    def spectrum(self, arrays: Arrays) -> Floats:
        """The eigenvalues of SSᵀ, which are those of SᵀS, largest first."""
        return np.asarray(np.linalg.eigvalsh(arrays["G"][:, : self._m])[::-1], np.float64)

    def basis(self, arrays: Arrays, columns: Floats) -> Floats:
        """Orthonormal rows that span S."""
        Q: Floats = np.linalg.qr(columns)[0].T
        return Q

    def factor(self, arrays: Arrays, columns: Floats) -> Floats:
        """The columns hold S."""
        S: Floats = columns.T
        return S

    def merged(self, mine: Arrays, theirs: Arrays, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """Projections of all gradients together, if those of both were drawn independently."""
        whole = S[0] + S[1]
        arrays = self.fresh()
        arrays["G"][:, : self._m] = whole @ whole.T
        arrays["sketch_counts"][0] = mine["sketch_counts"][0]  # numbers not drawn yet
        return Merged(arrays, whole.T, alpha)

    def fits(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Are the counters possible?"""
        return bool(arrays["sketch_counts"].min() >= 0)
