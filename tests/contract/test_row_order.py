"""Features of a row in any order, some of them several times: the model of the sorted rows, to the bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import NewtonBank, SketchedNewton

LENGTHS = [*range(36), 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 300, 600]


def shuffled_rows(seed: int, width: int) -> csr_array:
    """Rows of all these lengths; small widths have one feature many times."""
    rng = np.random.default_rng(seed)
    lengths = rng.permutation(LENGTHS)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, width, indptr[-1])
    data = rng.normal(size=indptr[-1]) * (rng.random(indptr[-1]) < 0.95)
    return csr_array((data, indices, indptr), shape=(len(lengths), width))


def sorted_rows(X: csr_array) -> csr_array:
    """The same with each feature once, in order; values are added in the order in which they came."""
    indices: list[int] = []
    data: list[float] = []
    indptr = [0]
    for begin, end in pairwise(X.indptr):
        sums: dict[int, float] = {}
        for i, value in zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True):
            sums[i] = sums.get(i, 0.0) + value
        for i in sorted(sums):
            indices.append(i)
            data.append(sums[i])
        indptr.append(len(indices))
    return csr_array((np.array(data), np.array(indices, np.int64), np.array(indptr)), shape=X.shape)


BANKS = [(NewtonBank, width) for width in (3, 40, 1000, 1 << 18, 2**31 - 1, 2**31 + 7)]
OTHERS = [(lambda: SketchedNewton("oja", 5, alpha=1.0), width) for width in (3, 40, 1000, 1 << 18)]


@pytest.mark.parametrize(("make", "width"), [*BANKS, *OTHERS])
def test_order_changes_nothing(make, width: int) -> None:
    for seed in range(4):
        X = shuffled_rows(seed, width)
        if seed == 0 and width > 40:
            X.indices[-1] = width - 1
        Z = sorted_rows(X)
        y = np.sign(np.random.default_rng(seed).normal(size=X.shape[0]))
        one, other = make(), make()
        assert np.array_equal(one.learn(X, y), other.learn(Z, y))
        assert one.to_bytes() == other.to_bytes()
        assert np.array_equal(one.predict(X[::-1]), other.predict(Z[::-1]))
