"""What all sketches share: checked updates, everything that follows from the low-rank part, merging."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sketchnewton.core.checks import check_numbers
from sketchnewton.core.parameters import checked, checked_dtype, checked_size
from sketchnewton.core.persistence import Persistent, expect
from sketchnewton.core.types import ArrayLike, Arrays, DTypeLike, Floats
from sketchnewton.sketches.rows import LARGEST, LARGEST_SUM_OF_SQUARES, Rows, as_rows
from sketchnewton.sketches.spectrum import right_vectors, safe_exponent, scaled
from sketchnewton.sketches.stack import Matrix


@dataclass(frozen=True)
class LowRank:
    """B = diag(lengths)·directions: singular values, largest first, and orthonormal rows."""

    lengths: Floats
    directions: Matrix

    @property
    def squares(self) -> Floats:
        """The eigenvalues of BᵀB."""
        return self.lengths**2

    @classmethod
    def of(cls, B: Matrix) -> LowRank:
        """Decompose the rows of `B`; directions of length 0 are left out."""
        if B.size == 0:
            return cls(np.zeros(0), np.zeros((0, B.shape[1]), B.dtype))
        # In double precision also for float32: a sketch is read far less often than it is updated.
        if not np.isfinite(B).all():  # of which LAPACK may never come back
            raise ValueError("the sketch holds numbers that are not finite")
        exponent = safe_exponent(B)
        values, Vt = right_vectors(scaled(B, exponent, np.dtype(np.float64)))
        used = values > 0
        # Signs are arbitrary; the largest entry of each direction is made positive, so that they repeat.
        signs = np.sign(Vt[np.arange(len(Vt)), np.abs(Vt).argmax(axis=1)])
        return cls(np.ldexp(values[used], exponent), (signs[:, None] * Vt)[used].astype(B.dtype, copy=False))


class Sketch(Persistent):
    """A small approximation of AᵀA, computed in one pass over the rows of A.

    The stand-in is BᵀB + ridge·I: `matrix` is B, `covariance()` all of it. The sketch depends on the rows and on
    their order, not on how they were cut into updates: one by one, in blocks and sparse are the same to rounding.
    Rows of zeros count as rows. An update with bad rows raises ValueError and leaves the sketch as it was.

    `dtype`: "float64" or "float32", the precision in which numbers are kept.
    """

    noun: ClassVar[str] = "sketch"

    def __init__(self, *, dtype: DTypeLike = "float64", **parameters: object) -> None:
        self.dtype = checked_dtype(dtype)
        super().__init__(**parameters, dtype=self.dtype)
        self.n_features = 0
        self.rows_seen = 0
        self._peak = 0.0  # the largest magnitude of any entry
        self._cache: LowRank | None = None

    # -- rows in

    def update(self, rows: object) -> Self:
        """Add rows: one or many, as an array, CSR matrix, table, or an iterator of these. Returns the sketch.

        CSR rows are made dense a few at a time at most; Frequent Directions and its variants keep them sparse
        where that pays. Everything is checked before anything changes. An iterator cannot be checked in advance:
        a bad row undoes the items before it.
        """
        if isinstance(rows, Iterator):
            return self._update_all(rows)
        self._update(as_rows(rows, self.n_features or None, self.dtype))
        return self

    def _update_all(self, items: Iterator[object]) -> Self:
        before = self.__getstate__()
        try:
            for at, item in enumerate(items):
                try:
                    checked = as_rows(item, self.n_features or None, self.dtype)
                except ValueError as error:
                    raise ValueError(f"item {at} of the iterator: {error}") from None
                self._update(checked)
        except ValueError:
            self.__setstate__(before)
            raise
        return self

    def _update(self, rows: Rows) -> None:
        self._check_sum(self.rows_seen + len(rows), rows.width, max(self._peak, rows.peak))
        if not self.n_features:
            self._widen(rows.width)
            self.n_features = rows.width
        self._changed()
        self._absorb(rows)
        self.rows_seen += len(rows)
        self._peak = max(self._peak, rows.peak)

    @staticmethod
    def _check_sum(rows: int, columns: int, peak: float) -> None:
        """Refuse rows whose squares could add up to more than float64 holds; so nothing inside needs to."""
        if peak > math.sqrt(LARGEST_SUM_OF_SQUARES / max(rows * columns, 1)):
            raise ValueError(
                f"{rows} rows with entries up to {peak:g}: their squares could leave the range of float64; "
                "divide the rows by a constant"
            )

    def widen(self, n_features: int) -> None:
        """Add columns of zeros, for features that no row had so far."""
        n_features = checked_size("n_features", n_features, 0)
        if n_features < self.n_features:
            raise ValueError(f"n_features={n_features} is invalid: the sketch has {self.n_features}")
        if n_features > self.n_features:
            self._widen(n_features)
            self.n_features = n_features
            self._changed()

    # -- what it says

    @property
    def matrix(self) -> Matrix:
        """B, whose rows are orthogonal, longest first."""
        low = self._low_rank()
        return (low.lengths[:, None] * low.directions).astype(self.dtype, copy=False)

    @property
    def ridge(self) -> float:
        """The multiple of the identity that belongs to the sketch; 0 but for the robust kind."""
        return 0.0

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """Certified bound of ‖AᵀA − (BᵀB + ridge·I)‖₂ but for rounding; infinite where theory gives none."""

    @property
    @abstractmethod
    def squared_norm(self) -> float:
        """‖A‖²_F, the sum of the squares of all entries."""

    @property
    def components_(self) -> Matrix:
        """The principal directions of AᵀA as far as the sketch knows them: orthonormal rows."""
        return self._low_rank().directions.copy()

    @property
    def singular_values_(self) -> Floats:
        """The singular values of B, largest first."""
        return self._low_rank().lengths.copy()

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Each direction's share of ‖A‖²_F, without the ridge. About 0, not about the mean: center rows first."""
        total = self.squared_norm
        return self._low_rank().squares / total if total > 0 else np.zeros(len(self._low_rank().squares))

    def covariance(self) -> Floats:
        """BᵀB + ridge·I, a matrix of n_features², in double precision."""
        B = self.matrix.astype(np.float64, copy=False)
        C = B.T @ B
        C.flat[:: self.n_features + 1] += self.ridge
        return C

    def solve(self, v: ArrayLike, alpha: float = 0.0) -> Floats:
        """(BᵀB + (ridge + alpha)·I)⁻¹ v for a vector, or for the columns of a matrix, in O(m·n_features).

        Where ridge + alpha is 0 the inverse is the pseudo-inverse.
        """
        alpha = checked("alpha", alpha)
        if np.iscomplexobj(v):
            raise ValueError("Complex data not supported: v is complex")
        b = np.asarray(v, np.float64)
        if b.ndim not in (1, 2) or len(b) != self.n_features:
            raise ValueError(f"v has shape {b.shape}: expected {self.n_features} rows")
        low = self._low_rank()
        V = low.directions.astype(np.float64, copy=False)
        inside = V @ b
        shift = self.ridge + alpha
        eigenvalues = low.squares.reshape(-1, *[1] * (b.ndim - 1))
        solution = V.T @ (inside / (eigenvalues + shift))
        if shift > 0:
            # The part outside the sketch. Not v/shift minus a correction: with a small shift, that cancels.
            outside = b - V.T @ inside
            solution += (outside - V.T @ (V @ outside)) / shift
        return solution

    def transform(self, X: object) -> Floats:
        """The coordinates of rows along `components_`, without centering."""
        rows = as_rows(X, self.n_features, "float64")
        V = self._low_rank().directions.astype(np.float64, copy=False)
        if rows.dense is not None:
            return np.asarray(rows.dense @ V.T, np.float64)
        from scipy.sparse import csr_array  # dense users need not wait for it

        indptr, indices, data = rows.sparse
        matrix = csr_array((data, indices, indptr), (len(rows), rows.width))
        return np.asarray(matrix @ V.T, np.float64)

    def inverse_transform(self, Z: ArrayLike) -> Floats:
        """Rows with these coordinates along `components_`."""
        V = self._low_rank().directions.astype(np.float64, copy=False)
        coordinates = np.asarray(Z, np.float64)
        if coordinates.ndim == 0 or coordinates.shape[-1] != len(V):
            raise ValueError(f"coordinates have shape {coordinates.shape}: expected {len(V)} columns")
        return np.asarray(coordinates @ V)

    # -- several sketches

    def merge(self, other: Self) -> Self:
        """Merge the sketch of other rows into this one. Returns the sketch; `other` is not changed."""
        self._check_mergeable(other)
        peak = max(self._peak, other._peak)
        if peak > LARGEST[self.dtype]:
            raise ValueError(
                f"cannot merge a sketch of entries up to {peak:g} into one of {self.dtype}, "
                f"which takes magnitudes up to {LARGEST[self.dtype]:g}"
            )
        self._check_sum(self.rows_seen + other.rows_seen, other.n_features, peak)
        if other.n_features:
            self.widen(other.n_features)
            self._merge(other)
            self._changed()
            self.rows_seen += other.rows_seen
            self._peak = peak
        return self

    @classmethod
    def from_dask(cls, X: object, *args: Any, **parameters: Any) -> Self:
        """The sketch of all rows of a Dask array or DataFrame; the other arguments are those of the class.

        Each block is sketched where it is, and sketches are merged in pairs: the certificate is that of the whole.
        """
        from functools import partial

        from sketchnewton.sketches.blocks import sketch_of_blocks

        return sketch_of_blocks(partial(cls, *args, **parameters), X)

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        return copy.deepcopy(self).merge(other)

    def __radd__(self, other: object) -> Self:
        """`0 + sketch`, with which `sum` begins."""
        if isinstance(other, int) and other == 0:
            return copy.deepcopy(self)
        return NotImplemented

    def _check_mergeable(self, other: Self) -> None:
        if type(other) is not type(self):
            raise ValueError(f"cannot merge a {type(other).__name__} into a {type(self).__name__}")
        if self.n_features and other.n_features and self.n_features != other.n_features:
            raise ValueError(
                f"cannot merge sketches of {self.n_features} and {other.n_features} features: widen the narrow one"
            )
        if other is self:
            raise ValueError("cannot merge a sketch into itself: use sketch + sketch")

    # -- for sketches

    def _all_arrays(self) -> Arrays:
        counts = np.array([self.rows_seen, self.n_features], np.int64)
        return {"counts": counts, "peak": np.array([self._peak])}

    def _restore(self, arrays: Arrays) -> None:
        counts = expect(arrays, "counts", np.int64, (2,))
        check_numbers("counts", counts)
        if counts.min() < 0:
            raise ValueError("negative counts")
        self.rows_seen, self.n_features = (int(count) for count in counts)
        self._peak = float(expect(arrays, "peak", np.float64, (1,))[0])

    def _changed(self) -> None:
        """Forget what was derived from the state."""
        self._cache = None

    def _low_rank(self) -> LowRank:
        if self._cache is None:
            self._cache = self._decompose()
        return self._cache

    @abstractmethod
    def _widen(self, n_features: int) -> None:
        """Make the state fit for rows of this width, new columns zero."""

    @abstractmethod
    def _absorb(self, rows: Rows) -> None:
        """Learn rows that have been checked."""

    @abstractmethod
    def _decompose(self) -> LowRank:
        """The low-rank part as it stands, without changing the state."""

    @abstractmethod
    def _merge(self, other: Self) -> None: ...


def widened(array: Matrix, columns: int) -> Matrix:
    """The array with columns of zeros added."""
    wide = np.zeros((len(array), columns), array.dtype)
    wide[:, : array.shape[1]] = array
    return wide
