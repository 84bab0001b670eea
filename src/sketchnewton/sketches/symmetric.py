"""The leading eigenvectors of a symmetric matrix."""

from __future__ import annotations

import numpy as np

from sketchnewton import _native
from sketchnewton.core.types import Floats
from sketchnewton.sketches.stack import Matrix

# From this order on, where at most half of the vectors are asked for, finding these alone has paid.
_LARGE = 24
# Vectors that miss right angles by more than this many eps, or T − λ by that share of λ₁, are not used.
_TOLERANCE = 50.0


def leading(matrix: Matrix, count: int, *, all_values: bool = True) -> tuple[Floats, Matrix]:
    """Eigenvalues, largest first and none below 0, and vectors of at least the first `count` as columns.

    All values, or at least `count` + 1 of them.
    """
    if len(matrix) >= _LARGE and 0 < count <= len(matrix) // 2:
        found = _by_inverse_iteration(matrix, count, all_values)
        if found is not None:
            return found
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values[::-1].astype(np.float64), 0.0), vectors[:, ::-1]


def _by_inverse_iteration(matrix: Matrix, count: int, all_values: bool) -> tuple[Floats, Matrix] | None:
    """The same from the tridiagonal form, or None where vectors come out inexact.

    `eigh` finds all vectors, which is most of its work. LAPACK's drivers for a few find them one after the other,
    and so save little of it.
    """
    form = _native.tridiagonal_form(matrix)
    diagonal, beside = form.diagonal, form.beside
    values = _native.tridiagonal_values(diagonal, beside, len(matrix) if all_values else count + 1)
    vectors, residual = _native.tridiagonal_vectors(diagonal, beside, values[:count])
    tolerance = _TOLERANCE * float(np.finfo(matrix.dtype).eps)
    if not residual <= tolerance * values[0]:
        return None
    form.apply(vectors)
    identity = np.eye(count, dtype=matrix.dtype)
    angles = vectors.T @ vectors - identity
    if not np.linalg.norm(angles) < 0.9:
        return None
    for _ in range(5):
        if np.abs(angles).max() <= tolerance / 10:
            break
        # Where eigenvalues are close, vectors are not at right angles. What is missing is taken in halves from
        # both, (I + angles)^-½ up to the second order; where eigenvalues are not close this is next to nothing,
        # so they stay eigenvectors.
        vectors -= vectors @ (angles / 2 - 0.375 * (angles @ angles))
        angles = vectors.T @ vectors - identity
    if not np.abs(angles).max() <= tolerance:
        return None
    return np.maximum(values.astype(np.float64), 0.0), vectors
