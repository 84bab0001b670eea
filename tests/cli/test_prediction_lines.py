"""Predictions are written with the nine digits that `%.9g` gives them."""

from __future__ import annotations

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sketchnewton.cli.io.files import write_numbers


def lines(numbers: np.ndarray) -> str:
    file = io.StringIO()
    write_numbers(file, numbers)
    return file.getvalue()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_are_written_as_printf_writes_them(numbers: list[float]) -> None:
    assert lines(np.array(numbers)) == "".join(f"{number:.9g}\n" for number in numbers)


def test_numbers_of_all_sizes() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.choice([-1.0, 1.0], 20_000) * 10.0 ** rng.uniform(-307, 308, 20_000)
    near = rng.integers(-(10**9), 10**9, 20_000) / 10.0 ** rng.integers(0, 12, 20_000)
    for some in (numbers, near, near.astype(np.float32), near[::2]):
        assert lines(some) == "".join(f"{number:.9g}\n" for number in some.tolist())
    assert (
        lines(np.array([0.0, -0.0, 1.0, 1e9, 999999999.5, 5e-324]))
        == "0\n-0\n1\n1e+09\n1e+09\n4.94065646e-324\n"
    )
