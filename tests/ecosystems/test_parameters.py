"""Parameters that mean nothing are refused in one line that names them, used or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import (
    SketchedAdaGradClassifier,
    SketchedAdaGradRegressor,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
)
from sketchnewton import learners as learners_
from sketchnewton.core.parameters import checked, checked_flag, checked_share, checked_size

SWITCHES = ("yes", "False", 1, 0, 2.0, None)
COUNTS = (True, np.True_, -1, 0, 2.5, "three")
NUMBERS = (True, np.False_, -1.0, float("nan"), "much")
WRONG: dict[str, tuple[object, ...]] = {
    "shuffle": SWITCHES,
    "early_stopping": SWITCHES,
    "warm_start": SWITCHES,
    "fit_intercept": SWITCHES,
    "max_iter": COUNTS,
    "n_iter_no_change": COUNTS,
    "sketch_size": (True, -1, 2.5, "three"),
    "random_state": (True, -1, 2.5, "seed"),
    "tol": NUMBERS,
    "validation_fraction": (*NUMBERS, 0, 1, 1.5),
    "clip": (True, -1.0, 0.0, "much"),
    "alpha": NUMBERS,
    "curvature": NUMBERS,
    "diagonal": ("no", 1),
    "eta": NUMBERS,
    "sigma": NUMBERS,
    "penalty_strength": NUMBERS,
    "l1_ratio": (*NUMBERS, 2.0),
    "of": (True, "rows"),
    "class_weight": ({0: -1.0}, {0: True}, {0: "much"}, "unbalanced"),
}
ESTIMATORS: list[tuple[type[Any], dict[str, object]]] = [
    (SketchedNewtonClassifier, {}),
    (SketchedNewtonClassifier, {"learner": "newton"}),
    (SketchedNewtonRegressor, {}),
    (SketchedNewtonRegressor, {"learner": "newton"}),
    (SketchedAdaGradClassifier, {}),
    (SketchedAdaGradClassifier, {"sketch": "rp"}),
    (SketchedAdaGradRegressor, {}),
    (SketchedAdaGradRegressor, {"sketch": "rp"}),
]
X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.arange(40) % 2


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize(("kind", "others"), ESTIMATORS)
def test_parameters_that_mean_nothing(kind: type[Any], others: dict[str, object], name: str) -> None:
    if name not in kind().get_params():
        return
    for value in WRONG[name]:
        for method in ("fit", "partial_fit"):
            estimator = kind(**{**others, name: value})
            classes = (
                {"classes": [0, 1]} if method == "partial_fit" and hasattr(kind, "predict_proba") else {}
            )
            with pytest.raises(ValueError, match=name) as caught:
                getattr(estimator, method)(X, Y, **classes)
            assert "\n" not in str(caught.value)
            assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.5])
def test_the_share_held_out_is_between_0_and_1(value: float) -> None:
    with pytest.raises(ValueError, match=f"validation_fraction={value} is invalid: must be > 0 and < 1"):
        SketchedNewtonClassifier(validation_fraction=value).fit(X, Y)


@pytest.mark.parametrize(("kind", "others"), ESTIMATORS)
def test_numbers_and_switches_of_numpy_are_taken(kind: type[Any], others: dict[str, object]) -> None:
    plain = {"shuffle": True, "fit_intercept": False, "max_iter": 2, "tol": 0.01, "random_state": 3}
    kinds = {bool: np.bool_, int: np.int64, float: np.float32}
    numpy = {name: kinds[type(value)](value) for name, value in plain.items()}
    expected = kind(**others, **plain).fit(X, Y).coef_
    np.testing.assert_array_equal(kind(**others, **numpy).fit(X, Y).coef_, expected)


@pytest.mark.parametrize("value", [True, False, np.True_, np.array(True)])
def test_true_is_no_number(value: object) -> None:
    for check in (checked, checked_size, checked_share):
        with pytest.raises(ValueError, match=r"alpha=.*is invalid"):
            check("alpha", value)


@pytest.mark.parametrize("value", [1, 0, "True", "", None, 1.0, [True], np.int64(1)])
def test_numbers_and_texts_are_no_switches(value: object) -> None:
    with pytest.raises(ValueError, match=r"intercept=.*is invalid: must be True or False"):
        checked_flag("intercept", value)


@pytest.mark.parametrize("name", ["AdaGrad", "SketchedAdaGrad", "FullAdaGrad", "AdaLR", "RadaGrad"])
def test_learners_refuse_texts_as_switches(name: str) -> None:
    with pytest.raises(ValueError, match="intercept='no' is invalid: must be True or False"):
        getattr(learners_, name)(intercept="no")
