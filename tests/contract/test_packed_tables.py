"""A packed table is a matter of memory: whether rows follow one another changes no bit of a learner."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import SketchedNewton, load
from sketchnewton.learners import SharedNewton, table, table_pages
from sketchnewton.learners.newton import table_newton
from sketchnewton.learners.table import TableLearner
from tests.contract.learners import Floats

RANGE = 1 << 12
LEARNERS: dict[str, Callable[[], TableLearner]] = {
    "oja": lambda: SketchedNewton("oja", 5, intercept=True),
    "oja, float64": lambda: SketchedNewton("oja", 5, dtype="float64"),
    "oja, rebased often": lambda: SketchedNewton("oja", 3, oja_rate=[1, 2, 3], alpha=1e-4),
    "oja, diagonal": lambda: SketchedNewton("oja", 5, loss="logistic", diagonal=True),
    "oja, blocks": lambda: SketchedNewton("oja", 5, block=7),
    "oja, wide": lambda: SketchedNewton("oja", 20),
    "random projection": lambda: SketchedNewton("rp", 5),
    "shared": lambda: SharedNewton(3, 5, intercept=True),
}


def stream(rounds: int, seed: int) -> tuple[csr_array, Floats]:
    """Features scattered over the range, popular ones first, with labels that suit every learner here."""
    random = np.random.default_rng(seed)
    names = np.random.default_rng(0).permutation(RANGE)
    indices = names[np.exp(random.random((rounds, 9)) * math.log(RANGE)).astype(np.int64) % RANGE]
    data = random.standard_normal(indices.shape)
    rows = csr_array((data.ravel(), indices.ravel(), np.arange(rounds + 1) * 9), (rounds, RANGE))
    return rows, (random.random(rounds) < 0.5).astype(float)


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, int], None]:
    """Say from how many bytes on tables are packed, and which share of features, one in so many, unpacks them."""

    def decide(least: float, share: int) -> None:
        monkeypatch.setattr(table_newton, "LARGE", least)
        monkeypatch.setattr(SharedNewton, "_pack_from", least)
        monkeypatch.setattr(table, "DENSE", share)
        monkeypatch.setattr(table_pages, "FIRST_LARGE", 1)
        monkeypatch.setattr(table_pages, "SOON", 1 << 20)

    return decide


def labelled(kind: str, y: Floats) -> Floats:
    return y if kind == "shared" else 2 * y - 1


def history(kind: str, folder: Path, room: int) -> tuple[list[Any], list[bool]]:
    """What a learner predicts, keeps and saves over time, and whether its table was packed."""
    learner, other = LEARNERS[kind](), LEARNERS[kind]()
    kept: list[Any] = []
    packed = []
    for turn in range(4):
        X, y = stream(60 if turn == 0 else 400, turn)
        if turn == 0:  # a few features at first, in a small table
            X = X[:, :64]
        kept.append(learner.learn(X, labelled(kind, y)))
        learner.save(folder / "model.skn")
        kept.append(np.frombuffer((folder / "model.skn").read_bytes(), np.uint8))
        kept += [learner.predict(stream(50, 9)[0]), learner.weights]
        packed.append(learner._table.packed)
        if turn == 2:
            loaded = load(folder / "model.skn")
            assert isinstance(loaded, TableLearner)
            learner = loaded
    X, y = stream(300, 7)
    other.learn(X, labelled(kind, y))
    if kind != "random projection":  # two of one seed are not independent
        other.merge(learner)
        kept.append(other.weights)
    assert learner._table.capacity == room
    return kept, packed


@pytest.mark.parametrize("kind", LEARNERS)
def test_packing_changes_no_bit(kind: str, packs: Callable[[float, int], None], tmp_path: Path) -> None:
    runs = {}
    for name, least, share in (("never", math.inf, 4), ("always", 1 << 14, 1), ("while sparse", 1 << 14, 4)):
        packs(least, share)
        runs[name], packed = history(kind, tmp_path, RANGE)
        expected = {"never": [False] * 4, "always": [False, True, True, True]}
        assert packed == expected.get(name, [False, True, False, False])
    for name in ("always", "while sparse"):
        for mine, theirs in zip(runs[name], runs["never"], strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_list_that_was_sorted_is_not_in_the_order_of_rows(packs: Callable[[float, int], None]) -> None:
    packs(1 << 14, 1)
    learner = LEARNERS["oja, rebased often"]()
    for seed in range(3):
        X, y = stream(300, seed)
        learner.learn(X, labelled("oja", y))
    features, places = learner._table.active[: learner.features_seen], learner._table.views()["places"]
    of_list = np.asarray(places)[features]
    assert sorted(of_list) == list(range(1, 1 + learner.features_seen))
    assert not np.array_equal(of_list, np.sort(of_list))


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_table_that_gets_room_for_many_more_features_is_packed_again(
    kind: str, packs: Callable[[float, int], None]
) -> None:
    """Features here and there would take a page each."""
    played = []
    for least in (math.inf, 1 << 14):
        packs(least, 4)
        learner, packed = LEARNERS[kind](), []
        for turn in range(3):
            X, y = stream(400, turn)
            learner.learn(X, labelled(kind, y))
            packed.append(learner._table.packed)
        far = csr_array(([1.0, 2.0], [5, 64 * RANGE], [0, 2]), (1, 64 * RANGE + 1))
        learner.learn(far, labelled(kind, np.ones(1)))
        packed.append(learner._table.packed)
        X, y = stream(400, 8)
        played.append(learner.learn(X, labelled(kind, y)))
        assert packed == ([False] * 4 if least == math.inf else [True, False, False, True])
    np.testing.assert_array_equal(*played)
