"""Gaussian random projection: every row is added, with random weights, to all rows of the sketch."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from sketchnewton.core.parameters import checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, DTypeLike, Floats
from sketchnewton.sketches.base import LowRank, Sketch, widened
from sketchnewton.sketches.rows import Rows

_BLOCK = 256  # rows whose random weights are drawn together


class RandomProjection(Sketch):
    """Gaussian random projection S = RA, with E[SᵀS] = AᵀA; R has m = `sketch_size` rows.

    One sketch is off by about ‖A‖_F·‖A‖₂/√m + ‖A‖²_F/m, with no certificate: error_bound is infinite. The weights
    of row t follow from (`random_state`, t), however the rows arrive. Merged sketches must have different random
    states: rows with the same weights would be taken for one row. Cost per row O(m·nonzeros) plus making it dense.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((500, 4))
    >>> sketch = RandomProjection(2000).update(A)
    >>> bool(np.linalg.norm(sketch.covariance() - A.T @ A, 2) < 0.15 * np.linalg.norm(A.T @ A, 2))
    True
    """

    def __init__(self, sketch_size: int, *, random_state: int = 0, dtype: DTypeLike = "float64") -> None:
        self.sketch_size = checked_size("sketch_size", sketch_size)
        self.random_state = checked_size("random_state", random_state, 0)
        super().__init__(sketch_size=self.sketch_size, random_state=self.random_state, dtype=dtype)
        self._sums = np.zeros((self.sketch_size, 0), self.dtype)
        self._norm = 0.0
        self._position = 0  # rows of this random state
        self._merged: set[int] = set()  # other random states
        self._drawn: tuple[int, Floats] = (-1, np.zeros((0, 0)))

    @property
    def error_bound(self) -> float:
        """Infinite: no error is certain."""
        return math.inf

    @property
    def squared_norm(self) -> float:
        """‖A‖²_F."""
        return self._norm

    def _weights(self, block: int) -> Floats:
        """R for the rows of one block. Philox is counter-based: nothing needs to be saved."""
        if self._drawn[0] != block:
            random = np.random.Generator(np.random.Philox(key=self.random_state, counter=[0, 0, block, 0]))
            scale = 1 / math.sqrt(self.sketch_size)
            self._drawn = block, scale * random.standard_normal((_BLOCK, self.sketch_size))
        return self._drawn[1]

    def _absorb(self, rows: Rows) -> None:
        start = 0
        while start < len(rows):
            number, at = divmod(self._position, _BLOCK)
            step = min(_BLOCK - at, len(rows) - start)
            block = rows.block(start, start + step, self.dtype)
            self._sums += self._weights(number)[at : at + step].T.astype(self.dtype) @ block
            self._norm += float(np.einsum("ij,ij->", block, block, dtype=np.float64))
            self._position += step
            start += step

    def _widen(self, n_features: int) -> None:
        self._sums = widened(self._sums, n_features)

    def _decompose(self) -> LowRank:
        return LowRank.of(self._sums)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if other.sketch_size != self.sketch_size:
            raise ValueError(f"cannot merge sketches of size {self.sketch_size} and {other.sketch_size}")
        shared = ({self.random_state} | self._merged) & ({other.random_state} | other._merged)
        if shared:
            raise ValueError(
                f"cannot merge sketches that share random_state={min(shared)}: give each its own random_state"
            )

    def _merge(self, other: Self) -> None:
        self._sums += other._sums.astype(self.dtype, copy=False)
        self._norm += other._norm
        self._merged |= {other.random_state} | other._merged

    def _all_arrays(self) -> Arrays:
        return {
            **super()._all_arrays(),
            "sums": self._sums,
            "norm": np.array([self._norm]),
            "position": np.array([self._position], np.int64),
            "merged": np.array(sorted(self._merged), np.int64),
        }

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._sums = expect(arrays, "sums", self.dtype, (self.sketch_size, self.n_features))
        self._norm = float(expect(arrays, "norm", np.float64, (1,))[0])
        self._position = int(expect(arrays, "position", np.int64, (1,))[0])
        self._merged = set(expect(arrays, "merged", np.int64, (None,)).tolist())
        if self._norm < 0 or self._position < 0:
            raise ValueError("negative counts")
