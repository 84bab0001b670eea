"""The second opinion of a bank on classes: what its experts say together."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sketchnewton import NewtonBank
from sketchnewton.core.archive import ModelFileError
from sketchnewton.learners.newton import bank_stack
from sketchnewton.learners.newton.bank_layout import EXPERTS
from sketchnewton.learners.newton.full_places import FULL
from tests.contract.bank_streams import adversaries, regression_stream
from tests.contract.learners import sparse_stream
from tests.oracles.bank import mix

ALL = len(EXPERTS) + 1 + len(FULL) + 1


@pytest.mark.parametrize("d", [40, 400])  # with experts that have whole matrices and without
def test_played_is_the_aggregate_of_the_experts_and_of_what_they_say_together(d: int) -> None:
    X, y = sparse_stream(600, d=d, non_zeros=8)
    learner = NewtonBank(loss="logistic", dtype="float64")
    learner.learn(X, y)
    experts, link = learner.predict_experts(X), learner.loss.link
    mixture = link(experts) @ learner.expert_shares
    others = np.delete(experts, learner.expert_names.index("constant"), axis=1)
    inputs = np.column_stack([np.log(mixture / (1 - mixture)), others])
    theta, shares = bank_stack.weights(learner._state), bank_stack.shares(learner._state)
    together = link(inputs @ theta[: inputs.shape[1]])
    expected = np.column_stack([mixture, together]) @ shares
    np.testing.assert_allclose(link(learner.predict(X)), expected, rtol=0, atol=1e-9)
    assert np.abs(theta[1 : inputs.shape[1]]).min() > 0  # all of them are heard
    assert learner.leading_expert == learner.expert_names[int(learner.expert_shares.argmax())]
    assert learner.expert_shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_experts_that_know_different_things_are_better_together(loss: str) -> None:
    """One class is rare, which without an intercept only the constant expert knows; others know features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 10))
    score = X @ rng.standard_normal(10)
    y = np.where(score > np.quantile(score, 0.05), 1.0, -1.0)
    learner = NewtonBank(loss=loss, intercept=False)
    experts, played = np.empty((3000, ALL)), np.empty(3000)
    for i in range(3000):
        experts[i] = learner.predict_experts(X[i : i + 1])[0]
        played[i] = learner.learn(X[i : i + 1], y[i : i + 1])[0]
    best = learner.loss.value(experts, y[:, None]).mean(axis=0).min()
    assert learner.loss.value(played, y).mean() < 0.8 * best


@pytest.mark.parametrize(("loss", "bound"), [("squared", 16.0), ("logistic", 2.0)])
def test_the_second_opinion_costs_little_on_any_stream(loss: str, bound: float) -> None:
    """At most 16 ln 2 and 2 ln 2 more than what the rule would play."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, y = adversaries(rng)
        learner = NewtonBank(loss=loss, dtype="float64")
        played, rule = np.empty(len(y)), np.empty(len(y))
        for i in range(len(y)):
            rule[i] = mix(loss, learner.predict_experts(X[i : i + 1])[0], learner.expert_shares)
            played[i] = learner.learn(X[i : i + 1], y[i : i + 1])[0]
        more = learner.loss.value(played, y).sum() - learner.loss.value(rule, y).sum()
        assert more <= bound * np.log(2) + 1e-9


def test_numbers_have_no_second_opinion() -> None:
    X, y = regression_stream(300, d=20, non_zeros=5)
    learner = NewtonBank()
    learner.learn(X, y)
    np.testing.assert_array_equal(learner._state["stack"], np.array(bank_stack.fresh()))


@pytest.mark.parametrize(("d", "inputs"), [(40, 12), (400, 8)])
def test_what_shards_learned_since_their_base_adds_up(d: int, inputs: int) -> None:
    X, y = sparse_stream(900, d=d, non_zeros=8)
    base = NewtonBank()
    base.learn(X[:300], y[:300])
    shards = [copy.deepcopy(base) for _ in range(2)]
    for i, shard in enumerate(shards):
        shard.learn(X[300 + i :: 2], y[300 + i :: 2])
    stacks = [bank._state["stack"].copy() for bank in (base, *shards)]
    before, *known = (np.linalg.inv(its[:inputs, :inputs]) for its in stacks)
    whole = shards[0].merge(shards[1], base=base)._state["stack"]
    precision = sum(known) - before
    np.testing.assert_allclose(np.linalg.inv(whole[:inputs, :inputs]), precision, rtol=1e-6, atol=1e-6)
    pulls = [own @ its[12, :inputs] for own, its in zip((before, *known), stacks, strict=True)]
    theta = np.linalg.solve(precision, pulls[1] + pulls[2] - pulls[0])
    np.testing.assert_allclose(whole[12, :inputs], theta, rtol=1e-6, atol=1e-6)
    assert whole[13, :2].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("row", "column", "number"),
    [(0, 0, 1.1), (3, 5, -1.1), (12, 2, 2e6), (13, 0, -0.1), (13, 1, 1.5), (13, 4, 0.1)],
)
def test_numbers_that_were_not_learned_are_refused(row: int, column: int, number: float) -> None:
    X, y = sparse_stream(50, d=40, non_zeros=8)
    learner = NewtonBank()
    learner.learn(X, y)
    learner._state["stack"][row, column] = number
    with pytest.raises(ModelFileError):
        NewtonBank.from_bytes(learner.to_bytes())


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_covariance_that_is_none_is_refused(loss: str) -> None:
    """All of it is within ±1, but steps would make it grow, and the model's own loader would refuse it."""
    rng = np.random.default_rng(0)
    X, y = sparse_stream(50, d=40, non_zeros=8)
    learner = NewtonBank(loss=loss)
    learner.learn(X, y)
    crooked, negative = (learner._state["stack"][:12].copy() for _ in range(2))
    crooked[2, 1] += 1e-3
    negative[:] = rng.uniform(-1, 1, (12, 12))
    for C in (crooked, negative + negative.T):
        learner._state["stack"][:12] = np.clip(C, -1, 1)
        with pytest.raises(ModelFileError):
            NewtonBank.from_bytes(learner.to_bytes())


@pytest.mark.parametrize(("loss", "shares"), [("squared", [1.0, 0.0]), ("logistic", [0.0, 1.0])])
def test_an_opinion_without_any_weight_may_be_right(loss: str, shares: list[float]) -> None:
    X, y = sparse_stream(100, d=40, non_zeros=8)
    learner = NewtonBank(loss=loss)
    learner.learn(X, y)
    learner._state["stack"][13, :2] = shares
    learner.learn(X[:2], y[:2], [1e30, 1e30])
    assert np.isfinite(NewtonBank.from_bytes(learner.to_bytes()).predict(X)).all()
