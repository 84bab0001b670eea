"""What the bank promises for every loss: its bound, any unit, no step too far, and results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sketchnewton import NewtonBank
from sketchnewton.learners.newton.bank_layout import EXPERTS, GAPS
from sketchnewton.losses import get_loss
from tests.contract.bank_streams import ALL_LOSSES, adversaries, count_stream, regression_stream, stream_for
from tests.contract.learners import assert_same_state, sparse_stream

K = len(EXPERTS)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_batches_and_resuming_do_not_matter(loss: str, tmp_path: Path) -> None:
    X, y = stream_for(loss, 700)
    whole = NewtonBank(loss=loss, clip=3.0)
    expected = whole.learn(X, y)
    parts, seen = NewtonBank(loss=loss, clip=3.0), []
    for rows in np.array_split(np.arange(len(y)), 9):
        seen.append(parts.learn(X[rows], y[rows]))
        parts.save(tmp_path / "bank.skn")
        parts = NewtonBank.load(tmp_path / "bank.skn")
    np.testing.assert_array_equal(np.concatenate(seen), expected)
    assert_same_state(parts, whole)


@pytest.mark.parametrize(
    ("loss", "in_unit"),
    [("absolute", "absolute"), ("quantile:0.8", "quantile:0.8"), ("huber:0.5", "huber:{}")],
)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_labels_do_not_matter_to_other_losses(loss: str, in_unit: str, unit: float) -> None:
    X, y = regression_stream(1000, d=40, non_zeros=8)
    expected = NewtonBank(loss=loss, dtype="float64").learn(X, y)
    moved = NewtonBank(loss=in_unit.format(0.5 * unit), dtype="float64").learn(X, unit * y + 30 * unit)
    np.testing.assert_allclose(moved[1:] / unit - 30, expected[1:], rtol=0, atol=1e-7)


def test_unit_of_counts_does_not_matter() -> None:
    """Amounts instead of counts: predictions are multiplied by the unit, their logarithms moved."""
    X, y = count_stream(1000)
    expected = NewtonBank(loss="poisson", dtype="float64").learn(X, y)
    moved = NewtonBank(loss="poisson", dtype="float64").learn(X, 1e4 * y)
    start = int(np.flatnonzero(y)[0]) + 1  # from the first count on there is a unit
    np.testing.assert_allclose(moved[start:] - np.log(1e4), expected[start:], rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "absolute", "quantile:0.2", "huber:0.3", "poisson"])
def test_regret_of_losses_that_are_not_mixable(loss: str) -> None:
    """(2 + ln(T + 1)/ln K)·Δ, Δ the total of AdaHedge's gaps, and Δ ≤ √(V ln K) + S(⅔ ln K + 1)."""
    rng, experts_of = np.random.default_rng(len(loss)), len(NewtonBank(loss=loss).expert_names)
    lnK = np.log(experts_of)
    for _ in range(200):
        X, y = adversaries(rng)
        y = y + 1 if loss == "poisson" else y
        learner = NewtonBank(loss=loss, dtype="float64")
        T = len(y)
        played, experts, shares = np.empty(T), np.empty((T, experts_of)), np.empty((T, experts_of))
        for i in range(T):
            experts[i], shares[i] = learner.predict_experts(X[i : i + 1])[0], learner.expert_shares
            played[i] = learner.learn(X[i : i + 1], y[i : i + 1])[0]
        losses = learner.loss.value(experts, y[:, None])
        regret = learner.loss.value(played, y).sum() - losses.sum(axis=0).min()
        gaps = learner._state["scalars"][GAPS]
        assert regret <= (2 + np.log(T + 1) / lnK) * gaps + 1e-9
        variance = (shares * (losses - (shares * losses).sum(axis=1, keepdims=True)) ** 2).sum()
        assert gaps <= np.sqrt(variance * lnK) + np.ptp(losses, axis=1).max() * (2 / 3 * lnK + 1) + 1e-9


@pytest.mark.parametrize("loss", [*ALL_LOSSES, "huber:1e-300", "huber:1e25", "quantile:0.001"])
def test_wild_rows_labels_and_weights(loss: str) -> None:
    """Whatever comes, predictions are finite and within the bounds that the bank names, and shares are shares."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 60)), int(rng.integers(1, 6))
        X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7) * 10.0 ** rng.uniform(-15, 15, d)
        X *= 10.0 ** rng.uniform(-6, 6, (n, 1)) if seed % 3 == 0 else 1.0
        size = 10.0 ** rng.uniform(-15, 15, n)
        numbers = [size, rng.choice([0.0, 1e15], n), rng.poisson(3.0, n) * 1.0, (rng.random(n) < 0.05) * 1.0][
            seed % 4
        ]
        signs = rng.choice([-1.0, 1.0], n)
        facts = get_loss(loss)
        y = signs if facts.sign_labels else numbers if loss == "poisson" else numbers * signs
        h = [None, 10.0 ** rng.uniform(-9, 9, n), rng.choice([0.0, 1.0], n)][seed % 3]
        clip = [None, 1e-3, 2.0, 1e300][int(rng.integers(4))]
        bank = NewtonBank(
            int(rng.integers(8)),
            loss=loss,
            clip=clip,
            intercept=seed % 2 == 0,
            dtype=["float32", "float64"][seed // 2 % 2],
        )
        played, predictions = bank.learn(X, y, h), bank.predict(1e3 * X)
        low, high = bank.prediction_bounds
        assert np.isfinite(played).all()
        assert np.isfinite(bank.expert_weights).all()
        assert (predictions >= low - 1e-9 * abs(low)).all()
        assert (predictions <= high + 1e-9 * abs(high)).all()
        assert abs(predictions).max() <= (np.inf if clip is None else clip)
        assert (bank.expert_shares > 0).all()
        assert bank.expert_shares.sum() == pytest.approx(1)


def test_squared_hinge_is_the_squared_loss_within_the_range() -> None:
    X, y = sparse_stream(600, d=40, non_zeros=8)
    np.testing.assert_array_equal(NewtonBank(loss="squared_hinge").learn(X, y), NewtonBank().learn(X, y))


@pytest.mark.parametrize("loss", ALL_LOSSES)
@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e9])
def test_no_step_passes_the_label(loss: str, weight: float) -> None:
    """One row again and again, however heavy: every expert that takes steps comes nearer, and none goes past.

    Between rows the rare expert's scores fade, like the fourth root of the number of rows.
    """
    X, y = np.array([[1.0, -2.0, 0.5]] * 40), np.ones(40)
    y[:9] = [1.0, -1, 1, -1, 1, -1, 1, -1, 1]
    y = 5 * (y + 2) if loss == "poisson" else y
    learner = NewtonBank(loss=loss, dtype="float64")
    learner.learn(X[:9], y[:9])
    target = np.log(15.0) if loss == "poisson" else np.inf if loss == "logistic" else 1.0
    before = learner.predict_experts(X[:1])[0, :K]
    rare = np.array([name == "rare" for name in EXPERTS])
    for i in range(9, 40):
        learner.learn(X[i : i + 1], y[i : i + 1], [weight])
        now = learner.predict_experts(X[:1])[0, :K]
        faded = np.minimum(before, before * ((i + 1) / (i + 2)) ** 0.25)
        assert (now >= np.where(rare, faded, before) - 1e-9).all()
        assert (now <= target + 1e-9).all()
        before = now


@pytest.mark.parametrize("loss", ["absolute", "huber", "huber:20000"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_outliers_among_prices(loss: str, seed: int) -> None:
    """One price in twenty is 3 to 20 times too high."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4000, 12)) * np.geomspace(0.1, 100, 12)
    clean = 2e5 + 5e4 * X @ (rng.standard_normal(12) / np.geomspace(0.1, 100, 12))
    prices = clean + 2e4 * rng.standard_normal(4000)
    prices[rng.random(4000) < 0.05] *= rng.uniform(3, 20)
    error = {
        name: np.mean(abs(NewtonBank(loss=name).learn(X, prices) - prices)[500:])
        for name in (loss, "squared")
    }
    assert error[loss] < 0.8 * error["squared"]
    away = abs(NewtonBank(loss=loss).learn(X, prices) - clean)[500:]
    assert away.mean() < 1.2e4


@pytest.mark.parametrize("mean", [0.1, 5.0, 200.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_counts_as_well_as_poisson_regression(seed: int, mean: float) -> None:
    from sklearn.linear_model import PoissonRegressor
    from sklearn.metrics import mean_poisson_deviance

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20000, 10))
    rate = np.exp(0.25 * X @ rng.standard_normal(10))
    y = rng.poisson(mean * rate / rate.mean()).astype(float)
    learner = NewtonBank(loss="poisson")
    learner.learn(X, y)
    best = mean_poisson_deviance(y, PoissonRegressor(alpha=0, max_iter=1000).fit(X, y).predict(X))
    assert mean_poisson_deviance(y, learner.loss.link(learner.predict(X))) < 1.05 * best
    assert np.exp(learner.predict(X)).max() <= y.max() + 1e-9


def test_counts_of_nothing_so_far() -> None:
    X = np.random.default_rng(0).standard_normal((50, 4))
    learner = NewtonBank(loss="poisson")
    played = learner.learn(X, np.zeros(50))
    np.testing.assert_allclose(np.exp(played), 1 / (1 + np.arange(50)))
    learner.learn(X, np.full(50, 3.0))
    assert np.exp(learner.predict(X)).min() > 0.5


@pytest.mark.parametrize("digit", [3, 8, 9])
def test_hinge_on_standardised_digits(digit: int) -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    signs = np.where(y == digit, 1.0, -1.0)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    wrong = {
        loss: np.mean((NewtonBank(loss=loss).learn(X, signs) > 0) != (signs > 0))
        for loss in ("hinge", "squared")
    }
    assert wrong["hinge"] <= wrong["squared"] + 0.01
