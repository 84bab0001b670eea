"""Dense linear algebra on lists of mpmath numbers, at the precision that `mp.workdps` has set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from .eigen import eigen, installed

Number: TypeAlias = mpf
Vector: TypeAlias = list[mpf]
Matrix: TypeAlias = list[list[mpf]]
Floats: TypeAlias = NDArray[np.float64]


def zero_share() -> Number:
    """What is zero in exact arithmetic: a square, or an eigenvalue, that is a smaller share than this.

    Rounding leaves 10^-digits of what is exactly zero. Rows of floats that differ by 1e-9 and whose features range
    from 1e-8 to 1e8 make eigenvalues down to 1e-50; with 100 digits nothing lies between.
    """
    return mpf(10) ** (-(3 * mp.dps) // 4)


def vector(values: Sequence[float] | Floats) -> Vector:
    """Floats are binary fractions: no digit is lost."""
    return [mpf(float(value)) for value in values]


def zeros(rows: int, columns: int) -> Matrix:
    return [[mpf(0)] * columns for _ in range(rows)]


def dot(a: Vector, b: Vector) -> Number:
    return mp.fdot(a, b)


def scaled(a: Vector, factor: Number) -> Vector:
    return [factor * value for value in a]


def plus(a: Vector, b: Vector, factor: Number | int = 1) -> Vector:
    """a + factor·b."""
    return [x + factor * y for x, y in zip(a, b, strict=True)]


def times(A: Matrix, v: Vector) -> Vector:
    """A v."""
    return [dot(row, v) for row in A]


def combined(coefficients: Vector, rows: Matrix, size: int) -> Vector:
    """rowsᵀ coefficients, `size` numbers."""
    if not rows:
        return [mpf(0)] * size
    return [dot(coefficients, [row[j] for row in rows]) for j in range(size)]


def gram(rows: Matrix) -> Matrix:
    """rows rowsᵀ."""
    upper = [[dot(rows[i], rows[j]) for j in range(i + 1)] for i in range(len(rows))]
    return [[upper[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))]


def outer_sum(rows: Matrix, size: int) -> Matrix:
    """rowsᵀ rows, size × size."""
    return gram([[row[j] for row in rows] for j in range(size)]) if rows else zeros(size, size)


def add_outer(A: Matrix, v: Vector, factor: Number | int = 1) -> None:
    """A ← A + factor·v vᵀ."""
    for row, value in zip(A, v, strict=True):
        if value:
            for j, other in enumerate(v):
                row[j] += factor * value * other


def shifted(A: Matrix, ridge: Number | int) -> Matrix:
    """A + ridge·I."""
    return [[value + (ridge if i == j else 0) for j, value in enumerate(row)] for i, row in enumerate(A)]


def minus(A: Matrix, B: Matrix) -> Matrix:
    return [plus(a, b, -1) for a, b in zip(A, B, strict=True)]


class Solver:
    """A⁻¹ of a positive definite A by its Cholesky factor."""

    def __init__(self, A: Matrix) -> None:
        self.L: Matrix = []
        for i, row in enumerate(A):
            factor: Vector = []
            for j in range(i):
                factor.append((row[j] - dot(factor, self.L[j][:j])) / self.L[j][j])
            factor.append(mp.sqrt(row[i] - dot(factor, factor)))
            self.L.append(factor)

    def __call__(self, v: Vector) -> Vector:
        n = len(self.L)
        half: Vector = []
        for i in range(n):
            half.append((v[i] - dot(self.L[i][:i], half)) / self.L[i][i])
        full: Vector = [mpf(0)] * n
        for i in reversed(range(n)):
            below = [self.L[k][i] for k in range(i + 1, n)]
            full[i] = (half[i] - dot(below, full[i + 1 :])) / self.L[i][i]
        return full


def outside(basis: Matrix, v: Vector) -> Vector:
    """The part of v orthogonal to the basis's orthonormal rows; taken twice, so that it is orthogonal."""
    for _ in range(2):
        for row in basis:
            v = plus(v, row, -dot(row, v))
    return v


def is_zero(part: Vector, whole: Vector) -> bool:
    """Is `part` of `whole` zero in exact arithmetic?"""
    return bool(dot(part, part) <= zero_share() * dot(whole, whole))


def orthonormal(rows: Matrix) -> Matrix:
    """Gram–Schmidt from the first row to the last; rows that depend on those before are left out."""
    basis: Matrix = []
    for row in rows:
        rest = outside(basis, row)
        if not is_zero(rest, row):
            basis.append(scaled(rest, 1 / mp.sqrt(dot(rest, rest))))
    return basis


class LowRankSolver:
    """(αI + SᵀS)⁻¹ by Woodbury's formula, for many columns and few rows."""

    def __init__(self, alpha: Number, rows: Matrix) -> None:
        self.alpha = alpha
        self.rows = rows
        self.small = Solver(shifted(gram(rows), alpha))

    def __call__(self, v: Vector) -> Vector:
        inside = combined(self.small(times(self.rows, v)), self.rows, len(v))
        return scaled(plus(v, inside, -1), 1 / self.alpha)


class PseudoSolver:
    """(SᵀS)†: the inverse within the range of SᵀS, of which an orthonormal basis is given."""

    def __init__(self, rows: Matrix, basis: Matrix, size: int) -> None:
        self.basis = basis
        self.size = size
        self.inverse = Solver(gram([times(rows, row) for row in basis]))

    def __call__(self, v: Vector) -> Vector:
        return combined(self.inverse(times(self.basis, v)), self.basis, self.size)

    def outside(self, v: Vector) -> Vector:
        """(I − A†A) v."""
        return outside(self.basis, v)


def symmetric_eigen(A: Matrix) -> tuple[Vector, Matrix]:
    """Eigenvalues, largest first, and eigenvectors as rows."""
    if not A:
        return [], []
    values, vectors = eigen(A, installed())
    order = sorted(range(len(A)), key=lambda k: values[k], reverse=True)
    return [values[k] for k in order], [vectors[k] for k in order]


def row_eigen(rows: Matrix, size: int) -> tuple[Vector, Matrix]:
    """The non-zero eigenvalues of rowsᵀ rows, largest first, and their vectors, by the smaller Gram matrix."""
    rows = [row for row in rows if any(row)]
    by_rows = len(rows) < size
    values, vectors = symmetric_eigen(gram(rows) if by_rows else outer_sum(rows, size))
    rank = sum(bool(value > zero_share() * values[0]) for value in values)
    if by_rows:
        vectors = [scaled(combined(vectors[k], rows, size), 1 / mp.sqrt(values[k])) for k in range(rank)]
    return values[:rank], vectors[:rank]


def spectral_norm(A: Matrix) -> Number:
    """The largest absolute eigenvalue of a symmetric A."""
    values, _ = symmetric_eigen(A)
    return max((abs(value) for value in values), default=mpf(0))


def to_floats(A: Sequence[Vector]) -> Floats:
    return np.array([[float(value) for value in row] for row in A])
