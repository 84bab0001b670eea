"""The experts of a bank with whole matrices: while features are few, they learn as ridge regression does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import ClassBank, NewtonBank
from sketchnewton.cli.pictures.demo_data import ill_conditioned
from sketchnewton.learners.newton.bank_layout import EXPERTS
from sketchnewton.learners.newton.full_places import FULL
from tests.contract.test_bank import compare

K = len(EXPERTS)


def test_experts_with_whole_matrices_leave_when_features_become_many() -> None:
    """At the row that has the 385th feature, whatever the batches; what they knew is no longer kept."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 400)), rng.choice([-1.0, 1.0], 400)
    X[:200, 200:] = 0.0
    X[:300, 380:] = 0.0
    one, many = NewtonBank(dtype="float64"), NewtonBank(dtype="float64")
    played = [one.learn(X[i : i + 1], y[i : i + 1])[0] for i in range(400)]
    before = many.learn(X[:300], y[:300])
    assert many.expert_names[K:] == ("constant", *FULL)
    assert many.leading_expert in many.expert_names
    np.testing.assert_array_equal(np.concatenate([before, many.learn(X[300:], y[300:])]), played)
    assert many.expert_names == one.expert_names == (*EXPERTS, "constant")
    assert many.expert_shares.sum() == pytest.approx(1)
    assert not len(many._state["full_moments"])


@pytest.mark.slow
@pytest.mark.parametrize(("d", "loss"), [(150, "squared"), (200, "logistic")])
def test_whole_matrices_of_more_than_128_features_equal_dense(d: int, loss: str) -> None:
    rng = np.random.default_rng(d)
    X = rng.standard_normal((900, d)) * np.geomspace(1.0, 1e-2, d) @ rng.standard_normal((d, d))
    y = np.sign(X @ rng.standard_normal(d))
    learner = compare(X, y, {"float64": 1e-6}, m=4, loss=loss)
    assert learner.expert_names[K:] == ("constant", *FULL)


@pytest.mark.parametrize(("kept", "there"), [(80, True), (40, False)])
def test_whole_matrices_of_many_features_want_rows_that_are_dense(kept: int, there: bool) -> None:
    """Of 256 features a quarter, of 128 an eighth: matrices cost the square of the features for every row."""
    rng = np.random.default_rng(4)
    X = np.zeros((120, 256))
    for row in X:
        row[rng.choice(256, kept, replace=False)] = rng.standard_normal(kept)
    learner = NewtonBank()
    learner.learn(csr_array(X), rng.choice([-1.0, 1.0], 120))
    assert ("full" in learner.expert_names) is there


def test_products_of_features_are_learned_as_by_ridge_regression() -> None:
    """135 features that depend on each other, where directions of a sketch are too few."""
    rng = np.random.default_rng(11)
    Z = rng.standard_normal((6000, 15))
    X = np.hstack([Z, *(Z[:, i : i + 1] * Z[:, i:] for i in range(15))])
    odds = 3 * (np.sum(Z**2, axis=1) - 15 + 3 * Z[:, 0]) / np.sqrt(39)
    y = np.where(rng.random(6000) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    learner = NewtonBank()
    learner.learn(X[:4000], y[:4000])
    assert np.mean(np.sign(learner.predict(X[4000:])) != y[4000:]) < 0.19  # .17 by the rule itself


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_few_features_are_learned_as_by_ridge_regression(loss: str) -> None:
    """Where the condition number is large and the sketch is small, too: SON, section 5.1."""
    wrong = []
    for condition_number in (10, 200):
        X, y = ill_conditioned((condition_number,), seed=7)[condition_number]
        wrong.append(np.mean(np.sign(NewtonBank(loss=loss).learn(X, y)) != y))
    assert max(wrong) < 0.06


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber:0.2"])
@pytest.mark.parametrize("offset", [50.0, -3000.0])
def test_where_features_are_counted_from_matters_little(offset: float, loss: str) -> None:
    """Degrees Kelvin, years: features whose mean is far larger than their spread."""
    rng = np.random.default_rng(5)
    X = rng.random((3000, 20))
    signal = (X - 0.5) @ rng.standard_normal(20)
    y = signal + 0.3 * signal.std() * rng.standard_normal(3000)
    lost = [np.mean((NewtonBank(loss=loss).learn(X + at, y)[1000:] - y[1000:]) ** 2) for at in (-0.5, offset)]
    assert lost[1] <= 1.02 * lost[0]


def test_where_features_are_counted_from_matters_little_for_classes() -> None:
    rng = np.random.default_rng(6)
    X = rng.random((2000, 8))
    y = (3 * X[:, 0] + 0.5 * X[:, 1]).astype(np.int64).clip(0, 2)
    played = ClassBank(classes=3).learn(X + 300.0, y)[500:]
    assert np.mean(played.argmax(axis=1) != y[500:]) <= 0.1  # .06 if X is centred
    two = np.where(X[:, :3].sum(axis=1) > 1.5, 1.0, -1.0)
    assert np.mean(np.sign(NewtonBank(loss="logistic").learn(X - 3000.0, two)[500:]) != two[500:]) <= 0.05


def test_short_directions_are_learned_once_rows_are_many() -> None:
    """As by least squares, which does not care how long they are: a ridge of one row would hide them."""
    rng = np.random.default_rng(7)
    u, _, v = np.linalg.svd(rng.standard_normal((40, 40)))
    lengths = np.logspace(0, -4, 40)
    X = rng.standard_normal((4000, 40)) @ (u * lengths) @ v
    y = X @ (v.T @ (rng.standard_normal(40) / lengths)) + rng.standard_normal(4000)
    played = NewtonBank().learn(X, y)[2000:]
    assert np.mean((played - y[2000:]) ** 2) <= 1.1  # the noise is 1


@pytest.mark.parametrize("offset", [50.0, -3000.0])
def test_where_features_are_counted_from_matters_little_for_quantiles(offset: float) -> None:
    rng = np.random.default_rng(8)
    X = rng.random((3000, 8))
    y = (X - 0.5) @ rng.standard_normal(8) + 0.2 * rng.exponential(size=3000)
    for tau in (0.1, 0.9):
        banks = [NewtonBank(loss=f"quantile:{tau}") for _ in range(2)]
        lost = [
            bank.loss.value(bank.learn(X + at, y)[1000:], y[1000:]).mean()
            for bank, at in zip(banks, (-0.5, offset), strict=True)
        ]
        assert lost[1] <= 1.25 * lost[0]  # several times as much without whole matrices


@pytest.mark.parametrize("mean", [0.2, 50.0])
def test_where_features_are_counted_from_matters_little_for_counts(mean: float) -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((3000, 8))
    y = rng.poisson(mean * np.exp(0.2 * X @ rng.standard_normal(8))).astype(np.float64)
    banks = [NewtonBank(loss="poisson") for _ in range(2)]
    for bank, at in zip(banks, (0.0, 1000.0), strict=True):
        bank.learn(X[:2000] + at, y[:2000])
    own, other = (
        bank.loss.value(bank.predict(X[2000:] + at), y[2000:]).mean()
        for bank, at in zip(banks, (0.0, 1000.0), strict=True)
    )
    assert other <= own + 0.01


def test_medians_are_not_means() -> None:
    """Where noise is skewed, least squares of the labels would be off by the difference."""
    rng = np.random.default_rng(10)
    X = 300.0 + rng.standard_normal((4000, 8))
    signal = (X - 300.0) @ rng.standard_normal(8)
    y = signal + rng.exponential(size=4000)
    learner = NewtonBank(loss="absolute")
    learner.learn(X, y)
    off = learner.predict(X) - signal - np.log(2)
    assert abs(off.mean()) < 0.05  # that of the mean is .31
