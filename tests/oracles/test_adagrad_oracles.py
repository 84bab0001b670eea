"""AdaGrad's learners compute what the dense algorithms of the ADA paper compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import SketchedAdaGrad
from tests.contract.learners import Floats, sparse_stream
from tests.oracles.adaptive import Exact, Frequent, Projection, Sketch, adaptive

SEED = 7
STREAM = 0x9E3779B97F4A7C15  # blocks of several classes draw from streams that far apart


def oracle_sketch(kind: str, m: int, d: int) -> Callable[[int], Sketch]:
    if kind == "rp":
        return lambda block: Projection(d, m, (SEED + block * STREAM) % 2**64)
    return lambda block: Frequent(d, m, 0.5 if kind == "rfd" else 0.0)


PENALTIES: dict[str | None, tuple[float, float]] = {
    None: (0.0, 0.0),
    "l1": (1.0, 0.0),
    "l2": (0.0, 1.0),
    "elasticnet": (0.3, 0.7),
}


def compare(
    kind: str,
    m: int,
    X: Floats,
    y: Floats,
    *,
    of: str = "gradients",
    form: str = "mirror_descent",
    penalty: str | None = None,
    strength: float = 0.01,
    eta: float = 0.5,
    sigma: float = 20.0,  # steps do not overshoot: the comparison is of algorithms, not of chaotic paths
    classes: int | None = None,
    loss: str = "squared",
    clip: float | None = None,
    importance: Floats | None = None,
    float32: float | None = 1e-3,
) -> SketchedAdaGrad:
    l1, l2 = (strength * part for part in PENALTIES[penalty])
    scores, weights = adaptive(
        X,
        y,
        oracle_sketch(kind, m, X.shape[1]),
        eta=eta,
        sigma=sigma,
        of_data=of == "data",
        averaging=form == "dual_averaging",
        l1=l1,
        l2=l2,
        loss=loss,
        C=np.inf if clip is None else clip,
        classes=classes,
        importance=importance,
    )
    for dtype, tolerance in {"float32": float32, "float64": 1e-6}.items():
        if tolerance is None:
            continue
        learner = SketchedAdaGrad(
            kind,
            m,
            of=of,
            eta=eta,
            sigma=sigma,
            penalty=penalty,
            penalty_strength=strength,
            l1_ratio=0.3,
            form=form,
            loss=loss,
            clip=clip,
            classes=classes,
            dtype=dtype,
            random_state=SEED,
        )
        learned = learner.learn(csr_array(X), y, importance)
        scale = max(1.0, np.abs(weights).max())
        np.testing.assert_allclose(learned, scores, rtol=0, atol=tolerance * max(1.0, np.abs(scores).max()))
        np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=tolerance * scale)
    return learner


FORMS = ["mirror_descent", "dual_averaging"]
KINDS = ["rp", "fd", "rfd"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["gradients", "data"])
@pytest.mark.parametrize("form", FORMS)
def test_five_thousand_rounds(kind: str, of: str, form: str) -> None:
    X, y = sparse_stream(5000, d=30, non_zeros=6)
    compare(kind, 5, X, y, of=of, form=form)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["gradients", "data"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_penalties_in_the_metric(kind: str, of: str, form: str, penalty: str) -> None:
    X, y = sparse_stream(300, d=12, non_zeros=5)
    learner = compare(kind, 4, X, y, of=of, form=form, penalty=penalty, strength=0.03)
    if penalty != "l2":
        compare(kind, 4, X, y, of=of, form=form, penalty=penalty, strength=0.3)
    else:
        assert learner.weights.all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 8, 20])
@pytest.mark.parametrize("loss", ["logistic", "absolute", "hinge"])
def test_sizes_and_losses(kind: str, m: int, loss: str) -> None:
    X, y = sparse_stream(1000, d=40, non_zeros=8)
    # The sign of p − y is not continuous: float32 may leave the path of float64 for good.
    compare(kind, m, X, y, loss=loss, float32=1e-3 if loss == "logistic" else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["gradients", "data"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", [None, "l1", "l2"])
def test_several_classes(kind: str, of: str, form: str, penalty: str | None) -> None:
    X, _ = sparse_stream(300, d=12, non_zeros=5)
    y = np.argmax(X[:, :4] + X[:, 4:8], axis=1).astype(float)
    compare(kind, 3, X, y, of=of, form=form, penalty=penalty, classes=4, loss="logistic")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [None, "l1", "l2"])
def test_projection_onto_bounded_predictions(kind: str, penalty: str | None) -> None:
    X, y = sparse_stream(600, d=20, non_zeros=6)
    compare(kind, 4, X, y, penalty=penalty, clip=0.3, eta=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_importance_weights(kind: str, form: str) -> None:
    X, y = sparse_stream(800, d=30, non_zeros=6)
    h = np.random.default_rng(3).choice([0.25, 1.0, 3.0], len(y))
    compare(kind, 5, X, y, form=form, importance=h, eta=0.2, sigma=50.0)


@pytest.mark.parametrize("kind", KINDS)
def test_decay_that_empties_the_scale(kind: str) -> None:
    """a shrinks by a factor in every round and must be multiplied into the table again and again."""
    X, y = sparse_stream(800, d=20, non_zeros=5)
    compare(kind, 4, X, y, penalty="l2", strength=30.0, eta=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_awkward_rows(kind: str, form: str) -> None:
    """Rows repeated, zero, nearly collinear, and features that are not seen for a long time."""
    X, y = sparse_stream(600, d=40, non_zeros=8)
    X[10:40] = X[9]
    X[50:60] = 0
    X[100:130] = X[99] * (1 + 1e-5 * np.arange(30))[:, None]
    X[100:130, 3] += 1e-4 * np.arange(30)
    X[150:550, :10] = 0
    compare(kind, 4, X, y, form=form, penalty="l2")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", [None, "l1", "l2", "elasticnet"])
def test_frequent_directions_as_large_as_the_rank(form: str, penalty: str | None) -> None:
    """τ > rank: nothing is shrunk, and ADA-FD is ADA-FULL."""
    X, y = sparse_stream(600, d=9, non_zeros=4)
    l1, l2 = (0.02 * part for part in PENALTIES[penalty])
    scores, weights = adaptive(
        X,
        y,
        lambda block: Exact(9),
        eta=0.3,
        sigma=0.5,
        averaging=form == "dual_averaging",
        l1=l1,
        l2=l2,
    )
    for kind in ("fd", "rfd"):
        learner = SketchedAdaGrad(
            kind,
            10,
            eta=0.3,
            sigma=0.5,
            form=form,
            penalty=penalty,
            penalty_strength=0.02,
            l1_ratio=0.3,
            dtype="float64",
        )
        np.testing.assert_allclose(learner.learn(X, y), scores, rtol=0, atol=1e-6)
        np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_random_projections_are_unbiased() -> None:
    """E[SᵀS] = Σ ggᵀ over seeds. Gradients of the squared hinge far from its kink do not depend on the weights.

    Each of 55 entries of the mean over 4,000 seeds is held to five of its own standard errors: a false alarm in
    less than one of 30,000 choices of seeds (normal tails; the entries' fourth moments are finite).
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 10))
    y = np.sign(rng.standard_normal(30))
    # hinge: g = −yx as long as y·p < 1, which so small a step size does not change
    exact = X.T @ X
    draws = []
    for seed in range(4000):
        learner = SketchedAdaGrad("rp", 3, eta=1e-9, loss="hinge", dtype="float64", random_state=seed)
        learner.learn(X, y)
        draws.append(learner.sketch.T @ learner.sketch)
    matrices = np.array(draws)
    error = np.abs(matrices.mean(axis=0) - exact)
    assert (error <= 5 * matrices.std(axis=0, ddof=1) / np.sqrt(len(draws))).all()
    # the test has teeth: half a percent of bias on the diagonal would be seen for a third of the seeds' spread
    assert (matrices.std(axis=0) / np.sqrt(len(draws))).max() < 0.02 * exact.max()


@pytest.mark.parametrize("of", ["gradients", "data"])
def test_sketches_of_data_ignore_labels(of: str) -> None:
    X, y = sparse_stream(200, d=20, non_zeros=5)
    sketches = [SketchedAdaGrad("rp", 4, of=of, loss="logistic", dtype="float64") for _ in range(2)]
    sketches[0].learn(X, y)
    sketches[1].learn(X, -y[::-1])
    assert np.allclose(sketches[0].sketch, sketches[1].sketch) == (of == "data")


def test_sparse_equals_dense() -> None:
    X, y = sparse_stream(500, d=60, non_zeros=8)
    for kind in KINDS:
        for options in ({}, {"form": "dual_averaging"}, {"penalty": "l2"}, {"penalty": "l1"}):
            arguments: dict[str, Any] = {"sketch": kind, "sketch_size": 5, **options}
            dense, sparse = SketchedAdaGrad(**arguments), SketchedAdaGrad(**arguments)
            np.testing.assert_array_equal(dense.learn(X, y), sparse.learn(csr_array(X), y))
            np.testing.assert_array_equal(dense.weights, sparse.weights)
