"""Learners of disjoint shards make one learner that knows what all of them know."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import AdaGrad, FullNewton, InvariantNewton, Learner, OnlineGradient, SketchedNewton, load
from sketchnewton.cli.main import main
from sketchnewton.learners import OneVsAll, SharedNewton
from tests.cli.support import write_rows
from tests.contract.learners import LEARNERS, assert_same_state, sparse_stream
from tests.contract.test_invariance import dense_stream, invertible


def can_merge(learner: Learner) -> bool:
    """AdaGrad's variants with sketches, penalties or averaging have no rule for merging."""
    return isinstance(learner, SketchedNewton | OnlineGradient | FullNewton | InvariantNewton | AdaGrad)


def precision(learner: Learner, curvature: float) -> float:
    """By how much a learner's metric counts but for a common factor: 1/v², v its mean squared gradient."""
    return (learner.rows_seen / curvature) ** 2


MERGEABLE = {name: make for name, make in LEARNERS.items() if can_merge(make())}


def reseeded(learner: Learner, seed: int) -> Learner:
    """The same learner with other random numbers, if it uses any."""
    params = learner.params
    return type(learner)(**{**params, "random_state": seed}) if "random_state" in params else learner


def halves(make: Callable[[], Learner], rows: int = 600, d: int = 80) -> tuple[Learner, Learner]:
    X, y = sparse_stream(rows, d=d, non_zeros=12)
    X[: rows // 2, d // 2 + 10 :] = 0  # some features are known to one only
    first, second = make(), reseeded(make(), 77)
    first.learn(X[: rows // 2], y[: rows // 2])
    second.learn(csr_array(X[rows // 2 :]), y[rows // 2 :])
    return first, second


@pytest.fixture(params=MERGEABLE, name="kind")
def _kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_fresh_learner_adds_nothing(kind: str) -> None:
    trained, _ = halves(MERGEABLE[kind])
    before = copy.deepcopy(trained)
    assert trained.merge(reseeded(MERGEABLE[kind](), 77)) is trained
    assert_same_state(trained, before)
    fresh = reseeded(MERGEABLE[kind](), 77)
    fresh.merge(trained)
    assert_same_state(fresh, trained)


def test_the_order_does_not_matter(kind: str) -> None:
    first, second = halves(MERGEABLE[kind])
    one, other = copy.deepcopy(first).merge(second), copy.deepcopy(second).merge(first)
    X, _ = sparse_stream(100, d=80, non_zeros=12, seed=9)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        one.spectrum, other.spectrum, rtol=1e-4, atol=1e-4 * one.spectrum.max(initial=0)
    )
    assert one.rows_seen == other.rows_seen == 600
    assert one.dimension == other.dimension == 80
    assert one.features_seen == other.features_seen == 80


def test_a_merged_learner_is_a_learner(kind: str, tmp_path: Path) -> None:
    """It continues, is saved and loaded, and continues bit for bit; the other one has not changed."""
    first, second = halves(MERGEABLE[kind])
    untouched = copy.deepcopy(second)
    first.merge(second)
    assert_same_state(second, untouched)
    first.save(tmp_path / "merged.skn")
    loaded = load(tmp_path / "merged.skn")
    X, y = sparse_stream(300, d=120, non_zeros=12, seed=9)
    np.testing.assert_array_equal(first.learn(X, y), loaded.learn(X, y))
    assert_same_state(first, loaded)
    assert np.isfinite(first.weights).all()


def test_a_merged_learner_keeps_what_it_learns(kind: str) -> None:
    """Its kernel works on the learner's own arrays, even where the merge needs no more room for features.

    A kernel over a converted copy would leave the learner as it was, and write into memory that is gone.
    """
    first, second = halves(MERGEABLE[kind])
    first.merge(second)
    twin = copy.deepcopy(first)
    before = first.weights
    X, y = sparse_stream(100, d=80, non_zeros=12, seed=9)
    np.testing.assert_array_equal(first.learn(X, y), twin.learn(X, y))
    assert_same_state(first, twin)
    assert first.rows_seen == 700
    assert np.abs(first.weights - before).max() > 0


def test_a_merged_learner_of_many_classes_keeps_what_it_learns() -> None:
    X = np.random.default_rng(0).standard_normal((90, 4))
    labels = np.arange(90) % 3
    first, second = OneVsAll(FullNewton, 3), OneVsAll(FullNewton, 3)
    for learner in (first, second):
        learner.learn(X, labels)
    first.merge(second)
    before = first.weights
    twin = copy.deepcopy(first)
    np.testing.assert_array_equal(first.learn(X, labels), twin.learn(X, labels))
    np.testing.assert_array_equal(first.weights, twin.weights)
    assert np.abs(first.weights - before).max() > 0


def test_agreement_is_kept(kind: str) -> None:
    """Two learners that have learned the same rows predict as each of them does."""
    X, y = sparse_stream(400, d=80, non_zeros=12)
    first, second = MERGEABLE[kind](), reseeded(MERGEABLE[kind](), 77)
    for learner in (first, second):
        learner.learn(X, y)
    if kind.startswith("rp"):  # their random numbers differ, and so do their weights
        assert np.abs(first.weights - second.weights).max() > 0
        return
    before = first.predict(X)
    np.testing.assert_allclose(first.merge(second).predict(X), before, rtol=0, atol=1e-4)


SHARDED: dict[str, Callable[[], Learner]] = {
    **{
        sketch: lambda sketch=sketch: SketchedNewton(sketch, 10, alpha=100.0)
        for sketch in ("none", "oja", "fd", "rfd", "pfd", "rp")
    },
    "diagonal": lambda: SketchedNewton("oja", 10, diagonal=True),
    "full": lambda: FullNewton(alpha=10.0),
    "invariant": InvariantNewton,
    "adagrad": lambda: AdaGrad(eta=0.1),
}


@pytest.mark.parametrize("name", SHARDED)
def test_merging_pays(name: str) -> None:
    """On rows never seen, four shards together are better than each on average, and about as good as one pass."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30)) @ (rng.standard_normal((30, 30)) * np.geomspace(0.1, 2, 30))
    y = np.clip(
        X @ np.linalg.solve(X.T @ X, X.T @ rng.standard_normal(4000)) * 5 + 0.5 * rng.standard_normal(4000),
        -1,
        1,
    )

    def loss(learner: Learner) -> float:
        return float(np.mean((learner.predict(X[1000:]) - y[1000:]) ** 2))

    losses = []
    for seed in range(0, 40 if "random_state" in SHARDED[name]().params else 4, 4):  # luck must not decide
        shards = [reseeded(SHARDED[name](), seed + i) for i in range(4)]
        for i, learner in enumerate(shards):
            learner.learn(X[i * 250 : (i + 1) * 250], y[i * 250 : (i + 1) * 250])
        alone = np.mean([loss(learner) for learner in shards])
        whole = shards[0]
        for learner in shards[1:]:
            whole.merge(learner)
        assert whole.rows_seen == 1000
        single = reseeded(SHARDED[name](), seed)
        single.learn(X[:1000], y[:1000])
        losses.append((loss(whole), alone, loss(single)))
    together, apart, at_once = np.mean(losses, axis=0)
    assert together < apart
    assert together < 1.05 * at_once


# -- what is computed


def metric(learner: SketchedNewton) -> np.ndarray:
    """αI + SᵀS."""
    S = learner.matrix
    return learner.alpha_ * np.eye(learner.dimension) + S.T @ S


def test_full_newton_adds_its_matrices() -> None:
    first, second = halves(lambda: FullNewton(alpha=5.0))
    G, w, trust = [], [], []
    for learner in (first, second):
        U = np.triu(learner._wide(81)["U"])[1:, 1:]
        G.append(U.T @ U - 5.0 * np.eye(80))
        w.append(np.pad(learner.weights, (0, 80 - learner.dimension)))
        trust.append(precision(learner, np.trace(G[-1])))
    common = precision(first, np.trace(G[0] + G[1]) / 2)  # both have 300 rows
    A = [G[i] * trust[i] / common + 2.5 * np.eye(80) for i in range(2)]  # each has half of α
    first.merge(second)
    U = np.triu(first._state["U"])[1:81, 1:81]
    np.testing.assert_allclose(U.T @ U, G[0] + G[1] + 5.0 * np.eye(80), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        first.weights, np.linalg.solve(A[0] + A[1], A[0] @ w[0] + A[1] @ w[1]), atol=1e-9
    )


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
def test_a_sketch_with_room_for_both_merges_as_full_newton(sketch: str) -> None:
    X, y = sparse_stream(400, d=9, non_zeros=4)
    exact, exactly = FullNewton(alpha=5.0), FullNewton(alpha=5.0)
    sketched, others = (SketchedNewton(sketch, 10, alpha=5.0, dtype="float64") for _ in "ab")
    for i, (a, b) in enumerate(((sketched, exact), (others, exactly))):
        for learner in (a, b):
            learner.learn(X[i * 150 : i * 250 + 150], y[i * 150 : i * 250 + 150])
    sketched.merge(others)
    exact.merge(exactly)
    np.testing.assert_allclose(sketched.weights, exact.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(sketched.spectrum[:9], exact.spectrum, rtol=1e-6)
    assert sketched.alpha_ == 5.0
    rest, labels = X[250:], y[250:]
    np.testing.assert_allclose(sketched.learn(rest, labels), exact.learn(rest, labels), rtol=0, atol=1e-6)


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
def test_the_certificate_holds_for_all_gradients(sketch: str) -> None:
    """‖Σĝĝᵀ − (SᵀS + ridge)‖ over the rows of both shards is within the merged error bound."""
    X, y = sparse_stream(600, d=40, non_zeros=8)
    learners = [SketchedNewton(sketch, 6, alpha=20.0, dtype="float64", beta=0.4) for _ in "ab"]
    total = np.zeros((40, 40))
    for i, learner in enumerate(learners):
        rows, labels = X[i * 300 : i * 300 + 300], y[i * 300 : i * 300 + 300]
        slopes = 2 * (learner.learn(rows, labels) - labels)
        total += (rows * slopes[:, None] ** 2).T @ rows / 8
    first = learners[0]
    apart = sum(learner.error_bound or 0.0 for learner in learners)
    first.merge(learners[1])
    error = np.linalg.norm(total - (metric(first) - 20.0 * np.eye(40)), 2)
    assert first.error_bound is not None
    assert error <= first.error_bound
    share = {"fd": 6, "rfd": 2 * 6, "pfd": 2}[sketch]  # each shrink takes as much from so many directions
    assert apart < first.error_bound <= np.trace(total) / share


@pytest.mark.parametrize("sketch", ["fd", "pfd", "oja", "none"])
def test_a_given_alpha_stays_what_it_is(sketch: str) -> None:
    """To the last bit: what α has gained is part of what a certificate is about."""
    X, y = sparse_stream(40, 30, seed=0)
    for alpha in np.random.default_rng(0).uniform(0.5, 2.0, 20):
        first, *others = (SketchedNewton(sketch, 3, alpha=alpha) for _ in range(3))
        first.learn(X[:3], y[:3])
        for other, rows in zip(others, (slice(3, 20), slice(20, 40)), strict=True):
            other.learn(X[rows], y[rows])
            first = first.merge(other)
        assert first.alpha_ == alpha


def test_random_projections_add_up() -> None:
    first, second = (
        SketchedNewton("rp", 5, alpha=10.0, random_state=seed, dtype="float64") for seed in (1, 2)
    )
    X, y = sparse_stream(200, d=20, non_zeros=6)
    first.learn(X[:100], y[:100])
    second.learn(X[100:], y[100:])
    S = [learner.matrix for learner in (first, second)]
    np.testing.assert_allclose(first.merge(second).matrix, S[0] + S[1], atol=1e-12)


def test_adagrad_adds_its_squares() -> None:
    first, second = (AdaGrad(eta=0.3, sigma=0.5, dtype="float64") for _ in "ab")
    first.learn([[1.0, 2.0, 0.0]] * 3, [1.0, 0.5, 1.0])
    second.learn([[1.0, 0.0, 4.0]], [1.0])
    (w1, h1), (w2, h2) = (learner._table.rows[:3, :2].T.copy() for learner in (first, second))
    common = ((h1**2).sum() + (h2**2).sum()) / 4
    a = 0.75 * 0.25 + h1**2 * (common / ((h1**2).sum() / 3)) ** 2
    b = 0.25 * 0.25 + h2**2 * (common / (h2**2).sum()) ** 2
    first.merge(second)
    np.testing.assert_allclose(first._table.rows[:3, 1], np.hypot(h1, h2))
    np.testing.assert_allclose(first.weights, (a * w1 + b * w2) / (a + b))


@pytest.mark.parametrize("rank", [None, 7])
def test_merged_invariant_learners_are_invariant(rank: int | None) -> None:
    X, y = dense_stream(400, 15, seed=3, rank=rank)
    results = []
    for rows in (X, X @ invertible(15, 1e4, np.random.default_rng(5))):
        first, second = InvariantNewton(), InvariantNewton()
        first.learn(rows[:8], y[:8])  # their spans differ
        second.learn(rows[8:150], y[8:150])
        first.merge(second)
        assert first.rank == (rank or 15)
        results.append((first.predict(rows), first.learn(rows[150:], y[150:])))
    for plain, mapped in zip(*results, strict=True):
        np.testing.assert_allclose(mapped, plain, rtol=0, atol=1e-6)


def test_more_rows_weigh_more() -> None:
    """Where neither has curvature, the mean goes by rows: 300 rows against 3."""
    first, second = (OnlineGradient(alpha=100.0, dtype="float64") for _ in "ab")
    first.learn(np.ones((300, 1)), np.ones(300))
    second.learn(np.ones((3, 1)), -np.ones(3))
    w = first.weights[0], second.weights[0]
    assert first.merge(second).weights[0] == pytest.approx((300 * w[0] + 3 * w[1]) / 303)


def test_many_classes_merge_class_by_class() -> None:
    X, y = sparse_stream(300, d=20, non_zeros=6)
    labels = (np.arange(300) + (y > 0)) % 3
    whole, parts = (OneVsAll(SketchedNewton, 3, {"sketch": "fd", "sketch_size": 4}) for _ in "ab")
    whole.learn(X[:150], labels[:150])
    parts.learn(X[150:], labels[150:])
    pairs = [copy.deepcopy(a).merge(b) for a, b in zip(whole.learners, parts.learners, strict=True)]
    assert whole.merge(parts) is whole
    for merged, expected in zip(whole.learners, pairs, strict=True):
        assert_same_state(merged, expected)
    with pytest.raises(ValueError, match="cannot merge 2 classes into 3"):
        whole.merge(OneVsAll(SketchedNewton, 2, {"sketch": "fd", "sketch_size": 4}))
    with pytest.raises(ValueError, match="cannot merge sketch_size=5 into sketch_size=4"):
        whole.merge(OneVsAll(SketchedNewton, 3, {"sketch": "fd", "sketch_size": 5}))


WITHOUT_SENSE: dict[str, Callable[[], Learner]] = {
    "rfd": lambda: SketchedNewton("rfd", 5, intercept=True),
    "fd": lambda: SketchedNewton("fd", 13, intercept=True),
    "oja, diagonal": lambda: SketchedNewton("oja", 5, diagonal=True, intercept=True),
    "full": lambda: FullNewton(alpha=5.0, intercept=True),
    "adagrad": lambda: AdaGrad(eta=0.3, clip=1.0, intercept=True),
}


@pytest.mark.parametrize("name", WITHOUT_SENSE)
def test_who_errs_most_does_not_count_for_the_most(name: str) -> None:
    """A shard with random labels has the largest gradients: the merged learner is nearer to the other shard."""
    rng = np.random.default_rng(1)
    X = np.eye(12)[rng.integers(0, 12, 1200)]
    y = np.where(rng.random(1200) < 0.1, -1.0, 1.0) * np.sign(X @ rng.standard_normal(12))
    good, bad = WITHOUT_SENSE[name](), WITHOUT_SENSE[name]()
    good.learn(X[:600], y[:600])
    bad.learn(X[600:], rng.permutation(y[600:]))
    w = good.weights, bad.weights
    merged = good.merge(bad)
    assert np.linalg.norm(merged.weights - w[0]) < np.linalg.norm(merged.weights - w[1])


# -- learned ranges


@pytest.mark.parametrize("kind", ["oja", "oja, diagonal", "rfd", "none", "adagrad"])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_learned_ranges_are_united(kind: str, unit: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1200, 8))
    y = unit * (X @ rng.standard_normal(8) + 5.0 + 0.1 * rng.standard_normal(1200))
    sketch, _, diagonal = kind.partition(", ")

    def make() -> Learner:
        if kind == "adagrad":
            return AdaGrad(eta=0.3, clip="auto", intercept=True)
        return SketchedNewton(sketch, 4, clip="auto", diagonal=bool(diagonal), intercept=True)

    first, second = make(), make()
    first.learn(X[:500], y[:500])
    second.learn(X[500:900], y[500:900])
    ranges = [learner.prediction_bounds for learner in (first, second)]
    alone = [np.mean((learner.predict(X[900:]) - y[900:]) ** 2) for learner in (first, second)]
    one, other = copy.deepcopy(first).merge(second), copy.deepcopy(second).merge(first)
    low, high = one.prediction_bounds
    assert low <= min(least for least, _ in ranges) + 1e-9 * unit
    assert high >= max(most for _, most in ranges) - 1e-9 * unit
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-4)
    assert np.mean((one.predict(X[900:]) - y[900:]) ** 2) < max(alone)
    one.learn(X[900:], y[900:])
    assert one.rows_seen == 1200


def test_a_range_of_one_target_is_a_range() -> None:
    first, second = (SketchedNewton("fd", 3, clip="auto", intercept=True) for _ in "ab")
    first.learn(np.ones((3, 2)), np.full(3, 10.0))
    second.learn(np.ones((1, 2)), [20.0])
    first.merge(second)
    assert first.prediction_bounds == (5.0, 20.0)
    assert first.predict(np.ones((1, 2)))[0] == pytest.approx(12.5)


# -- one sketch for all classes


def test_classes_with_one_sketch_merge() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 12)) * np.geomspace(0.1, 3, 12)
    labels = (X @ rng.standard_normal((12, 3))).argmax(axis=1)
    for options in ({}, {"diagonal": True, "intercept": True}):
        shards = [SharedNewton(3, sketch_size=6, **options) for _ in range(3)]
        for i, shard in enumerate(shards):
            shard.learn(X[i * 200 : i * 200 + 200], labels[i * 200 : i * 200 + 200])

        def error(learner: Learner) -> float:
            return float(np.mean(learner.predict(X[600:]).argmax(axis=1) != labels[600:]))

        first, *others = shards
        merged = copy.deepcopy(first).merge(*others)
        assert error(merged) <= np.mean([error(shard) for shard in shards])
        swapped = copy.deepcopy(others[0]).merge(first)
        np.testing.assert_allclose(
            swapped.predict(X), copy.deepcopy(first).merge(others[0]).predict(X), atol=1e-5
        )
        twin = SharedNewton.from_bytes(merged.to_bytes())
        np.testing.assert_array_equal(merged.learn(X, labels), twin.learn(X, labels))


# -- what is refused


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (AdaGrad(), "cannot merge a AdaGrad into a SketchedNewton"),
        (SketchedNewton("fd", 5), "cannot merge sketch='fd' into sketch='oja'"),
        (SketchedNewton("oja", 6), "cannot merge sketch_size=6 into sketch_size=5"),
        (SketchedNewton("oja", 5, loss="hinge"), "cannot merge loss='hinge' into loss='squared'"),
        (SketchedNewton("oja", 5, alpha=2.0), "cannot merge alpha=2.0 into alpha=None"),
    ],
)
def test_what_does_not_fit_is_refused(other: Learner, message: str) -> None:
    learner = SketchedNewton("oja", 5)
    learner.learn(np.eye(3), np.ones(3))
    before = copy.deepcopy(learner)
    with pytest.raises(ValueError, match=message):
        learner.merge(other)  # type: ignore[arg-type]
    assert_same_state(learner, before)


def test_a_learner_cannot_join_itself() -> None:
    learner = AdaGrad()
    with pytest.raises(ValueError, match="into itself"):
        learner.merge(learner)


def test_random_projections_must_be_independent() -> None:
    with pytest.raises(ValueError, match="two random projections of random_state=3"):
        SketchedNewton("rp", random_state=3).merge(SketchedNewton("rp", random_state=3))


def test_two_merges_at_a_time_do_not_wait_for_each_other() -> None:
    first, second = halves(lambda: SketchedNewton("fd", 5, alpha=20.0))
    threads = [
        threading.Thread(target=lambda a=a, b=b: [a.merge(b) for _ in range(20)])
        for a, b in ((first, second), (second, first))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


# -- the command line


@pytest.mark.parametrize(
    "options", [["--sketch", "rfd"], ["--learner", "invariant"], ["--learner", "adagrad"]]
)
def test_models_merged_by_the_command(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = []
    for seed in range(2):
        data = write_rows(tmp_path / f"{seed}.svm", seed=seed, labels=(0, 1))
        models.append(str(tmp_path / f"{seed}.skn"))
        assert main(["train", str(data), "--positive", "1", "--model", models[-1], "--quiet", *options]) == 0
    output = tmp_path / "both.skn"
    assert main(["merge", *models, "-o", str(output), "--json"]) == 0
    assert '"rows_seen": 800' in capsys.readouterr().out
    merged, expected = load(output), load(models[0]).merge(load(models[1]))
    assert merged.to_bytes() == expected.to_bytes()
    assert merged.target.positive == 1.0
    assert main(["inspect", str(output)]) == 0
    assert "rows seen      800" in capsys.readouterr().out


def test_models_that_cannot_be_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(write_rows(tmp_path / "rows.svm"))
    for name, options in {
        "plain": ["--learner", "newton"],
        "sketch": ["--learner", "newton", "--sketch", "fd"],
        "coded": ["--learner", "newton", "--positive", "1"],
        "other": ["--learner", "full"],
    }.items():
        assert main(["train", data, "--model", str(tmp_path / f"{name}.skn"), "--quiet", *options]) == 0
    assert main(["sketch", data, "-o", str(tmp_path / "matrix.skn"), "--quiet"]) == 0
    capsys.readouterr()
    output = tmp_path / "out.skn"
    for name, message in {
        "sketch": "cannot merge sketch='fd' into sketch=",
        "coded": "cannot merge label 1 as +1, others as -1 into labels as they are",
        "other": "cannot merge a FullNewton into a SketchedNewton",
        "matrix": "cannot merge a RobustFrequentDirections into a SketchedNewton",
    }.items():
        files = [str(tmp_path / "plain.skn"), str(tmp_path / f"{name}.skn")]
        assert main(["merge", *files, "-o", str(output)]) == 1
        errors = capsys.readouterr().err
        assert message in errors
        assert errors.count("\n") == 1
        assert not output.exists()
