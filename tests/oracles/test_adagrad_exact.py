"""AdaGrad's learners against exact arithmetic, on streams where rounding is tempted to decide.

They must agree with 100 digits to 1e-6 wherever float64 can: wherever dense singular value decompositions do.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from sketchnewton import AdaLR, FullAdaGrad, SketchedAdaGrad
from sketchnewton._native import normal_row
from sketchnewton.learners.adagrad.hadamard import hadamard_projection
from tests.oracles import adagrad_svd
from tests.oracles.adagrad_svd import Floats
from tests.oracles.exact.adagrad import fd_adagrad, full_adagrad, low_rank_adagrad, projected_adagrad
from tests.oracles.exact.streams import STREAMS, feature_scales, few_features, perturbed

# Loss, form, λ of an l2 penalty, σ: one of them for each stream and size.
SETTINGS = (
    ("squared", "mirror_descent", 0.0, 1.0),
    ("logistic", "mirror_descent", 0.1, 0.01),
    ("absolute", "dual_averaging", 0.1, 1.0),
    ("huber", "mirror_descent", 0.0, 1.0),
    ("squared", "dual_averaging", 0.0, 10.0),
    ("hinge", "mirror_descent", 0.0, 0.1),
    ("quantile", "mirror_descent", 0.1, 1.0),
    ("squared_hinge", "dual_averaging", 0.0, 1.0),
)
SCALES = ("feature_scales", "row_scales", "one_large_feature", "one_huge_feature")  # float64 is seldom enough
SIGNS = ("logistic", "hinge", "squared_hinge")


def distance(a: Floats, b: Floats) -> float:
    return float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b)))) if np.isfinite(a).all() else np.inf


def learned(sketch: str, m: int, X: Floats, y: Floats, l2: float = 0.0, **options: Any) -> Floats:
    penalty = {"penalty": "l2", "penalty_strength": l2} if l2 else {}
    options = {"dtype": "float64", "eta": 0.3} | options | penalty
    return SketchedAdaGrad(sketch, m, **options).learn(X, y)


def dense(m: int, robust: bool, X: Floats, y: Floats, **options: Any) -> Floats:
    return adagrad_svd.predictions(X, y, adagrad_svd.frequent(X.shape[1], m, robust), eta=0.3, **options)


@pytest.mark.parametrize("kind", sorted(STREAMS))
def test_frequent_directions_are_exact(kind: str) -> None:
    checked = 0
    for seed, (loss, form, l2, sigma) in enumerate(SETTINGS):
        m, robust = (2, 4, 7)[seed % 3], bool(seed % 2)
        X, y = STREAMS[kind](seed, n=20, signs=loss in SIGNS)
        options = {"sigma": sigma, "loss": loss, "form": form, "l2": l2}
        reachable = dense(m, robust, X, y, **options)
        expected = fd_adagrad(X, y, m=m, robust=robust, eta=0.3, **options).predictions  # type: ignore[arg-type]
        if distance(reachable, expected) < 1e-7:
            checked += 1
            found = learned("rfd" if robust else "fd", m, X, y, **options)
            assert distance(found, expected) < 1e-6, (seed, m, robust, loss, form)
    assert checked >= (1 if kind in SCALES else 4), "too few streams on which float64 is enough"


@pytest.mark.parametrize("kind", sorted(STREAMS.keys() - {"feature_scales"}))  # where float64 is never enough
def test_random_projections_are_exact(kind: str) -> None:
    """Steps in terms of S, with SSᵀ, used to be off by up to 4e-2 where rows differ in scale."""
    checked = 0
    for seed, (loss, form, l2, sigma) in enumerate(SETTINGS):
        m, of = (2, 4, 7, 10)[seed % 4], ("gradients", "data")[seed % 3 == 2]
        X, y = STREAMS[kind](seed, n=20, signs=loss in SIGNS)
        R = np.array([normal_row(0, t, m) for t in range(len(y))]) / np.sqrt(m)
        options: dict[str, Any] = {"sigma": sigma, "loss": loss, "form": form, "l2": l2}
        reachable = adagrad_svd.predictions(
            X, y, adagrad_svd.projected(R, X.shape[1], X if of == "data" else None), eta=0.3, **options
        )
        expected = projected_adagrad(X, y, R=R, of=of, eta=0.3, **options).predictions
        if distance(reachable, expected) < 1e-7:
            checked += 1
            found = learned("rp", m, X, y, of=of, **options)
            assert distance(found, expected) < 1e-6, (seed, m, of, loss, form)
    assert checked >= (1 if kind in SCALES else 4), "too few streams on which float64 is enough"


@pytest.mark.parametrize("form", ["mirror_descent", "dual_averaging"])
def test_random_projections_in_and_out_of_explicit_steps(form: str) -> None:
    """Ordinary rows, some that are 1e4 times as long, then many features; in batches and files, too."""
    r = np.random.default_rng(3)
    X = np.zeros((120, 900))
    X[:60, :12] = r.standard_normal((60, 12))
    X[20:25] *= 1e4
    X[60:] = r.standard_normal((60, 900)) * (r.random((60, 900)) < 0.1)
    y = np.where(r.random(120) < 0.5, -1.0, 1.0)
    R = np.array([normal_row(0, t, 5) for t in range(120)]) / np.sqrt(5)
    options: dict[str, Any] = {"sigma": 1.0, "loss": "logistic", "form": form, "l2": 0.01}
    expected = adagrad_svd.predictions(X, y, adagrad_svd.projected(R, 900), eta=0.3, **options)
    assert distance(learned("rp", 5, X, y, **options), expected) < 1e-6
    del options["l2"]
    whole = SketchedAdaGrad("rp", 5, dtype="float64", penalty="l2", **options)
    parts = SketchedAdaGrad("rp", 5, dtype="float64", penalty="l2", **options)
    predictions = whole.learn(X, y)
    for k in range(0, 120, 5):
        np.testing.assert_array_equal(parts.learn(X[k : k + 5], y[k : k + 5]), predictions[k : k + 5])
        parts = SketchedAdaGrad.from_bytes(parts.to_bytes())
    np.testing.assert_array_equal(parts.weights, whole.weights)


@pytest.mark.parametrize("kind", sorted(STREAMS.keys() - set(SCALES)))
@pytest.mark.parametrize("sketch", ["fd", "rfd"])
def test_frequent_directions_are_those_of_dense_arithmetic(kind: str, sketch: str) -> None:
    """On longer streams, wherever a change of rows by 1e-12 leaves dense arithmetic where it is, or nearly.

    float32, which rounds rows by 6e-8 and keeps its numbers so, is compared where changes by 1e-7 do little.
    """
    checked = 0
    for seed, (m, sigma) in itertools.product(range(3), ((3, 1.0), (10, 0.1), (6, 10.0))):
        stream = STREAMS[kind](seed, n=100)
        expected = dense(m, sketch == "rfd", *stream, sigma=sigma)
        for dtype, size, tolerance in (("float64", 1e-12, 1e-7), ("float32", 1e-7, 1e-3)):
            moved = dense(m, sketch == "rfd", *perturbed(stream, size), sigma=sigma)
            if distance(moved, expected) < 0.01 * tolerance:
                checked += dtype == "float64"
                found = learned(sketch, m, *stream, sigma=sigma, dtype=dtype)
                assert distance(found, expected) < tolerance, (seed, m, dtype)
    assert checked >= 4


def test_a_sketch_wider_than_the_space_does_not_explode() -> None:
    """Rounding used to open a direction that was not orthogonal to the others: predictions up to 1e35."""
    r = np.random.default_rng(5)
    X = r.standard_normal((200, 16)) * (r.random((200, 16)) < 0.15)
    y = np.clip(0.3 * X @ r.standard_normal(16) + 0.2 * r.standard_normal(200), -0.9, 0.9)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        learner = SketchedAdaGrad("fd", 10, eta=0.3, sigma=1.0, dtype=dtype)
        assert distance(learner.learn(X, y), dense(10, False, X, y, sigma=1.0)) < tolerance


@pytest.mark.parametrize("kind", sorted(STREAMS))
@pytest.mark.parametrize("sketch", ["fd", "rfd"])
def test_directions_are_orthonormal(kind: str, sketch: str) -> None:
    for seed, m in enumerate((2, 5, 10)):
        for dtype, tolerance in (("float64", 1e-11), ("float32", 1e-4)):
            learner = SketchedAdaGrad(sketch, m, eta=0.3, sigma=1.0, clip=1.0, dtype=dtype)
            learner.learn(*STREAMS[kind](seed, n=100))
            S, values = learner.sketch, learner.spectrum
            np.testing.assert_allclose(S @ S.T, np.diag(values), rtol=0, atol=tolerance * values.max())
            basis = learner._sketch._basis(learner._state, 0)  # type: ignore[attr-defined]
            W = basis @ learner._settled()[:, learner._basis_columns(0)].T
            np.testing.assert_allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["few_features", "repeated", "returning", "near_copies", "zero_rows"])
@pytest.mark.parametrize("sketch", ["fd", "rfd", "rp"])
def test_rows_that_move_by_little_move_predictions_by_little(kind: str, sketch: str) -> None:
    """By 1e-9, where exact arithmetic is that stable; rounds that rounding makes gradients of used to count."""
    for seed in range(5):
        stream = STREAMS[kind](seed, n=120)
        moved = perturbed(stream, 1e-9)
        change = learned(sketch, 5, *moved, sigma=5.0) - learned(sketch, 5, *stream, sigma=5.0)
        assert np.abs(change).max() < 1e-4


def test_epochs_are_rounds() -> None:
    """Rows that have no gradient, or one that is rounding, count: m − 1 of them and one more end an epoch."""
    X, y = few_features(3, n=30)
    expected = fd_adagrad(
        np.repeat(X, 2, axis=0), np.repeat(y, 2), m=4, eta=1.0, sigma=1e-12, loss="absolute"
    )
    found = learned("fd", 4, np.repeat(X, 2, axis=0), np.repeat(y, 2), eta=1.0, sigma=1e-12, loss="absolute")
    assert distance(found, expected.predictions) < 1e-6
    empty = np.zeros((1, X.shape[1]))
    learner, late = (SketchedAdaGrad("fd", 4, dtype="float64") for _ in range(2))
    learner.learn(X[:5], y[:5])
    late.learn(np.vstack([empty, X[:5]]), np.append(0.0, y[:5]))
    assert (learner.spectrum > 0).sum() != (late.spectrum > 0).sum()


FULL = {
    name: make
    for name, make in STREAMS.items()
    if name not in ("feature_scales", "one_large_feature", "one_huge_feature")
} | {"features of scales 1e-3 to 1e3": lambda seed, **named: feature_scales(seed, decades=3.0, **named)}


@pytest.mark.parametrize("kind", sorted(FULL))
def test_the_full_matrix_is_exact(kind: str) -> None:
    """The root of an eigenvalue of Σggᵀ has half of the digits; that of a singular value has all."""
    checked = 0
    for seed, (loss, form, l2, sigma) in enumerate(SETTINGS[:4]):
        X, y = FULL[kind](seed, n=16, signs=loss in SIGNS)
        options: dict[str, Any] = {"eta": 0.3, "sigma": sigma, "loss": loss, "form": form}
        reachable = adagrad_svd.predictions(X, y, adagrad_svd.full(X.shape[1]), l2=l2, **options)
        expected = full_adagrad(X, y, l2=l2, **options).predictions
        if distance(reachable, expected) < 1e-10:
            checked += 1
            penalty = {"penalty": "l2", "penalty_strength": l2} if l2 else {}
            assert distance(FullAdaGrad(**options, **penalty).learn(X, y), expected) < 1e-9, (seed, loss)
    assert checked >= (1 if kind in SCALES else 3)


@pytest.mark.parametrize("kind", ["gaussian", "rank_deficient", "repeated", "returning", "few_features"])
@pytest.mark.parametrize("size", [2, 5, 12])
def test_a_range_of_any_rank_is_found_exactly(kind: str, size: int) -> None:
    """ADA-LR, where GΠ has fewer dimensions than columns: QR used to add those of rounding."""
    X, y = STREAMS[kind](size, n=16, d=6)
    projection = hadamard_projection(np.arange(X.shape[1]), size, 3)
    expected = low_rank_adagrad(X, y, projection=projection, eta=0.3, sigma=0.5).predictions
    found = AdaLR(size, eta=0.3, sigma=0.5, random_state=3).learn(X, y)
    assert distance(found, expected) < 1e-6


@pytest.mark.parametrize("density", [0.1, 0.02])
@pytest.mark.parametrize("sketch", ["fd", "rfd"])
def test_near_copies_among_thousands_of_features(sketch: str, density: float) -> None:
    """Beyond the features that are always looked at: as close as dense float64 is to itself."""
    r = np.random.default_rng(1)
    X = np.repeat(r.standard_normal((20, 2500)) * (r.random((20, 2500)) < density), 2, axis=0)
    y = np.clip(X @ r.standard_normal(2500) / np.sqrt(2500 * density), -0.9, 0.9)
    X *= 1 + 1e-9 * r.standard_normal(X.shape)
    expected = dense(5, sketch == "rfd", X, y, sigma=1.0)
    assert distance(learned(sketch, 5, X, y, sigma=1.0), expected) < 1e-8
