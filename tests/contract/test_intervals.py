"""Intervals: the oracle, coverage of any stream, files, batches, merging, and all doors."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchnewton
from sketchnewton import Model, NewtonBank, SketchedNewton
from sketchnewton.core.archive import ModelFileError
from sketchnewton.learners.newton import full_merge
from sketchnewton.learners.newton import residuals as layout
from sketchnewton.learners.rows import as_rows
from tests.oracles.residuals import LEVELS, Residuals, Spread, step

NAMES = layout.NAMES


def stream(rows: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.gamma(2, 1, (rows, 4))
    return X, X @ [1.0, 0.5, 2.0, 0.0] * np.exp(0.3 * rng.standard_normal(rows))


def progressive(X: np.ndarray, y: np.ndarray, levels: list[float], **options: object) -> np.ndarray:
    """Quantiles of each label before it is learned."""
    bank = NewtonBank(**options)
    made = []
    for row, label in zip(X, y, strict=True):
        made.append(bank.quantiles(bank.predict(row[None]), levels, row[None])[0])
        bank.learn(row[None], [label])
    return np.array(made)


def noisy(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise by a feature on which the mean does not depend; and how much of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (rows, 4))
    noise = 0.1 + 2 * X[:, 0]
    return X, X @ [0.0, 1.0, -1.0, 0.5] + noise * rng.standard_normal(rows), noise


def widths_of(bank: NewtonBank, X: np.ndarray) -> np.ndarray:
    """By features, as shares of the usual width."""
    widths = np.empty(len(X))
    assert bank._kernel.stretches(as_rows(X), widths)
    return widths


def followed(bank: NewtonBank, X: np.ndarray, y: np.ndarray, exact: float) -> Residuals:
    """What the oracle knows when the bank has learned the rows; widths by features are the other oracle's."""
    intercept = bool(bank.params["intercept"])
    residuals, spread = Residuals(), Spread(X.shape[1] + intercept, intercept=intercept)
    for row, label in zip(X, y, strict=True):
        x = np.append(row, np.ones(int(intercept)))
        learned, (low, high), known = bank._state["bank_counts"][0], bank.label_range, bank.rows_seen > 0
        (width,) = widths_of(bank, row[None])
        assert width == pytest.approx(spread.width(x), rel=exact)
        (p,) = bank.learn(row[None], [label])
        if known:  # the first was predicted before any label was known
            residuals.learn(p, label, width)
        if bank._state["bank_counts"][0] > learned:  # wild labels teach weights nothing
            full = bank.expert_names.index("full")
            spread.learn(x, np.clip(label, low, high) - p, bank._state["shares"][full])
    return residuals


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("kind", ["prices", "drift", "copies", "heavy", "noisy", "sparse", "no constant"])
def test_the_oracle(kind: str, unit: float) -> None:
    X, y = stream(1200) if kind != "noisy" else noisy(1200)[:2]
    rng = np.random.default_rng(1)
    if kind == "drift":
        y = y * np.where(np.arange(1200) < 600, 1, 20)
    if kind == "copies":
        X, y = X[:7].repeat(170, axis=0), y[:7].repeat(170)
    if kind == "heavy":
        y = y + rng.standard_cauchy(1200)
    if kind == "sparse":
        X = X * (rng.uniform(0, 1, X.shape) < 0.5)
    bank = NewtonBank(intercept=kind != "no constant", dtype="float64")  # the ridge is by mean sizes
    # A row that comes again and again leaves all other directions to rounding.
    oracle = followed(bank, X, y * unit, exact=1e-5 if kind == "copies" else 1e-9)
    state = bank._state
    assert state["residual_levels"] == pytest.approx(oracle.levels, abs=1e-9)
    assert state["residuals"][:, layout.SHARE] == pytest.approx(oracle.shares, abs=1e-6)
    assert state["residual_scalars"][[layout.SLOPE, layout.BEND]] == pytest.approx(oracle.theta, abs=1e-8)
    scores = bank.predict(X[:20])
    for rows, known in ((X[:20], widths_of(bank, X[:20])), (None, [None] * 20)):
        quantiles, stds = bank.quantiles(scores, LEVELS.tolist(), rows), bank.deviations(scores, rows)
        for p, row, std, width in zip(scores, quantiles, stds, known, strict=True):
            assert std == pytest.approx(oracle.std(p, width), rel=1e-8)
            for a, q in zip(np.sort(oracle.levels), row, strict=True):
                if np.isfinite(q):
                    assert oracle.cdf(p, q - p, width) == pytest.approx(a, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=120),
    st.integers(1, 5),
    st.sampled_from([0.0, 1.0, 1e3]),
)
def test_any_stream_is_covered_as_theory_says(labels: list[float], times: int, trend: float) -> None:
    """Of N labels after the first, all but (1 + γ₁)/γ_N are as often below the quantile as its level says."""
    y = np.array(labels * times) + trend * np.arange(len(labels) * times)
    X = np.column_stack([np.ones(len(y)), np.arange(len(y)) % 3])
    tracked = Residuals()
    below, bank, n = np.zeros(len(LEVELS)), NewtonBank(), 0
    for row, label in zip(X, y, strict=True):
        score, (width,) = bank.predict(row[None])[0], widths_of(bank, row[None])
        if tracked.rows:
            below += tracked.cdf(score, label - score, width) <= tracked.levels
            n += 1
        before = bank._state["residual_scalars"][layout.CLOCK]
        bank.learn(row[None], [label])
        if bank._state["residual_scalars"][layout.CLOCK] > before:
            tracked.learn(score, label, width)
    if n:
        most = 1.1 / step(n)
        assert (np.abs(below - n * LEVELS) <= most + 1e-6).all()
        levels = bank._state["residual_levels"]
        assert (levels >= -0.1).all()
        assert (levels <= 1.1).all()


def test_coverage_of_the_next_rows_and_of_others() -> None:
    X, y = stream(6000)
    coverages = (0.5, 0.8, 0.9, 0.95)
    levels = sorted([(1 - c) / 2 for c in coverages] + [(1 + c) / 2 for c in coverages])
    made = progressive(X[:4000], y[:4000], levels)
    bank = NewtonBank()
    bank.learn(X[:4000], y[:4000])
    for k, c in enumerate(coverages):
        lower, upper = made[100:, 3 - k], made[100:, 4 + k]
        assert np.mean((lower <= y[100:4000]) & (y[100:4000] <= upper)) == pytest.approx(c, abs=0.02)
        bounds = bank.interval(bank.predict(X[4000:]), c, X[4000:])
        held_out = np.mean((bounds[:, 0] <= y[4000:]) & (y[4000:] <= bounds[:, 1]))
        assert held_out == pytest.approx(c, abs=0.04)  # 2,000 labels: three standard deviations


def test_intervals_follow_the_prediction() -> None:
    bank = NewtonBank()
    X, y = stream(4000)
    bank.learn(X, y)
    order = np.argsort(bank.predict(X))
    lower, upper = bank.interval(bank.predict(X[order[[100, -100]]]), 0.9).T
    assert upper[1] - lower[1] > 1.5 * (upper[0] - lower[0])


def test_intervals_follow_features() -> None:
    X, y, noise = noisy(6000)
    bank = NewtonBank()
    bank.learn(X[:4000], y[:4000])
    X, y, noise = X[4000:], y[4000:], noise[4000:]
    scores = bank.predict(X)
    quiet, loud = noise < np.quantile(noise, 1 / 3), noise > np.quantile(noise, 2 / 3)
    shares = {}
    for rows in (X, None):
        lower, upper = bank.interval(scores, 0.9, rows).T
        inside, width = (lower <= y) & (y <= upper), upper - lower
        assert inside.mean() == pytest.approx(0.9, abs=0.03)
        shares[rows is None] = inside[quiet].mean() - inside[loud].mean(), width.mean()
    (gap, width), (plain_gap, plain_width) = shares[False], shares[True]
    assert gap < 0.5 * plain_gap
    assert width < 0.95 * plain_width
    std = bank.predict(X, return_std=True)[1]
    assert np.corrcoef(std, noise)[0, 1] > 0.95


def test_an_even_noise_stays_even() -> None:
    """Where the noise does not depend on features, widths by features are not believed."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (6000, 30))
    y = X @ rng.standard_normal(30) + rng.standard_normal(6000)
    bank = NewtonBank()
    bank.learn(X[:4000], y[:4000])
    scores = bank.predict(X[4000:])
    widths = [np.diff(bank.interval(scores, 0.9, rows)).mean() for rows in (X[4000:], None)]
    assert widths[0] == pytest.approx(widths[1], rel=0.02)


def test_widths_by_features_leave_with_the_experts_with_whole_matrices() -> None:
    X, y, _ = noisy(400)
    wide = np.hstack([X, np.random.default_rng(1).uniform(0, 1, (400, 500))])
    bank = NewtonBank()
    bank.learn(X, y)
    assert bank._state["residuals"][layout.BY_FEATURES, layout.SHARE] > 0
    bank.learn(wide[:200], y[:200])
    once, again = copy.deepcopy(bank), NewtonBank.from_bytes(bank.to_bytes())
    for each in (once, again):
        assert each._state["residuals"][layout.BY_FEATURES, layout.SHARE] == 0
        assert each._state["residuals"][:, layout.SHARE].sum() == pytest.approx(1)
        each.learn(wide[200:], y[200:])
    scores = once.predict(wide)
    assert np.array_equal(once.interval(scores, 0.9, wide), again.interval(scores, 0.9))


def test_rows_and_scores_belong_together() -> None:
    X, y = stream(100)
    bank = NewtonBank()
    bank.learn(X, y)
    with pytest.raises(ValueError, match="X has 5 rows, but there are 3 scores"):
        bank.interval(bank.predict(X[:3]), 0.9, X[:5])
    assert bank.interval(bank.predict(X[:0]), 0.9, X[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="X contains NaN"):
        bank.quantiles(np.zeros(1), [0.5], np.full((1, 4), np.nan))


def test_quantiles_do_not_cross() -> None:
    X, y = stream(300)
    made = progressive(X, y, np.linspace(0.001, 0.999, 200).tolist())
    assert (made[1:, 1:] >= made[1:, :-1]).all()


@pytest.mark.parametrize("loss", ["squared", "huber:1", "absolute", "quantile:0.3", "poisson"])
def test_batches_and_files_are_exact(loss: str, tmp_path: Path) -> None:
    X, y = stream(600)
    y = np.round(y)
    weights = np.random.default_rng(2).uniform(0, 3, 600)
    weights[::7] = 0
    whole, parts = NewtonBank(loss=loss), NewtonBank(loss=loss)
    whole.learn(X, y, weights)
    for begin in range(0, 600, 100):
        parts.learn(X[begin : begin + 100], y[begin : begin + 100], weights[begin : begin + 100])
        parts.save(tmp_path / "bank.skn")
        parts = sketchnewton.load(tmp_path / "bank.skn")
    for name in (*NAMES, "full_spread", "full_labels"):
        used = slice(whole._places if name == "full_spread" else None)
        assert np.array_equal(whole._state[name][used], parts._state[name][used])
    bounds = parts.interval(parts.predict(X), [0.5, 0.9], X)
    assert np.array_equal(bounds, whole.interval(whole.predict(X), [0.5, 0.9], X))
    assert bounds.shape == (600, 2, 2)
    assert (bounds[:, 0] <= bounds[:, 1]).all()


@pytest.mark.parametrize("weight", [1e-300, 1e-6, 30.0, 1e30])
def test_any_weight(weight: float) -> None:
    X, y = stream(200)
    bank = NewtonBank()
    bank.learn(X, y, np.full(200, weight))
    assert layout.fits(bank._state)
    assert all(np.isfinite(bank._state[name]).all() for name in NAMES)
    assert np.isfinite(bank.deviations(bank.predict(X))).all()


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    X, y = stream(400)
    twice, heavy = NewtonBank(), NewtonBank()
    heavy.learn(X, y, np.full(400, 2.0))
    twice.learn(X.repeat(2, axis=0), y.repeat(2))
    clocks = [bank._state["residual_scalars"][layout.CLOCK] for bank in (heavy, twice)]
    assert clocks == [798, 799]  # the first is predicted before any label is known


@pytest.mark.parametrize("offset", [0.0, 300.0, 1e6])
def test_deviations_do_not_depend_on_the_origin(offset: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    y = offset + X[:, 0] + 0.1 * rng.standard_normal(2000)
    bank = NewtonBank()
    bank.learn(X, y)
    assert bank.deviations(bank.predict(X[:5])) == pytest.approx(0.1, rel=1.0)


def test_banks_of_any_sizes_merge() -> None:
    X, y = stream(300)
    rng = np.random.default_rng(0)
    for _ in range(30):
        banks = [NewtonBank() for _ in range(3)]
        for bank in banks:
            rows = rng.integers(0, 300, rng.integers(20, 90))
            bank.learn(X[rows], y[rows], rng.uniform(0.1, 10, len(rows)))
        banks[0].merge(*banks[1:])


def test_what_has_faded_away_can_be_loaded() -> None:
    rng = np.random.default_rng(0)
    X = np.ones((1500, 1))
    y = np.where(np.arange(1500) < 180, 50 * rng.standard_normal(1500), 0.01 * rng.standard_normal(1500))
    bank = NewtonBank()
    for at in range(0, 1500, 20):
        bank.learn(X[at : at + 20], y[at : at + 20], np.full(20, 1000.0))
        bank = NewtonBank.from_bytes(bank.to_bytes())


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("residuals", (0, 3), -1.0),
        ("residuals", (1, layout.UNIT), 0.0),
        ("residuals", (2, layout.BINS), 1e9),
        ("residuals", (0, layout.SHARE), 2.0),
        ("residual_scalars", layout.SLOPE, 4.0),
        ("residual_scalars", layout.BOTH, 1e7),
        ("residual_scalars", layout.NUMBERS, 0.5),
        ("residual_levels", 3, 2.0),
        ("residuals", (3, layout.SHARE), 0.0),
        ("full_labels", (0, 3), -1.0),
    ],
)
def test_impossible_numbers_are_refused(name: str, place: object, value: float) -> None:
    X, y = stream(100)
    bank = NewtonBank()
    bank.learn(X, y)
    header, arrays = bank.to_archive()
    damaged = {key: np.array(array) for key, array in arrays.items()}
    damaged[name][place] = value
    with pytest.raises(ModelFileError):
        NewtonBank.from_archive(header, damaged)


def test_merged_banks_know_what_both_saw() -> None:
    X, y = stream(4000)
    base = NewtonBank()
    base.learn(X[:1000], y[:1000])
    left, right, whole = (copy.deepcopy(base) for _ in range(3))
    left.learn(X[1000:2500], y[1000:2500])
    right.learn(X[2500:], y[2500:])
    whole.learn(X[1000:], y[1000:])
    left.merge(right, base=base)
    assert left._state["residual_scalars"][layout.CLOCK] == 3999
    assert left._state["residuals"][0, : layout.BINS].sum() == pytest.approx(3998)
    mine, theirs = (bank.interval(bank.predict(X[:50]), 0.9) for bank in (left, whole))
    widths = [bounds[:, 1] - bounds[:, 0] for bounds in (mine, theirs)]
    assert np.mean(widths[0]) == pytest.approx(np.mean(widths[1]), rel=0.1)


def test_merged_banks_know_the_noise_of_features() -> None:
    X, y, noise = noisy(4000)
    for begun in (0, 1001):
        base, whole = NewtonBank(), NewtonBank()
        if begun:
            base.learn(X[:begun], y[:begun])
        left, right = copy.deepcopy(base), copy.deepcopy(base)
        left.learn(X[begun:2300], y[begun:2300])
        right.learn(X[2300:], y[2300:])
        sides = [full_merge.moments_of(bank) for bank in (left, right, base)]
        left.merge(right, base=base if begun else None)
        # No row forgotten, none counted twice; the features came with whatever units a bank met first.
        scaled = [side.roots * side.units for side in sides if len(side.roots)]
        roots = left._state["full_spread"][:, 0] * left._state["full_units"][:, 0]
        assert roots == pytest.approx(sum(scaled[:2]) - (scaled[2] if begun else 0), rel=1e-12)
        whole.learn(X, y)
        mine, theirs = (
            np.diff(bank.interval(bank.predict(X[:500]), 0.9, X[:500]))[:, 0] for bank in (left, whole)
        )
        assert np.mean(mine) == pytest.approx(np.mean(theirs), rel=0.1)
        assert np.corrcoef(mine, noise[:500])[0, 1] > 0.95


@pytest.mark.parametrize("intercept", [True, False])
def test_merged_widths_are_those_of_one_bank(intercept: bool) -> None:
    """Weights of widths are computed anew, without a constant, too."""
    rng = np.random.default_rng(0)
    X = 0.1 + abs(rng.standard_normal((4000, 3)))
    y = X @ [1.0, 2.0, 3.0] + (0.1 + 2 * X[:, 0]) * rng.standard_normal(4000)
    whole, left, right = (NewtonBank(intercept=intercept) for _ in range(3))
    whole.learn(X, y)
    left.learn(X[::2], y[::2])
    right.learn(X[1::2], y[1::2])
    left.merge(right)
    mine, theirs = (layout.widths(bank._kernel, as_rows(X)) for bank in (left, whole))
    assert mine is not None
    assert theirs is not None
    assert np.std(theirs) > 0.3
    np.testing.assert_allclose(mine, theirs, rtol=0.1, atol=0.1)


def test_predictions_do_not_depend_on_tracking() -> None:
    X, y = stream(200)
    asked, left_alone = NewtonBank(), NewtonBank()
    for row, label in zip(X, y, strict=True):
        asked.interval(asked.predict(row[None]), 0.9, row[None])
        asked.predict(row[None], return_std=True)
        assert asked.learn(row[None], [label]) == left_alone.learn(row[None], [label])


def test_nothing_known_is_infinite() -> None:
    bank = NewtonBank()
    assert bank.interval(np.zeros(1), 0.9).tolist() == [[-np.inf, np.inf]]
    assert bank.deviations(np.zeros(1)).tolist() == [np.inf]
    counts = NewtonBank(loss="poisson")
    assert counts.interval(np.zeros(1), 0.9).tolist() == [[0.0, np.inf]]


def test_what_has_no_intervals_says_so() -> None:
    for learner in (NewtonBank(loss="logistic"), SketchedNewton()):
        with pytest.raises(ValueError, match="has no intervals"):
            learner.interval(np.zeros(1), 0.9)
    for wrong in (0.0, 1.0, 90, np.nan, [0.5, 2.0]):
        with pytest.raises(ValueError, match="must be a coverage between 0 and 1"):
            NewtonBank().interval(np.zeros(1), wrong)
    with pytest.raises(ValueError, match="must be numbers between 0 and 1 that rise"):
        NewtonBank().quantiles(np.zeros(1), [0.9, 0.1])
    model = Model()
    model.learn([{"y": "yes", "a": 1.0}, {"y": "no", "a": 2.0}])
    with pytest.raises(ValueError, match="classes, which have probabilities and no intervals"):
        model.predict({"a": 1.0}, interval=0.9)


def test_models() -> None:
    X, y = stream(500)
    model = Model()
    records = [
        {"label": t, **dict(zip("abcd", row, strict=True))} for row, t in zip(X.tolist(), y, strict=True)
    ]
    model.learn(records)
    predictions, bounds = model.predict(records, interval=0.9)
    assert np.array_equal(predictions, model.predict(records))
    assert bounds.shape == (500, 2)
    assert (bounds[:, 0] < bounds[:, 1]).all()
    assert model.predict(records, interval=[0.5, 0.9])[1].shape == (500, 2, 2)
    quantiles = model.predict_quantiles(records, [0.05, 0.5, 0.95])
    assert np.allclose(quantiles[:, [0, 2]], bounds)


def test_the_server_answers_with_the_same_bounds() -> None:
    from sketchnewton.serve.answers import add_bounds, answers

    X, y, _ = noisy(500)
    records = [dict(zip("abcd", row, strict=True)) for row in X.tolist()]
    model = Model()
    model.learn(records, y)
    made = answers(model, model.decision_function(records))
    add_bounds(model, records, made, "0.9")
    bounds = model.predict(records, interval=0.9)[1]
    assert [[answer["lower"], answer["upper"]] for answer in made] == bounds.tolist()
    assert len(set(np.round(np.diff(bounds)[:, 0], 6))) > 100


def test_estimators_and_river(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    conf = pytest.importorskip("river.conf")
    from sketchnewton import SketchedNewtonRegressor
    from sketchnewton.river import ModelRegressor
    from sketchnewton.river import SketchedNewtonRegressor as RiverRegressor

    X, y = stream(500)
    estimator = SketchedNewtonRegressor().fit(X, y)
    mean, std = estimator.predict(X, return_std=True)
    assert np.array_equal(mean, estimator.predict(X))
    assert (std > 0).all()
    assert estimator.predict(X, interval=0.8)[1].shape == (500, 2)
    with pytest.raises(ValueError, match="cannot be combined"):
        estimator.predict(X, return_std=True, interval=0.8)
    online = RiverRegressor()
    for row, label in zip(X.tolist(), y, strict=True):
        online.learn_one(dict(enumerate(row)), label)
    found = online.predict_one(dict(enumerate(X[0])), with_interval=True, confidence_level=0.9)
    assert isinstance(found, conf.Interval)
    assert found.lower < online.predict_one(dict(enumerate(X[0]))) < found.upper
    records = [{f"x{i}": value for i, value in enumerate(row)} for row in X.tolist()]
    model = Model()
    model.learn(records, y)
    bounds = model.predict(records[:9], interval=0.9)[1]
    wrapped = ModelRegressor(model)
    for record, (lower, upper) in zip(records, bounds.tolist(), strict=False):
        assert wrapped.predict_one(record, with_interval=True, confidence_level=0.9) == conf.Interval(
            lower, upper
        )


@pytest.mark.parametrize(("rows", "features"), [(60, 40), (200, 60), (500, 200)])
def test_estimators_cover_new_rows_after_several_passes(rows: int, features: int) -> None:
    """Labels that have been learned lie nearer to predictions than new ones."""
    pytest.importorskip("sklearn")
    from sketchnewton import SketchedNewtonRegressor

    covered = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((rows + 1000, features))
        y = X @ rng.standard_normal(features) / np.sqrt(features) + rng.standard_normal(len(X))
        estimator = SketchedNewtonRegressor(random_state=0).fit(X[:rows], y[:rows])
        assert estimator.n_iter_ > 1
        lower, upper = estimator.predict(X[rows:], interval=0.9)[1].T
        covered.append(np.mean((lower <= y[rows:]) & (y[rows:] <= upper)))
    assert 0.83 < np.mean(covered) < 0.97  # .51, .77 and .71 when later passes counted


def test_later_passes_count_no_row_again(tmp_path: Path) -> None:
    from sketchnewton.cli.main import main

    X, y = stream(300)
    data = tmp_path / "d.csv"
    rows = [",".join(map(str, (t, *row))) for row, t in zip(X.tolist(), y.tolist(), strict=True)]
    data.write_text("\n".join(["label,a,b,c,d", *rows]) + "\n")
    banks = []
    for passes in "1", "3":
        options = ["--passes", passes, "--no-cache", "--checkpoint-every", "70", "--quiet"]
        assert main(["train", str(data), "--model", str(tmp_path / "m.skn"), *options]) == 0
        banks.append(Model.load(tmp_path / "m.skn").learner)
    once, thrice = banks
    assert thrice.rows_seen == 3 * once.rows_seen
    for name in NAMES:
        assert np.array_equal(thrice._state[name], once._state[name])
    signs = NewtonBank(loss="logistic")
    with signs.relearning():  # there is nothing to keep
        signs.learn(X, np.sign(y - np.median(y)) + (y == np.median(y)))
    with thrice.relearning(), pytest.raises(ValueError, match=r"shape|rows"):
        thrice.learn(X, y[:3])
    assert np.array_equal(thrice._state[NAMES[0]], once._state[NAMES[0]])


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sketchnewton.cli.main import main

    X, y = stream(300)
    data, model = tmp_path / "d.csv", tmp_path / "m.skn"
    rows = [",".join(map(str, (t, *row))) for row, t in zip(X.tolist(), y.tolist(), strict=True)]
    data.write_text("\n".join(["label,a,b,c,d", *rows]) + "\n")
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--interval", "0.9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 300
    prediction, lower, upper = map(float, lines[-1].split())
    assert lower < prediction < upper
    assert main(["predict", str(model), str(data), "--interval", "0.9", "--output", "csv"]) == 0
    assert capsys.readouterr().out.startswith("prediction,lower,upper\n")
    assert main(["predict", str(model), str(data), "--interval", "0.9", "--output", "jsonl"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last == {"prediction": prediction, "lower": lower, "upper": upper}
