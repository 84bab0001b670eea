"""From what users have (arrays, sparse matrices, tables) to rows that are checked and can be copied piecewise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from sketchnewton.core.batch import is_frame, refuse_masked
from sketchnewton.core.types import Array, Integers, NDArray
from sketchnewton.sketches.stack import Stack

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Larger values could leave the type's range when they are summed. What squares need depends on how many there are.
LARGEST = {"float64": 1e300, "float32": float(np.float32(1e30))}  # what float32 makes of 1e30 is above it
LARGEST_SUM_OF_SQUARES = 1e307

_SPARSE = 0.05  # products with rows that have more non-zeros than this share are faster dense

_NONE = (np.zeros(1, np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Rows:
    """Rows of a dense array, or of CSR arrays, that hold nothing but finite numbers of a usable size."""

    width: int
    length: int
    peak: float  # the largest magnitude
    dense: Array | None
    sparse: tuple[Integers, Array, Array]  # indptr, indices and data, if `dense` is None

    def __len__(self) -> int:
        return self.length

    def copy_to(self, out: Array, start: int) -> None:
        """Write the rows from `start` on into `out`, as many as it has; the only place that densifies."""
        stop = start + len(out)
        if self.dense is not None:
            out[...] = self.dense[start:stop]
            return
        indptr, indices, data = self.sparse
        out[...] = 0
        begin, end = indptr[start], indptr[stop]
        row = np.repeat(np.arange(len(out)), np.diff(indptr[start : stop + 1]))
        # Duplicate entries mean their sum, as in SciPy.
        np.add.at(out, (row, indices[begin:end]), data[begin:end].astype(out.dtype, copy=False))

    def stack(self, start: int, stop: int, dtype: DTypeLike) -> Stack:
        """The rows `start` to `stop`: sparse where products are then cheaper, dense ones perhaps not copied."""
        if self.dense is not None:
            return Stack(np.ascontiguousarray(self.dense[start:stop], dtype))
        matrix = self.csr(start, stop, dtype)
        if self.worth_sparse(matrix):
            return Stack(np.empty((0, self.width), dtype), matrix)
        return Stack(self.block(start, stop, dtype))

    @staticmethod
    def worth_sparse(matrix: csr_array) -> bool:
        """Whether products with these CSR rows are cheaper than with dense ones."""
        return bool(matrix.nnz <= _SPARSE * matrix.shape[0] * matrix.shape[1])

    def csr(self, start: int, stop: int, dtype: DTypeLike) -> csr_array:
        """The rows `start` to `stop` of a sparse matrix, as SciPy would make them of a dense one."""
        from scipy.sparse import csr_array  # dense users need not wait for it

        indptr, indices, data = self.sparse
        part = slice(indptr[start], indptr[stop])
        arrays = data[part].astype(dtype), indices[part].copy(), indptr[start : stop + 1] - indptr[start]
        matrix = csr_array(arrays, (stop - start, self.width))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    def block(self, start: int, stop: int, dtype: DTypeLike) -> Array:
        """The rows `start` to `stop` as a dense array."""
        out = np.empty((stop - start, self.width), dtype)
        self.copy_to(out, start)
        return out


def as_rows(X: object, width: int | None, dtype: str) -> Rows:
    """Check `X` for a sketch of `width` columns (None: any) and of type `dtype`, or raise ValueError.

    `X` is one row or many: an array, a SciPy sparse matrix, anything with CSR's arrays, a table, lists.
    """
    if not isinstance(X, np.ndarray) and not is_frame(X):
        if hasattr(X, "tocsr") and getattr(X, "format", "") != "csr":
            X = X.tocsr()
        if hasattr(X, "indptr") and hasattr(X, "indices"):
            return _sparse(X, width, dtype)
    return _dense(X, width, dtype)


def _dense(X: object, width: int | None, dtype: str) -> Rows:
    refuse_masked(X, "the array of rows")
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError("rows of different lengths: expected an array of numbers, one row each") from None
    array = _numbers(array)
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise ValueError(f"rows have shape {array.shape}: expected two dimensions, or one for a single row")
    _check_width(array.shape[1], width)
    peak = _peak(array)
    if not peak <= LARGEST[dtype]:
        row, column = (int(at[0]) for at in np.nonzero(_beyond(array, dtype)))
        raise _unfit(float(array[row, column]), row, column, dtype)
    return Rows(array.shape[1], len(array), peak, array, _NONE)


def _sparse(X: csr_array, width: int | None, dtype: str) -> Rows:
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"sparse rows have shape {X.shape}: expected two dimensions")
    length, columns = (int(size) for size in X.shape)
    _check_width(columns, width)
    indptr = np.asarray(X.indptr, np.int64)
    indices = np.asarray(X.indices)
    if indices.dtype.kind not in "iu":
        raise ValueError(f"sparse rows have indices of dtype {indices.dtype}: expected integers")
    data = _numbers(np.asarray(X.data))
    broken = (
        len(indptr) != length + 1
        or indptr[0] != 0
        or (np.diff(indptr) < 0).any()
        or min(len(indices), len(data)) < indptr[-1]
    )
    if broken:
        raise ValueError("sparse rows are inconsistent: indptr does not describe indices and data")
    used = indices[: indptr[-1]]
    if len(used) and (used.min() < 0 or used.max() >= columns):
        raise ValueError(f"sparse rows have an index outside 0..{columns - 1}")
    peak = _peak(data)
    if not peak <= LARGEST[dtype]:
        at = int(np.flatnonzero(_beyond(data, dtype))[0])
        raise _unfit(float(data[at]), int(np.searchsorted(indptr, at, "right")) - 1, int(indices[at]), dtype)
    rows = Rows(columns, length, peak, None, (indptr, indices, data))
    if peak * len(data) > LARGEST["float32"]:  # entries that come twice are added up: not those of usual rows
        peak = max(peak, _peak(rows.csr(0, length, np.float64).data))
        rows = replace(rows, peak=peak)
        if not peak <= LARGEST[dtype]:
            raise ValueError(f"sparse rows have entries that add up to {peak:g}, beyond {LARGEST[dtype]:g}")
    return rows


def _numbers(array: Array) -> Array:
    """The array as float32 or float64."""
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: rows have dtype {array.dtype}")
    if array.dtype.kind == "O":
        text = next((item for item in array.flat if isinstance(item, str | bytes)), None)
        if text is not None:
            raise ValueError(f"rows must be numbers, got {text!r}")
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"rows must be numbers, got dtype {array.dtype}")
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rows must be numbers: {error}") from None


def _check_width(found: int, width: int | None) -> None:
    if width is not None and found != width:
        raise ValueError(f"rows have {found} columns, but the sketch has {width}")
    if found == 0:
        raise ValueError("rows have 0 columns (0 features): expected at least 1")


def _peak(array: Array) -> float:
    """The largest magnitude, without a temporary array; NaN if there is one."""
    return float(np.maximum(array.max(initial=0), -array.min(initial=0)))


def _beyond(numbers: Array, dtype: str) -> NDArray[np.bool_]:
    """Which of them are too large, in double precision: as a float32 the limit would be infinite."""
    return np.asarray(~(np.abs(numbers.astype(np.float64)) <= LARGEST[dtype]))


def _unfit(value: float, row: int, column: int, dtype: str) -> ValueError:
    if not np.isfinite(value):
        name = "NaN" if np.isnan(value) else "infinity"
        return ValueError(f"row {row}, column {column} is {name}: rows must be finite numbers")
    other = ': use dtype="float64"' if dtype == "float32" and abs(value) <= LARGEST["float64"] else ""
    return ValueError(
        f"row {row}, column {column} is {value:g}: "
        f"a {dtype} sketch takes magnitudes up to {LARGEST[dtype]:g}{other}"
    )
