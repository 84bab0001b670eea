"""What the tests of the sketches share: the table of kinds, hard matrices, and exact arithmetic about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

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
from sketchnewton.core.types import Floats
from sketchnewton.testing.matrices import SCALES, SORTS, hard_matrix, optimum, rounding, unit
from sketchnewton.testing.sketches import Theory, Trial

__all__ = ["ALL", "CERTIFIED", "THEORY", "Matrix", "matrices", "optimum", "rounding", "trials", "unit"]

Matrix = Floats

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

# The rows that shrink are what the guarantee's m counts; greedy has none but the last.
THEORY = {
    "fd": Theory(optimum, below=True, within_norm=True),
    "rfd": Theory(lambda A, m: 0.5 * optimum(A, m), within_norm=True),
    "cfd": Theory(optimum),
    "pfd": Theory(lambda A, m: optimum(A, max(1, m // 2)), below=True, within_norm=True),
    "greedy": Theory(lambda A, m: optimum(A, 1), below=True, within_norm=True),
    "rp": Theory(),
    "oja": Theory(within_norm=True, tolerance=1e-9),
    "exact": Theory(lambda A, m: 0.0, below=True, within_norm=True),
}


@st.composite
def matrices(draw: st.DrawFn, max_rows: int = 60, max_columns: int = 12) -> Matrix:
    """Matrices of every awkward sort: low rank, repeated and zero rows, n < m, one column, graded, tiny, huge."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    return hard_matrix(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        (n, d),
        draw(st.sampled_from(SORTS)),
        rank=draw(st.integers(1, d)),
        zero_rows=draw(st.booleans()),
        uneven_rows=draw(st.booleans()),
        scale=draw(st.sampled_from(SCALES)),
    )


@st.composite
def trials(draw: st.DrawFn, kind: str) -> Trial:
    """One of the sketches, on matrices of every awkward sort."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Trial(ALL[kind], THEORY[kind], draw(matrices()), draw(st.integers(1, 9)), random)
