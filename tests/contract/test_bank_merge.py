"""Banks of shards make one bank: counts are those of all rows, order does not matter, scales neither."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import sketchnewton
from sketchnewton import AdaGrad, Model, NewtonBank
from sketchnewton.cli.main import main
from sketchnewton.learners import OneVsAll
from sketchnewton.learners.newton.bank_layout import EXPERTS
from tests.contract.bank_shards import LABELS, mean_loss, shards, stream
from tests.contract.learners import assert_same_state


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


def test_the_order_does_not_matter_where_rows_share_no_features() -> None:
    """In features of other rows the first direction of the sketch is rounding, whose signs mean nothing."""
    rng = np.random.default_rng(2)
    X = np.kron(np.diag([1.0, 0.7, 0.5]), np.ones((40, 6))) * rng.uniform(0.5, 2, (120, 18))
    y, shuffled = rng.choice([-1.0, 1.0], 120), rng.permutation(120)
    answers = []
    for order in itertools.permutations(range(3)):
        banks = [NewtonBank(dtype="float64", intercept=False) for _ in range(3)]
        for bank, part in zip(banks, np.array_split(shuffled, 3), strict=True):
            bank.learn(csr_array(X[part]), y[part])
        first, *others = (banks[i] for i in order)
        answers.append(first.merge(*others).predict_experts(X))
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
