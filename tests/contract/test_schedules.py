"""η_t by name, by number, and by itself."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import FullNewton, SketchedNewton
from sketchnewton.learners.newton.schedule import SCHEDULES, checked_curvature_weight
from sketchnewton.losses import get_loss
from tests.contract.learners import sparse_stream
from tests.oracles.full_newton import full_newton
from tests.oracles.oja import oja_son

THEORY = "sqrt(d/(C^2 L^2 t))"


def test_all_names_are_tested() -> None:
    assert set(SCHEDULES) == {"1/t", "1/sqrt(t)", THEORY}


@pytest.mark.parametrize("weight", [0, 0.03, *SCHEDULES])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_schedules_are_what_their_names_say(weight: float | str, loss: str) -> None:
    X, y = sparse_stream(1500, d=30, non_zeros=30)  # all features from the first row on
    C = 0.7
    L = 2 * 2 * C if loss == "squared" else 1.0
    values = {
        "1/t": lambda t: 1 / t,
        "1/sqrt(t)": lambda t: t**-0.5,
        THEORY: lambda t: (30 / (C * L) ** 2 / t) ** 0.5,
    }
    of = values[weight] if isinstance(weight, str) else lambda t: weight
    sigma = get_loss(loss).curvature(C)
    expected, _ = full_newton(X, y, alpha=10.0, loss=loss, C=C, sigma=sigma, eta=of)
    learner = FullNewton(alpha=10.0, loss=loss, clip=C, curvature_weight=weight)
    np.testing.assert_allclose(learner.learn(X, y), expected, rtol=0, atol=1e-6)
    expected, _, _ = oja_son(X, y, m=5, alpha=300.0, loss=loss, C=C, sigma=sigma, eta=of)
    sketched = SketchedNewton(
        "oja", 5, alpha=300.0, loss=loss, clip=C, curvature_weight=weight, dtype="float64"
    )
    np.testing.assert_allclose(sketched.learn(X, y), expected, rtol=0, atol=1e-6)


def test_d_counts_the_features_seen_so_far() -> None:
    X, y = sparse_stream(300, d=40, non_zeros=3)
    seen = np.array([np.count_nonzero(X[: t + 1].any(axis=0)) for t in range(300)])
    assert seen[0] < seen[-1]
    expected, _, _ = oja_son(X, y, m=4, alpha=20.0, sigma=0.0, eta=lambda t: np.sqrt(seen[t - 1] / t) / 4)
    learner = SketchedNewton("oja", 4, alpha=20.0, curvature=0.0, curvature_weight=THEORY, dtype="float64")
    np.testing.assert_allclose(learner.learn(X, y), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["hinge", "absolute", "quantile:0.3"])
def test_losses_without_curvature_get_a_weight_by_themselves(name: str) -> None:
    loss = get_loss(name)
    assert loss.curvature(2.0) == 0
    schedule = checked_curvature_weight(None, loss, 2.0, 0.0)
    assert schedule.at(100, 7) == pytest.approx(1 / (2.0 * loss.lipschitz(2.0) * 10))
    X, y = sparse_stream(200, d=20)
    learner = SketchedNewton("fd", 5, alpha=10.0, loss=name, clip=2.0)
    learner.learn(X, y)
    assert learner.spectrum[0] > 0  # without η_t the sketch would see zeros


def test_losses_with_curvature_need_none() -> None:
    assert checked_curvature_weight(None, get_loss("logistic"), 1.0, 0.3).at(5, 5) == 0


@pytest.mark.parametrize("clip", [None, np.inf])
def test_the_theory_needs_a_bound(clip: float | None) -> None:
    with pytest.raises(ValueError, match="needs a finite clip"):
        SketchedNewton(curvature_weight=THEORY, clip=clip)
