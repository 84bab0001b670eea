"""A bank looks up where the features of rows to come are: that must not tell one row from another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import NewtonBank
from tests.contract.learners import Floats

LARGE = 6000  # features of a table that is too large for the nearest caches: rows are looked up early
BLOCK = 51  # dense rows of five features that are read at once, and share their indices if none is 0


def alike(X: Any, y: Floats, weights: Floats | None = None, dtype: str = "float32") -> None:
    """One batch and batches of one row learn the same."""
    banks = [NewtonBank(dtype=dtype), NewtonBank(dtype=dtype)]
    for bank in banks:
        bank.learn(csr_array(([1.0], [LARGE], [0, 1]), (1, LARGE + 1)), [1.0])
        bank.learn(np.random.default_rng(1).standard_normal((100, 5)), [-1.0, 1.0] * 50)
    whole = banks[0].learn(X, y, weights)
    ones = [
        banks[1].learn(X[i : i + 1], y[i : i + 1], None if weights is None else weights[i : i + 1])[0]
        for i in range(len(y))
    ]
    np.testing.assert_array_equal(whole, ones)
    np.testing.assert_array_equal(banks[0].expert_weights, banks[1].expert_weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("more", [1, 2, 3, 4])
def test_dense_rows_after_one_with_zeros(more: int, dtype: str) -> None:
    """The last rows of a batch share the indices of one that was found before them."""
    X = np.random.default_rng(2).standard_normal((BLOCK + more, 5))
    y = np.sign(X[:, 0])
    X[BLOCK - 1, :4] = 0
    alike(X, y, dtype=dtype)


@pytest.mark.parametrize("rows", range(5, BLOCK))
def test_dense_rows_after_one_without_weight(rows: int) -> None:
    """What is only predicted is looked at on copies, if the sketch has changed: nobody may learn from them."""
    X = np.random.default_rng(3).standard_normal((rows, 5))
    weights = np.ones(rows)
    weights[-4] = 0.0
    alike(X, np.sign(X[:, 0]), weights)


@pytest.mark.parametrize("seed", range(5))
def test_features_that_are_met_in_rows_next_to_one_another(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = np.zeros((60, LARGE))
    for row in range(len(X)):
        X[row, random.integers(0, 40 + 4 * row, random.integers(0, 20))] = random.standard_normal()
    weights = random.integers(0, 3, len(X)).astype(float)
    alike(csr_array(X), np.sign(random.standard_normal(len(X))), weights)
