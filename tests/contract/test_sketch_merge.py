"""The ridge of a merged bank is that of one bank: it follows updates of the sketch, of which shards have more."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sketchnewton import NewtonBank
from sketchnewton.learners.newton.sketch_merge import buffered, growth, updates


@pytest.mark.parametrize("m", [1, 6, 20])
@pytest.mark.parametrize("rows", [10, 100, 500, 5000])
def test_updates_are_those_of_the_kernel(m: int, rows: int) -> None:
    """Rows that wait are worked in as soon as there are min(4m, 1 + t/16), in whole numbers.

    An integral takes the place of whole numbers: up to a fifth is lost, of all sides alike.
    """
    waiting = count = 0
    for t in range(1, rows + 1):
        waiting += 1
        if waiting >= min(4 * m, 1 + t // 16):
            waiting, count = 0, count + 1
    assert updates(rows, m) == pytest.approx(count + waiting / buffered(rows, m), rel=0.2, abs=3)


def test_no_side_is_corrected_where_one_bank_would_have_as_many_updates() -> None:
    assert growth(1000.0, [1100.0, 1300.0], 6) == pytest.approx(1.0)  # buffers are full
    assert growth(0.0, [0.0, 0.0], 6) == 1.0
    assert growth(0.0, [100.0], 6) == pytest.approx(1.0)
    assert growth(0.0, [60.0] * 8, 6) < 0.5  # eight beginnings


def test_a_tree_of_ridges_is_a_flat_one() -> None:
    """If each side's ridge is as its updates have it."""
    rows = [40.0, 300.0, 90.0, 700.0]
    ridges = [updates(n, 6) for n in rows]
    flat = growth(0.0, rows, 6) * sum(ridges)
    pairs = [growth(0.0, rows[i : i + 2], 6) * sum(ridges[i : i + 2]) for i in (0, 2)]
    tree = growth(0.0, [sum(rows[:2]), sum(rows[2:])], 6) * sum(pairs)
    assert tree == pytest.approx(flat) == updates(sum(rows), 6)


@pytest.mark.parametrize("rounds", [1, 16])
@pytest.mark.parametrize(("width", "seed"), [(200, 0), (200, 1), (400, 0)])
def test_the_ridge_is_that_of_one_pass(width: int, seed: int, rounds: int) -> None:
    """Rows have far more directions than the sketch. The sum of all shrinking was 1.4 to 2.3 times as large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000, width))
    y = np.sign(X @ rng.normal(size=width) + 0.5 * np.sqrt(width) * rng.normal(size=4000))
    serial, base = NewtonBank(), NewtonBank()
    serial.learn(X, y)
    for part in np.array_split(np.arange(4000), rounds):
        banks = [copy.deepcopy(base) for _ in range(8)]
        for i, bank in enumerate(banks):
            bank.learn(X[part[i::8]], y[part[i::8]])
        first, *others = banks
        base = first.merge(*others, base=base)
    assert 0.75 < base.ridge_ / serial.ridge_ < 1.3
