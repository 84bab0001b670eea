"""Estimators and River models answer with their learner: what it has learned, no more and no less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sketchnewton import NewtonBank, SketchedNewtonClassifier, SketchedNewtonRegressor
from sketchnewton.learners import OneVsAll

SETS = {"digits": load_digits, "iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
FORMS: dict[str, Any] = {"raw": None, "standard": StandardScaler(), "min-max": MinMaxScaler()}


def split(name: str, form: str) -> tuple[Any, Any, Any, Any]:
    """Rows to learn and rows held out, in a random order."""
    X, y = SETS[name](return_X_y=True)
    if FORMS[form] is not None:
        X = FORMS[form].fit_transform(X)
    order = np.random.default_rng(1).permutation(len(y))
    X, y, end = np.ascontiguousarray(X[order]), y[order], len(y) * 4 // 5
    return X[:end], y[:end], X[end:], y[end:]


def learned(X: Any, y: Any, loss: str) -> tuple[Any, Any]:
    """The default learner of one pass, and the class of the rows as it tells them."""
    classes = len(np.unique(y))
    if classes == 2:
        bank = NewtonBank(loss=loss)
        bank.learn(X, np.where(y == 1, 1.0, -1.0))
        return bank, lambda rows: (bank.predict(rows) > 0).astype(int)
    several = OneVsAll(NewtonBank, classes, {"loss": loss})
    several.learn(X, y)
    return several, lambda rows: several.predict(rows).argmax(axis=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SETS)
def test_a_classifier_errs_where_its_learner_does(name: str, form: str) -> None:
    X, y, new, truth = split(name, form)
    model = SketchedNewtonClassifier(max_iter=1, shuffle=False).fit(X, y)
    learner, told = learned(X, y, model.loss)
    np.testing.assert_array_equal(model.predict(new), told(new))
    scores = learner.predict(new)
    np.testing.assert_array_equal(model.decision_function(new), scores)
    np.testing.assert_array_equal(model.predict_proba(new), learner.probabilities(scores))
    np.testing.assert_array_equal(model.predict(csr_array(new)), model.predict(new))
    constant = np.bincount(truth).max() / len(truth)
    assert model.score(new, truth) > constant


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SETS)
def test_sorted_rows_do_no_harm(name: str, form: str) -> None:
    """`fit` shuffles, as SGDClassifier does; one pass over rows sorted by class ends with rows of the last one."""
    X, y, new, truth = split(name, form)
    by_class = np.argsort(y, kind="stable")
    X, y = X[by_class], y[by_class]
    model = SketchedNewtonClassifier(max_iter=1, random_state=5).fit(X, y)
    assert model.score(new, truth) > 0.8
    order = np.random.RandomState(5).permutation(len(y))
    learner, _ = learned(X[order], y[order], model.loss)
    np.testing.assert_array_equal(model.decision_function(new), learner.predict(new))


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.8"])
def test_a_regressor_predicts_what_its_learner_does(loss: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = SketchedNewtonRegressor(loss=loss, max_iter=1, shuffle=False).fit(X[:300], y[:300])
    bank = NewtonBank(loss=loss)
    bank.learn(X[:300], y[:300])
    np.testing.assert_array_equal(model.predict(3.0 * X), bank.predict(3.0 * X))


def test_is_it_a_nine() -> None:
    """Averaged weights of the experts err on 12% of these rows where the learner errs on 2%."""
    X, y, new, truth = split("digits", "standard")
    model = SketchedNewtonClassifier(loss="squared", max_iter=1).fit(X, y == 9)
    errors: NDArray[Any] = model.predict(new) != (truth == 9)
    assert errors.mean() < 0.05
