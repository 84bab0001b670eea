"""Labels of any type, in any sequence of calls, as SGDClassifier takes them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from sketchnewton import SketchedAdaGradClassifier, SketchedNewtonClassifier

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
    models = [SketchedNewtonClassifier(max_iter=1).fit(X, make(CODES)) for make in TEXTS.values()]
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
