"""Every metric is that of scikit-learn; what cannot be measured is NaN or left out."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import sklearn.metrics as reference

from sketchnewton.evaluation.metrics import METRICS, Answers, calibration, confusion, measure

ROWS, CLASSES = 400, 4


def answers(kind: str, seed: int) -> Answers:
    """Predictions with ties, some of them 0, weights of which some are 0, and probabilities."""
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random(ROWS) < 0.1, 0.0, rng.exponential(2.0, ROWS))
    if kind == "numbers":
        labels = rng.standard_normal(ROWS) * 3.0 + 5.0
        return Answers(labels + rng.standard_normal(ROWS), labels, weights, kind)
    if kind == "signs":
        labels = rng.choice([-1.0, 1.0], ROWS, p=[0.7, 0.3])
        scores = np.round(labels + 2.0 * rng.standard_normal(ROWS))
        positive = rng.random(ROWS)
        return Answers(scores, labels, weights, kind, np.column_stack([1.0 - positive, positive]))
    labels = rng.integers(CLASSES, size=ROWS).astype(float)
    scores = rng.standard_normal((ROWS, CLASSES)) + 2.0 * (np.arange(CLASSES) == labels[:, None])
    return Answers(scores, labels, weights, kind, rng.dirichlet(np.ones(CLASSES), ROWS))


def decided(a: Answers) -> np.ndarray:
    return a.predictions.argmax(axis=1) if a.kind == "classes" else np.where(a.predictions >= 0.0, 1.0, -1.0)


def brier(a: Answers) -> float:
    if a.kind == "signs":
        return reference.brier_score_loss(
            a.labels, a.probabilities[:, 1], sample_weight=a.weights, pos_label=1
        )
    wanted = np.eye(CLASSES)[a.labels.astype(int)]
    return CLASSES * reference.mean_squared_error(wanted, a.probabilities, sample_weight=a.weights)


EXPECTED: dict[str, Callable[[Answers], float]] = {
    "error": lambda a: 1.0 - reference.accuracy_score(a.labels, decided(a), sample_weight=a.weights),
    "auc": lambda a: reference.roc_auc_score(a.labels, a.predictions, sample_weight=a.weights),
    "f1": lambda a: reference.f1_score(a.labels, decided(a), sample_weight=a.weights),
    "log_loss": lambda a: reference.log_loss(a.labels, a.probabilities, sample_weight=a.weights),
    "brier": brier,
    "mae": lambda a: reference.mean_absolute_error(a.labels, a.predictions, sample_weight=a.weights),
    "rmse": lambda a: reference.root_mean_squared_error(a.labels, a.predictions, sample_weight=a.weights),
    "r2": lambda a: reference.r2_score(a.labels, a.predictions, sample_weight=a.weights),
}


def test_every_metric_has_a_reference():
    assert EXPECTED.keys() == METRICS.keys()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["numbers", "signs", "classes"])
def test_metrics_are_those_of_scikit_learn(kind, seed):
    given = answers(kind, seed)
    measured = measure(given)
    assert list(measured) == [name for name, (_, kinds) in METRICS.items() if kind in kinds]
    for name, value in measured.items():
        assert value == pytest.approx(EXPECTED[name](given), rel=1e-12), name


@pytest.mark.parametrize("kind", ["signs", "classes"])
def test_without_probabilities_there_is_no_metric_of_them(kind):
    given = answers(kind, 0)
    assert measure(given).keys() - measure(given._replace(probabilities=None)).keys() == {"log_loss", "brier"}


def test_an_impossible_row_leaves_the_log_loss_finite():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    given = Answers(np.array([-9.0, 9.0]), np.array([1.0, 1.0]), np.ones(2), "signs", sure)
    assert measure(given)["log_loss"] == pytest.approx(-math.log(1e-15) / 2.0)


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_auc_of_one_label_is_nan(label):
    given = answers("signs", 0)
    assert math.isnan(measure(given._replace(labels=np.full(ROWS, label)))["auc"])


def test_auc_of_equal_scores_is_a_half():
    assert measure(answers("signs", 0)._replace(predictions=np.ones(ROWS)))["auc"] == 0.5


def test_f1_where_nothing_is_positive_is_nan():
    minus = np.full(ROWS, -1.0)
    assert math.isnan(measure(answers("signs", 0)._replace(labels=minus, predictions=minus))["f1"])


def test_r2_of_constant_labels_is_nan():
    measured = measure(answers("numbers", 0)._replace(labels=np.full(ROWS, 2.0)))
    assert math.isnan(measured["r2"])
    assert math.isfinite(measured["rmse"])


@pytest.mark.parametrize("kind", ["numbers", "signs", "classes"])
def test_without_weight_every_metric_is_nan(kind):
    measured = measure(answers(kind, 0)._replace(weights=np.zeros(ROWS)))
    assert measured
    assert all(math.isnan(value) for value in measured.values())


def test_calibration_is_the_means_within_each_bin():
    given = answers("signs", 1)
    p = given.probabilities[:, 1]
    expected = []
    for k in range(5):
        inside = (p >= k / 5) & (p < (k + 1) / 5)
        w = given.weights[inside]
        expected.append(
            (np.average(p[inside], weights=w), np.average(given.labels[inside] > 0, weights=w), w.sum())
        )
    np.testing.assert_allclose(calibration(given, bins=5), expected, rtol=1e-12)


def test_calibration_has_no_empty_bins_and_puts_certainty_in_the_last():
    chances = np.array([[1.0, 0.0], [0.0, 1.0], [0.05, 0.95]])
    given = Answers(np.zeros(3), np.array([-1.0, 1.0, -1.0]), np.array([1.0, 2.0, 2.0]), "signs", chances)
    assert calibration(given) == [(0.0, 0.0, 1.0), (pytest.approx(0.975), 0.5, 4.0)]


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_calibration_is_of_signs_alone(kind):
    assert calibration(answers(kind, 0)) == []
    assert calibration(answers("signs", 0)._replace(probabilities=None)) == []


@pytest.mark.parametrize("kind", ["signs", "classes"])
def test_confusion_is_that_of_scikit_learn(kind):
    given = answers(kind, 1)
    expected = reference.confusion_matrix(given.labels, decided(given), sample_weight=given.weights)
    np.testing.assert_allclose(confusion(given), expected, rtol=1e-12)
    assert confusion(answers("numbers", 0)) is None


def test_answers_of_some_rows():
    given = answers("signs", 2)
    rows = np.flatnonzero(np.arange(ROWS) % 3 == 0)
    kept = Answers(*(part if isinstance(part, str) else part[rows] for part in given))
    assert measure(given.of(rows)) == measure(kept)
