"""What leaves the package predicts the same without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchnewton import (
    NewtonBank,
    SketchedAdaGradClassifier,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
)
from tests.ecosystems.support import CLASSIFIERS, REGRESSORS, rows


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_plain_classifier(name: str, classes: int) -> None:
    X, y = rows(200, 5, classes)
    model = clone(CLASSIFIERS[name]).set_params(random_state=0).fit(X, y)
    plain = model.to_sklearn()
    joint = model._by_softmax()
    assert type(plain) is (LogisticRegression if joint else SGDClassifier)
    scores = plain.decision_function(X)
    np.testing.assert_array_equal(scores, (X @ model.coef_.T + model.intercept_).reshape(scores.shape))
    if model._learners[0].experts:  # the linear part of a learner that is more
        assert (plain.predict(X) == y).mean() > 1.3 * np.bincount(y).max() / len(y)
    else:
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-4, atol=1e-4)
        proba, n = plain.predict_proba(X), model._learners[0].rows_seen
        if model._learners[0].loss.name == "logistic":
            np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-4)
        elif classes == 2:  # but for Laplace's rule
            np.testing.assert_allclose((n * proba + 1) / (n + 2), model.predict_proba(X), atol=1e-4)
    if not joint:
        plain.partial_fit(X, y)  # and it is alive


@pytest.mark.parametrize("name", REGRESSORS)
def test_plain_regressor(name: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = clone(REGRESSORS[name]).fit(X, y)
    plain = model.to_sklearn()
    assert type(plain) is SGDRegressor
    if model._learners[0].experts:
        assert plain.score(X, y) > 0.9 * model.score(X, y)
    else:
        low, high = model._learners[0].prediction_bounds
        np.testing.assert_allclose(np.clip(plain.predict(X), low, high), model.predict(X), rtol=1e-5)


def test_plain_counts() -> None:
    X, _ = rows(200, 3, 2)
    y = np.random.default_rng(0).poisson(3, 200)
    model = SketchedNewtonRegressor(learner="newton", loss="poisson", clip=100.0).fit(0.01 * X, y)
    np.testing.assert_allclose(model.to_sklearn().predict(0.01 * X), model.predict(0.01 * X))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_linear_part_is_the_best_linear_expert(loss: str) -> None:
    """Rows of unlike lengths, where averages over experts that see them at one length are no linear model."""
    X, y = load_digits(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), np.where(y == 9, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    bank = NewtonBank(loss=loss)
    bank.learn(X[:1200], y[:1200])
    model = SketchedNewtonClassifier(loss=loss, max_iter=1, shuffle=False).fit(X[:1200], y[:1200])
    place = bank.expert_names.index(bank.linear_expert)
    np.testing.assert_array_equal(model.coef_[0], bank.expert_weights[place])
    assert model.intercept_[0] == bank.expert_intercepts[place]

    def error(scores: Any) -> float:
        return float((np.where(scores > 0, 1.0, -1.0) != y[1200:]).mean())

    of_each = X[1200:] @ bank.expert_weights.T + bank.expert_intercepts
    steady = [name.startswith("steady") for name in bank.expert_names]
    leading = np.where(steady, bank.expert_shares, 0.0).argmax()
    better = min(error(of_each[:, leading]), error(of_each @ bank.expert_shares))
    assert error(model.to_sklearn().decision_function(X[1200:])) <= 1.1 * better


def onnx_outputs(model: Any, X: Any) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    session = runtime.InferenceSession(
        model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, {"X": X}))


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_onnx_classifier(loss: str, classes: int, texts: bool) -> None:
    X, y = rows(200, 5, classes)
    y = np.array([f"class {k}" for k in y]) if texts else y
    model = SketchedNewtonClassifier(loss=loss).fit(X, y)
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-5)


def texts() -> tuple[Any, Any]:
    """Counts of words, few in each row, and a class that depends on some of them."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.02, (600, 1000)).astype(float)
    return X, (X[:, :200].sum(axis=1) > X[:, 200:400].sum(axis=1)).astype(int)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["dense", "standardised", "tabular", "text", "no intercept"])
def test_onnx_is_the_bank(kind: str, loss: str) -> None:
    """Scales, views of rows, experts, bounds and their aggregation, for rows that were not learned from."""
    X, y = {
        "dense": lambda: load_digits(return_X_y=True),
        "standardised": lambda: load_digits(return_X_y=True),
        "tabular": lambda: load_breast_cancer(return_X_y=True),
        "text": texts,
        "no intercept": lambda: load_breast_cancer(return_X_y=True),
    }[kind]()
    X = StandardScaler().fit_transform(X) if kind == "standardised" else X
    n = len(y) * 2 // 3
    model = SketchedNewtonClassifier(loss=loss, fit_intercept=kind != "no intercept", random_state=0)
    label, proba = onnx_outputs(model.fit(X[:n], y[:n]), X[n:])
    np.testing.assert_array_equal(label, model.predict(X[n:]))
    np.testing.assert_allclose(proba, model.predict_proba(X[n:]), rtol=0, atol=1e-5)
    new = np.vstack([X[n:], 10.0 * X[n:], np.zeros_like(X[:1])])
    label, proba = onnx_outputs(model.set_params(dtype="float64").fit(X[:n], y[:n]), new)
    np.testing.assert_array_equal(label, model.predict(new))
    np.testing.assert_allclose(proba, model.predict_proba(new), rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("order", range(4))
def test_onnx_rounds_as_the_bank_does(loss: str, order: int) -> None:
    """Four correlated features: weights are large and cancel, so float32 that differs is seen at 3e-5."""
    X, y = load_iris(return_X_y=True)
    rows = np.arange(len(y)) if order == 0 else np.random.default_rng(order).permutation(len(y))
    model = SketchedNewtonClassifier(loss=loss, dtype="float32", shuffle=False).fit(X[rows], y[rows])
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_onnx_of_dense_rows_that_are_nearly_of_rank_five(loss: str) -> None:
    """Too many features for whole matrices: 150, all in every row. Sums in float32 were off by 3e-5."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 5))
    X = Z @ rng.standard_normal((5, 150)) + 0.1 * rng.standard_normal((600, 150))
    y = (Z[:, 0] + 0.3 * Z[:, 1] > 0).astype(int) + (Z[:, 2] > 0)
    model = SketchedNewtonClassifier(loss=loss, dtype="float32").fit(X, y)
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_onnx_of_added_classes(loss: str) -> None:
    X, y = rows(200, 5, 3)
    model = SketchedNewtonClassifier(loss=loss, dtype="float64").partial_fit(
        X[y < 2], y[y < 2], classes=[0, 1]
    )
    model.partial_fit(X, y, classes=[0, 1, 2])
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-10)


def test_onnx_softmax() -> None:
    X, y = rows(200, 5, 4)
    model = SketchedAdaGradClassifier(multi_class="softmax").fit(X, y)
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber:20", "poisson"])
def test_onnx_regressor(loss: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = SketchedNewtonRegressor(loss=loss).fit(X[:50], y[:50])
    (values,) = onnx_outputs(model, 3.0 * X)  # some beyond the range learned
    np.testing.assert_allclose(values[:, 0], model.predict(3.0 * X), rtol=1e-5)


@pytest.mark.parametrize("zipmap", [None, False])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_pipelines_become_onnx(classes: int, texts: bool, double: bool, zipmap: bool | None) -> None:
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    X, y = rows(200, 5, classes)
    y = np.array([f"class {k}" for k in y]) if texts else y
    kind = np.float64 if double else np.float32
    X = (100.0 * X + 7.0).astype(kind)
    model = make_pipeline(StandardScaler(), SketchedNewtonClassifier(random_state=0)).fit(X, y)
    options = {} if zipmap is None else {"options": {"zipmap": zipmap}}
    for _ in range(2):  # the first time skl2onnx does not know the class yet
        proto = skl2onnx.to_onnx(model, X[:1], **options)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    label, proba = session.run(None, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-5)


def test_a_pipeline_of_a_regressor_becomes_onnx() -> None:
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    X, y = load_diabetes(return_X_y=True)
    for loss in ("squared", "poisson"):
        model = make_pipeline(StandardScaler(), SketchedNewtonRegressor(loss=loss, random_state=0)).fit(X, y)
        proto = skl2onnx.to_onnx(model, X[:1])
        session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        (values,) = session.run(None, {"X": X})
        np.testing.assert_allclose(values[:, 0], model.predict(X), rtol=1e-5)


def test_onnx_of_whole_numbers_as_floats() -> None:
    """Labels as readers of svmlight files have them."""
    X, y = rows(200, 5, 2)
    model = SketchedNewtonClassifier().fit(X, 2.0 * y - 1.0)
    label, _ = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))


def test_onnx_says_what_it_cannot() -> None:
    pytest.importorskip("onnx")
    X, y = rows(50, 3, 2)
    with pytest.raises(ValueError, match=r"ONNX has whole numbers and strings, found \[0"):
        SketchedNewtonClassifier().fit(X, 1e17 * y).to_onnx()


def test_frame() -> None:
    pandas = pytest.importorskip("pandas")
    data = load_diabetes(as_frame=True)
    frame = SketchedNewtonRegressor().fit(data.data, data.target).to_frame()
    assert list(frame.index) == list(data.data.columns)
    assert frame.loc["bmi", "weight"] > 0
    X, y = rows(100, 3, 3)
    model = SketchedNewtonClassifier().fit(X, np.array(["a", "b", "c"])[y])
    table = model.to_frame()
    assert isinstance(table, pandas.DataFrame)
    assert (list(table.index), list(table.columns)) == (["x0", "x1", "x2"], ["a", "b", "c"])
    np.testing.assert_array_equal(table.to_numpy(), model.coef_.T)
