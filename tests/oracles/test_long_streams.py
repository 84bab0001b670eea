"""Millions of rounds: rounding must not add up to nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import FullNewton, SketchedNewton
from tests.contract.learners import Floats, state


def drifting_stream(rounds: int, batch: int = 50_000) -> Iterator[tuple[csr_array, Floats]]:
    """Sparse rows whose popular features, scales and labelling rule wander as time goes on."""
    rng = np.random.default_rng(0)
    d, s = 2000, 8
    rule = rng.standard_normal(d)
    for start in range(0, rounds, batch):
        centre = start / rounds * d
        columns = (centre + rng.standard_normal((batch, s)) * 150).astype(np.int64) % d
        values = rng.standard_normal((batch, s)) * np.exp(np.sin(columns / 100.0) * 2)
        X = csr_array((values.ravel(), columns.ravel(), np.arange(batch + 1) * s), shape=(batch, d))
        rule += 0.1 * rng.standard_normal(d)
        yield X, np.where(X @ rule + rng.standard_normal(batch) > 0, 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"oja_rate": 1.0}, {"diagonal": True}, {"block": 10}, {"sketch": "fd"}, {"sketch": "rfd"}],
    ids=str,
)
def test_two_million_rounds_of_drift(options: dict[str, Any]) -> None:
    alpha = 1.0 if "diagonal" in options else 50.0
    learner = SketchedNewton(**{"sketch": "oja", "sketch_size": 10, "alpha": alpha, **options})
    for X, y in drifting_stream(2_000_000):
        assert np.isfinite(learner.learn(X, y)).all()
    V = learner.basis  # from the float32 table itself
    assert len(V) >= 9
    np.testing.assert_allclose(V @ V.T, np.eye(len(V)), rtol=0, atol=1e-3)
    assert all(np.isfinite(array).all() for array in state(learner).values())
    assert (learner.spectrum > 0).all()


@pytest.mark.slow
def test_float32_keeps_up_with_exact_newton() -> None:
    """m ≥ d: w̄ and Vᵀc grow against each other without bound unless they are folded together."""
    learners = [SketchedNewton("oja", 10, alpha=1.0), FullNewton(alpha=1.0)]
    losses = []
    for learner in learners:
        rng = np.random.default_rng(0)
        for _ in range(60):
            X = rng.standard_normal((5000, 8))
            y = np.where(X[:, 0] - 2 * X[:, 1] > 0, 1.0, -1.0)
            loss = np.mean((learner.learn(X, y) - y) ** 2)
        losses.append(loss)
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
@pytest.mark.parametrize("size", [5, 20])
def test_few_directions_in_many_features(sketch: str, size: int) -> None:
    """Rounding must not open directions that the rows do not have: float32 ends where float64 does."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 10))
    labels = np.clip(rows[:, 0] + rng.standard_normal(200), -3, 3)
    low = rows[:, :3] @ rng.standard_normal((3, 30))
    for X in (rows, np.hstack([rows, rows]), low):
        single, double = (
            SketchedNewton(sketch, size, clip=3.0, dtype=dtype) for dtype in ("float32", "float64")
        )
        for _ in range(20):
            predictions, expected = single.learn(X, labels), double.learn(X, labels)
        np.testing.assert_allclose(predictions, expected, rtol=0, atol=1e-3)
        assert len(single.basis) == len(double.basis) <= np.linalg.matrix_rank(X)
        _assert_orthonormal(single)
    wide = SketchedNewton(sketch, size, clip=3.0)  # more decades than float32 has digits
    for _ in range(20):
        assert np.isfinite(wide.learn(rows * np.logspace(-3, 3, 10), labels)).all()
    _assert_orthonormal(wide)


def _assert_orthonormal(learner: SketchedNewton) -> None:
    V = learner.basis
    np.testing.assert_allclose(V @ V.T, np.eye(len(V)), rtol=0, atol=1e-3)
