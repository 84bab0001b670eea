"""Steps of merged banks add up in directions that are hardly known, and are averaged in those that all know."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sketchnewton import NewtonBank
from sketchnewton.learners.newton.bank_layout import EXPERTS
from sketchnewton.learners.newton.direction_merge import kinds, merged_moves, met, metric
from sketchnewton.learners.newton.full_merge import moments_of

RNG = np.random.default_rng(0)
METRIC = metric(np.linalg.qr(RNG.normal(size=(5, 2)))[0].T, np.array([30.0, 4.0]), 2.0)
MOVES = [RNG.normal(size=(5, 3)) for _ in range(4)]
ROWS = [RNG.normal(size=(40, 5)) * np.array([3.0, 1.0, 1.0, 0.1, 0.1]) for _ in range(4)]
SUMS = [X.T @ X for X in ROWS]
LENGTHS = [float(np.trace(C)) / 40 for C in SUMS]


@pytest.mark.parametrize("known", [1.0, 4.0])
def test_moves_are_those_of_the_definition(known: float) -> None:
    G = np.linalg.inv(METRIC)
    total, moved = np.eye(5), np.zeros((5, 3))
    for X, move in zip(ROWS, MOVES, strict=True):
        q = np.mean(np.einsum("ni,ij,nj->n", X, G, X))
        D = known / q * G @ X.T @ X
        total = total + D
        moved = moved + (np.eye(5) + D) @ move
    found = merged_moves(MOVES, SUMS, LENGTHS, METRIC, known)
    np.testing.assert_allclose(found, np.linalg.solve(total, moved))


def test_what_one_side_alone_has_seen_is_kept() -> None:
    """Sides whose rows have other directions have nothing to say of them."""
    alone = [np.outer(row, row) for row in 10.0 * np.eye(5)[:3]]
    moves = [move[i, 0] * np.eye(5)[:, [i]] for i, move in enumerate(MOVES[:3])]
    found = merged_moves(moves, alone, [100.0] * 3, 2.0 * np.eye(5), 1.0)
    np.testing.assert_allclose(found, sum(moves), atol=1e-12)


@pytest.mark.parametrize(("rows", "expected"), [(1e9, "mean"), (1e-9, "sum")])
def test_known_directions_are_averaged_by_rows_and_others_add_up(rows: float, expected: str) -> None:
    counts = [1.0, 1.0, 2.0, 4.0]
    sums = [rows * count * np.eye(5) for count in counts]
    wanted = {"mean": np.average(MOVES, axis=0, weights=counts), "sum": np.sum(MOVES, axis=0)}[expected]
    found = merged_moves(MOVES, sums, [5.0] * 4, 2.0 * np.eye(5), 1.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_tree_is_a_flat_merge() -> None:
    """To rounding where rows of all sides are seen as long: then what they know adds up."""
    flat = merged_moves(MOVES, [SUMS[0]] * 4, [LENGTHS[0]] * 4, METRIC, 1.0)
    pairs = [merged_moves(MOVES[i : i + 2], [SUMS[0]] * 2, [LENGTHS[0]] * 2, METRIC, 1.0) for i in (0, 2)]
    tree = merged_moves(pairs, [2.0 * SUMS[0]] * 2, [LENGTHS[0]] * 2, METRIC, 1.0)
    np.testing.assert_allclose(tree, flat, rtol=1e-9)


def test_rows_without_length_tell_nothing() -> None:
    found = merged_moves(MOVES, [np.zeros((5, 5))] * 4, LENGTHS, METRIC, 1.0)
    np.testing.assert_allclose(found, np.sum(MOVES, axis=0), rtol=1e-9)


def test_what_rounding_has_eaten_is_no_answer() -> None:
    """By feature there is one: such banks merge, and are saved."""
    assert merged_moves(MOVES, SUMS, LENGTHS, np.ones((5, 5)), 1.0) is None
    for seed in (53, 88):
        bank = heavy_rows(seed)
        assert np.isfinite(NewtonBank.from_bytes(bank.to_bytes()).expert_weights).all()


def heavy_rows(seed: int) -> NewtonBank:
    """A merged bank of rows of weights from 1e-30 to 1e30."""
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(90, 6)), 10.0 ** rng.uniform(-30, 30, size=90)
    y = np.sign(X[:, 0] + rng.normal(size=90))
    base = NewtonBank()
    base.learn(X[:30], y[:30], weights[:30])
    banks = [copy.deepcopy(base) for _ in range(2)]
    for i, bank in enumerate(banks):
        bank.learn(X[30 + i :: 2], y[30 + i :: 2], weights[30 + i :: 2])
    return banks[0].merge(banks[1], base=base)


@pytest.mark.parametrize("weight", [1e-30, 1.0, 7.0])
def test_rows_since_the_base_are_known(weight: float) -> None:
    """Their sums are those of rows of weight 1; a feature that the base has not seen has a place."""
    X = RNG.normal(size=(300, 4))
    X[:100, 2] = 0.0
    y = np.sign(X @ [1.0, -1.0, 0.5, 2.0] + RNG.normal(size=300))
    bank = NewtonBank(dtype="float64")
    bank.learn(X[:100], y[:100], np.full(100, weight))
    base = moments_of(bank)
    bank.learn(X[100:], y[100:], np.full(200, weight))
    side = moments_of(bank)
    assert base is not None
    assert side is not None
    rows = np.column_stack([X[100:] / bank.scales, np.ones(200)])
    found = met(side, base, 200, np.arange(4), bank.scales)
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-9, atol=1e-9)
    assert met(side, side, 0, np.arange(4), bank.scales) is None


def test_experts_of_one_metric_stand_together() -> None:
    """All but the rare one; an averaged one moves in the metric of the one that it has the mean of."""
    names = [sorted(list(EXPERTS)[k] for k in experts) for experts in kinds().values()]
    assert sorted(names) == [
        ["averaged", "restless"],
        ["falling 0.5", "falling 8"],
        ["steady 0.5", "steady 2"],
    ]


def test_shards_that_learn_different_directions_of_the_same_features_add_up() -> None:
    """Both features are in all rows. One shard learns what their sum tells, the other what their difference does.

    Averaged feature by feature, scores were .43 to .72 instead of 1.
    """
    rng = np.random.default_rng(0)
    sides = rng.choice([-1.0, 1.0], (400, 1))
    both, between = sides * [1.0, 1.0], sides * [1.0, -1.0]
    base = NewtonBank(intercept=False)
    base.learn(np.vstack([both[:20], between[:20]]), rng.choice([-1.0, 1.0], 40))
    banks = [copy.deepcopy(base) for _ in range(2)]
    for bank, rows in zip(banks, (both, between), strict=True):
        bank.learn(rows, sides.ravel())
    alone = [
        bank.predict_experts(rows[:1] * sides[0]) for bank, rows in zip(banks, (both, between), strict=True)
    ]
    whole = banks[0].merge(banks[1], base=base)
    stepping = [list(EXPERTS).index(name) for name in ("steady 0.5", "steady 2", "falling 0.5", "falling 8")]
    for rows, expected in zip((both, between), alone, strict=True):
        found = whole.predict_experts(rows[:1] * sides[0])
        np.testing.assert_allclose(found[0, stepping], expected[0, stepping], atol=0.01)


def test_the_averaged_expert_moves_as_far_in_each_direction_as_in_one_bank() -> None:
    """Its mean is weighted by the number of the row: t rows after t₀ leave t₀(t₀ + 1)/(t(t + 1)) of what it was.

    In a direction that one shard alone has met, that shard tells where the restless expert was on average. In as
    many rows as all shards had, the mean comes nearer to that than it did in the shard.
    """
    rng = np.random.default_rng(1)
    sides = rng.choice([-1.0, 1.0], (300, 1))
    rows = [sides * [1.0, 1.0], sides * [1.0, -1.0]]
    base = NewtonBank(intercept=False, dtype="float64")
    base.learn(np.vstack([each[:20] for each in rows]), rng.choice([-1.0, 1.0], 40))
    banks = [copy.deepcopy(base) for _ in range(2)]
    for bank, each, count in zip(banks, rows, (100, 300), strict=True):
        bank.learn(each[:count], sides[:count, 0])
    whole = copy.deepcopy(banks[0]).merge(banks[1], base=base)

    def score(bank: NewtonBank, direction: np.ndarray) -> float:
        return float(bank.expert_weights[list(EXPERTS).index("averaged")] @ direction)

    def left(t: int) -> float:
        return 40 * 41 / (t * (t + 1))

    for bank, each, t in zip(banks, rows, (140, 340), strict=True):
        direction = each[0]
        begun, ended = score(base, direction), score(bank, direction)
        usual = (ended - left(t) * begun) / (1.0 - left(t))
        expected = left(440) * begun + (1.0 - left(440)) * usual
        assert score(whole, direction) == pytest.approx(expected, rel=1e-6)
