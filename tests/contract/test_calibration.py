"""Probabilities come true as often as they say, and what is guaranteed about them holds on any stream."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchnewton import NewtonBank, SketchedNewtonClassifier, load
from sketchnewton.learners.calibration import ClassCalibration, fits, fresh, fresh_bank, merged
from sketchnewton.learners.multiclass import OneVsAll
from sketchnewton.losses import get_loss
from tests.oracles import calibration as oracle

LOSSES = ["squared", "logistic", "hinge", "squared_hinge"]


def stream(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Two classes, of which one is recognised more surely than the other."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 5)) * [1, 2, 30, 0.1, 1]
    score = X @ [1, -0.5, 0.02, 3, 0]
    likely = 1 / (1 + np.exp(-np.where(score > 0, 1, 4) * score))
    return X, np.where(random.random(n) < likely, 1.0, -1.0)


def played(bank: Any, X: Any, y: Any, weights: Any = None) -> tuple[Any, Any]:
    """Scores and probabilities of +1 before each row is learned."""
    scores, chances = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        scores[i] = bank.predict(X[i : i + 1])[0]
        chances[i] = bank.probabilities(scores[i : i + 1])[0, 1]
        bank.learn(X[i : i + 1], y[i : i + 1], None if weights is None else weights[i : i + 1])
    return scores, chances


def calibration_error(p: Any, right: Any) -> float:
    at = np.minimum((p * 15).astype(int), 14)
    return float(np.abs(np.bincount(at, p, 15) - np.bincount(at, right, 15)).sum() / len(p))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_as_the_oracle_has_them(loss: str, weighted: bool) -> None:
    X, y = stream(400)
    weights = np.random.default_rng(1).choice([0.2, 1.0, 3.0, 500.0], len(y)) if weighted else np.ones(len(y))
    scores, chances = played(NewtonBank(loss=loss), X, y, weights)
    expected = oracle.two_classes(scores, y, weights, logistic=loss == "logistic")
    np.testing.assert_allclose(chances, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 3, 20])
def test_several_classes_are_as_the_oracle_has_them(loss: str, K: int) -> None:
    random = np.random.default_rng(K)
    scores = random.standard_normal((300, K)) * random.choice([0.3, 1, 30], (300, 1))
    labels = (scores + 2 * random.standard_normal(scores.shape)).argmax(axis=1).astype(float)
    weights = random.choice([0.5, 1.0, 40.0], 300)
    calibration = ClassCalibration(get_loss(loss))
    chances = []
    for i in range(300):
        chances.append(calibration.probabilities(scores[i : i + 1])[0])
        calibration.learn(scores[i : i + 1], labels[i : i + 1], weights[i : i + 1])
    expected = oracle.classes(scores, labels, weights, logistic=loss == "logistic")
    np.testing.assert_allclose(chances, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_come_true(loss: str) -> None:
    found = []
    for seed in range(10):
        X, y = stream(9000, seed)
        bank = NewtonBank(loss=loss)
        bank.learn(X[:4500], y[:4500])
        chances = bank.probabilities(bank.predict(X[4500:]))[:, 1]
        found.append(calibration_error(chances, y[4500:] > 0))
    # The mean is .026 or less; true probabilities have .01 on so many rows, by chance.
    assert np.mean(found) < 0.03


def test_the_most_probable_class_has_the_largest_score() -> None:
    random = np.random.default_rng(1)
    learner = OneVsAll(NewtonBank, 4)
    learner.learn(random.standard_normal((500, 3)), random.integers(0, 4, 500).astype(float))
    scores = random.uniform(-1, 1, (1000, 4))
    order = np.argsort(learner.probabilities(scores), axis=1)
    np.testing.assert_array_equal(order, np.argsort(scores, axis=1))


def test_probabilities_of_many_classes_come_true() -> None:
    random = np.random.default_rng(5)
    centres = 1.5 * random.standard_normal((6, 8))
    y = random.integers(0, 6, 8000)
    X = centres[y] + random.standard_normal((8000, 8))
    model = SketchedNewtonClassifier().fit(X[:5000], y[:5000])
    chances = model.predict_proba(X[5000:])
    assert calibration_error(chances.max(axis=1), chances.argmax(axis=1) == y[5000:]) < 0.03
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X[5000:]))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_sign_of_a_score_is_the_more_probable_class(loss: str) -> None:
    X, y = stream(2000, 7)
    bank = NewtonBank(loss=loss)
    bank.learn(X, y)
    scores = np.delete(np.linspace(-1, 1, 2001), 1000)
    chances = bank.probabilities(scores)[:, 1]
    assert ((chances > 0.5) == (scores > 0)).all()
    assert chances.min() > 0
    assert chances.max() < 1
    assert bank.row_probabilities([0.3]) == bank.probabilities(np.array([0.3]))[0].tolist()


@pytest.mark.parametrize("loss", LOSSES)
def test_larger_scores_have_larger_probabilities(loss: str) -> None:
    """Also where the rows with larger scores are the ones that err."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        x = random.uniform(-1, 1, 500)
        bank = NewtonBank(loss=loss)
        bank.learn(x[:, None], np.where((np.abs(x) > 0.6) & (random.random(500) < 0.9), -1, 1) * np.sign(x))
        scores = np.linspace(-6, 6, 1201) if loss == "logistic" else np.linspace(-1, 1, 1201)
        assert np.diff(bank.probabilities(scores)[:, 1]).min() >= -1e-15


@pytest.mark.parametrize("seed", range(20))
def test_calibration_costs_little_on_any_stream(seed: int) -> None:
    """At most ln 2 + ln(T + 1) for each side and for corrections."""
    random = np.random.default_rng(seed)
    T = 300
    scores = random.choice([-1, -0.5, 0, 0.5, 1], T) * random.choice([1, 0.1, 20])
    says = np.where(scores > 0, 1.0, -1.0)
    waves = np.sign(np.sin(np.arange(T) / 9) + 0.01)
    labels = random.choice([says, -says, random.choice([-1.0, 1.0], T), waves])
    expected = oracle.two_classes(scores, labels, np.ones(T), logistic=seed % 2 == 0)
    raw = np.array(
        [oracle.said(np.array([-s, s]), t, 2, logistic=seed % 2 == 0)[1] for t, s in enumerate(scores)]
    )
    loss, base = (-np.log(np.where(labels > 0, p, 1 - p)).sum() for p in (expected, raw))
    assert loss <= base + 3 * (np.log(2) + np.log(T + 1))


def test_batches_and_files_change_nothing(tmp_path: Path) -> None:
    X, y = stream(900, 11)
    whole, parts = NewtonBank(), NewtonBank()
    whole.learn(X, y)
    for begin, end in ((0, 1), (1, 300), (300, 500)):
        parts.learn(X[begin:end], y[begin:end])
    parts.save(tmp_path / "bank.skn")
    parts = load(tmp_path / "bank.skn")
    parts.learn(X[500:], y[500:])
    scores = np.linspace(-1, 1, 50)
    np.testing.assert_array_equal(whole.probabilities(scores), parts.probabilities(scores))


def test_classes_resume_and_copy(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    X, y = random.standard_normal((600, 4)), random.integers(0, 3, 600).astype(float)
    whole, part = (OneVsAll(NewtonBank, 3) for _ in range(2))
    whole.learn(X, y)
    part.learn(X[:200], y[:200])
    part.save(tmp_path / "classes.skn")
    part = load(tmp_path / "classes.skn")
    twin = copy.deepcopy(part)
    part.learn(X[200:], y[200:])
    scores = random.uniform(-1, 1, (20, 3))
    np.testing.assert_array_equal(whole.probabilities(scores), part.probabilities(scores))
    assert not np.array_equal(twin.probabilities(scores), part.probabilities(scores))


def test_merged_probabilities_come_true() -> None:
    X, y = stream(9000, 13)
    banks = [NewtonBank() for _ in range(3)]
    for i, bank in enumerate(banks):
        bank.learn(X[2000 * i : 2000 * (i + 1)], y[2000 * i : 2000 * (i + 1)])
    bank = banks[0].merge(*banks[1:])
    chances = bank.probabilities(bank.predict(X[6000:]))[:, 1]
    assert calibration_error(chances, y[6000:] > 0) < 0.04


def test_merging_adds_up_what_rows_have_taught() -> None:
    """Eight shards have seen eight times as many rows as one: curvatures and corrections say so."""
    X, y = stream(9000, 2)
    parts = [NewtonBank(loss="logistic") for _ in range(8)]
    for i, bank in enumerate(parts):
        bank.learn(X[1000 * i : 1000 * (i + 1)], y[1000 * i : 1000 * (i + 1)])
    serial = NewtonBank(loss="logistic")
    serial.learn(X[:8000], y[:8000])
    effective, curvature = (
        lambda bank: bank._state["corrections"][:17, 0].sum() / bank._state["calibration"][:, -1].sum(),
        lambda bank: bank._state["calibration"][:, 4],
    )
    merged_bank = copy.deepcopy(parts[0]).merge(*parts[1:])
    assert effective(merged_bank) == pytest.approx(effective(serial), rel=0.01)
    np.testing.assert_allclose(curvature(merged_bank), sum(map(curvature, parts)), rtol=0.1)
    again = copy.deepcopy(merged_bank)
    later = [copy.deepcopy(merged_bank) for _ in range(2)]
    for i, bank in enumerate(later):
        bank.learn(X[8000 + 500 * i : 8500 + 500 * i], y[8000 + 500 * i : 8500 + 500 * i])
    both = later[0].merge(later[1], base=again)
    assert effective(again) < effective(both) < 1.3 * effective(again)


@pytest.mark.parametrize("loss", LOSSES)
def test_heavy_rows_leave_probabilities_within_0_and_1(loss: str) -> None:
    """A surprise after rows of huge weight: probabilities that had been certain would be NaN for ever."""
    for seed in range(20):
        random = np.random.default_rng(seed + 20)
        X = random.standard_normal((200, 2))
        y = np.where(X[:, 0] + 0.1 * (seed % 3) * random.standard_normal(200) > 0, 1.0, -1.0)
        bank = NewtonBank(loss=loss)
        bank.learn(X, y, np.full(200, 10.0 ** (2 * (seed % 7))))
        chances = bank.probabilities(bank.predict(X))
        assert ((chances > 0) & (chances < 1)).all()
        assert copy.deepcopy(bank).probabilities(bank.predict(X)).tolist() == chances.tolist()


def test_merging_counts_the_base_once() -> None:
    base, one, two = (np.array(fresh(1)) for _ in range(3))
    base[0, -2:], one[0, -2:], two[0, -2:] = 10, 14, 13
    one[0, 0] = two[0, 0] = 2.0
    both = merged([one, two], base)
    assert both[0, -2:].tolist() == [17, 17]
    assert fits(both)
    assert both[0, 0] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 0.0), (1, -1.0), (1, 21.0), (2, -1.0), (5, 0.0), (6, 0.9), (7, -1.0), (8, -1.0), (8, 1e300)],
)
def test_impossible_numbers_do_not_fit(at: int, value: float) -> None:
    numbers = np.array(fresh(1))
    assert fits(numbers)
    numbers[0, at] = value
    assert not fits(numbers)


def test_odd_rows_teach_nothing() -> None:
    calibration = ClassCalibration(get_loss("squared"))
    scores = np.array([[0.1, np.nan], [0.5, 0.2], [0.5, 0.2], [0.5, 0.2]])
    calibration.learn(scores, [0, 2, np.nan, 1], [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(calibration.numbers, np.array(fresh(1)))
    bank = NewtonBank()
    bank.learn(np.eye(3), [0.5, 2.0, 7.0])  # numbers, not classes
    for name, start in fresh_bank().items():
        np.testing.assert_array_equal(bank._state[name], np.array(start))
