"""The squared singular values of a short, wide matrix, and rows rebuilt with other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[Any]

# Eigenvalues of a Gram matrix are wrong by a few eps·λ₁. Where the decisive one is not this many times larger,
# the Gram matrix does not tell, and the SVD of the rows themselves does.
_NOISE = 100.0


@dataclass(frozen=True)
class Spectrum:
    """`squares` are the squared singular values of B·2⁻ᵉ, largest first; U or Vᵀ holds their vectors."""

    squares: Floats
    B: Matrix
    exponent: int
    U: Matrix | None = None
    Vt: Matrix | None = None
    tail: Any = None  # the last rows of B as a sparse matrix

    @property
    def unit(self) -> float:
        """4ᵉ: what a square of 1 stands for."""
        return 4.0**self.exponent

    def rows(self, squares: Floats) -> Matrix:
        """Orthogonal rows along the first singular vectors, with these squared lengths, none above the old."""
        k = len(squares)
        if self.Vt is not None:
            lengths = np.ldexp(np.sqrt(squares), self.exponent)
            return (lengths[:, None] * self.Vt[:k]).astype(self.B.dtype, copy=False)
        assert self.U is not None
        old = self.squares[:k]
        ratio = np.divide(squares, old, out=np.zeros(k), where=old > 0)
        weights = (self.U[:, :k] * np.sqrt(ratio)).astype(self.B.dtype, copy=False)
        if self.tail is None:
            return weights.T @ self.B
        head = len(self.B) - self.tail.shape[0]
        rows = weights[:head].T @ self.B[:head]
        rows += (self.tail.T @ weights[head:]).T
        return rows


def spectrum_of(B: Matrix, decisive: int, tail: Any = None) -> Spectrum:
    """Decompose `B` so that squared singular value number `decisive` (from 1) is right, not just rounding.

    The eigendecomposition of the smaller Gram matrix, BBᵀ or BᵀB, costs a fraction of the SVD. It is taken in
    B's own precision, then in double precision, and last comes the SVD, as the decisive value requires. Where the
    last rows are also given as a sparse matrix, `tail`, products with them cost what their non-zeros cost.
    """
    exponent = safe_exponent(B)
    if 0 < decisive <= min(B.shape):
        for dtype in dict.fromkeys((B.dtype, np.dtype(np.float64))):
            C = scaled(B, exponent, dtype)
            wide = C.shape[0] <= C.shape[1]
            sparse = wide and tail is not None and exponent == 0
            gram = _gram(C, tail.astype(dtype)) if sparse else C @ C.T if wide else C.T @ C
            values, vectors = np.linalg.eigh(gram)
            squares = np.maximum(values[::-1].astype(np.float64), 0.0)
            if squares[decisive - 1] > _NOISE * np.finfo(dtype).eps * squares[0]:
                vectors = vectors[:, ::-1]
                if wide:
                    return Spectrum(squares, B, exponent, U=vectors, tail=tail if sparse else None)
                return Spectrum(squares, B, exponent, Vt=vectors.T)
    _, values, Vt = np.linalg.svd(scaled(B, exponent, np.dtype(np.float64)), full_matrices=False)
    return Spectrum(values**2, B, exponent, Vt=Vt)


def _gram(B: Matrix, tail: Any) -> Matrix:
    """BBᵀ, where the last rows of `B` are those of `tail`."""
    head = B[: len(B) - tail.shape[0]]
    G: Matrix = np.empty((len(B), len(B)), B.dtype)
    G[: len(head), : len(head)] = head @ head.T
    G[len(head) :, : len(head)] = tail @ head.T
    G[: len(head), len(head) :] = G[len(head) :, : len(head)].T
    G[len(head) :, len(head) :] = (tail @ tail.T).toarray()
    return G


def safe_exponent(B: Matrix) -> int:
    """e such that squares of B·2⁻ᵉ, and sums of them, neither overflow nor vanish; 0 where B itself will do."""
    peak = float(max(B.max(initial=0), -B.min(initial=0)))
    exponent = int(np.frexp(peak)[1])
    return 0 if -20 <= exponent <= 20 else exponent


def scaled(B: Matrix, exponent: int, dtype: np.dtype[Any]) -> Matrix:
    """B·2⁻ᵉ in that precision."""
    if exponent == 0:
        return B.astype(dtype, copy=False)
    return np.ldexp(B.astype(np.float64, copy=False), -exponent).astype(dtype, copy=False)
