"""ClassBank: what docs/class-bank.md defines and promises."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from sketchnewton import ClassBank
from sketchnewton.core.types import Floats
from sketchnewton.learners.newton.class_bank import EXPERTS
from tests.oracles.class_bank import class_bank


def stream(n: int, d: int, K: int, seed: int, sparse: float = 0.0) -> tuple[Floats, Floats]:
    """Rows of K classes that overlap, features in units of all sizes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    y = (X @ rng.standard_normal((d, K)) + 2 * rng.standard_normal((n, K))).argmax(axis=1)
    X[rng.random((n, d)) < sparse] = 0
    return X * np.exp(rng.normal(0, 4, d)), y.astype(float)


AWKWARD = {
    "dense": stream(300, 8, 3, 0),
    "sparse": stream(400, 30, 5, 1, 0.7),
    "one feature": stream(150, 1, 3, 2),
    "too many features for whole matrices": stream(250, 150, 4, 3, 0.9),
    "ten classes, two of them never": (stream(300, 12, 8, 4)[0], stream(300, 12, 8, 4)[1] + 1),
    "one class only": (stream(80, 5, 3, 5)[0], np.zeros(80)),
    "copies": (np.repeat(stream(60, 4, 3, 6)[0], 4, axis=0), np.repeat(stream(60, 4, 3, 6)[1], 4)),
    "rows of zeros": (stream(120, 6, 3, 7)[0] * (np.arange(120) % 3 > 0)[:, None], stream(120, 6, 3, 7)[1]),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", AWKWARD)
def test_it_is_the_oracle(name: str, intercept: bool) -> None:
    X, y = AWKWARD[name]
    K = max(int(y.max()) + 2, 3)
    learner = ClassBank(K, 4, intercept=intercept, dtype="float64")
    played = learner.learn(X, y)
    expected = class_bank(X, y.astype(int), K, m=4, intercept=intercept)
    np.testing.assert_allclose(played, np.array(expected.played), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(learner.expert_shares, expected.shares[-1], rtol=1e-5, atol=1e-7)


def test_importance_is_the_oracle_too() -> None:
    X, y = AWKWARD["sparse"]
    h = np.random.default_rng(0).gamma(1.0, 1.0, len(y)) + 0.01
    played = ClassBank(5, 3, dtype="float64").learn(X, y, h)
    expected = class_bank(X, y.astype(int), 5, m=3, importance=h)
    np.testing.assert_allclose(played, np.array(expected.played), rtol=1e-6, atol=1e-6)


def test_experts_are_those_of_the_oracle() -> None:
    X, y = AWKWARD["dense"]
    learner = ClassBank(3, 4, dtype="float64")
    learner.learn(X[:-1], y[:-1])
    found = learner.predict_experts(X[-1:])[0]
    np.testing.assert_allclose(found, class_bank(X, y.astype(int), 3, m=4).experts[-1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["dense", "too many features for whole matrices"])
def test_weights_are_those_of_an_expert(name: str) -> None:
    X, y = AWKWARD[name]
    learner = ClassBank(4, dtype="float64")
    learner.learn(X, y)
    learner.learn(X[:1], y[:1], [0.0])
    at = learner.expert_names.index(learner.linear_expert)
    learned = np.flatnonzero(np.bincount(np.nonzero(X)[1], minlength=X.shape[1]))
    rows = X[:20]
    scores = rows[:, learned] @ learner.weights[learned] + learner.intercepts
    if at < len(EXPERTS):  # scales and the number of rows take in the row itself
        np.testing.assert_allclose(learner.predict_experts(rows)[:, at].argmax(axis=1), scores.argmax(axis=1))
    else:
        p = 1 / (1 + np.exp(-scores))
        np.testing.assert_allclose(
            learner.predict_experts(rows)[:, at], p / p.sum(axis=1, keepdims=True), atol=0.1
        )


def test_float32_is_near() -> None:
    X, y = AWKWARD["dense"]
    single, double = (ClassBank(3, dtype=dtype).learn(X, y) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(np.exp(single), np.exp(double), atol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_units_do_not_matter(seed: int) -> None:
    X, y = stream(300, 10, 4, seed, 0.3)
    units = 2.0 ** np.random.default_rng(seed).integers(-20, 20, 10)
    one, other = (ClassBank(4, dtype="float64").learn(rows, y) for rows in (X, X * units))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_the_log_loss_is_near_that_of_the_best_expert(seed: int) -> None:
    # Also of streams that change, and of labels that have nothing to do with the rows.
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(2, 7)), 200
    X, y = stream(n, int(rng.integers(1, 12)), K, seed, float(rng.random()))
    if seed % 3 == 0:
        y = rng.integers(0, K, n).astype(float)
    if seed % 3 == 1:
        y[n // 2 :] = (y[n // 2 :] + 1) % K
    learner = ClassBank(K, 3)
    lost, best = 0.0, np.zeros(len(EXPERTS) + 3)
    for x, label in zip(X, y.astype(int), strict=True):
        best -= np.log(learner.predict_experts(x[None])[0, :, label])
        lost -= float(learner.learn(x[None], [label])[0, label])
    bound = np.log(len(best)) + np.log(2) + 2 * np.log(n + 1)
    assert lost <= best.min() + bound + 1e-6


def test_probabilities_sum_to_one_and_predict_is_the_next_prediction() -> None:
    X, y = stream(500, 20, 6, 9, 0.5)
    learner = ClassBank(6)
    learner.learn(X[:400], y[:400])
    ahead = learner.predict(X[400:401])
    np.testing.assert_allclose(np.exp(learner.predict(X)).sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(learner.learn(X[400:401], y[400:401]), ahead)


def test_how_sure_it_is_becomes_right() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12_000, 10))
    scores = X @ rng.standard_normal((10, 4))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(
        axis=1
    )  # classes drawn from the softmax of the scores
    P = np.exp(ClassBank(4).learn(X, y))[2000:]
    sure, right = P.max(axis=1), P.argmax(axis=1) == y[2000:]
    bins = np.minimum((15 * sure).astype(int), 14)
    gaps = [abs(right[bins == b].sum() - sure[bins == b].sum()) for b in range(15)]
    assert sum(gaps) / len(sure) < 0.02


def test_copies_and_pickles_are_small_and_go_on_alike() -> None:
    X, y = stream(400, 64, 10, 3)
    learner = ClassBank(10)
    learner.learn(X[:300], y[:300])
    twins = [copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    expected = learner.learn(X[300:], y[300:])
    for twin in twins:
        np.testing.assert_array_equal(twin.learn(X[300:], y[300:]), expected)
    assert len(pickle.dumps(learner)) < 1_000_000


def test_a_file_is_written_from_the_table_in_use() -> None:
    """A thousand classes have tables of gigabytes: there is no room for copies."""
    learner = ClassBank(3)
    learner.learn(*AWKWARD["dense"])
    saved = learner.to_archive()[1]
    assert np.shares_memory(np.asarray(saved["table"]), learner._table.rows)


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="loss='squared' is invalid"):
        ClassBank(3, loss="squared")
    X, y = stream(50, 5, 3, 0)
    learners = [ClassBank(3), ClassBank(3)]
    for learner in learners:
        learner.learn(X, y)
    with pytest.raises(ValueError, match="cannot be merged: one NewtonBank per class"):
        learners[0].merge(learners[1])
