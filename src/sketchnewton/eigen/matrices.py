"""Symmetric matrices in the forms that users have them, checked once: dense, sparse, or factors.

>>> A = as_matrix((np.eye(3)[:, :2], [0.5, -0.25]), 3)      # U diag(s) Uᵀ
>>> A.reward(np.array([0.0, 1.0, 0.0])), A.norm()
(-0.25, 0.5)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from sketchnewton.core.types import Floats

__all__ = ["Dense", "Factor", "Matrix", "Sparse", "as_array", "as_matrix", "as_rows", "within"]

Rows: TypeAlias = Any  # a csr_array of float64, for which there are no types, or an array

_ASYMMETRY = 1e-8  # relative to the largest entry; what is below is rounding and is averaged away
_SMALL = 200  # up to this size a full decomposition is as fast as an iteration
_SLACK = 1e-9  # relative rounding allowed to a norm at its bound


class Matrix(ABC):
    """A checked symmetric matrix."""

    def __init__(self, n: int) -> None:
        self.n = n

    @abstractmethod
    def times(self, x: Floats) -> Floats:
        """A x, for a vector or the columns of a matrix, in time proportional to the non-zeros."""

    @abstractmethod
    def norm(self) -> float:
        """The spectral norm."""

    @abstractmethod
    def cheap_norm(self) -> float:
        """An upper bound on the spectral norm in time proportional to the non-zeros."""

    @abstractmethod
    def floor(self) -> float:
        """A number ≥ 0 with λ_min ≥ −floor, 0 for what is positive semidefinite at a glance."""

    def reward(self, x: Floats) -> float:
        """xᵀAx; for several columns the sum of theirs."""
        return float(np.vdot(x, self.times(x)))


class Dense(Matrix):
    """An n×n array."""

    def __init__(self, array: Floats) -> None:
        super().__init__(len(array))
        self.array = array

    def times(self, x: Floats) -> Floats:
        """A x."""
        return self.array @ x

    def norm(self) -> float:
        """The spectral norm, by decomposition or, where that takes long, by Lanczos."""
        return _spectral_norm(self.array, self.n)

    def cheap_norm(self) -> float:
        """The smaller of Frobenius' norm and the largest row sum."""
        return float(min(np.linalg.norm(self.array), np.abs(self.array).sum(axis=1).max()))

    def floor(self) -> float:
        """From Gershgorin's discs."""
        diagonal = self.array.diagonal()
        reach = np.abs(self.array).sum(axis=1) - np.abs(diagonal)
        return float(min(max(0.0, (reach - diagonal).max()), self.cheap_norm()))


class Sparse(Matrix):
    """An n×n matrix in compressed rows."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.shape[0])
        self.rows = rows

    def times(self, x: Floats) -> Floats:
        """A x."""
        return np.asarray(self.rows @ x)

    def norm(self) -> float:
        """The spectral norm, by decomposition or, where that takes long, by Lanczos."""
        return _spectral_norm(self.rows, self.n)

    def cheap_norm(self) -> float:
        """The smaller of Frobenius' norm and the largest row sum."""
        sums = np.asarray(abs(self.rows).sum(axis=1)).ravel()
        return float(min(np.linalg.norm(self.rows.data), sums.max()))

    def floor(self) -> float:
        """From Gershgorin's discs."""
        diagonal = np.asarray(self.rows.diagonal())
        reach = np.asarray(abs(self.rows).sum(axis=1)).ravel() - np.abs(diagonal)
        return float(min(max(0.0, (reach - diagonal).max()), self.cheap_norm()))


class Factor(Matrix):
    """Σ sᵢ xᵢxᵢᵀ over the rows xᵢ of `rows`, dense or compressed: a vector is one row of weight 1."""

    def __init__(self, rows: Rows, weights: Floats) -> None:
        super().__init__(rows.shape[1])
        self.rows = rows
        self.weights = weights

    def times(self, x: Floats) -> Floats:
        """Σ sᵢ xᵢ(xᵢᵀx)."""
        inner = np.asarray(self.rows @ x)
        weights = self.weights if inner.ndim == 1 else self.weights[:, None]
        return np.asarray(self.rows.T @ (weights * inner))

    def reward(self, x: Floats) -> float:
        """Σ sᵢ (xᵢᵀx)²."""
        inner = np.asarray(self.rows @ x)
        squares = inner**2 if inner.ndim == 1 else (inner**2).sum(axis=1)
        return float(self.weights @ squares)

    def norm(self) -> float:
        """The spectral norm: that of G^½ diag(s) G^½ with the Gram matrix G of the rows."""
        if len(self.weights) <= 1:
            return self.cheap_norm()
        gram = self.rows @ self.rows.T
        values, vectors = np.linalg.eigh(gram.toarray() if sp.issparse(gram) else gram)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return float(np.abs(np.linalg.eigvalsh(root * self.weights @ root)).max())

    def cheap_norm(self) -> float:
        """The sum of the terms' norms."""
        return float(np.abs(self.weights) @ self._squares())

    def floor(self) -> float:
        """The sum of the negative terms' norms."""
        if self.weights.min(initial=0.0) >= 0:
            return 0.0
        return float(np.maximum(-self.weights, 0.0) @ self._squares())

    def _squares(self) -> Floats:
        """‖xᵢ‖²."""
        if len(self.weights) == 1:
            values = self.rows.data if sp.issparse(self.rows) else self.rows[0]
            return np.array([values @ values])
        return np.asarray((self.rows * self.rows).sum(axis=1)).ravel()


def as_matrix(A: Any, n: int) -> Matrix:
    """The symmetric n×n matrix that `A` stands for, or a ValueError that says why it is none.

    An array or scipy.sparse matrix of shape (n, n); a vector x, dense or sparse, for xxᵀ; or a pair (U, s) with U
    of shape (n, k), dense or sparse, for U diag(s) Uᵀ. Entries that differ from their mirror images by rounding
    (a 10⁻⁸ part of the largest) are averaged.
    """
    if isinstance(A, Matrix):
        if n != A.n:
            raise ValueError(f"the matrix has size {A.n}, expected {n}")
        return A
    if isinstance(A, tuple):
        return _from_pair(A, n)
    if sp.issparse(A):
        rows = as_rows(A, "the matrix")
        if rows.shape == (n, n) and A.ndim == 2:
            return Sparse(_symmetric_rows(rows))
        if rows.shape == (n, 1):
            rows = as_rows(rows.T, "the vector")
        if rows.shape == (1, n):
            return Factor(rows, np.ones(1))
        raise ValueError(f"the sparse matrix has shape {A.shape}, expected ({n}, {n}), or one row or column")
    array = as_array(A, "the matrix")
    if array.shape == (n,):
        return Factor(array[None, :], np.ones(1))
    if array.shape != (n, n):
        raise ValueError(f"the matrix has shape {array.shape}, expected ({n}, {n}), or ({n},) for a vector")
    gap = np.abs(array - array.T)
    worst = float(gap.max(initial=0.0))
    if worst > _ASYMMETRY * np.abs(array).max(initial=0.0):
        i, j = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise _asymmetric(i, j, array[i, j], array[j, i])
    return Dense(array if worst == 0 else (array + array.T) / 2)


def within(matrix: Matrix, bound: float) -> Matrix:
    """The matrix, if its spectral norm is at most `bound`."""
    limit = bound * (1 + _SLACK)
    if matrix.cheap_norm() > limit:
        norm = matrix.norm()
        if norm > limit:
            raise ValueError(
                f"the matrix has norm {norm:.6g}, above bound={bound:g}: scale the matrices down or "
                "create the learner with a larger bound"
            )
    return matrix


def _from_pair(pair: tuple[Any, ...], n: int) -> Factor:
    if len(pair) != 2:
        raise ValueError(f"a factor is a pair (U, s), got a tuple of {len(pair)}")
    weights = np.atleast_1d(as_array(pair[1], "s"))
    U = pair[0]
    if not sp.issparse(U):
        U = as_array(U, "U")
        if U.ndim == 1:
            U = U[:, None]
    if U.ndim != 2 or U.shape[0] != n or weights.shape != (U.shape[1],):
        raise ValueError(
            f"the factor has U of shape {U.shape} and s of shape {weights.shape}, expected ({n}, k) and (k,)"
        )
    return Factor(as_rows(U.T, "U") if sp.issparse(U) else U.T, weights)


def as_array(values: object, name: str) -> Floats:
    """Finite real numbers as float64; `name` is what an error calls them."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} is not an array of numbers: its rows differ in length") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array.astype(np.float64, copy=False)


def as_rows(matrix: Any, name: str) -> Rows:
    """Finite real numbers as compressed rows of float64; a sparse vector becomes one row."""
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    if matrix.ndim == 1:
        matrix = matrix.reshape(1, -1)
    rows = sp.csr_array(matrix, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()  # never reorder the caller's arrays
        rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return rows


def _symmetric_rows(rows: Rows) -> Rows:
    gap = abs(rows - rows.T).tocoo()
    worst = float(gap.data.max(initial=0.0))
    if worst > _ASYMMETRY * np.abs(rows.data).max(initial=0.0):
        at = int(gap.data.argmax())
        i, j = int(gap.row[at]), int(gap.col[at])
        raise _asymmetric(i, j, rows[i, j], rows[j, i])
    return rows if worst == 0 else (rows + rows.T).tocsr() / 2


def _asymmetric(i: int, j: int, upper: float, lower: float) -> ValueError:
    return ValueError(
        f"the matrix is not symmetric: entry ({i}, {j}) is {upper:.6g} but ({j}, {i}) is {lower:.6g}; "
        "for matrices without symmetry use AsymmetricLearner"
    )


def _spectral_norm(matrix: Any, n: int) -> float:
    if n <= _SMALL:
        array = matrix.toarray() if sp.issparse(matrix) else matrix
        return float(np.abs(np.linalg.eigvalsh(array)).max(initial=0.0))
    start = np.random.default_rng(0).standard_normal(n)
    return float(abs(eigsh(matrix, k=1, which="LM", v0=start, tol=1e-9, return_eigenvectors=False)[0]))
