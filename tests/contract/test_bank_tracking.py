"""The expert of a bank that follows classes whose meaning drifts."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array

from sketchnewton import NewtonBank, _native
from sketchnewton.core.state import view_of
from sketchnewton.learners.newton import bank_tracking, tracking_merge
from sketchnewton.learners.newton.bank_layout import EXPERTS
from sketchnewton.learners.newton.full_places import FULL
from tests.contract.test_bank import compare
from tests.oracles.bank import bank

K = len(EXPERTS)
WITHOUT = (*EXPERTS, "constant", *FULL)
ALL = (*WITHOUT, "tracking")
CLASSES = ["squared", "squared_hinge", "logistic"]


def turning(n: int, d: int, seed: int, *, turn: float = 2000.0) -> tuple[Any, Any]:
    """Classes by a plane that turns all the time, in correlated features of all scales, far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d))
    angle = np.arange(n) / turn
    odds = 3 * (X[:, 0] * np.cos(angle) + X[:, -1] * np.sin(angle))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    return (X + 5 * rng.standard_normal(d)) * 10.0 ** rng.uniform(-3, 3, d), y


@pytest.mark.parametrize("loss", CLASSES)
@pytest.mark.parametrize("d", [1, 3, 4, 5, 18])
def test_it_equals_the_dense_regression(loss: str, d: int) -> None:
    X, y = turning(600, d, d)
    learner = compare(X, y, {"float64": 1e-7, "float32": 5e-3}, m=4, loss=loss)
    assert learner.expert_names == ALL


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_of_any_weight_and_sparsity_equal_dense(intercept: bool) -> None:
    rng = np.random.default_rng(5)
    X, y = turning(900, 12, 5)
    X *= rng.random(X.shape) < 0.4
    X[:, 7] = 3.0  # a constant
    X[:400, 3] = 0.0  # that comes late
    h = rng.choice([1e-9, 0.25, 1.0, 40.0], len(y))
    h[::7] = 0.0
    some = h > 0
    learner = NewtonBank(4, loss="logistic", intercept=intercept, dtype="float64")
    learned = learner.learn(csr_array(X), y, h)
    trace = bank(X[some], y[some], m=4, loss="logistic", intercept=intercept, importance=h[some])
    np.testing.assert_allclose(learned[some], trace.played, rtol=0, atol=1e-6)
    assert trace.tracking is not None
    np.testing.assert_allclose(
        learner.expert_weights[-1] * learner.scales,
        trace.tracking[:12] * learner.scales,
        rtol=0,
        atol=1e-6 * abs(trace.tracking[:12] * learner.scales).max(),
    )


def test_it_leaves_when_features_become_many() -> None:
    """At the row that has the 129th, whatever the batches; those with whole matrices stay."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 140)), rng.choice([-1.0, 1.0], 300)
    X[:200, 128:] = 0.0
    one, many = NewtonBank(dtype="float64"), NewtonBank(dtype="float64")
    played = [one.learn(X[i : i + 1], y[i : i + 1])[0] for i in range(300)]
    before = many.learn(X[:200], y[:200])
    assert many.expert_names == ALL
    np.testing.assert_array_equal(np.concatenate([before, many.learn(X[200:250], y[200:250])]), played[:250])
    many = NewtonBank.from_bytes(many.to_bytes())
    np.testing.assert_array_equal(many.learn(X[250:], y[250:]), played[250:])
    assert many.to_bytes() == one.to_bytes()
    assert many.expert_names == one.expert_names == WITHOUT
    assert many.expert_shares.sum() == pytest.approx(1)
    assert not len(many._state["tracking_covariance"])
    assert many.to_bytes() == NewtonBank.from_bytes(many.to_bytes()).to_bytes()
    compare(X, y, {"float64": 1e-6}, m=4)


def test_numbers_do_not_have_it() -> None:
    """It goes with the first label that is no class."""
    X, y = turning(200, 5, 1)
    for labels, learned in (([0.5], 1), ([1.0, -1.0, 1.0, 0.3], 4), ([1.0, -1.0, 7.0], 3)):
        learner = NewtonBank()
        assert learner.expert_names == ALL
        learner.learn(X[: len(labels)], np.array(labels))
        assert learner.expert_names == WITHOUT
        assert learner.rows_seen == learned
        learner.learn(X, y)
        assert learner.expert_names == WITHOUT
    for loss in ("hinge", "absolute", "poisson"):
        assert NewtonBank(loss=loss).expert_names == WITHOUT


def test_it_follows_drift_and_is_saved_bit_for_bit() -> None:
    X, y = turning(6000, 10, 2, turn=4000)
    whole, parts = NewtonBank(), NewtonBank()
    played = whole.learn(X, y)
    assert whole.leading_expert == "tracking"
    again = []
    for start in range(0, len(y), 1237):
        again.append(parts.learn(X[start : start + 1237], y[start : start + 1237]))
        parts = NewtonBank.from_bytes(parts.to_bytes())
    np.testing.assert_array_equal(np.concatenate(again), played)
    assert whole.to_bytes() == parts.to_bytes()
    np.testing.assert_array_equal(whole.predict(X[:50]), parts.predict(X[:50]))


@pytest.mark.parametrize("weight", [1e-300, 1e-30, 1e30])
def test_rows_of_huge_and_tiny_weight_leave_a_covariance(weight: float) -> None:
    X, y = turning(300, 9, 4)
    learner = NewtonBank()
    for h in (1.0, weight, 1.0):
        learner.learn(X, y, np.full(len(y), h))
        state = learner._state
        assert _native.is_covariance(state.head("tracking_covariance", bank_tracking.size(10)), 10)
    assert np.isfinite(learner.predict(X)).all()


@pytest.mark.parametrize("places", [1, 4, 5, 12])
def test_a_covariance_is_told_from_what_is_none(places: int) -> None:
    rng = np.random.default_rng(places)
    A = rng.standard_normal((places, places + 3))
    C = A @ A.T
    C /= 1.01 * C.diagonal().max()
    flat = bank_tracking.packed(C)
    np.testing.assert_allclose(bank_tracking.covariance(flat, places), C, rtol=1e-12)
    assert _native.is_covariance(view_of("C", flat), places)
    assert not _native.is_covariance(view_of("C", flat), places + 1)
    for at in rng.integers(0, len(flat), 20):
        wrong = flat.copy()
        wrong[at] = 1.5 if wrong[at] >= 0 else -1.5
        assert not _native.is_covariance(view_of("C", wrong), places)
    values, vectors = np.linalg.eigh(C)
    values[0] = -0.1
    assert not _native.is_covariance(
        view_of("C", bank_tracking.packed((vectors * values) @ vectors.T)), places
    )


def test_weights_that_no_bank_learns_are_refused() -> None:
    X, y = turning(50, 3, 3)
    learner = NewtonBank()
    learner.learn(X, y)
    for value, kept in ((1e6, True), (-1.1e6, False), (1e300, False)):
        arrays = {name: np.array(array) for name, array in learner._all_arrays().items()}
        arrays["tracking"][1, bank_tracking.WEIGHT] = value
        if kept:
            assert np.isfinite(learner._with(arrays).predict(X)).all()
        else:
            with pytest.raises(ValueError, match="contradict"):
                learner._with(arrays)


# --- merging


@pytest.mark.parametrize("rate", [0.0, 1e-4, 0.02, 3.0])
@pytest.mark.parametrize("rows", [3.0, 400.0, 30_000.0])
def test_walks_follow_their_equation(rate: float, rows: float) -> None:
    eps = 5e-5

    def moves(_: float, state: Any) -> list[float]:
        p, _distance = state
        told = rate / p  # C j: weights come nearer at this rate
        return [rate - eps * p * (p - 1), -told]

    exact = solve_ivp(moves, (0, rows), [1.0, 0.0], rtol=1e-10, atol=1e-12, method="LSODA").y[:, -1]
    its = np.array([rate])
    assert tracking_merge._walk(its, rows)[0] == pytest.approx(exact[0], rel=1e-7)
    assert tracking_merge._log_distance(its, rows)[0] == pytest.approx(exact[1], rel=1e-6, abs=1e-9)
    if rate:
        assert tracking_merge._rate(exact[:1], rows)[0] == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("begun", [1e9, 1e16, 1e24])
def test_a_walk_goes_on_after_rows_of_any_weight(begun: float) -> None:
    """There p hardly changes, and p − ½ = r."""
    rate, eps = np.array([1e-6, 1e-3, 2.0]), 5e-5
    r = np.sqrt(rate / eps + 0.25)
    exact = 1.0 - np.exp(-eps * (r - 0.5) * 30.0)
    np.testing.assert_allclose(tracking_merge._moved(rate, begun, 30.0), exact, rtol=1e-9)


@pytest.mark.parametrize(("rows", "close"), [(400, 0.35), (4000, 0.1), (16_000, 0.1)])
def test_a_merged_expert_is_as_sure_as_one(rows: int, close: float) -> None:
    """Of few rows a little surer: rows of shards that know little tell more than the same rows later on."""
    X, y = turning(rows, 8, 6, turn=np.inf)
    one, shards = NewtonBank(), [NewtonBank() for _ in range(4)]
    one.learn(X, y)
    for i, shard in enumerate(shards):
        shard.learn(X[i::4], y[i::4])
    merged = shards[0]
    merged.merge(*shards[1:])
    traces = [
        np.trace(bank_tracking.covariance(its._state["tracking_covariance"], 9)) for its in (merged, one)
    ]
    assert traces[0] == pytest.approx(traces[1], rel=close)
    new, labels = turning(4000, 8, 6, turn=np.inf)
    wrong = [np.mean(np.sign(its.predict_experts(new)[:, -1]) != labels) for its in (merged, one)]
    assert wrong[0] <= 1.03 * wrong[1] + 0.002


def test_shards_that_know_different_features_merge() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((2000, 6)) * np.geomspace(1e-3, 1e3, 6)
    y = np.sign(X @ (1 / np.geomspace(1e-3, 1e3, 6)) + rng.standard_normal(2000))
    left, right = X.copy(), X.copy()
    left[:, 5] = right[:, 4] = 0.0
    one, other = NewtonBank(), NewtonBank()
    one.learn(csr_array(left), y)
    other.learn(csr_array(right), y)
    weights = one.expert_weights[-1], other.expert_weights[-1]
    one.merge(other)
    merged = one.expert_weights[-1]
    assert merged.shape == (6,)
    for at, its in ((4, weights[0]), (5, weights[1])):
        assert 0.5 < merged[at] / its[at] < 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one.to_bytes() == NewtonBank.from_bytes(one.to_bytes()).to_bytes()


@pytest.mark.parametrize("told", [0.0, 1e-16, 1e-12, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("begun", [0.0, 100.0])
def test_moves_add_up_where_rows_tell_hardly_anything(told: float, begun: float) -> None:
    """Also where a covariance has rounded that away: rows of a wrong class that was certain move weights far."""
    side = tracking_merge._View(np.array([0.1, 1.0]), np.diag([50.0, 1.0 + told]))
    base = tracking_merge._View(np.zeros(2), np.eye(2)) if begun else None
    weights, _ = tracking_merge._together([side] * 3, base, begun, np.full(3, begun + 200.0))
    assert weights[1] == pytest.approx(3.0, rel=1e-3)
    assert 0.1 <= weights[0] <= 0.15


def test_who_was_told_nothing_tells_nothing() -> None:
    """Rounding of a bank whose rows tell nothing is not brought to the size of what others know."""
    told = np.diag([40.0, 5.0])
    nothing = np.array([[1e-16, -2e-16], [-2e-16, 3e-16]])
    views = [tracking_merge._View(np.ones(2), np.eye(2) + its) for its in (told, nothing)]
    plain = [views[0], tracking_merge._View(np.ones(2), np.eye(2))]
    its, exact = (
        tracking_merge._together(sides, None, 0.0, np.array([300.0, 300.0])) for sides in (views, plain)
    )
    for found, wanted in zip(its, exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 9, 10])
def test_the_order_of_shards_does_not_matter(seed: int, intercept: bool) -> None:
    """Of shards whose rows lie far from those of others, so that predictions are sure, and some of them wrong."""
    rng = np.random.default_rng(seed)
    w, shards = rng.standard_normal(60), []
    for _ in range(4):
        X = rng.standard_normal((int(rng.choice([1, 3, 30, 300])), 60))
        X = X * 10.0 ** rng.uniform(-1, 1, 60) + 10.0 ** rng.uniform(-3, 3)
        shards.append(NewtonBank(dtype="float64", intercept=intercept))
        shards[-1].learn(X, np.where(X @ w + rng.standard_normal(len(X)) > 0, 1.0, -1.0))
    new, answers = rng.standard_normal((50, 60)), []
    for first, *others in (shards, shards[::-1]):
        answers.append(copy.deepcopy(first).merge(*others).predict_experts(new)[:, -1])
    np.testing.assert_allclose(answers[1], answers[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_shards_of_empty_rows_merge(intercept: bool) -> None:
    X, y = turning(40, 3, 0)
    banks = [NewtonBank(intercept=intercept) for _ in range(3)]
    for its, rows in zip(banks, (np.zeros_like(X), np.zeros_like(X), X), strict=True):
        its.learn(rows, y)
    first, second, other = banks
    first.merge(second)
    assert first.expert_names == ALL
    first.merge(other)
    assert np.isfinite(first.predict_experts(X)).all()
    assert np.mean(np.sign(first.predict(X)) == y) > 0.6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(1e-300, 1.0), (1e-160, 1e30), (1e-30, 1e30), (5e-324, 1e-300)])
def test_features_of_any_size_merge(dtype: str, sizes: tuple[float, float]) -> None:
    X, y = turning(60, 2, 0)
    X = np.clip(X / abs(X).max(), -1, 1)
    one, other = NewtonBank(dtype=dtype), NewtonBank(dtype=dtype)
    one.learn(sizes[0] * X, y)
    other.learn(sizes[1] * X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.merge(other)
        assert np.isfinite(one.predict_experts(X)).all()
