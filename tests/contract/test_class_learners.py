"""Several outputs are a concept: what a learner says of its classes is all that others must know of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from sketchnewton import (
    AdaGrad,
    ClassBank,
    CompositeAdaGrad,
    FullAdaGrad,
    Learner,
    NewtonBank,
    SketchedAdaGrad,
    _native,
)
from sketchnewton.learners import ClassLearner, OneVsAll, SharedNewton
from sketchnewton.testing import LEARNER_PROMISES, check_learner
from tests.contract.learners import DENSE, LEARNERS, sparse_stream

K = 3
AGAINST_THE_REST: dict[str, Callable[[], Learner]] = {
    "one against all": lambda: OneVsAll(AdaGrad, K, {"loss": "logistic", "intercept": True}),
    "shared": lambda: SharedNewton(K, loss="squared", intercept=True),
}
SOFTMAX: dict[str, Callable[[], Learner]] = {
    "adagrad": lambda: CompositeAdaGrad(loss="logistic", classes=K, intercept=True),
    "ada-gp": lambda: SketchedAdaGrad(loss="logistic", classes=K, intercept=True),
    "ada-full": lambda: FullAdaGrad(loss="logistic", classes=K, intercept=True),
    "bank": lambda: ClassBank(K),
}
CLASSES = AGAINST_THE_REST | SOFTMAX


def classes_stream(rounds: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X, _ = sparse_stream(rounds, d=20, non_zeros=5)
    return X, (X @ np.eye(20)[:, :K]).argmax(axis=1).astype(float)


@pytest.mark.parametrize("promise", LEARNER_PROMISES)
@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"ada-full"}))  # which is slow
def test_promise(name: str, promise: str) -> None:
    check_learner(CLASSES[name], only=[promise])


@pytest.mark.parametrize("name", CLASSES)
def test_a_learner_of_classes_says_so(name: str) -> None:
    learner = CLASSES[name]()
    X, y = classes_stream()
    scores = learner.learn(X, y)
    assert isinstance(learner, ClassLearner)
    assert (learner.classes, learner.outputs, learner.softmax) == (K, K, name in SOFTMAX)
    assert scores.shape == (60, K)
    assert learner.intercepts.shape == (K,)
    assert learner.weights.shape == (learner.dimension, K)
    with pytest.raises(AttributeError, match="intercepts"):
        _ = learner.intercept_
    if name == "bank":
        return  # whose predictions are those of several experts
    # A row of nothing is predicted by the intercepts alone.
    np.testing.assert_allclose(learner.predict(np.zeros((1, 20)))[0], learner.intercepts, atol=1e-6)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_probabilities(name: str) -> None:
    learner = CLASSES[name]()
    X, y = classes_stream()
    learner.learn(X, y)
    scores = learner.predict(X)
    probabilities = learner.probabilities(scores)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities >= 0).all()
    np.testing.assert_array_equal(probabilities.argmax(axis=1), scores.argmax(axis=1))
    if name in SOFTMAX:
        powers = np.exp(scores)
        np.testing.assert_allclose(probabilities, powers / powers.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", CLASSES)
def test_labels_are_the_numbers_of_classes(name: str) -> None:
    learner = CLASSES[name]()
    assert all(learner.takes(label) for label in (0.0, 1.0, K - 1.0))
    for bad in (-1.0, 0.5, float(K), math.nan, math.inf):
        assert not learner.takes(bad)
        with pytest.raises(ValueError, match="at position 1 is invalid: classes are 0 to 2"):
            learner.learn(np.eye(2), [0.0, bad])
    assert learner.rows_seen == 0


@pytest.mark.parametrize("name", CLASSES)
def test_a_row_has_no_single_prediction(name: str) -> None:
    row = _native.dense_rows(np.ones((1, 2)))
    with pytest.raises(TypeError, match="predicts 3 scores per row: use learn"):
        CLASSES[name]().learn_row(row, 1.0)


def test_a_learner_of_classes_is_no_part_of_one_against_all() -> None:
    with pytest.raises(ValueError, match="CompositeAdaGrad with classes=4 is invalid"):
        OneVsAll(CompositeAdaGrad, 3, {"loss": "logistic", "classes": 4})


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_of_one_number_says_so(name: str) -> None:
    learner = LEARNERS[name]()
    X, y = sparse_stream(20 if name in DENSE else 100, d=20, non_zeros=5)
    learner.learn(X, y if learner.takes(-1.0) else y + 1)
    assert (learner.classes, learner.outputs, learner.softmax) == (None, 1, False)
    assert learner.intercepts.tolist() == [learner.intercept_]
    probabilities = learner.probabilities(learner.predict(X))
    assert probabilities.shape == (len(X), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (learner.base_name, learner.base_params) == (type(learner).__name__, learner.params)
    assert learner.title == type(learner).__name__


def test_what_a_description_asks_for() -> None:
    many = OneVsAll(AdaGrad, 3, {"eta": 0.5})
    assert many.title == "OneVsAll, 3 x AdaGrad"
    assert (many.base_name, many.base_params["eta"]) == ("AdaGrad", 0.5)
    assert SOFTMAX["adagrad"]().title == "CompositeAdaGrad, softmax of 3 classes"
    bank = NewtonBank()
    assert bank.leading_expert == max(bank.experts, key=lambda name: bank.experts[name])
    assert sum(bank.experts.values()) == pytest.approx(1.0)
    assert (AdaGrad().leading_expert, AdaGrad().experts, AdaGrad().alpha_) == (None, {}, None)
    assert [len(part) for part in AdaGrad().sorted_scales()] == [0, 0]


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({}, AdaGrad),
        ({"eta": 0.3, "clip": "auto", "penalty": None, "classes": None}, AdaGrad),
        ({"penalty": "l1", "penalty_strength": 0.0}, AdaGrad),
        ({"penalty": "l1"}, CompositeAdaGrad),
        ({"form": "dual_averaging"}, CompositeAdaGrad),
        ({"loss": "logistic", "classes": 3}, CompositeAdaGrad),
    ],
)
def test_the_simplest_adagrad_that_does(parameters: dict[str, object], kind: type[Learner]) -> None:
    learner = CompositeAdaGrad.simplest(**parameters)
    assert type(learner) is kind
    assert all(learner.params.get(name, value) == value for name, value in parameters.items())


def test_a_composite_adagrad_learns_no_range() -> None:
    with pytest.raises(ValueError, match="clip='auto' is invalid: it cannot be combined with a penalty"):
        CompositeAdaGrad(penalty="l1", clip="auto")
