"""How many directions PFD shrinks: ⌊βm⌋ for β as it is written, and at least one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sketchnewton import ParameterizedFrequentDirections


@pytest.mark.parametrize(("m", "beta"), [(100, 0.29), (100, 0.57), (10, 0.7), (50, 0.58), (3, 0.2), (7, 1.0)])
def test_the_sketch_shrinks_that_many(m: int, beta: float) -> None:
    """0.29·100 is 28.999999999999996 in binary."""
    squares = np.linspace(2.0, 1.0, m)
    kept = ParameterizedFrequentDirections(m, beta=beta)._shrink(squares, m)
    expected = max(1, int(Fraction(repr(beta)) * m))
    assert (kept < squares[: m - 1]).sum() == expected - 1  # the m-th of them is gone altogether
