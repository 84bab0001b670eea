"""Eigenvectors of symmetric matrices in gmpy2's numbers, several times as fast as in mpmath's.

EISPACK's tred2 and tql2. mpmath's `eigsy` does the same where gmpy2 is not installed.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TypeAlias

from mpmath import mp, mpf

Number: TypeAlias = mpf
Vector: TypeAlias = list[mpf]
Matrix: TypeAlias = list[list[mpf]]


def installed() -> ModuleType | None:
    """gmpy2, if it is there."""
    try:
        return importlib.import_module("gmpy2")
    except ImportError:
        return None


def eigen(A: Matrix, gmpy2: ModuleType | None) -> tuple[Vector, Matrix]:
    """Eigenvalues of a symmetric A in any order, and eigenvectors as rows."""
    if gmpy2 is None:
        values, vectors = mp.eigsy(mp.matrix(A))
        return list(values), [[vectors[i, k] for i in range(len(A))] for k in range(len(A))]
    with gmpy2.context(gmpy2.get_context(), precision=mp.prec):
        d, rows = decomposed([[to_gmpy(value, gmpy2) for value in row] for row in A], gmpy2)
        return [from_gmpy(value) for value in d], [[from_gmpy(value) for value in row] for row in rows]


def to_gmpy(value: Number, gmpy2: ModuleType) -> Number:
    sign, mantissa, exponent, _ = value._mpf_
    number = gmpy2.mpfr(-mantissa if sign else mantissa)
    return gmpy2.mul_2exp(number, exponent) if exponent >= 0 else gmpy2.div_2exp(number, -exponent)


def from_gmpy(value: Number) -> Number:
    mantissa, exponent = value.as_mantissa_exp()
    return mpf((int(mantissa), int(exponent)))


def decomposed(V: Matrix, gmpy2: ModuleType) -> tuple[Vector, Matrix]:
    """Eigenvalues and, as rows, eigenvectors; the matrix V is used up."""
    d, e = tridiagonal(V, gmpy2)
    rows = [list(column) for column in zip(*V, strict=True)]
    implicit_ql(d, e, rows, gmpy2)
    return d, rows


def tridiagonal(V: Matrix, gmpy2: ModuleType) -> tuple[Vector, Vector]:
    """Householder: V becomes Q with QᵀAQ tridiagonal; its diagonal and what is beside it are returned."""
    n = len(V)
    zero = V[0][0] * 0
    reflections: list[tuple[int, Vector, Number]] = []
    for k in range(n - 1, 1, -1):  # row k keeps its last entry before the diagonal
        row = V[k][:k]
        squares = sum((value * value for value in row[:-1]), zero)
        if not squares:
            continue
        length = gmpy2.sqrt(squares + row[-1] * row[-1])
        u = [*row[:-1], row[-1] + (length if row[-1] > 0 else -length)]
        h = sum((value * value for value in u), zero) / 2
        p = [sum((a * b for a, b in zip(V[i][:k], u, strict=True)), zero) / h for i in range(k)]
        share = sum((a * b for a, b in zip(u, p, strict=True)), zero) / (2 * h)
        q = [a - share * b for a, b in zip(p, u, strict=True)]
        for i in range(k):
            ui, qi, line = u[i], q[i], V[i]
            for j in range(k):
                line[j] -= ui * q[j] + qi * u[j]
        beside = -length if row[-1] > 0 else length
        V[k][k - 1] = beside
        V[k - 1][k] = beside
        reflections.append((k, u, h))
    d = [V[i][i] for i in range(n)]
    e = [V[i + 1][i] for i in range(n - 1)] + [zero]
    for i in range(n):
        for j in range(n):
            V[i][j] = zero + (i == j)
    for k, u, h in reversed(reflections):  # Q = P_{n−1} … P_2, from the left: the smallest first
        for j in range(n):
            c = sum((u[i] * V[i][j] for i in range(k)), zero) / h
            if c:
                for i in range(k):
                    V[i][j] -= c * u[i]
    return d, e


def implicit_ql(d: Vector, e: Vector, rows: Matrix, gmpy2: ModuleType) -> None:
    """Diagonal d, beside it e: d becomes the eigenvalues, and rows, which are those of Qᵀ, the eigenvectors."""
    n = len(d)
    zero = gmpy2.exp2(-mp.prec) * max(abs(a) + abs(b) for a, b in zip(d, e, strict=True))
    for k in range(n):
        while True:
            m = next(m for m in range(k, n) if m == n - 1 or abs(e[m]) <= zero)
            if m == k:
                break
            g = (d[k + 1] - d[k]) / (2 * e[k])
            r = gmpy2.sqrt(g * g + 1)
            g = d[m] - d[k] + e[k] / (g + (r if g >= 0 else -r))
            s = c = d[k] * 0 + 1
            p = d[k] * 0
            for i in range(m - 1, k - 1, -1):
                f, b = s * e[i], c * e[i]
                r = gmpy2.sqrt(f * f + g * g)
                e[i + 1] = r
                if not r:
                    d[i + 1] -= p
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                upper, lower = rows[i], rows[i + 1]
                rows[i + 1] = [s * x + c * y for x, y in zip(upper, lower, strict=True)]
                rows[i] = [c * x - s * y for x, y in zip(upper, lower, strict=True)]
            else:
                d[k] -= p
                e[k] = g
            e[m] *= 0
