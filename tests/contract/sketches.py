"""What the tests of the sketches share: the table of kinds, hard matrices, and exact arithmetic about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from sketchnewton import (
    CompensativeFrequentDirections,
    ExactCovariance,
    FrequentDirections,
    GreedyDirections,
    OjaSketch,
    ParameterizedFrequentDirections,
    RandomProjection,
    RobustFrequentDirections,
    Sketch,
)

Matrix = NDArray[np.float64]

CERTIFIED: dict[str, Callable[..., Any]] = {
    "fd": FrequentDirections,
    "rfd": RobustFrequentDirections,
    "cfd": CompensativeFrequentDirections,
    "pfd": lambda m, **more: ParameterizedFrequentDirections(m, beta=0.5, **more),
    "greedy": GreedyDirections,
}
ALL: dict[str, Callable[..., Sketch]] = {
    **CERTIFIED,
    "rp": RandomProjection,
    "oja": OjaSketch,
    "exact": lambda m, **more: ExactCovariance(**more),
}

SCALES = (1e-150, 1e-30, 1.0, 1e30, 1e150)


@st.composite
def matrices(draw: st.DrawFn, max_rows: int = 60, max_columns: int = 12) -> Matrix:
    """Matrices of every awkward sort: low rank, repeated and zero rows, n < m, one column, graded, tiny, huge."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sort = draw(st.sampled_from(["full", "low rank", "repeated", "sparse", "graded", "integers"]))
    A = random.standard_normal((n, d))
    if sort == "low rank":
        rank = draw(st.integers(1, d))
        A = A[:, :rank] @ random.standard_normal((rank, d))
    elif sort == "repeated":
        A = A[random.integers(0, min(n, 3), n)]
    elif sort == "sparse":
        A[random.random(A.shape) < 0.8] = 0
    elif sort == "graded":
        A *= np.geomspace(1, 1e-9, d)
    elif sort == "integers":
        A = random.integers(-2, 3, (n, d)).astype(float)
    if draw(st.booleans()):
        A[random.random(n) < 0.3] = 0
    scale = draw(st.sampled_from(SCALES))
    if draw(st.booleans()):  # rows of very different size
        A *= np.where(random.random(n) < 0.5, 1.0, 1e-6)[:, None]
    return unit(A)[0] * scale


def unit(A: Matrix) -> tuple[Matrix, float]:
    """A with entries up to 1, and what it was divided by: products of the former neither overflow nor vanish."""
    peak = float(np.abs(A).max())
    scale = peak if peak > 0 else 1.0
    return A / scale, scale


def optimum(A: Matrix, m: int) -> float:
    """The smallest ‖A − A_k‖²_F/(m − k) over k < m."""
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    return min(float(squares[k:].sum()) / (m - k) for k in range(m))


def rounding(A: Matrix, dtype: str = "float64") -> float:
    """What rounding may do to AᵀA, entry sizes and number of shrinks considered."""
    return 500 * float(np.finfo(dtype).eps) * float((A**2).sum())
