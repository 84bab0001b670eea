"""Frequent Directions and its kin inside a learner (SON Algorithms 6–10, RFD Algorithms 3 and 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchnewton import _native
from sketchnewton.learners.base import Arrays
from sketchnewton.learners.epochs import EpochArrays
from sketchnewton.learners.rows import Floats
from sketchnewton.learners.sketch import Integers, LearnerSketch, padded4, recent_fits, reserve_recent


class FrequentState(LearnerSketch):
    """S = [diag(D) V; G]: the table holds a count of epochs, V, and the gradients G since the last shrink.

    `share` of the m directions shrink, from the smallest up (1 for FD and RFD, β for PFD); `ridge` is what α gains
    of each shrink (½ for RFD).
    """

    def __init__(self, m: int, dtype: str, share: float, ridge: float) -> None:
        self._m, self._share, self._ridge = m, share, ridge
        self._q = max(m - 1, 1)  # rows of V: a shrink leaves at most m − 1
        self.columns = 1 + self._q + m
        self._epochs = EpochArrays(self._q, padded4(1 + self._q), dtype)
        self._make = _native.frequent_newton64 if dtype == "float64" else _native.frequent_newton32

    def fresh(self) -> Arrays:
        """The small arrays of a learner that has seen nothing."""
        m, q = self._m, self._q
        n = 2 * m - 1
        return {
            "sketch_counts": np.zeros(4, np.int64),  # rank of V, directions opened by G, rows in G, recent
            "shrunk": np.zeros(1),
            "M": np.zeros((n, padded4(n))),
            "U": np.zeros((n, padded4(n))),
            "C": np.zeros((m, padded4(q))),
            "T": np.zeros((m, padded4(m))),
            "c": np.zeros(padded4(n)),
            "recent": np.zeros(0, np.int64),
            **self._epochs.fresh(),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views, self._m, self._share, self._ridge)

    def reserve(self, arrays: Arrays, widest: int) -> bool:
        """Make room for the features of an epoch."""
        return reserve_recent(arrays, self._m * widest)

    def coefficients(self, arrays: Arrays) -> Floats:
        """Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e)."""
        rank, opened, _, _ = arrays["sketch_counts"]
        c = arrays["c"]
        values = np.zeros(self.columns)
        values[1 : 1 + rank] = c[:rank]
        values[1 : 1 + self._q] += c[rank : rank + opened] @ arrays["C"][:opened, : self._q]
        values[1 + self._q :] = c[rank : rank + opened] @ arrays["T"][:opened, : self._m]
        return values

    def spectrum(self, arrays: Arrays) -> Floats:
        """The eigenvalues of M = W SᵀS Wᵀ, largest first."""
        n = int(arrays["sketch_counts"][:2].sum())
        return np.asarray(np.linalg.eigvalsh(arrays["M"][:n, :n])[::-1], np.float64)

    def basis(self, arrays: Arrays, columns: Floats) -> Floats:
        """W = [V; C V + T G]."""
        rank, opened, _, _ = arrays["sketch_counts"]
        V, G = columns[:, 1 : 1 + self._q].T, columns[:, 1 + self._q :].T
        opened_rows = arrays["C"][:opened, : self._q] @ V + arrays["T"][:opened, : self._m] @ G
        return np.vstack([V[:rank], opened_rows])

    def fits(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Are the counters possible?"""
        rank, opened, filled, recent = arrays["sketch_counts"]
        return bool(
            self._epochs.fits(arrays, columns[:, 0])
            and 0 <= rank < max(self._m, 2)
            and 0 <= opened <= filled < self._m
            and recent_fits(arrays, recent, seen)
        )

    def saved(self, arrays: Arrays) -> Arrays:
        """Only the maps that are in use, and no spare room."""
        return self._epochs.saved(super().saved(arrays))

    def restored(self, arrays: Arrays) -> Arrays:
        """Room again for all maps."""
        return self._epochs.restored(arrays)
