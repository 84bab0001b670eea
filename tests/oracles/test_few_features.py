"""Frequent Directions in float32 where the sketch has nearly as many directions as there are features.

Rows then lie nearly in the span of the sketch. What is left of them is a small difference of large numbers, and
must not be taken for a direction when it is rounding.
"""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import SketchedNewton
from tests.contract.learners import Floats


def stream(kind: str, d: int, seed: int) -> tuple[Floats, Floats]:
    rng, rows = np.random.default_rng(seed), 4000
    if kind == "one of many":  # two numbers, and one of the other features
        X = np.zeros((rows, d))
        X[:, :2] = rng.standard_normal((rows, 2))
        X[np.arange(rows), rng.integers(2, d, rows)] = 1.0
    elif kind == "binary":
        X = (rng.random((rows, d)) < 0.3).astype(float)
    elif kind == "low rank":
        rank = max(2, d // 3)
        X = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, d))
    else:
        X = rng.standard_normal((rows, d)) * np.geomspace(0.03, 30.0, d)
    w = rng.standard_normal(d) / np.maximum(np.abs(X).mean(axis=0), 1e-9) / np.sqrt(d)
    return X, np.where(X @ w + 0.5 * rng.standard_normal(rows) > 0, 1.0, -1.0)


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
@pytest.mark.parametrize("m", [3, 5, 10])
@pytest.mark.parametrize("d", [4, 8, 12, 20])
@pytest.mark.parametrize("kind", ["one of many", "binary", "low rank", "scales"])
def test_float32_learns_as_float64_does(kind: str, d: int, m: int, sketch: str) -> None:
    X, y = stream(kind, d, seed=100 * d + m)
    losses = {}
    for dtype in ("float32", "float64"):
        learner = SketchedNewton(sketch, m, dtype=dtype)
        losses[dtype] = float(np.mean((learner.learn(X, y) - y) ** 2))
        V = learner.basis
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), atol=1e-3)
    assert losses["float32"] < 1.1 * losses["float64"] + 0.01
