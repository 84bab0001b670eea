"""The Gaussian random projection inside a learner (SON, NIPS text, section 3)."""

from __future__ import annotations

from collections.abc import Callable

from sketchnewton import _native
from sketchnewton.core.state import State, View, zeros
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.curvature.base import (
    LearnerSketch,
    Merged,
    SketchParameters,
    newton_kernel,
    padded4,
)


class ProjectionState(LearnerSketch):
    """S = Σ ρ_t ĝ_tᵀ with ρ_t ~ N(0, I/m) drawn from (seed, t); the table's columns hold S itself."""

    random = True

    def __init__(self, parameters: SketchParameters) -> None:
        self._m, self._seed = parameters.size, parameters.seed
        self.columns = self._m
        self._make = newton_kernel("projection_newton", parameters.dtype)

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        width = padded4(self._m)
        return {
            "sketch_counts": zeros(2, "int64"),  # rows, touched
            "G": zeros((self._m, width)),
            "b": zeros(width),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views, self._seed)

    def coefficients(self, state: State) -> Floats:
        """The weights' part in the sketch is Sᵀb."""
        b: Floats = state["b"][: self._m]
        return b

    def spectrum(self, state: State) -> Floats:
        """The eigenvalues of SSᵀ, which are those of SᵀS, largest first."""
        return np.asarray(np.linalg.eigvalsh(state["G"][:, : self._m])[::-1], np.float64)

    def basis(self, state: State, columns: Floats) -> Floats:
        """Orthonormal rows that span S."""
        Q: Floats = np.linalg.qr(columns)[0].T
        return Q

    def factor(self, state: State, columns: Floats) -> Floats:
        """The columns hold S."""
        S: Floats = columns.T
        return S

    def merged(self, mine: State, theirs: State, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """Projections of all gradients together, if those of both were drawn independently."""
        whole = S[0] + S[1]
        state = State(self.fresh())
        state["G"][:, : self._m] = whole @ whole.T
        state["sketch_counts"][0] = mine["sketch_counts"][0]  # numbers not drawn yet
        return Merged(state, whole.T, alpha)

    def fits(self, state: State, seen: Integers | View, columns: Callable[[], NDArray[np.floating]]) -> bool:
        """Are the counters possible?"""
        return min(state.view("sketch_counts").tolist()) >= 0
