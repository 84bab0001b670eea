"""What leaves the package predicts the same without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor

from sketchnewton import SketchedAdaGradClassifier, SketchedNewtonClassifier, SketchedNewtonRegressor
from tests.ecosystems.support import CLASSIFIERS, REGRESSORS, rows


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_plain_classifier(name: str, classes: int) -> None:
    X, y = rows(200, 5, classes)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    plain = model.to_sklearn()
    joint = model._by_softmax()
    assert type(plain) is (LogisticRegression if joint else SGDClassifier)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    if classes == 2 or model._learners[0].loss.name == "logistic":
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)
    if not joint:
        plain.partial_fit(X, y)  # and it is alive


@pytest.mark.parametrize("name", REGRESSORS)
def test_plain_regressor(name: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = clone(REGRESSORS[name]).fit(X, y)
    plain = model.to_sklearn()
    assert type(plain) is SGDRegressor
    low, high = model._learners[0].prediction_bounds
    np.testing.assert_allclose(np.clip(plain.predict(X), low, high), model.predict(X), atol=1e-9)


def test_plain_counts() -> None:
    X, _ = rows(200, 3, 2)
    y = np.random.default_rng(0).poisson(3, 200)
    model = SketchedNewtonRegressor(loss="poisson", clip=100.0).fit(0.01 * X, y)
    np.testing.assert_allclose(model.to_sklearn().predict(0.01 * X), model.predict(0.01 * X))


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
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)


def test_onnx_softmax() -> None:
    X, y = rows(200, 5, 4)
    model = SketchedAdaGradClassifier(multi_class="softmax").fit(X, y)
    label, proba = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_onnx_regressor(loss: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = SketchedNewtonRegressor(loss=loss).fit(X[:50], y[:50])
    (values,) = onnx_outputs(model, 3.0 * X)  # some beyond the range learned
    np.testing.assert_allclose(values[:, 0], model.predict(3.0 * X), rtol=1e-12)


def test_onnx_says_what_it_cannot() -> None:
    pytest.importorskip("onnx")
    X, y = rows(50, 3, 2)
    with pytest.raises(
        ValueError, match="classes of type float64 are invalid: ONNX has integers and strings"
    ):
        SketchedNewtonClassifier().fit(X, y + 0.0).to_onnx()


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
