"""Labels that are far from all others, and come first, when a bank knows nothing of labels yet."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from sketchnewton import NewtonBank
from sketchnewton.core.types import Floats
from tests.contract.bank_streams import regression_stream
from tests.contract.test_bank import compare

LOSSES = ["squared", "absolute", "quantile:0.9", "huber:1"]


def rows(n: int = 1500, d: int = 8, seed: int = 5) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("places", [[0], [1], [0, 1], [0, 1, 2], [3, 6], [7]])
@pytest.mark.parametrize(("loss", "parameter"), [("squared", 0.0), ("absolute", 0.5), ("huber", 1.0)])
def test_equal_dense(loss: str, parameter: float, places: list[int]) -> None:
    X, y = regression_stream(300, d=30, non_zeros=8)
    usual = float(np.ptp(y))
    y[places] += 1e4
    # The tolerances are for a range of 10⁴.
    close = {"float64": 1e-9 * usual, "float32": 3e-7 * usual}
    learner = compare(X, y, close, m=5, loss=loss, parameter=parameter)
    low, high = learner.label_range
    assert high - low <= 2 * usual


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("places", [[0], [1], [0, 1, 2], [2, 4]])
@pytest.mark.parametrize("by", [-1e4, 1e3, 1e8])
def test_they_do_next_to_no_damage(loss: str, places: list[int], by: float) -> None:
    """On average over streams: on one of them, chance makes up to 6% more or 4% less of a quantile's loss."""
    own = other = 0.0
    for seed in range(5, 9):
        X, y = rows(seed=seed)
        wild = y.copy()
        wild[places] += by * y.std()
        banks = [NewtonBank(loss=loss), NewtonBank(loss=loss)]
        for bank, labels in zip(banks, (y, wild), strict=True):
            bank.learn(X[:1000], labels[:1000])
        losses = [bank.loss.value(bank.predict(X[1000:]), y[1000:]).mean() for bank in banks]
        own, other = own + losses[0], other + losses[1]
    assert other <= 1.05 * own


@pytest.mark.parametrize("labels", [[0.0] * 7, [1.0, 2.0, 1.5, 40.0, 3.0], [5.0] * 12])
def test_what_is_not_wild_sets_the_range(labels: list[float]) -> None:
    """Counts that are mostly 0 say nothing of distances, and a label 80 distances away may be one of many."""
    bank = NewtonBank()
    bank.learn(np.ones((len(labels) + 1, 1)), [*labels, 50.0])
    assert bank.label_range == (min(labels), max(50.0, *labels))


def test_after_a_run_of_equal_labels_the_range_grows_at_will() -> None:
    bank = NewtonBank()
    bank.learn(np.ones((24, 1)), [7.0] * 20 + [7.001, -40.0, 100.0, 60.0])
    assert bank.label_range == (-40.0, 100.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_batches_of_any_size_and_saved_models_go_on_alike(loss: str, tmp_path: Path) -> None:
    X, y = rows(60)
    y[[0, 4]] += 1e5
    whole = NewtonBank(loss=loss)
    expected = whole.learn(X, y)
    one = NewtonBank(loss=loss)
    played = []
    for i in range(60):
        one.save(tmp_path / "model")
        one = NewtonBank.load(tmp_path / "model")
        played.append(one.learn(X[i : i + 1], y[i : i + 1])[0])
    np.testing.assert_array_equal(played, expected)
    np.testing.assert_array_equal(one.interval(expected, 0.9), whole.interval(expected, 0.9))


def test_intervals_forget_them_too() -> None:
    X, y = rows()
    y[0] += 1e6
    bank = NewtonBank()
    bank.learn(X, y)
    low, high = bank.interval(bank.predict(X), 0.9).T
    assert np.median(high - low) < 1.2  # 3.3 times the noise, .99


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("begun", "wild"), [(1, 0), (2, 1), (3, 0), (3, 10), (7, 10)])
@pytest.mark.parametrize("other", [0, 1, 2, 500])
def test_shards_that_forgot_their_base_merge(loss: str, begun: int, wild: int, other: int) -> None:
    """What the base learned is no part of them: it must not be taken away."""
    X, y = rows()
    y[wild] += 1e6
    base = NewtonBank(loss=loss)
    base.learn(X[:begun], y[:begun])
    shards = [deepcopy(base), deepcopy(base)]
    for shard, (first, last) in zip(shards, [(10, 510), (510, 510 + other)], strict=True):
        shard.learn(X[first:last], y[first:last])
    alone, together = deepcopy(shards[0]), shards[0].merge(shards[1], base=base)
    assert together.rows_seen == begun + 500 + other
    own, both = (bank.loss.value(bank.predict(X[1010:]), y[1010:]).mean() for bank in (alone, together))
    assert both <= 1.05 * own


@pytest.mark.parametrize("first", [[1.0], [1.0, -1.0]])
@pytest.mark.parametrize("other", [1, 200])
def test_shards_whose_base_had_met_classes_only_merge(first: list[float], other: int) -> None:
    """Their expert for classes has left, and so must that of a base which they forgot."""
    X, y = rows()
    y += 5000.0
    begun = len(first)
    y[:begun] = first
    base = NewtonBank()
    base.learn(X[:begun], y[:begun])
    shards = [deepcopy(base), deepcopy(base)]
    shards[0].learn(X[10:510], y[10:510])
    shards[1].learn(X[510 : 510 + other], y[510 : 510 + other])
    alone, together = deepcopy(shards[0]), shards[0].merge(shards[1], base=base)
    assert together.expert_names == alone.expert_names
    assert together.rows_seen == begun + 500 + other
    assert together.label_range[0] > 4900
    own, both = (np.mean((bank.predict(X[1010:]) - y[1010:]) ** 2) for bank in (alone, together))
    assert both <= 1.05 * own
