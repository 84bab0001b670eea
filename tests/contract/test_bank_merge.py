"""Banks of shards make one bank: counts are those of all rows, order does not matter, scales neither."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import sketchnewton
from sketchnewton import AdaGrad, Model, NewtonBank
from sketchnewton.cli.main import main
from sketchnewton.learners import OneVsAll
from sketchnewton.learners.newton import bank_full
from sketchnewton.learners.newton.bank import CONSTANT, EXPERTS
from sketchnewton.learners.newton.bank_merge import merged
from sketchnewton.learners.newton.full_merge import moments_of
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.newton.odds_merge import merged as merged_odds
from tests.contract.learners import assert_same_state

LABELS = ("signs", "numbers")


def stream(rows: int, labels: str = "signs", seed: int = 0, d: int = 60) -> tuple[csr_array, np.ndarray]:
    """Sparse rows of features of many scales, some of them rare."""
    rng = np.random.default_rng(seed)
    X = random_array((rows, d), density=0.2, rng=rng, data_sampler=lambda size: rng.normal(size=size)).tocsr()
    truth = np.random.default_rng(99).normal(size=d)
    score = X @ truth + 0.3 * rng.normal(size=rows)
    X = csr_array(X @ np.diag(np.geomspace(1e-3, 1e3, d)))
    if labels == "counts":
        return X, rng.poisson(np.exp(1.0 + 0.3 * score)).astype(float)
    return X, np.where(score > 0, 1.0, -1.0) if labels == "signs" else 40.0 + 9.0 * score


def shards(k: int, labels: str = "signs", rows: int = 1200, **parameters: object) -> list[NewtonBank]:
    X, y = stream(rows, labels)
    banks = [NewtonBank(**parameters) for _ in range(k)]
    for i, bank in enumerate(banks):
        bank.learn(X[i::k], y[i::k])
    return banks


def mean_loss(bank: NewtonBank, X: csr_array, y: np.ndarray) -> float:
    return float(np.mean([bank.loss.value(p, label) for p, label in zip(bank.predict(X), y, strict=True)]))


@pytest.mark.parametrize("labels", LABELS)
def test_counts_scales_and_ranges_are_those_of_all_rows(labels: str) -> None:
    first, *others = shards(4, labels, dtype="float64")
    X, y = stream(1200, labels)
    banks = [first, *others]
    learned = sum(int(bank._state["bank_counts"][0]) for bank in banks)
    tables = [
        dict(
            zip(bank._seen.tolist(), bank._table.rows_of_active(bank.features_seen)[:, [-3, -2]], strict=True)
        )
        for bank in banks
    ]
    first.merge(*others)
    assert first.rows_seen == 1200
    assert first.dimension == X.shape[1]
    assert first.label_range == ((-1.0, 1.0) if labels == "signs" else (y.min(), y.max()))
    scales = first.scales
    for feature in range(X.shape[1]):
        known = [table[feature] for table in tables if feature in table]
        count = sum(n for n, _ in known)
        mean = sum(n * size for n, size in known) / count
        assert scales[feature] == pytest.approx(mean * (count / learned) ** 0.25, rel=1e-12)


@pytest.mark.parametrize("labels", [*LABELS, "counts"])
@pytest.mark.parametrize("based", [True, False])
def test_the_constant_expert_is_that_of_all_rows(labels: str, based: bool) -> None:
    X, y = stream(1200, labels)
    y = 1.0 + y % 3 if labels == "counts" else y
    loss = {"signs": "logistic", "numbers": "squared", "counts": "poisson"}[labels]
    base, whole = NewtonBank(loss=loss, dtype="float64"), NewtonBank(loss=loss, dtype="float64")
    start = 100 if based else 0
    base.learn(X[:start], y[:start])
    banks = [copy.deepcopy(base) for _ in range(3)]
    for i, bank in enumerate(banks):
        bank.learn(X[start + i :: 3], y[start + i :: 3])
    first, *others = banks
    first.merge(*others, base=base if based else None)
    whole.learn(X, y)
    at = whole.expert_names.index("constant")
    # Labels beyond the range so far are learned as the nearest within: ranges that grow apart differ a little.
    close = {"signs": 1e-9, "numbers": 0.2, "counts": 0.01}[labels]
    assert first.expert_intercepts[at] == pytest.approx(whole.expert_intercepts[at], abs=close)


@pytest.mark.parametrize("positive", [0.5, 0.95])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("width", [10, 3000])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_merge_is_not_worse_than_the_mean_shard(
    loss: str, intercept: bool, width: int, told: bool, positive: float
) -> None:
    """Also where features tell nothing, or label frequencies most, which without an intercept one expert knows.

    There both are the loss of a constant; 4,000 held-out rows tell constants that near apart by .2% at most.
    """
    rng = np.random.default_rng(0)
    dense = width == 10
    X = rng.normal(size=(8000, width)) if dense else csr_array((rng.random((8000, width)) < 0.005) * 1.0)
    score = X @ rng.normal(size=width) if told else rng.normal(size=8000)
    y = np.where(score > np.quantile(score, 1 - positive), 1.0, -1.0)
    shards = [NewtonBank(loss=loss, intercept=intercept) for _ in range(8)]
    for i, shard in enumerate(shards):
        shard.learn(X[i:4000:8], y[i:4000:8])

    def lost(bank: NewtonBank) -> float:
        p = bank.predict(X[4000:])
        each = (p - y[4000:]) ** 2 if loss == "squared" else np.logaddexp(0, -y[4000:] * p)
        return float(np.mean(each))

    alone = np.mean([lost(shard) for shard in shards])
    first, *others = shards
    assert lost(first.merge(*others)) < 1.002 * alone


def measured(bank: NewtonBank, X: csr_array, y: np.ndarray) -> tuple[float, float]:
    """The mean of its predictions, and their squared loss."""
    p = bank.predict(X)
    return float(np.mean(p)), float(np.mean((p - y) ** 2))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("positive", [0.35, 0.65])
def test_what_labels_are_on_average_does_not_add_up(positive: float, negative: bool, intercept: bool) -> None:
    """Fresh shards of few rows spread the frequency of labels over many rare features; merged, they have it once.

    When it added up with what was learned of these, predictions were −.82 on average instead of −.29, and the
    squared loss was 1.17 where that of a shard was .93.
    """
    rng = np.random.default_rng(0)
    width, rows = 6000, 2800
    often = 60.0 / np.arange(10, width + 10)
    X = csr_array((rng.random((rows, width)) < often).astype(float))
    score = X @ rng.normal(size=width)
    y = np.where(score > np.quantile(score, 1 - positive), 1.0, -1.0)
    if negative:  # of half of the features, which changes nothing
        X = csr_array(X.multiply(np.where(np.arange(width) % 2, 1.0, -1.0)))
    banks = [NewtonBank(intercept=intercept) for _ in range(16)]
    for i, bank in enumerate(banks):
        bank.learn(X[i:800:16], y[i:800:16])
    mean, loss = np.mean([measured(bank, X[800:], y[800:]) for bank in banks], axis=0)
    first, *others = banks
    whole = measured(first.merge(*others), X[800:], y[800:])
    assert whole[0] == pytest.approx(mean, abs=0.1)
    assert whole[1] < 0.95 * loss


@pytest.mark.parametrize("labels", LABELS)
def test_the_order_does_not_matter(labels: str) -> None:
    X, _ = stream(200, labels, seed=5)
    answers = []
    for order in itertools.permutations(range(3)):
        banks = shards(3, labels, dtype="float64")
        first, *others = (banks[i] for i in order)
        answers.append(first.merge(*others).predict(X))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_untouched_bank_adds_nothing(dtype: str) -> None:
    (bank,) = shards(1, dtype=dtype)
    before = copy.deepcopy(bank)
    assert bank.merge(NewtonBank(dtype=dtype)) is bank
    assert_same_state(bank, before)
    assert_same_state(NewtonBank(dtype=dtype).merge(bank), bank)
    # A shard that began with a base and learned nothing more adds nothing either.
    X, _ = stream(200, seed=5)
    more = copy.deepcopy(bank)
    more.learn(*stream(300, seed=6))
    expected = more.predict(X)
    more.merge(copy.deepcopy(bank), base=bank)
    np.testing.assert_allclose(more.predict(X), expected, atol=0.0)
    assert more.rows_seen == 1500


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        *itertools.product(["squared", "logistic", "hinge", "squared_hinge"], ["signs"]),
        *itertools.product(["squared", "absolute", "quantile:0.3", "huber:2"], ["numbers"]),
        ("poisson", "counts"),
    ],
)
def test_a_merged_bank_is_better_than_the_mean_shard(loss: str, labels: str) -> None:
    X, y = stream(3000, labels, seed=7)
    banks = shards(4, labels, loss=loss)
    losses = [mean_loss(bank, X, y) for bank in banks]
    first, *others = banks
    first.merge(*others)
    assert mean_loss(first, X, y) < np.mean(losses)
    assert np.isfinite(first.learn(X, y)).all()


@pytest.mark.parametrize("labels", LABELS)
def test_rounds_pay(labels: str) -> None:
    """Merge, hand the result to all shards as their base, continue."""
    X, y = stream(8000, labels)
    test, wanted = stream(4000, labels, seed=8)
    serial = NewtonBank()
    serial.learn(X, y)
    k, losses = 8, []
    for rounds in (1, 16):
        base = NewtonBank()
        for part in np.array_split(np.arange(8000), rounds):
            banks = [copy.deepcopy(base) for _ in range(k)]
            for i, bank in enumerate(banks):
                bank.learn(X[part[i::k]], y[part[i::k]])
            first, *others = banks
            base = first.merge(*others, base=base)
        assert base.rows_seen == 8000
        losses.append(mean_loss(base, test, wanted))
    if labels == "signs":
        assert losses[1] < losses[0]
    else:
        assert max(losses) < 1.03 * mean_loss(serial, test, wanted)


@pytest.mark.parametrize("labels", LABELS)
def test_a_tree_is_a_flat_merge(labels: str) -> None:
    """To 0.01 in 0/1 error, and predictions to a hundredth of the labels' range on average (docs/merging.md)."""
    X, y = stream(3000, labels, seed=9)
    a, b, c, d = shards(4, labels)
    e, f, g, h = shards(4, labels)
    flat = a.merge(b, c, d)
    tree = e.merge(f).merge(g.merge(h))
    assert tree.rows_seen == flat.rows_seen == 1200
    np.testing.assert_allclose(tree.scales, flat.scales, rtol=1e-5)
    answers = [bank.predict(X) for bank in (flat, tree)]
    low, high = flat.label_range
    assert np.abs(answers[0] - answers[1]).mean() <= 0.01 * (high - low)
    if labels == "signs":
        errors = [np.mean(np.sign(answer) != y) for answer in answers]
        assert abs(errors[0] - errors[1]) <= 0.01


def test_a_tree_is_a_flat_merge_to_rounding_for_the_rare_expert() -> None:
    a, b, c, d = shards(4, sketch_size=0, dtype="float64")
    e, f, g, h = shards(4, sketch_size=0, dtype="float64")
    flat, tree = a.merge(b, c, d), e.merge(f).merge(g.merge(h))
    place = flat.expert_names.index("rare")
    np.testing.assert_allclose(flat.expert_weights[place], tree.expert_weights[place], rtol=1e-9, atol=1e-12)


def in_rounds(X: np.ndarray, y: np.ndarray, k: int, rounds: int, base: NewtonBank) -> NewtonBank:
    for part in np.array_split(np.arange(len(y)), rounds):
        banks = [copy.deepcopy(base) for _ in range(k)]
        for i, bank in enumerate(banks):
            bank.learn(X[part[i::k]], y[part[i::k]])
        first, *others = banks
        base = first.merge(*others, base=base)
    return base


@pytest.mark.parametrize("rounds", [1, 2, 4, 16])
def test_whole_matrices_are_those_of_one_bank_in_rounds(rounds: int) -> None:
    """Without forgetting to rounding; with it as many rows are remembered, and least squares stay definite."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 12)) * np.geomspace(1e-3, 1e3, 12)
    y = np.sign(X @ (rng.normal(size=12) / np.geomspace(1e-3, 1e3, 12)) + rng.normal(size=6000))
    test, wanted = X[4000:], y[4000:]
    serial = NewtonBank(dtype="float64")
    serial.learn(X[:4000], y[:4000])
    whole = in_rounds(X[:4000], y[:4000], 8, rounds, NewtonBank(dtype="float64"))
    found, expected = (as_they_come(bank) for bank in (whole, serial))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-9, atol=1e-9 * np.abs(theirs[0]).max())
    for number, name in enumerate(FULL):
        A = found[0][number]
        assert A[0, 0] == pytest.approx(expected[0][number, 0, 0], rel=0.2)  # rows that it remembers
        assert np.linalg.eigvalsh(A / np.sqrt(np.outer(np.diag(A), np.diag(A)))).min() > 0
        place = serial.expert_names.index(name)
        losses = [np.mean((bank.predict_experts(test)[:, place] - wanted) ** 2) for bank in (whole, serial)]
        assert losses[0] < 1.05 * losses[1]


def as_they_come(bank: NewtonBank) -> tuple[np.ndarray, np.ndarray]:
    """Moments of features as they come: a shard chose its units by the first values that it met."""
    its = moments_of(bank)
    return its.A * np.outer(its.units, its.units), its.b * its.units


@pytest.mark.parametrize(("margin", "least"), [(0.0, 0.65), (1.0, 0.75), (2.5, 0.9)])
def test_how_sure_scores_are_comes_near_one_bank_in_rounds(margin: float, least: float) -> None:
    """Where classes can be told apart, a bank becomes surer with every row; shards of few rows are not sure yet.

    Losses that are taken to be quadratic keep them so: .59, .70 and .82 of one bank's slope.
    """
    rng = np.random.default_rng(1)
    X, truth = rng.normal(size=(12_000, 12)), rng.normal(size=12)
    X = X[np.abs(X @ truth) > margin][:4000]
    y = np.sign(X @ truth)
    serial = NewtonBank(dtype="float64")
    serial.learn(X, y)
    whole = in_rounds(X, y, 8, 16, NewtonBank(dtype="float64"))
    found, expected = (bank._state["full_odds"][0, bank_full.SLOPE] for bank in (whole, serial))
    assert least * expected < found < 1.05 * expected


def test_how_sure_scores_are_is_what_all_shards_agree_on() -> None:
    """Shards that know it well are not made surer by being many."""
    rng = np.random.default_rng(4)
    X, truth = rng.normal(size=(16_000, 5)), rng.normal(size=5)
    y = np.sign(X @ truth + 2.0 * rng.normal(size=len(X)))
    banks = [NewtonBank(dtype="float64") for _ in range(4)]
    for i, bank in enumerate(banks):
        bank.learn(X[i::4], y[i::4])
    each = np.array([bank._state["full_odds"][0, [bank_full.SLOPE, bank_full.SHIFT]] for bank in banks])
    first, *others = banks
    found = first.merge(*others)._state["full_odds"][0]
    np.testing.assert_allclose(found[:2], each.mean(axis=0), atol=0.05)


@pytest.mark.parametrize("intercept", [True, False])
def test_odds_of_rows_of_two_scores_merge_exactly(intercept: bool) -> None:
    """Regressions that stand at their optimum, of rows of scores ±t, make the one that all rows have."""
    t, start = 0.8, np.array([2.0, 0.0])
    x = np.array([[t, 1.0], [-t, 1.0]] if intercept else [[1.0, 0.0]])
    sides, learned = [], [0.0, 30.0, 60.0]
    chances = (
        [np.array([0.9, 0.2]), np.array([0.95, 0.1])] if intercept else [np.array([0.9]), np.array([0.97])]
    )
    counts = [np.full(len(x), 4.0), np.full(len(x), 9.0)]

    def optimum(kept: float, of: list[int]) -> np.ndarray:
        theta = start.copy()
        for _ in range(100):
            slope, bend = kept * (theta - start), kept * np.eye(2)
            for i in of:
                p = 1 / (1 + np.exp(-x @ theta))
                slope = slope + x.T @ (counts[i] * (p - chances[i]))
                bend = bend + (x.T * (counts[i] * p * (1 - p))) @ x
            theta = theta - np.linalg.solve(bend, slope)
        return np.concatenate([theta, bend.ravel()])

    for i, rows in enumerate(learned[1:]):
        found = optimum((20 / (rows + 20)) ** 2, [i])
        P = np.linalg.inv(found[2:].reshape(2, 2))
        row = [*found[:2], P[0, 0], P[0, 1], P[1, 1], 0.0]
        sides.append(np.array([row if intercept else [row[0], 0.0, P[0, 0], 0.0, 0.0, 0.0]]))
    whole = optimum((20 / (90 + 20)) ** 2, [0, 1])
    found = merged_odds(sides, None, learned)[0]
    np.testing.assert_allclose(found[:2], whole[:2], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rounds", [2, 4, 16])
def test_the_rare_expert_stays_near_one_bank_where_all_rows_have_all_features(rounds: int) -> None:
    """Shards that all go the same way must not add up: their sum would be far beyond the answer."""
    rng = np.random.default_rng(2)
    X = np.abs(rng.normal(size=(6000, 10))) + 0.5
    score = X @ rng.normal(size=10)
    y = np.sign(score - np.median(score) + rng.normal(size=6000))
    serial = NewtonBank(dtype="float64")
    serial.learn(X[:4000], y[:4000])
    whole = in_rounds(X[:4000], y[:4000], 8, rounds, NewtonBank(dtype="float64"))
    place = serial.expert_names.index("rare")
    losses = [np.mean((bank.predict_experts(X[4000:])[:, place] - y[4000:]) ** 2) for bank in (whole, serial)]
    assert losses[0] < 1.25 * losses[1]  # in four rounds it was 3.6 times as large


def test_whole_matrices_go_when_features_are_many_for_rows_this_sparse() -> None:
    """Neither shard has seen too many; both together have, as one bank would."""
    rng = np.random.default_rng(3)
    X = np.zeros((400, 120))
    for row, own in zip(X, np.arange(400) % 2, strict=True):
        row[60 * own + rng.permutation(60)[:6]] = 1.0
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    serial, first, second = NewtonBank(), NewtonBank(), NewtonBank()
    serial.learn(X, y)
    first.learn(X[::2], y[::2])
    second.learn(X[1::2], y[1::2])
    assert serial.expert_names == (*EXPERTS, CONSTANT)
    assert len(first.expert_names) > len(serial.expert_names)
    assert first.merge(second).expert_names == serial.expert_names
    assert first.expert_shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weight", [1e-320, 1e-30, 1e30])
def test_rows_of_any_weight_merge(weight: float) -> None:
    """Huge ones leave nothing of the ridge, and copies of a feature make a singular matrix."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    X, y = np.hstack([X, X]), np.sign(X[:, 0])
    first, second = NewtonBank(), NewtonBank()
    for bank, part in ((first, slice(0, 20)), (second, slice(20, 40))):
        bank.learn(X[part], y[part], np.full(20, weight))
    first.merge(second)
    assert np.isfinite(NewtonBank.from_bytes(first.to_bytes()).predict_experts(X)).all()


def test_what_no_shard_saw_stays_as_in_one_bank() -> None:
    """Scales and typical lengths change in every round, weights of features that stay away do not."""
    X, y = stream(1200)
    absent, rest = 7, X[300:].copy().tolil()
    rest[:, absent] = 0.0
    rest, labels = csr_array(rest), y[300:]
    rest.eliminate_zeros()
    serial = NewtonBank(sketch_size=0, dtype="float64")
    serial.learn(X[:300], y[:300])
    base = copy.deepcopy(serial)
    stepping = slice(len(EXPERTS))  # least squares weigh all features against each other
    assert base.expert_weights[stepping, absent].all()
    serial.learn(rest, labels)
    for part in np.array_split(np.arange(900), 3):
        first, second = copy.deepcopy(base), copy.deepcopy(base)
        first.learn(rest[part[::2]], labels[part[::2]])
        second.learn(rest[part[1::2]], labels[part[1::2]])
        base = first.merge(second, base=base)
    np.testing.assert_allclose(
        base.expert_weights[stepping, absent], serial.expert_weights[stepping, absent], rtol=1e-9
    )


def test_the_sketch_stands_for_all_rows_in_many_short_rounds() -> None:
    """Slopes of the absolute loss are 2, scaled features 1: squares of 4,000 rows add up to 4·(3 + 1)·4,000."""
    rng = np.random.default_rng(0)
    X, y = rng.choice([-1.0, 1.0], (4000, 3)), rng.normal(size=4000)
    base = NewtonBank(loss="absolute", dtype="float64")
    for part in np.array_split(np.arange(4000), 16):
        banks = [copy.deepcopy(base) for _ in range(8)]
        for i, bank in enumerate(banks):
            bank.learn(X[part[i::8]], y[part[i::8]])
        first, *others = banks
        base = first.merge(*others, base=base)
    assert base.spectrum.sum() == pytest.approx(16 * 4000, rel=0.02)


def test_sketches_of_two_sizes_make_the_larger() -> None:
    X, y = stream(1200)
    small, large = NewtonBank(sketch_size=3), NewtonBank(sketch_size=6)
    small.learn(X[::2], y[::2])
    large.learn(X[1::2], y[1::2])
    whole = large._with(merged([small, large], None))
    assert whole.rows_seen == 1200
    assert len(whole.spectrum) == 6
    test, wanted = stream(3000, seed=8)
    assert mean_loss(whole, test, wanted) < mean_loss(large, test, wanted)


def test_scales_of_features_do_not_matter_after_a_merge() -> None:
    X, y = stream(1200)
    test, _ = stream(300, seed=5)
    factors = np.geomspace(1e-4, 1e4, 60)[np.random.default_rng(0).permutation(60)]
    answers = []
    for scale in (np.ones(60), factors):
        banks = [NewtonBank(dtype="float64") for _ in range(3)]
        for i, bank in enumerate(banks):
            bank.learn(csr_array(X[i::3] @ np.diag(scale)), y[i::3])
        first, *others = banks
        first.merge(*others)
        first.learn(csr_array(X[:50] @ np.diag(scale)), y[:50])
        answers.append(first.predict(csr_array(test @ np.diag(scale))))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6, atol=1e-8)


def test_a_merged_bank_continues_and_is_saved(tmp_path: Path) -> None:
    first, *others = shards(3)
    first.merge(*others)
    first.save(tmp_path / "m.skn")
    again = sketchnewton.load(tmp_path / "m.skn")
    X, y = stream(500, seed=4)
    np.testing.assert_array_equal(first.learn(X, y), again.learn(X, y))
    assert_same_state(first, again)
    U = first.spectrum
    assert (np.diff(U) <= 0).all()


def test_a_bad_shard_does_little_harm() -> None:
    X, y = stream(8000)
    test, wanted = stream(4000, seed=8)
    good, bad = [NewtonBank() for _ in range(4)], [NewtonBank() for _ in range(4)]
    rng = np.random.default_rng(3)
    for i in range(4):
        good[i].learn(X[i::4], y[i::4])
        labels = y[i::4] if i else rng.choice([-1.0, 1.0], len(y[i::4]))
        bad[i].learn(X[i::4], labels)
    errors = []
    for banks in (good, bad):
        first, *others = banks
        errors.append(np.mean(np.sign(first.merge(*others).predict(test)) != wanted))
    assert errors[1] <= 1.15 * errors[0] + 0.005


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    a, b = shards(2)
    before = copy.deepcopy(a)
    stranger = NewtonBank()
    stranger.learn(*stream(700, seed=11))
    for other, base, words in (
        (NewtonBank(sketch_size=3), None, "sketch_size"),
        (NewtonBank(loss="logistic"), None, "loss"),
        (b, stranger, "did not begin with this base"),
        (b, NewtonBank(dtype="float64"), "base must be"),
        (AdaGrad(), None, "cannot merge a AdaGrad into a NewtonBank"),
        (a, None, "itself"),
    ):
        if other is not a and other is not b:
            other.learn(*stream(50))
        theirs = copy.deepcopy(other)
        with pytest.raises(ValueError, match=words):
            a.merge(other, base=base)
        assert_same_state(a, before)
        assert_same_state(other, theirs)
    with pytest.raises(ValueError, match="twice"):
        a.merge(b, b)
    assert_same_state(a, before)


def test_damaged_and_foreign_files_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other, out = (tmp_path / name for name in ("good.skn", "other.skn", "out.skn"))
    rows = [{"y": 1 - 2 * (n % 2), "a": n % 7} for n in range(100)]
    model, foreign = Model(), Model(AdaGrad())
    model.learn(rows)
    foreign.learn(rows)
    model.save(good)
    whole = good.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for data in (bytes(flipped), whole[:-9], b"1 1:2\n", foreign.to_bytes()):
        other.write_bytes(data)
        for command in ([good, other], [other, good], [good, good, "--base", other]):
            if command[-2] == "--base":
                (tmp_path / "second.skn").write_bytes(whole)
                command[1] = tmp_path / "second.skn"
            assert main(["merge", *map(str, command), "-o", str(out), "--quiet"]) == 1
            assert len(capsys.readouterr().err.splitlines()) == 1
            assert not out.exists()
    assert good.read_bytes() == whole
    assert other.read_bytes() == foreign.to_bytes()


def test_classes_and_models(tmp_path: Path) -> None:
    X, y = stream(1200)
    classes = (X[:, [0]].toarray().ravel() > 0).astype(float) + (y > 0)
    parts = [OneVsAll(NewtonBank, 3) for _ in range(3)]
    for i, part in enumerate(parts):
        part.learn(X[i::3], classes[i::3])
    alone = [np.mean(part.predict(X).argmax(axis=1) != classes) for part in parts]
    first, *others = parts
    first.merge(*others)
    assert first.rows_seen == 1200
    assert np.mean(first.predict(X).argmax(axis=1) != classes) < np.mean(alone)
    models = [Model(), Model()]
    for i, model in enumerate(models):
        model.learn([{"y": float(label), "a": i, "b": n % 5} for n, label in enumerate(y[i::2])])
        model.save(tmp_path / f"{i}.skn")
    both = tmp_path / "both.skn"
    assert main(["merge", str(tmp_path / "0.skn"), str(tmp_path / "1.skn"), "-o", str(both), "--quiet"]) == 0
    record = {"a": 1, "b": 2}
    assert sketchnewton.load(both).predict(record) == models[0].merge(models[1]).predict(record)


def test_the_command_knows_a_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, model = tmp_path / "base.skn", Model()
    rows = [{"y": 1 - 2 * (n % 2), "a": n % 7, "b": n % 3} for n in range(300)]
    model.learn(rows[:100])
    model.save(base)
    paths = []
    for i in range(2):
        shard = sketchnewton.load(base)
        shard.learn(rows[100 + i :: 2])
        paths.append(str(tmp_path / f"{i}.skn"))
        shard.save(paths[-1])
    out = tmp_path / "all.skn"
    assert main(["merge", *paths, "--base", str(base), "-o", str(out), "--quiet"]) == 0
    assert sketchnewton.load(out).learner.rows_seen == 300
    assert main(["merge", *paths, "-o", str(out), "--quiet"]) == 0
    assert sketchnewton.load(out).learner.rows_seen == 400  # rows that both have seen count twice


# -- exact names


def named_rows(seed: int, first: int) -> list[dict[str, object]]:
    """Rows whose columns come in another order, some of them known to these rows alone."""
    rng = np.random.default_rng(seed)
    columns = [f"c{i}" for i in range(first, first + 12)]
    rows = []
    for values in rng.normal(size=(200, 12)):
        row = dict(zip(columns, values.tolist(), strict=True))
        names = rng.permutation(columns)[:8]
        rows.append({"y": float(np.sign(sum(row.values()))), **{str(name): row[str(name)] for name in names}})
    return rows


def test_exact_names_are_united() -> None:
    """Models that numbered their features apart merge as those that numbered them together."""
    parts = [named_rows(1, 0), named_rows(2, 6)]
    apart = [Model(exact_names=True) for _ in parts]
    together = [Model(exact_names=True) for _ in parts]
    for i, rows in enumerate(parts):
        apart[i].learn(rows)
        for other in parts:  # all names, in one order
            together[i].learn(other, weights=np.zeros(len(other)) if other is not rows else None)
    assert apart[0].names is not None
    assert apart[1].names is not None
    assert not apart[0].names.same(apart[1].names)
    before = apart[1].to_bytes()
    alone = apart[1].predict(parts[1])
    merged = apart[0].merge(apart[1])
    assert apart[1].to_bytes() == before
    assert len(merged.names or ()) == 18
    expected = together[0].merge(together[1])
    np.testing.assert_allclose(merged.predict(parts[1]), expected.predict(parts[1]), atol=0.05)
    assert np.corrcoef(merged.predict(parts[1]), alone)[0, 1] > 0.5
    again = Model.from_bytes(merged.to_bytes())
    np.testing.assert_array_equal(again.learn(parts[0]), merged.learn(parts[0]))


def test_renumbering_changes_nothing_but_numbers() -> None:
    rows = named_rows(3, 0)
    model = Model(exact_names=True)
    model.learn(rows)
    X = np.random.default_rng(0).normal(size=(50, model.learner.dimension))
    order = np.random.default_rng(1).permutation(model.learner.dimension)
    moved = model.learner.renumbered(order)
    shuffled = np.zeros_like(X)
    shuffled[:, order] = X
    np.testing.assert_allclose(moved.predict(shuffled), model.learner.predict(X), rtol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("outlier", [1e4, 1e6])
def test_an_outlier_in_one_shard_does_not_ruin_the_others(loss: str, outlier: float) -> None:
    """In the common unit weights of its feature are huge, and must not decide what the mean row's score is."""
    rng = np.random.default_rng(4)
    X = rng.random((2600, 200)) * (rng.random((2600, 200)) < 0.1)
    y = np.where((X - 0.05) @ rng.standard_normal(200) > 0, 1.0, -1.0)

    def merged_error(rows: np.ndarray) -> float:
        banks = [NewtonBank(loss=loss) for _ in range(4)]
        for i, bank in enumerate(banks):
            bank.learn(csr_array(rows[500 * i : 500 * (i + 1)]), y[500 * i : 500 * (i + 1)])
        whole = banks[0].merge(*banks[1:])
        return float(np.mean(np.sign(whole.predict(csr_array(X[2000:]))) != y[2000:]))

    wild = X.copy()
    wild[700, 3] = outlier
    assert merged_error(wild) < merged_error(X) + 0.08
