"""Oja's sketch inside a learner (SON Algorithms 4, 5 and 11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sketchnewton import _native
from sketchnewton.core.state import State, View, filled, zeros
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.curvature.base import (
    LearnerSketch,
    Merged,
    SketchParameters,
    newton_kernel,
    padded4,
    recent_fits,
    reserve_recent,
)


class OjaSketchState(LearnerSketch):
    """S = (tΛ)^½ V with V = FZ; the table's columns hold Z, and in block form the rows that wait."""

    only_reads = True

    def __init__(self, parameters: SketchParameters) -> None:
        self._m, self._block = m, block = parameters.size, parameters.block
        self._dtype = parameters.dtype
        self._rate = _rates(parameters.oja_rate, m)
        self.columns = m + (block if block > 1 else 0)
        self._make = newton_kernel("oja_newton", parameters.dtype)

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        m, block, width = self._m, self._block, padded4(self._m)
        return {
            "sketch_counts": zeros(5, "int64"),  # updates, rank, touched, rows in the block, recent
            "growth": zeros(1),
            "F": zeros((m, width)),
            "energy": zeros(width),  # tΛ
            "c": zeros(width),
            "Y": zeros((block, width)),
            "G": zeros((block, block)),
            "recent": zeros(0, "int64"),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        views = views if self._rate is None else {**views, "rate": self._rate}
        return self._make(problem, first_alpha, diagonal, views, self._block)

    def reserve(self, state: State, features: int, widest: int) -> dict[str, View]:
        """Room for the features of a block."""
        return reserve_recent(state, self._block * widest) if self._block > 1 else {}

    def coefficients(self, state: State) -> Floats:
        """Fᵀc for Z, nothing for the rows that wait."""
        values = np.zeros(self.columns)
        values[: self._m] = (state["c"][: self._m] @ state["F"])[: self._m]
        return values

    def spectrum(self, state: State) -> Floats:
        """The eigenvalues tΛ, largest first."""
        return np.sort(state["energy"][: self._rank(state)])[::-1]

    def basis(self, state: State, columns: Floats) -> Floats:
        """V = FZ."""
        V: Floats = state["F"][: self._rank(state), : self._m] @ columns[:, : self._m].T
        return V

    def factor(self, state: State, columns: Floats) -> Floats:
        """S = (tΛ)^½ V, and the rows that wait."""
        rank, filled = self._rank(state), state["sketch_counts"][3]
        S = np.sqrt(state["energy"][:rank])[:, None] * self.basis(state, columns)
        return np.vstack([S, columns[:, self._m : self._m + filled].T])

    def merged(self, mine: State, theirs: State, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The leading directions of both together."""
        _, sizes, V = np.linalg.svd(np.vstack(S), full_matrices=False)
        rounding = 64 * np.finfo(self._dtype).eps  # of directions that the table holds
        rank = min(self._m, int(np.count_nonzero(sizes > rounding * sizes.max(initial=0.0))))
        state = State(self.fresh())
        state["sketch_counts"][:2] = mine["sketch_counts"][0] + theirs["sketch_counts"][0], rank
        state["F"][:rank, :rank] = np.eye(rank)
        state["energy"][:rank] = sizes[:rank] ** 2
        columns = np.zeros((V.shape[1], self.columns))
        columns[:, :rank] = V[:rank].T
        return Merged(state, columns, alpha)

    def fits(self, state: State, seen: Integers | View, columns: Callable[[], NDArray[np.floating]]) -> bool:
        """Are the counters possible?"""
        updates, rank, touched, filled, recent = state.view("sketch_counts").tolist()
        return bool(
            min(updates, rank, touched, filled) >= 0
            and rank <= self._m
            and filled < self._block
            and recent_fits(state, recent, seen)
        )

    @staticmethod
    def _rank(state: State) -> int:
        return int(state.view("sketch_counts")[1])


def _rates(rate: str | float | Sequence[float], m: int) -> View | None:
    if isinstance(rate, str):
        if rate != "adaptive":
            raise ValueError(f"oja_rate={rate!r} is invalid: must be 'adaptive', a number or {m} numbers")
        return None
    given = [float(rate)] if isinstance(rate, float | int) else [float(number) for number in rate]
    if len(given) not in (1, m) or not all(0 < number < math.inf for number in given):
        raise ValueError(f"oja_rate={rate!r} is invalid: must be a positive number or {m} of them")
    rates = given if len(given) == m else given * m
    return filled([*rates, *[0.0] * (padded4(m) - m)])
