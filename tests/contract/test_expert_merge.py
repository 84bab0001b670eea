"""What becomes of a bank's experts, and of its sketch, when banks are merged."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import NewtonBank
from sketchnewton.learners.newton import bank_full
from sketchnewton.learners.newton.bank_layout import CONSTANT, EXPERTS
from sketchnewton.learners.newton.bank_merge import merged
from sketchnewton.learners.newton.expert_merge import Part, faded, further
from sketchnewton.learners.newton.full_merge import moments_of
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.newton.odds_merge import merged as merged_odds
from tests.contract.bank_shards import LABELS, mean_loss, shards, stream


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


def test_what_the_base_knew_keeps_its_numbers() -> None:
    """What one bank has learned of a scaled feature stays as it is while its sizes change; so it does in a merge.

    Values of 1e-9 move no weight and have no length. They make the mean size that the base knew half as large in
    one shard, a tenth in the other. Converted to the size in all rows, weights became .89 of what they were.
    """
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (50, 3))
    base = NewtonBank(intercept=False, dtype="float64")
    base.learn(csr_array(X), np.sign(X @ [1.0, 0.5, 0.2] + rng.normal(size=50)))
    banks = [copy.deepcopy(base) for _ in range(2)]
    for bank, rows in zip(banks, (50, 450), strict=True):
        bank.learn(csr_array(np.tile([1e-9, 0.0, 0.0], (rows, 1))), np.ones(rows))

    def numbers(bank: NewtonBank) -> np.ndarray:
        """Weights of scaled features, of experts that see rows as they are."""
        plain = [name.startswith("steady") for name in bank.expert_names]
        return np.asarray(bank.expert_weights[plain] * bank.scales)

    whole = banks[0].merge(banks[1], base=base)
    np.testing.assert_allclose(numbers(whole), numbers(base), rtol=1e-5)
    np.testing.assert_allclose(whole.spectrum, base.spectrum, rtol=1e-9)


@pytest.mark.parametrize("before", [0, 1, 50, 10**6])
def test_means_move_as_far_as_in_one_bank(before: int) -> None:
    """The weights that they follow have been 1 in all rows since the base, in which means were 0."""

    def mean(t: int) -> float:
        its = 0.0
        for row in range(before + 1, t + 1):
            its += 2.0 / (row + 1.0) * (1.0 - its)
        return its

    rounds, whole = [before + 30, before + 10, before], before + 40
    found = [Part(np.array([share]), np.array([share])) for share in (0.75, 0.25, 0.0)]
    factors = further(found, before, rounds, whole)
    moved = sum(float(part.own[0]) * mean(t) for part, t in zip(factors, rounds, strict=True))
    assert moved == pytest.approx(mean(whole), rel=1e-6)
    weights = np.linspace(-1.0, 1.0, len(EXPERTS))[None]
    later = faded(weights, 10, 20)
    at = list(EXPERTS).index("averaged")
    expected = weights[0, at]
    for row in range(11, 21):
        expected += 2.0 / (row + 1.0) * (weights[0, at + 1] - expected)
    assert later[0, at] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(np.delete(later, at, 1), np.delete(weights, at, 1))


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


@pytest.mark.parametrize(("margin", "least"), [(0.0, 0.85), (1.0, 0.92), (2.5, 0.94)])
def test_how_sure_scores_are_comes_near_one_bank_in_rounds(margin: float, least: float) -> None:
    """Where classes can be told apart, a bank becomes surer with every row; shards of few rows are not sure yet.

    Losses that are taken to be quadratic keep them so: .59, .70 and .82 of one bank's slope. So do rows that count
    for as much as those of one bank, whose scores tell more apart: .68, .82 and .91.
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


@pytest.mark.parametrize("begun", [0, 800])
def test_a_tree_is_a_flat_merge_for_how_sure_scores_are(begun: int) -> None:
    """Forgetting from a shard to a pair, and from a pair to all, is forgetting from shards to all."""
    rng = np.random.default_rng(4)
    X, truth = rng.normal(size=(begun + 2000, 6)), rng.normal(size=6)
    y = np.sign(X @ truth + rng.normal(size=len(X)))
    base = NewtonBank(dtype="float64")
    if begun:
        base.learn(X[:begun], y[:begun])
    banks = [copy.deepcopy(base) for _ in range(4)]
    for i, bank in enumerate(banks):
        bank.learn(X[begun + i :: 4], y[begun + i :: 4])
    a, b, c, d = (copy.deepcopy(bank) for bank in banks)
    tree = a.merge(b, base=base).merge(c.merge(d, base=base), base=base)
    first, *others = banks
    flat = first.merge(*others, base=base)
    numbers = [bank._state["full_odds"][:, : bank_full.STALE] for bank in (tree, flat)]
    np.testing.assert_allclose(*numbers, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_odds_of_rows_of_two_scores_merge_exactly(intercept: bool) -> None:
    """Regressions that stand at their optimum, of rows of scores ±t, make the one that all rows have.

    Each has its rows forgotten as if it had gone on to the last of all.
    """
    t, start = 0.8, np.array([2.0, 0.0])
    x = np.array([[t, 1.0], [-t, 1.0]] if intercept else [[1.0, 0.0]])
    sides, learned = [], [0.0, 30.0, 60.0]
    chances = (
        [np.array([0.9, 0.2]), np.array([0.95, 0.1])] if intercept else [np.array([0.9]), np.array([0.97])]
    )
    counts = [np.full(len(x), 4.0), np.full(len(x), 9.0)]

    def optimum(kept: float, of: dict[int, float]) -> np.ndarray:
        theta = start.copy()
        for _ in range(100):
            slope, bend = kept * (theta - start), kept * np.eye(2)
            for i, left in of.items():
                p = 1 / (1 + np.exp(-x @ theta))
                slope = slope + x.T @ (left * counts[i] * (p - chances[i]))
                bend = bend + (x.T * (left * counts[i] * p * (1 - p))) @ x
            theta = theta - np.linalg.solve(bend, slope)
        return np.concatenate([theta, bend.ravel()])

    for i, rows in enumerate(learned[1:]):
        found = optimum((20 / (rows + 20)) ** 2, {i: 1.0})
        P = np.linalg.inv(found[2:].reshape(2, 2))
        row = [*found[:2], P[0, 0], P[0, 1], P[1, 1], 0.0]
        sides.append(np.array([row if intercept else [row[0], 0.0, P[0, 0], 0.0, 0.0, 0.0]]))
    whole = optimum((20 / (90 + 20)) ** 2, {0: (50 / 110) ** 2, 1: (80 / 110) ** 2})
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
