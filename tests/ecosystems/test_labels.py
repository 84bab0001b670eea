"""Labels of any type, in any sequence of calls, as SGDClassifier takes them."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from sketchnewton import NewtonBank, SketchedAdaGradClassifier, SketchedNewtonClassifier

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

X = np.random.default_rng(0).standard_normal((40, 4))
CODES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
WORDS = np.array(["eggs", "ham", "spam"])

TEXTS: dict[str, Any] = {
    "str": lambda codes: WORDS[codes],
    "longer str": lambda codes: WORDS[codes].astype("<U40"),
    "object": lambda codes: WORDS[codes].astype(object),
    "list": lambda codes: WORDS[codes].tolist(),
    "np.str_": lambda codes: list(WORDS[codes]),
    "pandas": lambda codes: pandas.Series(WORDS[codes].tolist()),
    "pandas object": lambda codes: pandas.Series(WORDS[codes].tolist(), dtype=object),
    "pandas category": lambda codes: pandas.Series(WORDS[codes].tolist(), dtype="category"),
    "polars": lambda codes: polars.Series(WORDS[codes].tolist()),
}
NUMBERS: dict[str, Any] = {
    "int": lambda codes: codes,
    "int8": lambda codes: codes.astype(np.int8),
    "uint": lambda codes: codes.astype(np.uint16),
    "float": lambda codes: codes.astype(float),
    "list": lambda codes: codes.tolist(),
    "pandas": pandas.Series,
    "pandas nullable": lambda codes: pandas.Series(codes, dtype="Int64"),
    "polars": lambda codes: polars.Series(codes.tolist()),
}
TRUTHS: dict[str, Any] = {
    "bool": lambda codes: codes > 0,
    "list": lambda codes: (codes > 0).tolist(),
    "int": lambda codes: (codes > 0).astype(int),
    "pandas": lambda codes: pandas.Series(codes > 0),
    "polars": lambda codes: polars.Series((codes > 0).tolist()),
}


def outcome(make: Any, calls: list[tuple[str, Any, Any]]) -> Any:
    """What an estimator does with the calls: the classes it predicts, or the kind of error."""
    model = make()
    try:
        for method, y, classes in calls:
            options = {} if method == "fit" else {"classes": classes}
            getattr(model, method)(X, y, **options)
        predicted = model.predict(X)
    except (TypeError, ValueError) as error:
        return type(error)
    assert set(predicted.tolist()) <= set(model.classes_.tolist())
    return model.classes_.tolist(), model.classes_.dtype.kind


@pytest.mark.slow
@pytest.mark.parametrize("group", [TEXTS, NUMBERS, TRUTHS], ids=["texts", "numbers", "truths"])
def test_labels_of_any_type_in_any_sequence(group: dict[str, Any]) -> None:
    for first, second in itertools.product(group, repeat=2):
        one, two = group[first](CODES), group[second](CODES)
        every = group[first](np.arange(3))
        for calls in (
            [("fit", one, None), ("partial_fit", two, None)],
            [("partial_fit", one, every), ("partial_fit", two, None)],
            [("partial_fit", one, list(every)), ("partial_fit", two, every)],
            [("partial_fit", one, group[second](np.arange(3)))],
            [("partial_fit", one, every), ("fit", two, None), ("partial_fit", one, None)],
        ):
            expected = outcome(lambda: SGDClassifier(max_iter=5, tol=None), calls)
            assert outcome(lambda: SketchedAdaGradClassifier(max_iter=1), calls) == expected, (first, second)


def test_the_same_rows_give_the_same_model_whatever_the_labels_are_made_of() -> None:
    models = [
        SketchedNewtonClassifier(max_iter=1, shuffle=False).fit(X, make(CODES)) for make in TEXTS.values()
    ]
    models += [
        SketchedNewtonClassifier().partial_fit(X, make(CODES), classes=["ham", "spam", "eggs"])
        for make in TEXTS.values()
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.predict(X).tolist() == models[0].predict(X).tolist()


def test_unknown_labels_are_named() -> None:
    model = SketchedNewtonClassifier().partial_fit(X, WORDS[CODES].astype(object), classes=WORDS)
    for strange in (pandas.Series(["bacon"] * 40), np.full(40, "bacon"), ["bacon"] * 40):
        with pytest.raises(ValueError, match=r"The target label\(s\) \['bacon'\] in y do not exist"):
            model.partial_fit(X, strange)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("learner", ["bank", "newton"])
def test_classes_are_added_where_they_are_asked_for(learner: str, loss: str) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((900, 3))
    words = np.array(["mild", "cold", "hot"])[rows.argmax(axis=1)]
    model = SketchedNewtonClassifier(learner=learner, loss=loss)
    early = words[:300] != "cold"
    model.partial_fit(rows[:300][early], words[:300][early], classes=["hot", "mild"])
    two = model.decision_function(rows)
    with pytest.raises(ValueError, match=r"The target label\(s\) \['cold'\] in y do not exist"):
        model.partial_fit(rows[300:], words[300:])
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(rows[300:], words[300:], classes=["cold", "mild"])  # without "hot"
    np.testing.assert_array_equal(model.decision_function(rows), two)

    silent = model.partial_fit(rows[:1], ["mild"], classes=["cold", "hot", "mild"], sample_weight=[0.0])
    assert silent.classes_.tolist() == ["cold", "hot", "mild"]
    three = model.decision_function(rows)
    np.testing.assert_array_equal(three[:, 1:], np.column_stack([-two, two]))  # "mild" was the second class
    linear = rows @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(linear[:, 1], -linear[:, 2], rtol=1e-9)

    model.partial_fit(rows[300:800], words[300:800])
    knew = SketchedNewtonClassifier(learner=learner, loss=loss)
    knew.partial_fit(rows[:800], words[:800], classes=["cold", "hot", "mild"])
    assert model.score(rows[800:], words[800:]) > knew.score(rows[800:], words[800:]) - 0.1 > 0.65
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert ((proba > 0) & (proba < 1)).all()
    twin = pickle.loads(pickle.dumps(model)).partial_fit(rows[800:], words[800:], classes=words[:100])
    np.testing.assert_array_equal(
        twin.decision_function(rows), model.partial_fit(rows[800:], words[800:]).decision_function(rows)
    )


def test_the_mirrored_learner_learns_as_its_mirror_image_would() -> None:
    """With a symmetric loss, the learner of the first of two classes is that of the second with other signs."""
    y = (X[:, 0] > 0).astype(int)
    grown = SketchedNewtonClassifier(loss="squared").partial_fit(X, y, classes=[0, 1])
    grown.partial_fit(X, y, classes=[0, 1, 2])
    for k in (0, 1):
        alone = NewtonBank(loss="squared")
        signs = np.where(y == k, 1.0, -1.0)
        alone.learn(X, signs)
        alone.learn(X, signs)
        np.testing.assert_allclose(grown.decision_function(X)[:, k], alone.predict(X), atol=1e-12)


def test_one_learner_of_all_classes_takes_no_more() -> None:
    y = CODES % 3
    model = SketchedAdaGradClassifier(multi_class="softmax").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes cannot be added: one learner has all of them"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2]
