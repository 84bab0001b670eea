"""A learner that has left the range of its numbers says so: it hands out no NaN, and leaves no file."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from sketchnewton import AdaGrad, Learner, NewtonBank, SketchedAdaGrad
from sketchnewton.core.checks import DivergedError
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


@pytest.mark.parametrize("label", [1e30, -1e30])
def test_labels_as_large_as_are_taken(label: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    for loss in ("squared", "absolute", "huber"):
        learner = AdaGrad(loss=loss, eta=0.5)
        assert np.isfinite(learner.learn(X, np.full(300, label))).all()
        assert np.isfinite(type(learner).from_bytes(learner.to_bytes()).predict(X)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile:0.3", "poisson"])
def test_a_bank_of_labels_as_large_as_are_taken(loss: str, dtype: str) -> None:
    """Finite, and its file is read again; with weights of 10⁻³⁰ to 10³⁰, finite or refused."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.7)
        if seed % 2:
            X *= 10.0 ** rng.uniform(-25, 25, X.shape)
        y = 1e30 * rng.choice([-1.0, 1.0, 0.5, 1e-10, 0.0], 40)
        y = np.round(np.abs(y)) if loss == "poisson" else y
        bank = NewtonBank(loss=loss, dtype=dtype, intercept=bool(rng.random() < 0.5))
        assert np.isfinite(bank.learn(X, y)).all()
        assert np.isfinite(NewtonBank.from_bytes(bank.to_bytes()).predict(X)).all()
        weighted = NewtonBank(loss=loss, dtype=dtype)
        with suppress(DivergedError):
            assert np.isfinite(weighted.learn(X, y, 10.0 ** rng.uniform(-30, 30, 40))).all()
            assert np.isfinite(weighted.predict(X)).all()
        file = None
        with suppress(ValueError):
            file = weighted.to_bytes()
        if file is not None:
            assert np.isfinite(NewtonBank.from_bytes(file).predict(X)).all()
