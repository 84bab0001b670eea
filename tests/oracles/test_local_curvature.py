"""curvature="local": the metric is made of second derivatives, so that the squared loss gives ridge regression."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import FullNewton, SketchedNewton
from sketchnewton.evaluation import regret_bound
from sketchnewton.losses import get_loss

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6)) * np.geomspace(1, 30, 6)
Y = X @ RNG.standard_normal(6) + RNG.standard_normal(200)
EXACT = {
    "full": lambda **options: FullNewton(alpha=3.0, **options),
    "fd": lambda **options: SketchedNewton("fd", 8, alpha=3.0, dtype="float64", **options),
    "rfd": lambda **options: SketchedNewton("rfd", 8, alpha=3.0, dtype="float64", **options),
}


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_loss_is_ridge_regression(kind: str, weighted: bool) -> None:
    learner = EXACT[kind](curvature="local", curvature_weight=0.0, clip=None)
    h = RNG.integers(1, 5, len(Y)).astype(float) if weighted else np.ones(len(Y))
    learner.learn(X, Y, h)
    ridge = np.linalg.solve(3.0 * np.eye(6) + 2 * (X.T * h) @ X, 2 * (X.T * h) @ Y)
    np.testing.assert_allclose(learner.weights, ridge, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "huber:0.5"])
def test_other_losses_against_the_definition(name: str) -> None:
    loss, labels, C, alpha = get_loss(name), np.sign(Y), 2.0, 5.0
    learner = SketchedNewton(
        "fd", 8, alpha=alpha, loss=name, clip=C, curvature="local", curvature_weight="1/t", dtype="float64"
    )
    found = learner.learn(X, labels)
    w, A = np.zeros(6), alpha * np.eye(6)
    for t, (x, y, p) in enumerate(zip(X, labels, found, strict=True), 1):
        score = w @ x
        direction = np.linalg.solve(A, x)
        w -= direction * (score - np.clip(score, -C, C)) / (x @ direction)
        assert p == pytest.approx(w @ x, abs=1e-6)
        slope, step = float(loss.derivative(p, y)), 1e-5
        bend = float(loss.derivative(p + step, y) - loss.derivative(p - step, y)) / (2 * step)
        A += (bend + slope**2 / t) * np.outer(x, x)
        w -= np.linalg.solve(A, slope * x)


def test_a_small_gradient_in_a_new_direction_makes_no_long_step() -> None:
    """The second row is predicted almost right; its step with the fixed σ has length 1/(σ·|gradient|)."""
    rows, labels = np.array([[1.0, 0.0], [0.999, 0.01]]), np.array([1.0, 1.0])

    def length(curvature: str | None) -> float:
        learner = SketchedNewton("rfd", 5, alpha=0.0, curvature=curvature, dtype="float64")
        learner.learn(rows, labels)
        return float(np.linalg.norm(learner.weights))

    assert length("local") < 2
    assert length(None) > 4


def test_refusals() -> None:
    for name in ("hinge", "absolute", "quantile:0.3", "poisson"):
        with pytest.raises(ValueError, match="has no bounded second derivative"):
            SketchedNewton(loss=name, curvature="local")
    with pytest.raises(ValueError, match="curvature='exact' is invalid: must be a number"):
        SketchedNewton(curvature="exact")
    with pytest.raises(ValueError, match="no regret bound is known with curvature='local'"):
        regret_bound(FullNewton(curvature="local"), X, np.sign(Y))
