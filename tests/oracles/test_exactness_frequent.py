"""FD-, RFD- and PFD-SON against exact arithmetic, on streams made to be awkward.

Judged by the oracles of `tests/oracles/exact`, written from the papers in many digits, where an answer is needed;
and by Σĝĝᵀ of the gradients that a learner's own predictions have, where only its certificate is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import SketchedNewton
from sketchnewton.core.types import Floats
from tests.oracles.exact.newton import NewtonRun, fd_newton, pfd_newton, rfd_newton
from tests.oracles.exact.streams import STREAMS, Stream, near_copies, perturbed
from tests.oracles.frequent import frequent_son

KINDS = ("fd", "rfd", "pfd")
SIZES = (2, 5, 10)
ROWS = 24
ALPHA = {"fd": 1.0, "rfd": 0.0, "pfd": 0.01}
BETA = 0.5


def learner(kind: str, m: int, **options: Any) -> SketchedNewton:
    return SketchedNewton(kind, m, alpha=ALPHA[kind], beta=BETA, **options)


def exact(kind: str, stream: Stream, m: int, **options: Any) -> NewtonRun:
    named = {"m": m, "alpha": ALPHA[kind], "digits": 60} | options
    if kind == "pfd":
        return pfd_newton(*stream, beta=BETA, **named)
    return (fd_newton if kind == "fd" else rfd_newton)(*stream, **named)


def dense(kind: str, stream: Stream, m: int, diagonal: bool) -> Floats:
    """The same in float64, by singular values."""
    share = {"share": BETA} if kind == "pfd" else {"ridge": 0.5 if kind == "rfd" else 0.0}
    with np.errstate(all="ignore"):
        return frequent_son(*stream, m=m, alpha=ALPHA[kind], diagonal=diagonal, **share)[0]


def furthest(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
def test_predictions_are_those_of_exact_arithmetic(name: str, kind: str, diagonal: bool) -> None:
    """Within 1e-6, or else the dense algorithm is not either; float32 is a matter of storage here."""
    for seed, m in enumerate(SIZES):
        stream = STREAMS[name](seed, n=ROWS)
        expected = exact(kind, stream, m, diagonal=diagonal).predictions
        for dtype in ("float64", "float32"):
            error = furthest(learner(kind, m, diagonal=diagonal, dtype=dtype).learn(*stream), expected)
            assert error < 1e-6 or furthest(dense(kind, stream, m, diagonal), expected) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fd", "pfd"])
@pytest.mark.parametrize("name", STREAMS)
def test_logistic_loss(name: str, kind: str) -> None:
    stream = STREAMS[name](3, n=ROWS, signs=True)
    made = learner(kind, 5, loss="logistic", dtype="float64")
    expected = exact(kind, stream, 5, loss="logistic", sigma=made.loss.curvature(1.0)).predictions
    assert furthest(made.learn(*stream), expected) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_small_change_of_rows_is_a_small_change_of_predictions(name: str, kind: str) -> None:
    """Where it is in exact arithmetic: whether a gradient is zero or rounding decides nothing."""
    for seed, m in ((4, 3), (5, 10)):
        stream = STREAMS[name](seed, n=ROWS)
        changed = perturbed(stream, 1e-9)
        if furthest(exact(kind, stream, m).predictions, exact(kind, changed, m).predictions) > 1e-6:
            continue
        for dtype in ("float64", "float32"):
            first, second = (learner(kind, m, dtype=dtype).learn(*rows) for rows in (stream, changed))
            assert furthest(first, second) < 1e-4


def curvature(made: SketchedNewton, stream: Stream, weights: float = 0.125) -> Floats:
    """Σĝĝᵀ of what it learns, for the squared loss with C = 1."""
    slopes = 2 * (made.learn(*stream) - stream.y)
    G = np.sqrt(weights) * slopes[:, None] * stream.X
    total: Floats = G.T @ G
    return total


def assert_certified(made: SketchedNewton, total: Floats, alpha: float) -> None:
    S = np.zeros((0, len(total))) if made.dimension == 0 else made.matrix
    S = np.pad(S, ((0, 0), (0, len(total) - S.shape[1])))
    error = np.linalg.norm(total - S.T @ S - (made.alpha_ - alpha) * np.eye(len(total)), 2)
    bound = made.error_bound
    assert bound is not None
    assert error <= bound
    W = made.basis
    np.testing.assert_allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
def test_the_certificate_holds(name: str, kind: str, dtype: str) -> None:
    """Of merged learners, too."""
    for seed in range(6, 12):
        m = SIZES[seed % 3]
        alone = STREAMS[name](seed)
        made = learner(kind, m, dtype=dtype)
        total = curvature(made, alone)
        assert_certified(made, total, ALPHA[kind])
        other = learner(kind, m, dtype=dtype)
        more = STREAMS[name](seed + 100, n=33)
        total = total + curvature(other, more)
        if kind == "rfd":  # α of others is shared out by rows
            assert_certified(made.merge(other), total, 0.0)


@pytest.mark.parametrize("size", [3e-12, 1e-11, 1e-10, 1e-9])
def test_what_counts_as_rounding_is_in_the_certificate(size: float) -> None:
    """Near copies with α = 0: what a row has outside of the span is left out where it may be rounding."""
    for seed in range(8):
        made = learner("rfd", 10, loss="absolute", dtype="float64")
        rows = near_copies(seed, n=24, size=size)
        slopes = np.sign(made.learn(*rows) - rows.y)
        G = (slopes / np.sqrt(np.sqrt(np.arange(1, 25))))[:, None] * rows.X  # σ = 0, η = 1/√t
        assert_certified(made, G.T @ G, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_is_orthogonal_however_short_the_rest_that_opened_it(kind: str) -> None:
    """Sparse rows of fewer features than 2m − 1: there was an error of 0.29 beside a bound of 6e-16."""
    r = np.random.default_rng(5)
    X = r.standard_normal((200, 16)) * (r.random((200, 16)) < 0.15)
    y = np.clip(0.3 * X @ r.standard_normal(16) + 0.2 * r.standard_normal(200), -0.9, 0.9)
    for rows in (19, 60, 200):
        made = learner(kind, 10)
        total = curvature(made, Stream(X[:rows], y[:rows]))
        assert_certified(made, total, ALPHA[kind])


def test_rounds_count_not_gradients() -> None:
    """Each row twice: the second time there may be no gradient, but the epoch continues."""
    stream = STREAMS["repeated"](0, n=40)
    doubled = learner("fd", 4, dtype="float64").learn(*stream)
    np.testing.assert_allclose(doubled, exact("fd", stream, 4).predictions, rtol=0, atol=1e-9)
    zeros = Stream(np.repeat(stream.X, 2, axis=0), np.repeat(stream.y, 2))
    zeros.X[1::2] = 0
    made = learner("fd", 4, dtype="float64")
    np.testing.assert_allclose(made.learn(*zeros), exact("fd", zeros, 4).predictions, rtol=0, atol=1e-9)
    assert int(made._state["sketch_counts"][4]) == 80 % 4


@pytest.mark.parametrize("factor", [1e5, 1e7])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_robust_directions_do_not_mind_one_large_feature(factor: float, dtype: str) -> None:
    """RFD₀: one of eight features 10⁵ or 10⁷ times as large."""
    r = np.random.default_rng(0)
    Z = r.standard_normal((600, 8))
    X, y = Z.copy(), np.clip(0.3 * Z @ r.standard_normal(8) + 0.2 * r.standard_normal(600), -0.9, 0.9)
    X[:, 3] *= factor
    p = SketchedNewton("rfd", 10, dtype=dtype).learn(X, y)
    plain = SketchedNewton("rfd", 10, dtype=dtype).learn(Z, y)
    assert np.mean((p - y) ** 2) < 1.2 * np.mean((plain - y) ** 2)


@pytest.mark.parametrize("features", [12, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_unit(kind: str, features: int) -> None:
    """Up to 1e29 in float32: powers of two change no bit where vectors are written out, and little elsewhere."""
    r = np.random.default_rng(1)
    X = r.standard_normal((300, features)) * (r.random((300, features)) < 0.3)
    y = np.clip(0.3 * X @ r.standard_normal(features), -0.9, 0.9)
    made = [SketchedNewton(kind, 5).learn(X * 2.0**unit, y) for unit in (0, 60, 92, -92)]
    for scaled in made[1:]:
        assert furthest(scaled, made[0]) <= (0.0 if features == 12 else 1e-4)


@pytest.mark.parametrize("noise", [0.02, 0.1])
@pytest.mark.parametrize("features", [54, 100])
def test_an_alpha_far_below_the_rows_does_not_let_weights_grow(features: int, noise: float) -> None:
    """A regression in the units of its columns, some large, some rare, as covtype's: weights grew to NaN."""
    n, r = 6000, np.random.default_rng(0)
    walk = np.cumsum(noise / 2 * r.standard_normal((n, 8)), axis=0)
    units = np.array([5000, 360, 60, 600, 500, 7000, 250, 255])
    X = np.zeros((n, features))
    X[:, :8] = np.round(np.abs(units * (0.5 + 0.3 * np.sin(walk) + noise * r.standard_normal((n, 8)))))
    X[np.arange(n), 8 + np.cumsum(r.random(n) < 0.01) % 4] = 1
    half = (features - 12) // 2
    X[np.arange(n), 12 + r.integers(half, size=n) + (np.arange(n) > n // 2) * half] = 1
    made = SketchedNewton("rfd", clip="auto", intercept=True)
    assert np.isfinite(made.learn(X, 2500 + 300 * np.sin(walk[:, 0]) + 50 * r.standard_normal(n))).all()
    assert np.isfinite(made.spectrum).all()
    assert np.abs(made.weights).max() < 1e6
