"""A learner that has left the range of its numbers says so: it hands out no NaN, and leaves no file."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import AdaGrad, Learner, SketchedAdaGrad
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
