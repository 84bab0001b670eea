"""Oja's sketch inside a learner (SON Algorithms 4, 5 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sketchnewton import _native
from sketchnewton.core.state import zeros
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.base import Arrays
from sketchnewton.learners.curvature.base import LearnerSketch, Merged, padded4, recent_fits, reserve_recent


class OjaSketchState(LearnerSketch):
    """S = (tΛ)^½ V with V = FZ; the table's columns hold Z, and in block form the rows that wait."""

    def __init__(self, m: int, dtype: str, rate: str | float | Sequence[float], block: int) -> None:
        self._m, self._block = m, block
        self._rate = _rates(rate, m)
        self.columns = m + (block if block > 1 else 0)
        self._make = _native.oja_newton64 if dtype == "float64" else _native.oja_newton32

    def fresh(self) -> Arrays:
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
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""
        views = views if self._rate is None else {**views, "rate": self._rate}
        return self._make(problem, first_alpha, diagonal, views, self._block)

    def reserve(self, arrays: Arrays, features: int, widest: int) -> bool:
        """Make room for the features of a block."""
        return self._block > 1 and reserve_recent(arrays, self._block * widest)

    def coefficients(self, arrays: Arrays) -> Floats:
        """Fᵀc for Z, nothing for the rows that wait."""
        values = np.zeros(self.columns)
        values[: self._m] = (arrays["c"][: self._m] @ arrays["F"])[: self._m]
        return values

    def spectrum(self, arrays: Arrays) -> Floats:
        """The eigenvalues tΛ, largest first."""
        return np.sort(arrays["energy"][: self._rank(arrays)])[::-1]

    def basis(self, arrays: Arrays, columns: Floats) -> Floats:
        """V = FZ."""
        V: Floats = arrays["F"][: self._rank(arrays), : self._m] @ columns[:, : self._m].T
        return V

    def factor(self, arrays: Arrays, columns: Floats) -> Floats:
        """S = (tΛ)^½ V, and the rows that wait."""
        rank, filled = self._rank(arrays), arrays["sketch_counts"][3]
        S = np.sqrt(arrays["energy"][:rank])[:, None] * self.basis(arrays, columns)
        return np.vstack([S, columns[:, self._m : self._m + filled].T])

    def merged(self, mine: Arrays, theirs: Arrays, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The leading directions of both together."""
        _, sizes, V = np.linalg.svd(np.vstack(S), full_matrices=False)
        rank = min(self._m, int(np.count_nonzero(sizes > 1e-6 * sizes.max(initial=0.0))))
        arrays = self.fresh()
        arrays["sketch_counts"][:2] = mine["sketch_counts"][0] + theirs["sketch_counts"][0], rank
        arrays["F"][:rank, :rank] = np.eye(rank)
        arrays["energy"][:rank] = sizes[:rank] ** 2
        columns = np.zeros((V.shape[1], self.columns))
        columns[:, :rank] = V[:rank].T
        return Merged(arrays, columns, alpha)

    def fits(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Are the counters possible?"""
        updates, rank, touched, filled, recent = arrays["sketch_counts"]
        return bool(
            min(updates, rank, touched, filled) >= 0
            and rank <= self._m
            and filled < self._block
            and recent_fits(arrays, recent, seen)
        )

    @staticmethod
    def _rank(arrays: Arrays) -> int:
        return int(arrays["sketch_counts"][1])


def _rates(rate: str | float | Sequence[float], m: int) -> Floats | None:
    if isinstance(rate, str):
        if rate != "adaptive":
            raise ValueError(f"oja_rate={rate!r} is invalid: must be 'adaptive', a number or {m} numbers")
        return None
    given = np.atleast_1d(np.asarray(rate, np.float64))
    if given.shape not in ((1,), (m,)) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"oja_rate={rate!r} is invalid: must be a positive number or {m} of them")
    rates = np.zeros(padded4(m))
    rates[:m] = given
    return rates
