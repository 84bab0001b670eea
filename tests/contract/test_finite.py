"""A learner that has left the range of its numbers says so: it hands out no NaN, and leaves no file."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sketchnewton import AdaGrad, ClassBank, Learner, NewtonBank, SketchedAdaGrad, SketchedNewton
from sketchnewton.core.checks import DivergedError, check_finite
from sketchnewton.learners.rows import as_rows


def diverged() -> Learner:
    """Steps of 10⁶ along rows of 10¹⁰."""
    rng = np.random.default_rng(0)
    X = 1e10 * rng.standard_normal((200, 5))
    learner = SketchedAdaGrad("fd", 3, eta=1e6, sigma=1e-3)
    with pytest.raises(ValueError, match="a prediction is not finite"):
        learner.learn(X, X[:, 0])
    return learner


def test_predictions_that_are_not_finite_are_refused() -> None:
    learner, row = diverged(), np.full((1, 5), 1e10)
    with pytest.raises(ValueError, match="a prediction is not finite"):
        learner.predict(row)
    with pytest.raises(ValueError, match="a prediction is not finite"):
        learner.learn_row(as_rows(row), 1.0)
    with pytest.raises(ValueError, match="not finite"):
        learner.to_bytes()


def test_the_error_reaches_another_process() -> None:
    """Pools pickle what a worker raises; an error that cannot be read there hangs or breaks them."""
    with pytest.raises(DivergedError) as raised:
        check_finite(np.array([0.0, 1.0, np.nan]))
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy), copy.row) == (DivergedError, str(raised.value), 2)


@pytest.mark.parametrize("label", [1e30, -1e30])
def test_labels_as_large_as_are_taken(label: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    for loss in ("squared", "absolute", "huber"):
        learner = AdaGrad(loss=loss, eta=0.5)
        assert np.isfinite(learner.learn(X, np.full(300, label))).all()
        assert np.isfinite(type(learner).from_bytes(learner.to_bytes()).predict(X)).all()


LOSSES = (
    "squared",
    "logistic",
    "hinge",
    "squared_hinge",
    "absolute",
    "quantile:0.3",
    "huber:1e-20",
    "huber:1e20",
)


def scaled_rows(rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows, features or values from 10⁻³⁰ to 10²⁹, or rows that are far shorter than others."""
    n, d = int(rng.choice([12, 40, 150, 400])), int(rng.choice([1, 3, 6, 20, 90]))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.1, 0.5, 1.0]))
    kind = rng.choice(["features", "rows", "values", "short", "equal", "plain"])
    if kind == "short":
        X[rng.random(n) < 0.3] *= rng.choice([1e-37, 1e-38, 1e-45, 1e-60, 1e-160, 1e-300])
    elif kind == "equal":
        X = np.where(X != 0, 10.0 ** rng.choice([-300, -45, -38, -30, 29]), 0.0)
    elif kind != "plain":
        X *= 10.0 ** rng.uniform(-30, 29, {"features": d, "rows": (n, 1), "values": (n, d)}[kind])
    return np.clip(X, -1e30, 1e30)


def scaled_labels(rng: np.random.Generator, loss: str, n: int) -> NDArray[np.float64]:
    signs = rng.choice([-1.0, 1.0], n)
    if loss in ("logistic", "hinge", "squared_hinge") or rng.random() < 0.2:
        return np.abs(signs) if loss == "poisson" else signs
    huge = 1e30 * rng.choice([-1.0, 1.0, 0.5, 1e-10, 0.0], n)
    y = (huge, signs * 10.0 ** rng.uniform(-30, 30, n), rng.standard_normal(n))[rng.integers(3)]
    return np.round(np.abs(y)) if loss == "poisson" else y


def scaled_importance(rng: np.random.Generator, n: int) -> NDArray[np.float64] | None:
    wide, few = 10.0 ** rng.uniform(-30, 30, n), np.where(rng.random(n) < 0.05, 1e30, 1.0)
    return (None, wide, few, np.full(n, 1e30), np.full(n, 1e-30))[rng.integers(5)]


def check_finite_and_saved(learner: Learner, X: NDArray[np.float64]) -> None:
    expected = learner.predict(X)
    assert np.isfinite(expected).all()
    assert np.isfinite(learner.weights).all()
    np.testing.assert_array_equal(type(learner).from_bytes(learner.to_bytes()).predict(X), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", [*LOSSES, "poisson", "softmax"])
def test_a_bank_of_any_scales(loss: str, dtype: str) -> None:
    """Whatever values, labels and weights are taken: predictions are finite, and the file is read again."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = scaled_rows(rng)
        n, m, intercept = len(X), int(rng.choice([0, 1, 6, 20])), bool(rng.random() < 0.4)
        h = scaled_importance(rng, n)
        if loss == "softmax":
            classes = ClassBank(3, m, dtype=dtype, intercept=intercept)
            assert np.isfinite(classes.learn(X, rng.integers(0, 3, n), h)).all()
            check_finite_and_saved(classes, X)
            continue
        y, half = scaled_labels(rng, loss, n), n // 2
        banks = [NewtonBank(m, loss=loss, dtype=dtype, intercept=intercept) for _ in range(3)]
        for bank, part in zip(banks, (slice(None), slice(half), slice(half, None)), strict=True):
            assert np.isfinite(bank.learn(X[part], y[part], None if h is None else h[part])).all()
            check_finite_and_saved(bank, X)
        merged = banks[1].merge(banks[2])
        check_finite_and_saved(merged, X)
        assert np.isfinite(merged.learn(X, y, h)).all()
        check_finite_and_saved(merged, X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.3", "huber:0.5"])
def test_the_unit_of_labels(loss: str, dtype: str) -> None:
    """Labels that are 2⁹⁰ times as large are predicted 2⁹⁰ times as large, to the bit."""
    large = f"huber:{0.5 * 2.0**90!r}" if loss.startswith("huber") else loss
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 30)) * (rng.random((300, 30)) < 0.5)
        y = X @ rng.standard_normal(30) + 0.1 * rng.standard_normal(300)
        bank, same = (NewtonBank(loss=name, dtype=dtype, intercept=bool(seed % 2)) for name in (large, loss))
        np.testing.assert_array_equal(bank.learn(X, 2.0**90 * y), 2.0**90 * same.learn(X, y))
        np.testing.assert_array_equal(bank.predict(X), 2.0**90 * same.predict(X))
        np.testing.assert_array_equal(bank.weights, 2.0**90 * same.weights)


@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-4), ("float64", 1e-11)])
def test_a_range_of_labels_that_grows(dtype: str, close: float) -> None:
    """The unit of the weights changes on the way, in one of the two."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 200)) * (rng.random((400, 200)) < 0.1)
    y = X @ rng.standard_normal(200) * 2.0 ** (np.arange(400) / 8)
    bank, same = NewtonBank(dtype=dtype), NewtonBank(dtype=dtype)
    found, expected = bank.learn(X, 2.0**44 * y) / 2.0**44, same.learn(X, y)
    assert bank.label_range[1] > 2.0**80
    assert same.label_range[1] < 2.0**64
    assert abs((found - expected) / 2.0 ** (np.arange(400) / 8)).max() < close
    assert abs(bank.weights / 2.0**44 - same.weights).max() < close * abs(same.weights).max()


@pytest.mark.parametrize("sketch", ["oja", "fd", "rp", "none"])
def test_targets_that_are_rounding_alone_at_first(sketch: str) -> None:
    """As residuals may be: the range is then 10²⁰ times its unit, and α, which follows it, has a least value."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 5))
    y = 1e3 * X[:, 0]
    y[:20] = 1e-17 * rng.integers(0, 3, 20)
    size: dict[str, Any] = {} if sketch == "none" else {"sketch_size": 3}
    learner = SketchedNewton(sketch, **size, clip="auto", diagonal=True, intercept=True)
    learner.learn(X, y)
    assert np.isfinite(SketchedNewton.from_bytes(learner.to_bytes()).predict(X)).all()


@pytest.mark.parametrize("classes", [None, 3])
def test_calibration_stays_certain_of_something(classes: int | None) -> None:
    """The covariance of slope and shift: no negative eigenvalue, no variance above 1, whatever rows weigh."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, h = rng.standard_normal((60, 3)), 10.0 ** rng.uniform(-30, 30, 60)
        learner = NewtonBank(loss="logistic") if classes is None else ClassBank(classes)
        labels = rng.choice([-1.0, 1.0], 60) if classes is None else rng.integers(0, classes, 60)
        learner.learn(X, labels, h)
        ss, sc, cc = learner._state["full_odds"].reshape(-1, learner._state["full_odds"].shape[-1]).T[2:5]
        assert min(ss.min(), cc.min()) >= 0
        assert max(ss.max(), cc.max()) <= 1
        assert (sc**2 <= ss * cc * (1 + 1e-9)).all()
