"""Oja's rule: directions that follow the rows by small steps, and the energy seen along each."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from sketchnewton.core.parameters import checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, DTypeLike, Floats
from sketchnewton.sketches.base import LowRank, Sketch, widened
from sketchnewton.sketches.rows import Rows
from sketchnewton.sketches.spectrum import right_vectors
from sketchnewton.sketches.stack import Matrix

# A direction is new if this share of the longest row at hand lies outside the known ones.
_NEW = 1e-6
_NOTHING = 1e-30
_SMALLEST_EXPONENT = -500


class OjaSketch(Sketch):
    """Oja's algorithm as a sketch (SON Algorithm 3, block form): S = (tΛ)^½ V with m = `sketch_size` rows.

    With every `block_size` rows G (default m) the directions move by VᵢGᵀG/Eᵢ and are orthonormalised again, where
    E = tΛ, the energy seen so far along each, sets the step: Γ_t of order 1/t without a rate to tune. The first
    directions are the singular vectors of the first rows. No guarantee is known: error_bound is infinite. Cost per
    row O(m·n_features). Merging keeps the m longest directions of both.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((2000, 10)) * np.geomspace(10, 0.1, 10)
    >>> sketch = OjaSketch(3).update(A)
    >>> exact = np.linalg.svd(A, compute_uv=False)[:3]
    >>> bool(np.allclose(sketch.singular_values_, exact, rtol=0.02))
    True
    """

    def __init__(
        self, sketch_size: int, *, block_size: int | None = None, dtype: DTypeLike = "float64"
    ) -> None:
        self.sketch_size = checked_size("sketch_size", sketch_size)
        self.block_size = None if block_size is None else checked_size("block_size", block_size)
        super().__init__(sketch_size=self.sketch_size, block_size=self.block_size, dtype=dtype)
        self._directions = np.zeros((0, 0), self.dtype)
        self._energies = np.zeros(0)
        self._block = np.zeros((self.block_size or self.sketch_size, 0), self.dtype)
        self._waiting = 0
        self._norm = 0.0

    @property
    def error_bound(self) -> float:
        """Infinite: no error is certain."""
        return math.inf

    @property
    def squared_norm(self) -> float:
        """‖A‖²_F."""
        return self._norm

    def _absorb(self, rows: Rows) -> None:
        start = 0
        while start < len(rows):
            step = min(len(self._block) - self._waiting, len(rows) - start)
            new = self._block[self._waiting : self._waiting + step]
            rows.copy_to(new, start)
            self._norm += float(np.einsum("ij,ij->", new, new, dtype=np.float64))
            self._waiting += step
            start += step
            if self._waiting == len(self._block):
                self._directions, self._energies = self._moved(self._block)
                self._waiting = 0

    def _moved(self, G: Matrix) -> tuple[Matrix, Floats]:
        """Directions and energies after the rows `G`."""
        # Not below what squares of float64 can hold: energies of shorter rows vanish, and must not be divided by.
        exponent = max(int(np.frexp(float(np.abs(G).max(initial=0)))[1]), _SMALLEST_EXPONENT)
        G = np.ldexp(G.astype(np.float64), -exponent)  # squares of the entries stay in range
        V = self._extended(self._directions.astype(np.float64), G)
        Y = G @ V.T
        seen = (Y**2).sum(axis=0)
        scale = float(np.ldexp(1.0, 2 * exponent))  # infinite, where Python's power raises
        E = np.concatenate([self._energies, np.zeros(len(V) - len(self._energies))]) + seen * scale
        with np.errstate(over="ignore"):
            relative = E / scale  # to rows with entries up to 1: below rounding, nothing moves
        gamma = np.divide(1.0, relative, out=np.zeros(len(E)), where=relative > _NOTHING)
        moved = V + gamma[:, None] * (Y.T @ G)
        Q, R = np.linalg.qr(moved.T)
        return (np.sign(np.diag(R))[:, None] * Q.T).astype(self.dtype, copy=False), E

    def _extended(self, V: Matrix, G: Matrix) -> Matrix:
        """V with new directions out of `G`, as long as there are fewer than m."""
        missing = min(self.sketch_size, G.shape[1]) - len(V)
        if missing == 0:
            return V
        rest = G - (G @ V.T) @ V
        rest -= (rest @ V.T) @ V
        lengths, Vt = right_vectors(rest)
        known = max(1.0, float(lengths.max(initial=0.0)))
        return np.vstack([V, Vt[lengths > _NEW * known][:missing]])

    def _widen(self, n_features: int) -> None:
        self._directions = widened(self._directions, n_features)
        self._block = widened(self._block, n_features)

    def _decompose(self) -> LowRank:
        V, E = self._directions, self._energies
        if self._waiting:
            V, E = self._moved(self._block[: self._waiting])
        order = np.argsort(-E, kind="stable")
        order = order[E[order] > 0]
        return LowRank(np.sqrt(E[order]), V[order])

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if other.sketch_size != self.sketch_size:
            raise ValueError(f"cannot merge sketches of size {self.sketch_size} and {other.sketch_size}")

    def _merge(self, other: Self) -> None:
        both = LowRank.of(np.vstack([self.matrix, other.matrix.astype(self.dtype, copy=False)]))
        self._energies = both.squares[: self.sketch_size]
        self._directions = both.directions[: self.sketch_size]
        self._waiting = 0
        self._norm += other._norm

    def _all_arrays(self) -> Arrays:
        return {
            **super()._all_arrays(),
            "directions": self._directions,
            "energies": self._energies,
            "block": self._block[: self._waiting],
            "norm": np.array([self._norm]),
        }

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._energies = expect(arrays, "energies", np.float64, (None,))
        self._directions = expect(arrays, "directions", self.dtype, (len(self._energies), self.n_features))
        waiting = expect(arrays, "block", self.dtype, (None, self.n_features))
        self._norm = float(expect(arrays, "norm", np.float64, (1,))[0])
        if len(self._energies) > self.sketch_size or len(waiting) >= len(self._block):
            raise ValueError("too many rows")
        self._block = np.zeros((len(self._block), self.n_features), self.dtype)
        self._block[: len(waiting)] = waiting
        self._waiting = len(waiting)
