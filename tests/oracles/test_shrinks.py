"""When Frequent Directions shrink: in every row (RFD Algorithm 3), at 2m rows (RFD 6), every m rounds (SON 6)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from sketchnewton import SketchedNewton
from sketchnewton.core.sketch_kinds import SHRINKS
from tests.contract.learners import Floats, sparse_stream
from tests.oracles.exact.newton import fd_newton, rfd_newton
from tests.oracles.exact.streams import STREAMS
from tests.oracles.frequent import frequent_son

KINDS: dict[str, dict[str, Any]] = {
    "fd": {"sketch": "fd", "alpha": 1.0},
    "rfd": {"sketch": "rfd", "alpha": 0.5},
    "rfd without a parameter": {"sketch": "rfd", "alpha": 0.0},
}


@pytest.mark.parametrize("stream", ["gaussian", "few_features", "repeated", "zero_rows"])
@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_arithmetic_agrees(kind: str, shrink: str, stream: str) -> None:
    """Predictions to 1e-6 of those in 100 digits, and a certificate that is true."""
    oracle = fd_newton if kind == "fd" else rfd_newton
    for seed in range(3):
        X, y = STREAMS[stream](seed, n=50)
        run = oracle(X, y, m=4, alpha=KINDS[kind]["alpha"], epoch=shrink)
        learner = SketchedNewton(**KINDS[kind], sketch_size=4, shrink=shrink, dtype="float64")
        np.testing.assert_allclose(learner.learn(X, y), run.predictions, rtol=0, atol=1e-6)
        error = run.spectral_error if kind == "fd" else run.robust_error
        bound = learner.error_bound
        assert bound is not None
        assert error <= bound * (1 + 1e-12)


@pytest.mark.parametrize("shrink", SHRINKS)
def test_near_copies_are_certified(shrink: str) -> None:
    """Rows that differ by 1e-9 of their length: SᵀS lost 1e-10 of itself where the bound had 1e-13."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3, 5))[rng.integers(0, 3, 12)] * (1 + 1e-9 * rng.normal(size=(12, 5)))
        y = rng.choice([-1.0, 1.0], 12)
        learner = SketchedNewton(
            "fd", 4, alpha=10.0, curvature=0.125, curvature_weight=0.0, shrink=shrink, dtype="float64"
        )
        gradients = np.sqrt(0.125) * 2 * (learner.learn(X, y) - y)[:, None] * X
        bound = learner.error_bound
        assert bound is not None
        error = np.linalg.norm(gradients.T @ gradients - learner.matrix.T @ learner.matrix, 2)
        assert error <= bound, (seed, error, bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize(("sketch", "m"), [("fd", 1), ("fd", 4), ("rfd", 4), ("rfd", 10), ("pfd", 4)])
def test_sparse_time_agrees_with_dense_algebra(sketch: str, m: int, shrink: str, dtype: str) -> None:
    """On many features, with epochs of one row too: the lazy maps of a thousand of them."""
    X, y = sparse_stream(1500)
    ridge, share = 0.5 if sketch == "rfd" else 0.0, 0.5 if sketch == "pfd" else 1.0
    predictions, weights, alpha = frequent_son(X, y, m=m, alpha=150.0, ridge=ridge, share=share, when=shrink)
    learner = SketchedNewton(sketch, m, alpha=150.0, beta=0.5, shrink=shrink, dtype=dtype)
    tolerance = {"float64": 1e-6, "float32": 1e-3}[dtype]
    np.testing.assert_allclose(learner.learn(X, y), predictions, rtol=0, atol=tolerance)
    scale = np.abs(weights).max()
    np.testing.assert_allclose(learner.weights, weights[: learner.dimension], rtol=0, atol=tolerance * scale)
    assert learner.alpha_ == pytest.approx(alpha, rel=tolerance)


def test_the_choice_matters_and_is_checked() -> None:
    X, y = sparse_stream(300)
    made: list[Floats] = [
        SketchedNewton("rfd", 4, shrink=shrink, dtype="float64").learn(X, y) for shrink in SHRINKS
    ]
    for i, one in enumerate(made):
        for other in made[:i]:
            assert np.abs(one - other).max() > 1e-3
    with pytest.raises(ValueError, match="shrink='always' is invalid: must be one of rounds, row, 2m"):
        SketchedNewton("rfd", shrink="always")


def test_without_shrinks_there_is_no_difference() -> None:
    """Rows of a rank below m lose nothing, whenever they are shrunk."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 12))
    y = np.clip(0.2 * X[:, 0], -0.9, 0.9)
    made = [SketchedNewton("rfd", 5, shrink=shrink, dtype="float64").learn(X, y) for shrink in SHRINKS]
    for one in made[1:]:
        np.testing.assert_allclose(one, made[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
def test_a_step_without_curvature_in_the_last_round(sketch: str, shrink: str, dtype: str) -> None:
    """A loss that is straight where it is met has a slope but no curvature: with a small α its step opens a
    direction, the only one of an epoch whose rounds are over. It belongs to none of the next epoch's."""
    X = np.kron(np.eye(60), [1.0, 2.0, 2.0])  # many features, and rows that have none in common
    alpha, straight = 1e-9, 0.5
    learner = SketchedNewton(
        sketch,
        2,
        alpha=alpha,
        shrink=shrink,
        loss=f"huber:{straight}",
        clip=None,
        curvature="local",
        curvature_weight=0.0,
        dtype=dtype,
    )
    learner.learn(X[:40], np.zeros(40))  # no gradients
    for round_of_epoch in range(3):
        x = X[40 + round_of_epoch : 41 + round_of_epoch]
        learner.learn(x, [10.0])
        learner = pickle.loads(pickle.dumps(learner))  # refuses states that cannot be
        np.testing.assert_allclose(learner.predict(x), straight * 9.0 / alpha, rtol=1e-5)
    predictions = learner.learn(X[43:], np.full(17, 0.3))  # gradients, one direction each
    np.testing.assert_allclose(predictions, 0.0, atol=1e-9)
    assert pickle.loads(pickle.dumps(learner)).rows_seen == 60
