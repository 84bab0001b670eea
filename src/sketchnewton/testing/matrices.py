"""Matrices of every awkward sort, and what rounding may do to their products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sketchnewton.core.types import Floats

SORTS = ("full", "low rank", "repeated", "sparse", "graded", "integers")
SCALES = (1e-150, 1e-30, 1.0, 1e30, 1e150)


def hard_matrix(
    random: np.random.Generator,
    shape: tuple[int, int],
    sort: str,
    *,
    rank: int = 1,
    zero_rows: bool = False,
    uneven_rows: bool = False,
    scale: float = 1.0,
) -> Floats:
    """A matrix whose largest entry is `scale`; `rank` is that of the low-rank sort."""
    n, d = shape
    A = random.standard_normal((n, d))
    if sort == "low rank":
        A = A[:, :rank] @ random.standard_normal((rank, d))
    elif sort == "repeated":
        A = A[random.integers(0, min(n, 3), n)]
    elif sort == "sparse":
        A[random.random(A.shape) < 0.8] = 0
    elif sort == "graded":
        A *= np.geomspace(1, 1e-9, d)
    elif sort == "integers":
        A = random.integers(-2, 3, (n, d)).astype(float)
    if zero_rows:
        A[random.random(n) < 0.3] = 0
    if uneven_rows:
        A *= np.where(random.random(n) < 0.5, 1.0, 1e-6)[:, None]
    return unit(A)[0] * scale


def hard_matrices(count: int, max_rows: int = 60, max_columns: int = 12) -> Iterator[Floats]:
    """Matrices of all sorts in turn: low rank, repeated and zero rows, one column, graded, tiny, huge."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        n, d = int(random.integers(1, max_rows + 1)), int(random.integers(1, max_columns + 1))
        yield hard_matrix(
            random,
            (n, d),
            SORTS[seed % len(SORTS)],
            rank=int(random.integers(1, d + 1)),
            zero_rows=bool(random.integers(2)),
            uneven_rows=bool(random.integers(2)),
            scale=SCALES[seed % len(SCALES)],
        )


def unit(A: Floats) -> tuple[Floats, float]:
    """A with entries up to 1, and what it was divided by: products of the former neither overflow nor vanish."""
    peak = float(np.abs(A).max())
    scale = peak if peak > 0 else 1.0
    return A / scale, scale


def optimum(A: Floats, m: int) -> float:
    """The smallest ‖A − A_k‖²_F/(m − k) over k < m: the bound of Frequent Directions with m rows."""
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    return min(float(squares[k:].sum()) / (m - k) for k in range(m))


def rounding(A: Floats, dtype: str = "float64") -> float:
    """What rounding may do to AᵀA, entry sizes and number of shrinks considered."""
    return 500 * float(np.finfo(dtype).eps) * float((A**2).sum())
