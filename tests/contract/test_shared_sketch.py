"""One sketch for all classes: what the dense algorithm computes, and every promise that learners make."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from sketchnewton import SketchedNewtonClassifier, load
from sketchnewton.cli.main import main
from sketchnewton.learners import SharedNewton
from sketchnewton.model import open_model
from tests.contract.learners import Floats, assert_same_state, batches, sparse_stream
from tests.oracles.shared_newton import shared_oja


def stream(rounds: int, classes: int, d: int = 80) -> tuple[Floats, Floats]:
    X, _ = sparse_stream(rounds, d=d, non_zeros=12)
    rule = np.random.default_rng(1).standard_normal((d, classes))
    return X, (X @ rule).argmax(axis=1).astype(float)


LEARNERS: dict[str, Any] = {
    "squared": lambda: SharedNewton(4),
    "logistic, intercept": lambda: SharedNewton(3, 5, loss="logistic", clip=3.0, intercept=True),
    "squared hinge, one direction": lambda: SharedNewton(
        5, 1, alpha=50.0, loss="squared_hinge", intercept=True
    ),
    "diagonal, float64": lambda: SharedNewton(4, 7, diagonal=True, intercept=True, dtype="float64"),
}
every_learner = pytest.mark.parametrize("kind", LEARNERS)


def learned(kind: str, rounds: int = 1500) -> tuple[SharedNewton, Floats]:
    learner = LEARNERS[kind]()
    X, y = stream(rounds, learner.params["classes"])
    return learner, learner.learn(csr_array(X), y)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("m", [1, 5])
def test_it_is_the_dense_algorithm(m: int, loss: str, diagonal: bool) -> None:
    X, y = stream(2000, 4, d=40)
    h = np.random.default_rng(3).choice([0.25, 1.0, 3.0], len(y))
    clip, alpha = (0.4, 1.0) if diagonal else (0.6, 40.0)
    scores, W, bias, projected = shared_oja(
        X,
        y.astype(np.intp),
        classes=4,
        m=m,
        alpha=alpha,
        loss=loss,
        C=clip,
        diagonal=diagonal,
        intercept=True,
        importance=h,
    )
    assert projected > 0.02  # the projection is part of what is compared
    for dtype, tolerance in {"float64": 1e-7, "float32": 2e-3}.items():
        learner = SharedNewton(
            4, m, alpha=alpha, loss=loss, clip=clip, diagonal=diagonal, intercept=True, dtype=dtype
        )
        np.testing.assert_allclose(learner.learn(csr_array(X), y, h), scores, rtol=0, atol=tolerance)
        np.testing.assert_allclose(learner.weights, W, rtol=0, atol=tolerance * np.abs(W).max())
        np.testing.assert_allclose(learner.intercepts, bias, rtol=0, atol=tolerance)


def test_an_exact_sketch_gives_recursive_least_squares() -> None:
    """Rows along orthogonal directions, which Oja's sketch keeps exactly: A is the Hessian of ridge regression,
    and the weights solve its normal equations, class by class.
    """
    rng = np.random.default_rng(0)
    directions, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    X = rng.standard_normal((300, 1)) * directions[rng.integers(0, 6, 300)]
    y = (X @ rng.standard_normal((6, 3)) + rng.standard_normal((300, 3))).argmax(axis=1)
    learner = SharedNewton(3, 6, alpha=1.0, clip=None, dtype="float64")
    learner.learn(X, y)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    exact = np.linalg.solve(np.eye(6) + 2 * X.T @ X, 2 * X.T @ signs)
    np.testing.assert_allclose(learner.weights, exact, rtol=0, atol=1e-9)


@every_learner
@pytest.mark.parametrize("size", [1, 7])
def test_batches_do_not_matter(kind: str, size: int) -> None:
    whole, scores = learned(kind)
    parts = LEARNERS[kind]()
    X, y = stream(1500, parts.params["classes"])
    seen = np.concatenate([parts.learn(rows, labels) for rows, labels in batches(X, y, size)])
    np.testing.assert_array_equal(seen, scores)
    assert_same_state(whole, parts)


@every_learner
@pytest.mark.parametrize("stop", [0, 1, 3, 750])
def test_save_load_pickle_continue(kind: str, stop: int, tmp_path: Path) -> None:
    whole, scores = learned(kind)
    first = LEARNERS[kind]()
    X, y = stream(1500, first.params["classes"])
    first.learn(X[:stop], y[:stop])
    first.save(tmp_path / "model.skn")
    for second in (load(tmp_path / "model.skn"), pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert type(second) is SharedNewton
        assert second.params == first.params
        np.testing.assert_array_equal(second.learn(X[stop:], y[stop:]), scores[stop:])
        assert_same_state(whole, second)


@every_learner
def test_predict_is_the_next_prediction_and_changes_nothing(kind: str) -> None:
    learner, _ = learned(kind, 400)
    before = copy.deepcopy(learner)
    X, y = stream(30, learner.params["classes"])
    scores = learner.predict(X)
    assert_same_state(learner, before)
    np.testing.assert_allclose(learner.learn(X[:1], y[:1])[0], scores[0], rtol=0, atol=1e-6)
    low, high = before.prediction_bounds
    linear = np.clip(X @ before.weights + before.intercepts, low, high)
    np.testing.assert_allclose(scores, linear, rtol=0, atol=1e-5)


@every_learner
def test_weight_zero_leaves_no_trace(kind: str) -> None:
    some, rest = LEARNERS[kind](), LEARNERS[kind]()
    X, y = stream(200, some.params["classes"])
    h = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    np.testing.assert_array_equal(some.learn(X, y, h)[h > 0], rest.learn(X[h > 0], y[h > 0]))
    assert_same_state(some, rest)


@every_learner
@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_features_of_any_scale_stay_finite(kind: str, scale: float) -> None:
    learner = LEARNERS[kind]()
    X, y = stream(500, learner.params["classes"])
    X[:, ::3] *= scale
    X[:, 1] = X[:, 4]  # twins
    X[::7] = 0
    assert np.isfinite(learner.learn(X, y)).all()
    assert np.isfinite(learner.weights).all()


def test_the_command_line_predicts_and_goes_on(tmp_path: Path) -> None:
    """Probabilities are those of each class against the rest, not of a softmax."""
    learner, _ = learned("logistic, intercept", 400)
    learner.save(tmp_path / "m.skn")
    X, y = stream(50, 3)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=True)
    paths = [str(tmp_path / name) for name in ("m.skn", "rows.svm")]
    assert main(["predict", *paths, "--link", "--output", str(tmp_path / "p")]) == 0
    shown = np.loadtxt(tmp_path / "p")
    one_each = 1 / (1 + np.exp(-learner.predict(X)))
    expected = np.roll(
        one_each, -1, axis=1
    )  # class 1 first: the model has not met a class 0 on the command line
    np.testing.assert_allclose(shown, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)
    assert main(["train", paths[1], "--resume", paths[0], "--quiet", "--model", str(tmp_path / "n.skn")]) == 0
    learner.learn(X, y)
    assert_same_state(learner, open_model(tmp_path / "n.skn").learner)


def test_labels_and_losses_are_checked() -> None:
    learner = SharedNewton(3)
    for bad in (3.0, -1.0, 0.5):
        with pytest.raises(ValueError, match=f"label {bad:g} at position 1 is invalid: classes are 0 to 2"):
            learner.learn(np.ones((2, 2)), [0.0, bad])
    assert learner.rows_seen == 0
    with pytest.raises(ValueError, match="needs a loss without kinks"):
        SharedNewton(3, loss="hinge")
    with pytest.raises(ValueError, match="classes=1 is invalid"):
        SharedNewton(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sketch": "rfd"}, "sketch='rfd' is invalid: one sketch for all classes is 'oja'"),
        ({"curvature_weight": 0.1}, "curvature_weight=0.1 is invalid: one sketch for all classes is of rows"),
        ({"loss": "hinge"}, "needs a loss without kinks"),
        ({"multi_class_sketch": "common"}, "multi_class_sketch='common' is invalid"),
    ],
)
def test_what_a_shared_sketch_does_not_go_with(options: dict[str, Any], message: str) -> None:
    X, y = stream(30, 3)
    with pytest.raises(ValueError, match=message):
        SketchedNewtonClassifier(**{"learner": "newton", "multi_class_sketch": "shared", **options}).fit(X, y)


def test_two_classes_have_one_sketch_anyway() -> None:
    X, y = stream(200, 2)
    models = [
        SketchedNewtonClassifier(learner="newton", sketch="oja", multi_class_sketch=kind, random_state=0).fit(
            X, y
        )
        for kind in ("shared", "separate")
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
