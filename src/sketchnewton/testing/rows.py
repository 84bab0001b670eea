"""Rows and labels on which promises are checked, the same in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchnewton.core.types import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def sparse_stream(
    rounds: int, d: int = 300, non_zeros: int = 20, seed: int = 0, spread: float = 10.0
) -> tuple[Floats, Floats]:
    """Dense arrays of sparse rows, scales of features spread over a factor, labels ±1 from a linear rule.

    >>> X, y = sparse_stream(5, d=30, non_zeros=3)
    >>> np.count_nonzero(X, axis=1).tolist(), sorted(set(y.tolist()))
    ([3, 3, 3, 3, 3], [-1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    X = np.zeros((rounds, d))
    columns = np.argsort(rng.random((rounds, d)), axis=1)[:, :non_zeros]
    X[np.arange(rounds)[:, None], columns] = rng.standard_normal((rounds, non_zeros))
    X *= np.geomspace(1, spread, d) / np.sqrt(spread)
    y = np.sign(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(rounds))
    return X, y


def batches(X: Floats, y: Floats, size: int) -> list[tuple[csr_array, Floats]]:
    """The rows in CSR form and their labels, `size` at a time."""
    from scipy.sparse import csr_array

    return [(csr_array(X[i : i + size]), y[i : i + size]) for i in range(0, len(y), size)]
