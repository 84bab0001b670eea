"""A sum of symmetric matrices that can be multiplied by a vector in time proportional to its non-zeros.

>>> from sketchnewton.eigen.matrices import as_matrix
>>> total = RunningSum(100_000)
>>> for i in range(3):
...     total.add(as_matrix(sp.csr_array(([1.0], ([0], [i])), shape=(1, 100_000)), 100_000))
>>> total.times(np.ones(100_000))[:4], total.non_zeros
(array([1., 1., 1., 0.]), 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sketchnewton.core.types import Array, Arrays, Floats
from sketchnewton.eigen.matrices import Dense, Factor, Matrix, Sparse

__all__ = ["RunningSum"]

_SMALL = 64  # up to this size an n×n array is never slower


class RunningSum:
    """Σ of matrices: an n×n array, compressed rows, and the rows xᵢ of factors with their weights sᵢ.

    Each part exists only if there was such input. When the stored non-zeros exceed n²/2, all moves into the array,
    which is then the smaller one: sparse data are never paid for with n² before they have earned it.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._clear()

    def _clear(self) -> None:
        self._dense: Floats | None = np.zeros((self.n, self.n)) if self.n <= _SMALL else None
        self._sparse: Any = None
        # Rows in CSR form with room to grow: 0 … _count rows, _used non-zeros.
        self._count = 0
        self._used = 0
        self._indptr = np.zeros(1, np.int32)  # what scipy.sparse computes with: no conversion per product
        self._indices = np.empty(0, np.int32)
        self._values = np.empty(0)
        self._weights = np.empty(0)
        self._view: tuple[Any, Any, Floats] | None = None
        self.floor = 0.0
        """λ_min ≥ −floor."""

    @property
    def non_zeros(self) -> int:
        """How many numbers one multiplication reads."""
        dense = 0 if self._dense is None else self._dense.size
        return dense + (0 if self._sparse is None else int(self._sparse.nnz)) + self._used

    def add(self, matrix: Matrix, scale: float = 1.0) -> None:
        """Add scale·matrix."""
        self.floor += scale * matrix.floor()
        if isinstance(matrix, Factor):
            self._add_rows(matrix.rows, scale * matrix.weights)
        elif isinstance(matrix, Sparse):
            self._add_sparse(scale * matrix.rows)
        elif isinstance(matrix, Dense):
            self._to_dense()[...] += scale * matrix.array
        if self._dense is None and 2 * self.non_zeros > self.n**2:
            self._to_dense()

    def absorb(self, other: RunningSum) -> None:
        """Add another sum and leave that one empty."""
        self.floor += other.floor
        if other._count:
            rows, _, weights = other._rows()
            self._add_rows(rows, weights)
        if other._sparse is not None:
            self._add_sparse(other._sparse)
        if other._dense is not None:
            self._to_dense()[...] += other._dense
        other._clear()

    def times(self, x: Floats) -> Floats:
        """The sum times x."""
        result = np.zeros(x.shape) if self._dense is None else self._dense @ x
        if self._sparse is not None:
            result += self._sparse @ x
        if self._count:
            rows, columns, weights = self._rows()
            inner = rows @ x
            result += columns @ ((weights if inner.ndim == 1 else weights[:, None]) * inner)
        return result

    def dense(self) -> Floats:
        """The sum as an array of its own."""
        result = np.zeros((self.n, self.n)) if self._dense is None else self._dense.copy()
        if self._sparse is not None:
            result += self._sparse.toarray()
        if self._count:
            rows, columns, weights = self._rows()
            result += (columns @ (rows * weights[:, None])).toarray()
        return result

    def arrays(self, prefix: str) -> Arrays:
        """What a file must hold, without the room to grow."""
        kept: Arrays = {f"{prefix}.floor": np.array(self.floor)}
        if self._dense is not None:
            kept[f"{prefix}.dense"] = self._dense
        if self._sparse is not None:
            kept[f"{prefix}.sparse.values"] = self._sparse.data
            kept[f"{prefix}.sparse.indices"] = self._sparse.indices.astype(np.int32)
            kept[f"{prefix}.sparse.starts"] = self._sparse.indptr.astype(np.int32)
        if self._count:
            rows, _, weights = self._rows()
            kept[f"{prefix}.rows.values"] = rows.data
            kept[f"{prefix}.rows.indices"] = rows.indices
            kept[f"{prefix}.rows.starts"] = rows.indptr
            kept[f"{prefix}.rows.weights"] = weights
        return kept

    @classmethod
    def restored(cls, n: int, arrays: Mapping[str, Array], prefix: str) -> RunningSum:
        """The sum that `arrays` describes; raises KeyError or ValueError if it is none."""
        total = cls(n)
        total.floor = float(_vector(arrays[f"{prefix}.floor"], np.float64, 1, ndim=0))
        dense = arrays.get(f"{prefix}.dense")
        if dense is not None:
            if dense.shape != (n, n) or dense.dtype != np.float64:
                raise ValueError(f"array '{prefix}.dense' has the wrong type or shape")
            total._dense = dense
        elif n <= _SMALL:
            raise KeyError(f"{prefix}.dense")
        if f"{prefix}.sparse.values" in arrays:
            total._sparse = _restored_rows(arrays, f"{prefix}.sparse", n, rows=n)
        if f"{prefix}.rows.values" in arrays:
            weights = _vector(arrays[f"{prefix}.rows.weights"], np.float64, None)
            rows = _restored_rows(arrays, f"{prefix}.rows", n, rows=len(weights))
            total._count, total._used = len(weights), rows.nnz
            total._indptr, total._indices = rows.indptr, rows.indices
            total._values, total._weights = rows.data, weights
        return total

    # -- parts

    def _rows(self) -> tuple[Any, Any, Floats]:
        """The rows, their transpose, their weights."""
        if self._view is None:
            parts = (self._values[: self._used], self._indices[: self._used], self._indptr[: self._count + 1])
            rows = sp.csr_array(parts, shape=(self._count, self.n))
            self._view = (rows, rows.T, self._weights[: self._count])
        return self._view

    def _add_rows(self, rows: Any, weights: Floats) -> None:
        if not sp.issparse(rows):
            if self._dense is not None:
                self._dense += (rows.T * weights) @ rows
                return
            rows = sp.csr_array(rows)
        if self._dense is not None:
            for start, end, weight in zip(rows.indptr[:-1], rows.indptr[1:], weights, strict=True):
                index, values = rows.indices[start:end], rows.data[start:end]
                self._dense[index[:, None], index] += np.multiply.outer(weight * values, values)
            return
        count, used = self._count + rows.shape[0], self._used + int(rows.nnz)
        if used > np.iinfo(np.int32).max:
            raise ValueError(f"a sum holds {np.iinfo(np.int32).max:,} non-zeros of factors, this is one more")
        self._view = None
        self._indptr = _with_room(self._indptr, count + 1)
        self._weights = _with_room(self._weights, count)
        self._indices = _with_room(self._indices, used)
        self._values = _with_room(self._values, used)
        self._indptr[self._count + 1 : count + 1] = rows.indptr[1:] + self._used
        self._weights[self._count : count] = weights
        self._indices[self._used : used] = rows.indices
        self._values[self._used : used] = rows.data
        self._count, self._used = count, used

    def _add_sparse(self, rows: Any) -> None:
        if self._dense is not None:
            coordinates = rows.tocoo()
            self._dense[coordinates.row, coordinates.col] += coordinates.data
        else:
            self._sparse = rows if self._sparse is None else (self._sparse + rows).tocsr()

    def _to_dense(self) -> Floats:
        if self._dense is None:
            dense, floor = self.dense(), self.floor
            self._clear()
            self._dense, self.floor = dense, floor
        return self._dense


def _with_room(array: Array, size: int) -> Array:
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array), 64), array.dtype)
    larger[: len(array)] = array
    return larger


def _vector(array: Array, dtype: type, size: int | None, ndim: int = 1) -> Array:
    if array.dtype != dtype or array.ndim != ndim or (size is not None and array.size != size):
        raise ValueError("a part of the sum has the wrong type or shape")
    return array


def _restored_rows(arrays: Mapping[str, Array], name: str, n: int, rows: int) -> Any:
    values = _vector(arrays[f"{name}.values"], np.float64, None)
    indices = _vector(arrays[f"{name}.indices"], np.int32, len(values))
    starts = _vector(arrays[f"{name}.starts"], np.int32, rows + 1)
    matrix = sp.csr_array((values, indices, starts), shape=(rows, n))
    matrix.check_format(full_check=True)  # a ValueError for indices outside
    return matrix
