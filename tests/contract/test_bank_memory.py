"""A bank's memory is in proportion to what it has learned, and that makes no difference to its numbers."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import ClassBank, NewtonBank, SketchedNewtonClassifier
from sketchnewton.core import archive
from sketchnewton.learners.curvature.epoch_maps import GROUP, LEVELS
from sketchnewton.testing.rows import sparse_stream
from tests.contract.learners import assert_same_state

HANDED_ON = (copy.deepcopy, lambda bank: pickle.loads(pickle.dumps(bank)), lambda bank: bank)


def size(bank: NewtonBank) -> int:
    return sum(view.nbytes for view in bank._views().values())


def roomy(**parameters: object) -> NewtonBank:
    """A bank that has room for all the updates of its sketch that there can be."""
    bank = NewtonBank(**parameters)  # type: ignore[arg-type]
    bank._replace(bank._epochs.reserve(bank._state, GROUP**LEVELS))
    bank._room_until = 1 << 62
    return bank


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 1, 7])
@pytest.mark.parametrize("batch", [1, 7, 400, 6000])
def test_room_that_grows_gives_the_same_bits(m: int, batch: int) -> None:
    """Far more features than rows: the sketch's updates wait in the archives, and no sweep empties them."""
    X, y = sparse_stream(6000 if batch > 1 else 1500, d=3000, non_zeros=4)
    rows = csr_array(X)
    plain, other = NewtonBank(m, dtype="float64"), roomy(sketch_size=m, dtype="float64")
    expected = other.learn(rows, y)
    seen = [plain.learn(rows[at : at + batch], y[at : at + batch]) for at in range(0, len(y), batch)]
    np.testing.assert_array_equal(np.concatenate(seen), expected)
    np.testing.assert_array_equal(plain.expert_weights, other.expert_weights)
    assert (plain._state["items"] == other._state["items"]).all()
    if m == 7:
        assert plain._state["items"][0] > 3 * GROUP


def test_weights_of_zero_leave_room() -> None:
    X, y = sparse_stream(3000, d=2000, non_zeros=4)
    h = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(y))
    plain, other = NewtonBank(dtype="float64"), roomy(dtype="float64")
    np.testing.assert_array_equal(plain.learn(X, y, h), other.learn(X, y, h))


@pytest.mark.parametrize("kind", ["bank", "bank of classes"])
def test_a_table_that_grows_gives_the_same_bits(kind: str) -> None:
    """Features in any order of first appearance, in a range that doubles again and again."""
    rng = np.random.default_rng(3)
    rows, scale = 400, np.geomspace(10, 1 << 20, 400).astype(np.int64)
    indices = np.sort(rng.integers(0, scale[:, None], (rows, 6)), axis=1).ravel()
    X = csr_array((rng.standard_normal(6 * rows), indices, np.arange(rows + 1) * 6), shape=(rows, 1 << 20))
    X.sum_duplicates()
    make = NewtonBank if kind == "bank" else (lambda: ClassBank(3))
    y = rng.choice([-1.0, 1.0], rows) if kind == "bank" else rng.integers(0, 3, rows).astype(float)
    grown, roomy_one = make(), make()
    expected = roomy_one.learn(X, y)  # the batch tells the largest index
    parts = []
    for i in range(0, rows, 7):
        parts.append(grown.learn(X[i : i + 7], y[i : i + 7]))
        grown = HANDED_ON[i % len(HANDED_ON)](grown)
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    np.testing.assert_array_equal(grown.predict(X), roomy_one.predict(X))
    assert_same_state(grown, roomy_one)


def test_memory_follows_what_was_learned() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 10)), rng.choice([-1.0, 1.0], 2000)
    bank = NewtonBank()
    assert size(bank) < 45_000
    bank.learn(X, y)
    assert size(bank) < 130_000
    bank.learn(np.vstack([X] * 20), np.hstack([y] * 20))
    assert size(bank) < 250_000
    assert len(pickle.dumps(bank)) < 100_000


@pytest.mark.slow
def test_a_thousand_labels() -> None:
    X, y = sparse_stream(200, d=64, non_zeros=10)
    banks = []
    for _ in range(1000):
        banks.append(NewtonBank())
        banks[-1].learn(X, y)
    assert sum(map(size, banks)) < 195e6  # moments of 64 features, a covariance and a block of rows among it


def test_a_copy_of_ten_classes() -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    model = SketchedNewtonClassifier(max_iter=1).fit(X[:1500], y[:1500])
    took = []
    for _ in range(20):
        start = time.perf_counter()
        twin = copy.deepcopy(model)
        took.append(time.perf_counter() - start)
    assert min(took) < 5e-3
    before = model.decision_function(X)
    twin.partial_fit(X[1500:], y[1500:])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[1500:], y[1500:])
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize("rows", [0, 1, 300, 3000])
def test_a_copy_continues_on_its_own(rows: int) -> None:
    X, y = sparse_stream(3400, d=900, non_zeros=5)
    bank = NewtonBank(5)
    bank.learn(X[:rows], y[:rows])
    twin, pickled = copy.deepcopy(bank), pickle.loads(pickle.dumps(bank))
    assert_same_state(twin, bank)
    expected = bank.learn(X[rows:], y[rows:])
    np.testing.assert_array_equal(twin.learn(X[rows:], y[rows:]), expected)
    np.testing.assert_array_equal(pickled.learn(X[rows:], y[rows:]), expected)
    assert_same_state(twin, bank)
    assert_same_state(pickled, bank)


@pytest.mark.parametrize("change", [-GROUP, GROUP])
def test_archives_of_a_file_must_be_as_long_as_its_counters_say(change: int) -> None:
    X, y = sparse_stream(3000, d=2000, non_zeros=4)
    bank = NewtonBank()
    bank.learn(X, y)
    header, arrays = archive.decode(bank.to_bytes())
    kept = arrays["archive0"]
    assert len(kept) >= GROUP
    longer = np.concatenate([kept, np.zeros_like(kept[:GROUP])])
    arrays["archive0"] = np.ascontiguousarray(kept[:change] if change < 0 else longer)
    with pytest.raises(archive.ModelFileError):
        NewtonBank.from_bytes(archive.encode(header, arrays))
