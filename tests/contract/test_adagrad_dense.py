"""ADA-DIAG with penalties, ADA-FULL, ADA-LR and RADAGRAD compute what their dense algorithms compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import AdaLR, CompositeAdaGrad, FullAdaGrad, RadaGrad, SketchedAdaGrad
from sketchnewton.learners.adagrad.hadamard import hadamard_projection
from tests.contract.learners import sparse_stream
from tests.oracles.adaptive import Diagonal, Exact, adaptive
from tests.oracles.range_finder import ada_lr, radagrad

FORMS = ["mirror_descent", "dual_averaging"]
PENALTIES: dict[str | None, tuple[float, float]] = {
    None: (0.0, 0.0),
    "l1": (1.0, 0.0),
    "l2": (0.0, 1.0),
    "elasticnet": (0.3, 0.7),
}


def options(form: str, penalty: str | None, strength: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """For the learner and for the oracle."""
    l1, l2 = (strength * part for part in PENALTIES[penalty])
    learner = {"form": form, "penalty": penalty, "penalty_strength": strength, "l1_ratio": 0.3}
    return learner, {"averaging": form == "dual_averaging", "l1": l1, "l2": l2}


def close(learner: Any, X: Any, y: Any, expected: tuple[Any, Any], importance: Any = None) -> None:
    np.testing.assert_allclose(learner.learn(X, y, importance), expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, expected[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strength", [0.003, 0.1])
def test_full(form: str, penalty: str | None, strength: float) -> None:
    X, y = sparse_stream(400, d=12, non_zeros=5)
    own, oracle = options(form, penalty, strength)
    expected = adaptive(X, y, lambda k: Exact(12), eta=0.5, sigma=5.0, **oracle)
    close(FullAdaGrad(eta=0.5, sigma=5.0, **own), X, y, expected)


@pytest.mark.slow
def test_full_five_thousand_rounds() -> None:
    X, y = sparse_stream(5000, d=20, non_zeros=6)
    expected = adaptive(X, y, lambda k: Exact(20), eta=0.5, sigma=5.0, loss="logistic")
    close(FullAdaGrad(eta=0.5, sigma=5.0, loss="logistic"), X, y, expected)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", FORMS)
def test_full_with_classes(form: str, penalty: str | None) -> None:
    X, _ = sparse_stream(200, d=10, non_zeros=5)
    y = np.argmax(X[:, :3], axis=1).astype(float)
    own, oracle = options(form, penalty, 0.01)
    expected = adaptive(X, y, lambda k: Exact(10), eta=0.5, sigma=5.0, classes=3, **oracle)
    close(FullAdaGrad(eta=0.5, sigma=5.0, classes=3, loss="logistic", **own), X, y, expected)


def test_full_projected_and_weighted() -> None:
    X, y = sparse_stream(500, d=12, non_zeros=5)
    h = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(y))
    expected = adaptive(X, y, lambda k: Exact(12), eta=0.5, sigma=5.0, C=0.4, importance=h)
    close(FullAdaGrad(eta=0.5, sigma=5.0, clip=0.4), X, y, expected, h)


@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strength", [0.003, 0.1])
def test_diagonal(form: str, penalty: str | None, strength: float, classes: int | None) -> None:
    """Each feature is in one row of six: most of the penalty is paid in rounds that it missed."""
    X, y = sparse_stream(300, d=30, non_zeros=5)
    loss = "squared"
    if classes:
        y, loss = np.argmax(X[:, :3] + X[:, 3:6], axis=1).astype(float), "logistic"
    own, oracle = options(form, penalty, strength)
    expected = adaptive(X, y, lambda k: Diagonal(30), eta=0.3, sigma=1.0, classes=classes, **oracle)
    close(
        CompositeAdaGrad(eta=0.3, sigma=1.0, loss=loss, classes=classes, dtype="float64", **own),
        X,
        y,
        expected,
    )


def test_diagonal_projected_with_a_penalty() -> None:
    X, y = sparse_stream(500, d=30, non_zeros=5)
    expected = adaptive(X, y, lambda k: Diagonal(30), eta=0.3, sigma=1.0, C=0.4, l1=0.01)
    learner = CompositeAdaGrad(
        eta=0.3, sigma=1.0, clip=0.4, penalty="l1", penalty_strength=0.01, dtype="float64"
    )
    close(learner, X, y, expected)


@pytest.mark.parametrize("m", [3, 16])
def test_ada_lr(m: int) -> None:
    X, y = sparse_stream(500, d=16, non_zeros=5)
    Pi = hadamard_projection(np.arange(16), m, 5)
    expected = ada_lr(X, y, Pi, eta=0.5, sigma=5.0)
    learner = AdaLR(m, eta=0.5, sigma=5.0, random_state=5)
    close(learner, X, y, expected)


@pytest.mark.parametrize("m", [3, 8, 20])
@pytest.mark.parametrize("d", [12, 30])
def test_radagrad(m: int, d: int) -> None:
    X, y = sparse_stream(1500, d=d, non_zeros=5)
    Pi = hadamard_projection(np.arange(d), m, 5)
    expected = radagrad(X / 10, y, Pi, eta=0.5, sigma=1.0)
    close(RadaGrad(m, eta=0.5, sigma=1.0, random_state=5), X / 10, y, expected)


def test_range_finders_as_large_as_the_dimension_find_the_whole_range() -> None:
    """τ ≥ d: ADA-LR is ADA-FULL."""
    X, y = sparse_stream(400, d=8, non_zeros=4)
    expected = FullAdaGrad(eta=0.5, sigma=5.0).learn(X, y)
    np.testing.assert_allclose(AdaLR(8, eta=0.5, sigma=5.0).learn(X, y), expected, rtol=0, atol=1e-6)


def test_frequent_directions_as_large_as_the_dimension_are_full() -> None:
    X, y = sparse_stream(800, d=9, non_zeros=4)
    full = FullAdaGrad(eta=0.3, sigma=2.0)
    sketched = SketchedAdaGrad("fd", 10, eta=0.3, sigma=2.0, dtype="float64")
    np.testing.assert_allclose(sketched.learn(X, y), full.learn(X, y), rtol=0, atol=1e-6)
    np.testing.assert_allclose(sketched.weights, full.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(sketched.spectrum[:9], full.spectrum, rtol=1e-8)


@pytest.mark.slow
def test_hadamard_projection() -> None:
    """Orthogonal columns, full rank when m = d, features that come later change nothing, unbiased over seeds."""
    for d in (4, 16):
        Pi = hadamard_projection(np.arange(d), d, 3)
        np.testing.assert_allclose(Pi.T @ Pi, np.eye(d), atol=1e-12)
    wide = hadamard_projection(np.arange(1000), 8, 3)
    np.testing.assert_array_equal(wide[:100], hadamard_projection(np.arange(100), 8, 3))
    # E[ΠΠᵀ] = I: the diagonal is exactly 1; off it each entry is a mean of 2,000 signs' products of variance
    # at most 1, held to five standard errors: a false alarm in one of 10⁴ choices of seeds
    mean = np.mean([P @ P.T for P in (hadamard_projection(np.arange(20), 4, s) for s in range(2000))], axis=0)
    np.testing.assert_allclose(np.diag(mean), 1.0, rtol=1e-12)
    assert np.abs(mean - np.eye(20)).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize("make", [AdaLR, RadaGrad])
@pytest.mark.parametrize("form", FORMS)
def test_range_finders_with_decay_and_averaging_stay_sane(make: Any, form: str) -> None:
    """A huge penalty keeps the weights at zero, a tiny one changes nothing to speak of."""
    X, y = sparse_stream(200, d=12, non_zeros=5)
    plain = make(4, eta=0.1, sigma=5.0, form=form).learn(X, y)
    tiny = make(4, eta=0.1, sigma=5.0, form=form, penalty="l2", penalty_strength=1e-12).learn(X, y)
    np.testing.assert_allclose(tiny, plain, atol=1e-6)
    huge = make(4, eta=0.1, sigma=5.0, form=form, penalty="l2", penalty_strength=1e9)
    huge.learn(X, y)
    assert np.abs(huge.weights).max() < 1e-6
