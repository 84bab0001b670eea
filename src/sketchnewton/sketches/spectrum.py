"""The squared singular values of a short, wide matrix, and rows rebuilt with other ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchnewton.core.types import Floats
from sketchnewton.sketches.stack import Matrix, Stack
from sketchnewton.sketches.symmetric import leading

# Eigenvalues of a Gram matrix are wrong by a few eps·λ₁. Where the decisive one is not this many times larger,
# the Gram matrix does not tell, and the SVD of the rows themselves does.
_NOISE = 100.0
# Where the largest square is between these, neither it nor what matters beside it leaves the range of float32.
_SMALLEST, _LARGEST = 2.0**-42, 2.0**60


@dataclass(frozen=True)
class Spectrum:
    """Squared singular values of B·2⁻ᵉ, largest first: all, or the first, with `rest` the sum of the others.

    U or Vᵀ holds vectors of the first.
    """

    squares: Floats
    B: Stack
    exponent: int
    U: Matrix | None = None
    Vt: Matrix | None = None
    rest: float = 0.0

    @property
    def unit(self) -> float:
        """4ᵉ: what a square of 1 stands for."""
        return float(np.ldexp(1.0, 2 * self.exponent))  # infinite, where Python's power raises

    def rows(self, squares: Floats) -> Matrix:
        """Orthogonal rows along the first singular vectors, with these squared lengths, none above the old."""
        k = len(squares)
        if self.Vt is not None:
            lengths = np.ldexp(np.sqrt(squares), self.exponent)
            return (lengths[:, None] * self.Vt[:k]).astype(self.B.dtype, copy=False)
        assert self.U is not None
        old = self.squares[:k]
        ratio = np.divide(squares, old, out=np.zeros(k), where=old > 0)
        return self.B.combined(self.U[:, :k] * np.sqrt(ratio))


def spectrum_of(B: Stack, decisive: int, *, all_squares: bool = True) -> Spectrum:
    """Decompose `B` so that squared singular value number `decisive` (from 1) is right, not just rounding.

    The decisive square and those before it are found, with vectors of the latter; if `all_squares`, or if there
    are as many as columns, so that the smallest says something, all squares are.

    The eigendecomposition of the smaller Gram matrix, BBᵀ or BᵀB, costs a fraction of the SVD. It is taken in
    B's own precision, then in double precision, and last comes the SVD, as the decisive value requires.
    """
    useful = 0 < decisive <= min(len(B), B.width)
    dtypes = dict.fromkeys((B.dtype, np.dtype(np.float64)))
    if useful and len(B) <= B.width:
        for dtype in dtypes:
            with np.errstate(over="ignore", invalid="ignore"):
                gram, largest = B.gram(dtype)
            if not (largest == 0 or _SMALLEST <= largest <= _LARGEST):
                break
            squares, vectors = leading(gram, decisive - 1, all_values=all_squares or len(B) == B.width)
            if squares[decisive - 1] > _NOISE * np.finfo(dtype).eps * max(squares[0], largest):
                whole = float(np.trace(gram, dtype=np.float64)) if len(squares) < len(B) else 0.0
                return Spectrum(squares, B, 0, U=vectors, rest=max(whole - float(squares.sum()), 0.0))
    rows = B.toarray()
    exponent = safe_exponent(rows)
    if useful and (len(B) > B.width or exponent != 0):
        for dtype in dtypes:
            C = scaled(rows, exponent, dtype)
            wide = len(B) <= B.width
            squares, vectors = leading(C @ C.T if wide else C.T @ C, decisive - 1)
            if squares[decisive - 1] > _NOISE * np.finfo(dtype).eps * squares[0]:
                if wide:
                    return Spectrum(squares, Stack(rows), exponent, U=vectors)
                return Spectrum(squares, B, exponent, Vt=vectors.T)
    values, Vt = right_vectors(scaled(rows, exponent, np.dtype(np.float64)))
    return Spectrum(values**2, B, exponent, Vt=Vt)


def right_vectors(rows: Matrix) -> tuple[Floats, Matrix]:
    """Singular values and right singular vectors, by the SVD; columns of zeros cost next to nothing.

    Hashed names leave nearly all columns empty, and the SVD of few rows of them would take seconds. There are no
    more values than columns that are used.
    """
    used = np.flatnonzero(rows.any(axis=0))
    if 2 * len(used) > rows.shape[1]:
        _, values, Vt = np.linalg.svd(rows, full_matrices=False)
        return values, Vt
    _, values, narrow = np.linalg.svd(rows[:, used], full_matrices=False)
    Vt = np.zeros((len(values), rows.shape[1]))
    Vt[:, used] = narrow
    return values, Vt


def safe_exponent(B: Matrix) -> int:
    """e such that squares of B·2⁻ᵉ, and sums of them, neither overflow nor vanish; 0 where B itself will do."""
    peak = float(max(B.max(initial=0), -B.min(initial=0)))
    exponent = int(np.frexp(peak)[1])
    return 0 if -20 <= exponent <= 20 else exponent


def scaled(B: Matrix, exponent: int, dtype: np.dtype[np.floating]) -> Matrix:
    """B·2⁻ᵉ in that precision."""
    if exponent == 0:
        return B.astype(dtype, copy=False)
    return np.ldexp(B.astype(np.float64, copy=False), -exponent).astype(dtype, copy=False)
