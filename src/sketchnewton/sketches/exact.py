"""All of AᵀA: what the sketches approximate."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, DTypeLike, Floats
from sketchnewton.sketches.base import LowRank, Sketch
from sketchnewton.sketches.rows import Rows

_BLOCK = 256  # rows that are made dense at a time


class ExactCovariance(Sketch):
    """AᵀA itself, in the interface of the sketches, with no error but rounding.

    Memory and time per row are n_features². `matrix` is the square root along the eigenvectors. For comparison,
    and for narrow data.

    >>> import numpy as np
    >>> exact = ExactCovariance().update(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> exact.covariance().tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """

    def __init__(self, *, dtype: DTypeLike = "float64") -> None:
        super().__init__(dtype=dtype)
        # Kept as products/scale², so that squares of 1e150 can still be summed.
        self._products = np.zeros((0, 0), self.dtype)
        self._scale = 1.0

    @property
    def error_bound(self) -> float:
        """0: nothing is approximated."""
        return 0.0

    @property
    def squared_norm(self) -> float:
        """‖A‖²_F, the trace."""
        return float(np.trace(self._products, dtype=np.float64)) * self._scale**2

    def covariance(self) -> Floats:
        """AᵀA."""
        return self._products.astype(np.float64) * self._scale**2

    def _widen(self, n_features: int) -> None:
        wide = np.zeros((n_features, n_features), self.dtype)
        wide[: self.n_features, : self.n_features] = self._products
        self._products = wide

    def _absorb(self, rows: Rows) -> None:
        for start in range(0, len(rows), _BLOCK):
            block = rows.block(start, min(start + _BLOCK, len(rows)), np.float64)
            self._rescale(float(np.abs(block).max()))
            scaled = (block / self._scale).astype(self.dtype, copy=False)
            self._products += scaled.T @ scaled

    def _rescale(self, peak: float) -> None:
        """Let no scaled entry be above 1; before the first row with anything in it, choose freely."""
        empty = not self._products.any()
        if peak > self._scale or (peak > 0 and empty):
            scale = math.ldexp(1.0, math.frexp(peak)[1])
            if not empty:
                self._products *= (self._scale / scale) ** 2
            self._scale = scale

    def _decompose(self) -> LowRank:
        if self.n_features == 0:
            return LowRank.of(self._products)
        values, vectors = np.linalg.eigh(self._products.astype(np.float64))
        # Eigenvalues of a semidefinite matrix below the rounding of its largest are 0.
        used = values[::-1] > len(values) * np.finfo(self.dtype).eps * values.max(initial=0.0)
        directions = vectors.T[::-1][used]
        signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
        return LowRank(
            np.sqrt(values[::-1][used]) * self._scale,
            (signs[:, None] * directions).astype(self.dtype, copy=False),
        )

    def _merge(self, other: Self) -> None:
        if not other._products.any():  # whose scale is still to be chosen
            return
        self._rescale(other._scale)
        self._products += other._products * np.array((other._scale / self._scale) ** 2, self.dtype)

    def _all_arrays(self) -> Arrays:
        own = {"products": self._products, "scale": np.array([self._scale])}
        return {**super()._all_arrays(), **own}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._products = expect(arrays, "products", self.dtype, (self.n_features, self.n_features))
        self._scale = float(expect(arrays, "scale", np.float64, (1,))[0])
        if self._scale <= 0:
            raise ValueError("array 'scale' is not positive")
