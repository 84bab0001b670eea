"""project=False: predictions are clipped, weights stay where they are."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import FullNewton, SketchedNewton, load
from sketchnewton.evaluation import regret_bound
from tests.oracles.clipped_gradient import clipped_gradient

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 8)) * np.geomspace(1, 10, 8)
Y = np.where(X @ RNG.standard_normal(8) + RNG.standard_normal(300) > 0, 1.0, -1.0)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 4.0, 300.0])
def test_without_a_sketch_it_is_clipped_gradient_descent(diagonal: bool, alpha: float) -> None:
    learner = SketchedNewton("none", 0, alpha=alpha, diagonal=diagonal, dtype="float64", project=False)
    found, expected = learner.learn(X, Y), clipped_gradient(X, Y, alpha, 1.0, diagonal)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    if alpha < 1:  # where steps are long, predictions reach the bound
        assert np.abs(found).max() == 1.0


def test_a_sketch_as_large_as_the_space_is_the_full_matrix() -> None:
    learner = SketchedNewton("fd", 10, alpha=2.0, dtype="float64", project=False)
    found, w, A = learner.learn(X, Y), np.zeros(8), 2.0 * np.eye(8)
    for x, y, p in zip(X, Y, found, strict=True):
        assert p == pytest.approx(np.clip(w @ x, -1, 1), abs=1e-6)
        g = 2 * (p - y) * x
        A += 0.125 * np.outer(g, g)
        w -= np.linalg.solve(A, g)


def test_without_a_bound_nothing_changes(tmp_path) -> None:
    pair = [
        SketchedNewton("oja", 3, alpha=50.0, clip=None, curvature=0.1, project=flag) for flag in (True, False)
    ]
    np.testing.assert_array_equal(*(learner.learn(X, Y) for learner in pair))
    bounded = SketchedNewton("oja", 3, alpha=50.0, project=False)
    bounded.learn(X[:150], Y[:150])
    bounded.save(tmp_path / "model.skn")
    resumed = load(tmp_path / "model.skn")
    np.testing.assert_array_equal(resumed.learn(X[150:], Y[150:]), bounded.learn(X[150:], Y[150:]))


def test_no_bound_is_promised() -> None:
    with pytest.raises(ValueError, match="no regret bound is known with project=False"):
        regret_bound(SketchedNewton("fd", 3, alpha=1.0, project=False), X, Y)
    assert regret_bound(FullNewton(), X, Y) > 0
