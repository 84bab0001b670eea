"""Scores of classes become probabilities, however small they are."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton.learners.probabilities import class_probabilities, class_probabilities_of_row
from sketchnewton.losses import get_loss

LOGISTIC = get_loss("logistic")


@pytest.mark.parametrize("shift", [0.0, -10.0, -31.0, -100.0, -800.0, -1e6])
def test_probabilities_sum_to_one_and_keep_their_ratios(shift: float) -> None:
    """1/(1 + exp(−score)) of all classes is 0 below −745."""
    scores = np.array([[0.3, -1.2, 0.9], [-2.0, 0.0, -15.0]]) + shift
    found = class_probabilities(LOGISTIC, scores, 100)
    logs = -np.logaddexp(0.0, -scores)
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for row, probabilities in zip(scores.tolist(), expected, strict=True):
        np.testing.assert_allclose(class_probabilities_of_row(LOGISTIC, row, 100), probabilities, rtol=1e-9)


def test_a_row_in_which_all_vanish_does_not_change_the_others() -> None:
    scores = np.array([[-900.0, -901.0], [0.5, -0.5], [-1e5, -2e5]])
    found = class_probabilities(LOGISTIC, scores, 100)
    assert np.isfinite(found).all()
    assert (found.argmax(axis=1) == 0).all()
    np.testing.assert_array_equal(found[1], class_probabilities(LOGISTIC, scores[1:2], 100)[0])
