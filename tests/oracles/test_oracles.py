"""The compiled learners compute what the papers' dense algorithms compute."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from sketchnewton import AdaGrad, FullNewton, OnlineGradient, SketchedNewton
from sketchnewton._native import normal_row
from tests.contract.learners import Floats, sparse_stream
from tests.oracles.adagrad import adagrad
from tests.oracles.frequent import frequent_son
from tests.oracles.full_newton import full_newton
from tests.oracles.oja import oja_son
from tests.oracles.online_gradient import online_gradient
from tests.oracles.projection import projection_son

ROUNDS = 5000
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
# α large enough that steps do not overshoot: the comparison is of algorithms, not of chaotic trajectories.
ALPHA = {
    ("squared", False): 150.0,
    ("squared", True): 1.0,
    ("logistic", False): 20.0,
    ("logistic", True): 0.5,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The oracles' matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


@cache
def awkward_stream() -> tuple[Floats, Floats]:
    """Rows that are repeated, zero, nearly collinear, or all that some features appear in for a long time."""
    X, y = sparse_stream(ROUNDS)
    X[50:60] = 0
    X[100:130] = X[99] * (1 + 1e-5 * np.arange(30))[:, None]
    X[100:130, 3] += 1e-4 * np.arange(30)
    X[1000:4000, :100] = 0
    X[4200:4500] = X[4200:4210].repeat(30, axis=0)
    return X, y


def assert_close(actual: Floats, expected: Floats, tolerance: float, unit: float | None = None) -> None:
    """Relative to the largest number there is, or to `unit`; features that never came have no weight."""
    expected = expected[: len(actual)]
    scale = np.abs(expected).max() if unit is None else unit
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def compare_oja(
    m: int, loss: str, diagonal: bool, clip: float, unit: float | None = None, **options: Any
) -> float:
    """Check both precisions against the oracle; return the share of rounds in which it projected."""
    X, y = sparse_stream(ROUNDS)
    alpha = ALPHA[loss, diagonal]
    reference = SketchedNewton("oja", m, loss=loss, clip=clip, **options)
    predictions, weights, projected = oja_son(
        X,
        y,
        m=m,
        alpha=alpha,
        loss=loss,
        C=clip,
        sigma=reference.loss.curvature(clip),
        diagonal=diagonal,
        rate=options.get("oja_rate", "adaptive"),
        block=options.get("block", 1),
        intercept_ridge=float(reference._state["intercept"][1]) or None,
    )
    for dtype, tolerance in TOLERANCE.items():
        learner = SketchedNewton(
            "oja", m, alpha=alpha, loss=loss, clip=clip, diagonal=diagonal, dtype=dtype, **options
        )
        assert_close(learner.learn(csr_array(X), y), predictions, tolerance, unit)
        assert_close(learner.weights, weights, tolerance, unit)
        V = learner.basis
        np.testing.assert_allclose(V @ V.T, np.eye(m), rtol=0, atol=1e-5)
    return projected


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("m", [2, 5, 10, 20])
def test_sparse_oja_equals_dense(m: int, loss: str, diagonal: bool) -> None:
    assert compare_oja(m, loss, diagonal, clip=0.25) >= 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"oja_rate": 1.0},
        {"oja_rate": [0.5, 1.0, 1.5, 2.0, 3.0]},
        {"block": 5},
        {"block": 7, "oja_rate": 1.0},
        {"intercept": True},
        {"block": 3, "intercept": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("diagonal", [False, True])
def test_oja_options_equal_dense(options: dict[str, Any], diagonal: bool) -> None:
    compare_oja(5, "squared", diagonal, clip=0.25, unit=1.0, **options)  # labels are ±1


def test_oja_when_the_sketch_has_room_to_spare() -> None:
    """m > d: the basis fills up with what there is, and rows are inside its span from then on."""
    X, y = sparse_stream(3000, d=6, non_zeros=3, spread=100.0)
    learner = SketchedNewton("oja", 10, alpha=50.0, dtype="float64")
    predictions, weights, _ = oja_son(X, y, m=10, alpha=50.0)
    np.testing.assert_allclose(learner.learn(X, y), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)
    assert learner.basis.shape == (6, 6)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_oja_rates_that_let_single_rows_take_over(scale: float) -> None:
    """Γ = 1/t with long rows multiplies V by up to 10²⁴ in one round; the representation must not notice."""
    X, y = sparse_stream(400, d=40, non_zeros=10)
    X[::7] *= scale
    alpha = 150.0 * max(scale, 1.0) ** 2
    learner = SketchedNewton("oja", 4, alpha=alpha, oja_rate=1.0, dtype="float64")
    predictions, _, _ = oja_son(X, y, m=4, alpha=alpha, rate=1.0)
    np.testing.assert_allclose(learner.learn(X, y), predictions, rtol=0, atol=1e-6)


@pytest.mark.parametrize("block", [1, 2, 5])
@pytest.mark.parametrize("m", [10, 20])
def test_oja_rates_on_rows_without_a_unit(m: int, block: int) -> None:
    """Γ = 1/t replaces V in every row if rows are long; float32 weights must not be lost between w̄ and Vᵀc."""
    rng = np.random.default_rng(0)
    units = np.logspace(-1, 2, 10)
    X = np.abs(rng.standard_normal((3000, 10))) * units
    scores = X @ (rng.standard_normal(10) / units)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    for alpha in (0.01, 1.0, 16.0):
        single, double = (
            SketchedNewton("oja", m, alpha=alpha, oja_rate=1.0, dtype=dtype, block=block)
            for dtype in ("float32", "float64")
        )
        apart = np.abs(single.learn(X, y) - double.learn(X, y)).mean()
        assert np.abs(single.weights).max() < 10 * np.abs(double.weights).max()  # and so no NaN
        if alpha == 16.0 and block == 1:  # with less, every row forgets the last
            assert apart < 0.005


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [2, 5, 20])
@pytest.mark.parametrize("m", [5, 20])
def test_blocks_of_long_rows_leave_all_directions(m: int, block: int, dtype: str) -> None:
    """Γ = 1/t makes a block's few rows so long that V drowns in them; its directions must not become one."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 2000)
    for units in (np.full(30, 1e4), np.logspace(-3, 3, 30), np.logspace(-8, 8, 30)):
        learner = SketchedNewton("oja", m, oja_rate=1.0, block=block, dtype=dtype)
        assert np.isfinite(learner.learn(rng.standard_normal((2000, 30)) * units, y)).all()
        V = learner.basis
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), rtol=0, atol=1e-3)


def test_oja_with_importance_weights_and_curvature_weight() -> None:
    X, y = sparse_stream(2000)
    h = np.random.default_rng(3).choice([0.25, 1.0, 3.0], len(y))
    predictions, weights, _ = oja_son(
        X, y, m=5, alpha=300.0, importance=h, eta=lambda t: 1 / np.sqrt(t), sigma=0.05
    )
    learner = SketchedNewton(
        "oja", 5, alpha=300.0, curvature=0.05, curvature_weight="1/sqrt(t)", dtype="float64"
    )
    np.testing.assert_allclose(learner.learn(X, y, h), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)


FREQUENT: dict[str, dict[str, Any]] = {"fd": {}, "rfd": {"ridge": 0.5}, "pfd": {"share": 0.4}}


def compare_frequent(
    kind: str,
    m: int,
    alpha: float,
    loss: str,
    diagonal: bool,
    rows: tuple[Any, Any],
    clip: float = 0.4,
) -> None:
    """Errors are relative to the largest prediction."""
    X, y = rows
    options = {"loss": loss, "clip": clip, "beta": 0.4, "diagonal": diagonal}
    sigma = SketchedNewton(kind, m, **options).loss.curvature(clip)
    predictions, weights, final_alpha = frequent_son(
        X, y, m=m, alpha=alpha, loss=loss, C=clip, sigma=sigma, diagonal=diagonal, **FREQUENT[kind]
    )
    for dtype, tolerance in TOLERANCE.items():
        learner = SketchedNewton(kind, m, alpha=alpha, dtype=dtype, **options)
        assert_close(learner.learn(csr_array(X), y), predictions, tolerance)
        assert_close(learner.weights, weights, tolerance)
        assert learner.alpha_ == pytest.approx(final_alpha, rel=tolerance)
        V = learner.basis
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("m", [2, 5, 10, 20])
@pytest.mark.parametrize("kind", FREQUENT)
def test_sparse_frequent_directions_equal_dense(kind: str, m: int, loss: str, diagonal: bool) -> None:
    rows = sparse_stream(ROUNDS)
    compare_frequent(kind, m, ALPHA[loss, diagonal], loss, diagonal, rows, clip=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("m", [2, 5, 10, 20])
@pytest.mark.parametrize("kind", FREQUENT)
def test_frequent_directions_on_awkward_rows(kind: str, m: int, loss: str, diagonal: bool) -> None:
    """Thirty copies of a row leave rests of 10⁻⁹ of it after a shrink: these are written out."""
    compare_frequent(kind, m, ALPHA[loss, diagonal], loss, diagonal, awkward_stream(), clip=0.25)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", FREQUENT)
def test_a_sketch_of_one_row(kind: str, diagonal: bool) -> None:
    rows = sparse_stream(500, d=50, non_zeros=8)
    compare_frequent(kind, 1, ALPHA["squared", diagonal], "squared", diagonal, rows)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 5, 10, 20])
def test_robust_frequent_directions_without_a_parameter(m: int) -> None:
    compare_frequent("rfd", m, 0.0, "squared", False, sparse_stream(ROUNDS))


@pytest.mark.parametrize("m", [2, 10])
@pytest.mark.parametrize("kind", FREQUENT)
def test_rows_whose_label_is_predicted_exactly(kind: str, m: int) -> None:
    """A projected row that comes again has no gradient, or one of a rounding error: epochs must not notice."""
    X, y = sparse_stream(1000)
    compare_frequent(kind, m, 1.0, "squared", True, (X.repeat(2, axis=0), y.repeat(2)), clip=1.0)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", FREQUENT)
def test_all_rows_identical_but_for_their_scale(kind: str, alpha: float) -> None:
    """The diagonal moves the copies apart, by ever less."""
    rng = np.random.default_rng(2)
    X = np.tile(np.where(rng.random(300) < 0.3, rng.standard_normal(300), 0.0), (400, 1))
    y = np.where(rng.random(400) < 0.7, 1.0, -1.0)
    expected, _, _ = frequent_son(X, y, m=10, alpha=alpha, diagonal=True, **FREQUENT[kind])
    for dtype, tolerance in TOLERANCE.items():
        learner = SketchedNewton(kind, 10, alpha=alpha, diagonal=True, beta=0.4, dtype=dtype)
        assert_close(learner.learn(csr_array(X), y), expected, tolerance)


@pytest.mark.parametrize("clip", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", FREQUENT)
def test_a_sketch_of_copies_is_kept_orthonormal(kind: str, alpha: float, clip: float) -> None:
    """Directions that were opened by differences of copies are off by rounding, which ‖x‖²/α makes large."""
    rng = np.random.default_rng(2)
    X = np.tile(np.where(rng.random(300) < 0.3, rng.standard_normal(300), 0.0), (400, 1))
    y = np.where(rng.random(400) < 0.7, 1.0, -1.0)
    learner = SketchedNewton(kind, 10, alpha=alpha, clip=clip, diagonal=True, beta=0.4, dtype="float64")
    expected, weights, _ = frequent_son(
        X, y, m=10, alpha=alpha, C=clip, sigma=learner.loss.curvature(clip), diagonal=True, **FREQUENT[kind]
    )
    np.testing.assert_allclose(learner.learn(csr_array(X), y), expected, rtol=0, atol=2e-7)
    found = np.zeros(300)
    found[: learner.dimension] = learner.weights
    np.testing.assert_allclose(found, weights, rtol=0, atol=2e-6)


def few_features(kind: str, d: int, seed: int) -> tuple[Floats, Floats]:
    """Rows that come again and again, and labels."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        X = (rng.random((4000, d)) < 0.3).astype(np.float64)
    else:
        X = np.zeros((4000, d))
        X[:, :2] = rng.standard_normal((4000, 2))
        X[np.arange(4000), 2 + rng.integers(0, d - 2, 4000)] = 1.0
    w = rng.standard_normal(d) / np.maximum(np.abs(X).mean(0), 1e-9) / np.sqrt(d)
    y = np.where(X @ w + 0.5 * rng.standard_normal(4000) < 0, -1.0, 1.0)
    return X[:300], y[:300]


@pytest.mark.parametrize(
    ("rows", "d", "m", "kind", "seed"),
    [
        ("binary", 4, 3, "pfd", 370),
        ("binary", 8, 5, "fd", 410),
        ("binary", 8, 5, "pfd", 418),
        ("a category", 20, 10, "rfd", 138),
    ],
)
def test_few_features_and_a_small_ridge(rows: str, d: int, m: int, kind: str, seed: int) -> None:
    """‖x‖²/α is in the thousands, and so is what rounding may pretend: gradients where a prediction is its label,
    directions without rows."""
    X, y = few_features(rows, d, seed)
    share = {"pfd": 0.2}.get(kind, 1.0)
    expected, _, _ = frequent_son(X, y, m=m, alpha=1e-3, **{**FREQUENT[kind], "share": share})
    learner = SketchedNewton(kind, m, alpha=1e-3, beta=0.2, dtype="float64")
    np.testing.assert_allclose(learner.learn(csr_array(X), y), expected, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_all_rows_identical(alpha: float, m: int) -> None:
    X = np.tile(sparse_stream(1)[0], (ROUNDS, 1))
    y = np.tile([1.0, -1.0, 1.0], ROUNDS)[:ROUNDS]
    for kind in FREQUENT if alpha else ["rfd"]:
        compare_frequent(kind, m, alpha, "squared", False, (X, y))


@pytest.mark.parametrize("kind", FREQUENT)
def test_a_sketch_as_large_as_the_rank_is_full_newton(kind: str) -> None:
    X, y = sparse_stream(1000, d=9, non_zeros=4)
    sketched = SketchedNewton(kind, 10, alpha=5.0, dtype="float64")
    exact = FullNewton(alpha=5.0)
    np.testing.assert_allclose(sketched.learn(X, y), exact.learn(X, y), rtol=0, atol=1e-6)
    np.testing.assert_allclose(sketched.weights, exact.weights, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_features_that_sleep_through_thousands_of_epochs() -> None:
    """The deepest level of postponed maps: one block of features is seen at the start and at the end only."""
    X, y = sparse_stream(40_000, d=12, non_zeros=4)
    X[200:-200, 6:] = 0
    learner = SketchedNewton("fd", 2, alpha=30.0, dtype="float64")
    predictions, weights, _ = frequent_son(X, y, m=2, alpha=30.0)
    np.testing.assert_allclose(learner.learn(csr_array(X), y), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("m", [1, 2, 5, 10, 20])
def test_sparse_random_projection_equals_dense(m: int, loss: str, diagonal: bool) -> None:
    X, y = awkward_stream()
    alpha, clip = ALPHA[loss, diagonal], 0.4
    sigma = SketchedNewton("rp", m, loss=loss).loss.curvature(clip)
    predictions, weights = projection_son(
        X, y, m=m, alpha=alpha, loss=loss, C=clip, sigma=sigma, diagonal=diagonal, seed=7
    )
    for dtype, tolerance in TOLERANCE.items():
        learner = SketchedNewton(
            "rp", m, alpha=alpha, loss=loss, clip=clip, diagonal=diagonal, dtype=dtype, random_state=7
        )
        assert_close(learner.learn(csr_array(X), y), predictions, tolerance)
        assert_close(learner.weights, weights, tolerance)


def test_a_row_without_a_gradient_counts_among_random_projections() -> None:
    """Otherwise rounding would decide which numbers the rows after it draw."""
    X, y = sparse_stream(1000)
    X, y = X.repeat(2, axis=0), y.repeat(2)
    predictions, _ = projection_son(X, y, m=5, alpha=1.0, diagonal=True)
    for dtype, tolerance in TOLERANCE.items():
        learner = SketchedNewton("rp", 5, alpha=1.0, diagonal=True, dtype=dtype)
        assert_close(learner.learn(csr_array(X), y), predictions, tolerance)


def test_random_projections_are_normal_and_independent() -> None:
    """Moments of 400,000 draws; each bound is five standard deviations, a false alarm in about 10⁶ seeds."""
    draws = np.array([normal_row(11, row, 10) for row in range(40_000)])
    n = draws.size
    assert abs(draws.mean()) < 5 / np.sqrt(n)
    assert abs((draws**2).mean() - 1) < 5 * np.sqrt(2 / n)
    assert abs((draws**4).mean() - 3) < 5 * np.sqrt(96 / n)
    correlation = draws.T @ draws / len(draws) - np.eye(10)
    assert abs(correlation).max() < 5.5 * np.sqrt(2 / len(draws))
    assert abs((draws[1:] * draws[:-1]).mean()) < 5 / np.sqrt(n)
    np.testing.assert_array_equal(normal_row(11, 5, 10), draws[5])
    assert not np.array_equal(normal_row(12, 5, 10), draws[5])


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute"])
def test_no_sketch_is_online_gradient(loss: str) -> None:
    X, y = sparse_stream(ROUNDS)
    predictions, weights = online_gradient(X, y, alpha=100.0, loss=loss, C=0.5)
    for learner in (
        SketchedNewton("none", 10, alpha=100.0, loss=loss, clip=0.5, dtype="float64"),
        SketchedNewton("oja", 0, alpha=100.0, loss=loss, clip=0.5, dtype="float64"),
        OnlineGradient(alpha=100.0, loss=loss, clip=0.5, dtype="float64"),
    ):
        np.testing.assert_allclose(learner.learn(X, y), predictions, rtol=0, atol=1e-6)
        np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
def test_full_newton(loss: str) -> None:
    X, y = sparse_stream(3000, d=40, non_zeros=10)  # several fresh inversions
    h = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(y))
    learner = FullNewton(alpha=10.0, loss=loss, clip=0.7, curvature=0.1, curvature_weight="1/t")
    predictions, weights = full_newton(
        X, y, alpha=10.0, loss=loss, C=0.7, sigma=0.1, eta=lambda t: 1 / t, importance=h
    )
    np.testing.assert_allclose(learner.learn(X, y, h), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)


def test_a_sketch_with_exact_eigenvectors_is_full_newton() -> None:
    """Rows along the axes, one at a time: V is exact from the start, and so is the metric αI + VᵀEV."""
    rng = np.random.default_rng(0)
    d = 6
    X = np.zeros((2000, d))
    X[np.arange(2000), rng.integers(0, d, 2000)] = rng.standard_normal(2000) * 3
    y = np.sign(X.sum(axis=1) + rng.standard_normal(2000))
    sketched = SketchedNewton("oja", d, alpha=2.0, dtype="float64").learn(X, y)
    exact = FullNewton(alpha=2.0).learn(X, y)
    np.testing.assert_allclose(sketched, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_adagrad(clip: float | None) -> None:
    X, y = sparse_stream(ROUNDS)
    C = np.inf if clip is None else clip
    predictions, weights = adagrad(X, y, eta=0.2, sigma=0.01, C=C)
    learner = AdaGrad(eta=0.2, sigma=0.01, clip=clip, dtype="float64")
    np.testing.assert_allclose(learner.learn(X, y), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)
