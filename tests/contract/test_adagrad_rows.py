"""One row at a time, and scores before they are clipped, for AdaGrad's learners."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton.learners.rows import as_rows
from tests.contract.learners import LEARNERS, assert_same_state, sparse_stream

KINDS = [name for name in LEARNERS if "ada" in name]


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_at_a_time(kind: str) -> None:
    X, y = sparse_stream(120, d=30, non_zeros=6)
    whole, single = LEARNERS[kind](), LEARNERS[kind]()
    expected = whole.learn(X, y)
    seen = [single.learn_row(as_rows(X[i : i + 1]), float(y[i])) for i in range(len(y))]
    np.testing.assert_array_equal(seen, expected)
    assert_same_state(whole, single)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_predictions_without_a_bound(kind: str) -> None:
    X, y = sparse_stream(120, d=30, non_zeros=6)
    learner = LEARNERS[kind]()
    learner.learn(X, y)
    scores = learner.decision_function(5 * X)
    np.testing.assert_allclose(scores, 5 * X @ learner.weights + learner.intercept_, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(np.clip(scores, *learner.prediction_bounds), learner.predict(5 * X))
