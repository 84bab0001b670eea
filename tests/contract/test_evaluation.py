"""Progressive validation counts what was predicted before learning, wherever the batches are cut."""

from __future__ import annotations

import itertools
import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchnewton.core.batch import Batch
from sketchnewton.evaluation import ClassScore, ProgressiveScore, Report, SoftmaxScore, progressive
from sketchnewton.losses import get_loss
from sketchnewton.losses.squared import Squared


class RunningMean:
    """Predicts the mean of the labels so far plus the row's one feature: online, stateful, and easy to check."""

    def __init__(self, loss="squared"):
        self.loss = get_loss(loss)
        self.labels = []

    def learn_batch(self, batch):
        predictions = []
        for x, label in zip(batch.data, batch.labels, strict=True):
            predictions.append(x + (np.mean(self.labels) if self.labels else 0.0))
            self.labels.append(label)
        return np.array(predictions)


def stream(rows=100, *, signs=True, weighted=True):
    rng = np.random.default_rng(3)
    labels = rng.choice([-1.0, 1.0], rows) if signs else rng.normal(size=rows)
    x = 0.3 * rng.normal(size=rows)
    weights = rng.exponential(size=rows) if weighted else None
    return Batch(np.arange(rows + 1), np.zeros(rows, np.int64), x, labels, weights)


def cut(whole, places):
    edges = [0, *sorted(places), len(whole)]
    for begin, end in itertools.pairwise(edges):
        yield whole[begin:end]


def run(batches, loss="squared"):
    reports = []
    score = progressive(RunningMean(loss), batches, on_report=reports.append)
    return score, reports


def test_score_is_the_weighted_mean():
    score = ProgressiveScore("squared")
    score.update([1.0, 0.0], [1.0, -1.0], [1.0, 3.0])
    score.update([3.0], [1.0])
    assert score.rows == 3
    assert score.weight == 5.0
    assert score.mean_loss == (0 * 1 + 1 * 3 + 4 * 1) / 5
    assert score.error_rate == 3 / 5  # the zero predicts +1


def test_zero_counts_as_plus_one():
    score = ProgressiveScore("logistic")
    score.update([0.0, -0.0, 0.0], [1, 1, -1])
    assert score.error_rate == 1 / 3


def test_error_rate_only_while_all_labels_are_signs():
    score = ProgressiveScore("squared")
    assert score.error_rate is None
    score.update([1.0], [1.0])
    assert score.error_rate == 0.0
    score.update([1.0], [0.5])
    assert score.error_rate is None
    score.update([1.0], [1.0])
    assert score.error_rate is None


def test_an_empty_score():
    score = ProgressiveScore("squared")
    score.update([], [])
    assert score.rows == 0
    assert math.isnan(score.mean_loss)
    assert math.isnan(score.loss_since_report)


def test_rows_of_weight_zero_count_as_rows_only():
    score = ProgressiveScore("squared")
    score.update([5.0], [1.0], [0.0])
    assert score.rows == 1
    assert score.error_rate is None
    score.update([2.0], [1.0], [2.0])
    assert score.rows == 2
    assert score.mean_loss == 1.0


def test_a_report_starts_the_next_interval():
    score = ProgressiveScore("absolute")
    score.update([3.0], [1.0])
    assert score.report(1.0, 3.0) == Report(1, 2.0, 2.0, 0.0, 1.0, 3.0)
    assert math.isnan(score.loss_since_report)
    score.update([-1.0, 1.0], [1.0, 1.0], [1.0, 3.0])
    assert score.report(1.0, 1.0) == Report(3, 4 / 5, 2 / 4, 1 / 5, 1.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([1.0], [1.0, 2.0]), r"predictions \(1,\), labels \(2,\)"),
        (([1.0], [1.0], [1.0, 1.0]), r"weights \(2,\)"),
        (([[1.0]], [[1.0]]), "one dimension"),
        (([1.0], [1.0], [-2.0]), "weight -2 is invalid: must be >= 0"),
        (([1.0], [1.0], [math.nan]), "weight nan is invalid"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, message):
    score = ProgressiveScore("squared")
    with pytest.raises(ValueError, match=message):
        score.update(*rows)
    assert score.rows == 0


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 64, 100])
def test_reports_come_at_every_doubling_and_only_there(rows):
    score, reports = run([stream(rows)])
    assert [report.examples for report in reports] == [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= rows]
    assert score.rows == rows


@pytest.mark.parametrize("weighted", [True, False])
def test_a_report_is_that_of_a_run_which_ended_there(weighted):
    whole = stream(weighted=weighted)
    predictions = RunningMean().learn_batch(whole)
    weights = whole.weights if weighted else np.ones(100)
    losses = (predictions - whole.labels) ** 2
    _, reports = run([whole])
    before = 0
    for report in reports:
        n = report.examples
        assert report.mean_loss == pytest.approx(np.average(losses[:n], weights=weights[:n]))
        since = np.average(losses[before:n], weights=weights[before:n])
        assert report.loss_since_last == pytest.approx(since)
        wrong = np.where(predictions >= 0, 1, -1) != whole.labels
        assert report.error_rate == pytest.approx(np.average(wrong[:n], weights=weights[:n]))
        assert (report.label, report.prediction) == (whole.labels[n - 1], predictions[n - 1])
        before = n


def test_regression_has_no_error_rate():
    score, reports = run([stream(signs=False)])
    assert score.error_rate is None
    assert {report.error_rate for report in reports} == {None}


@given(places=st.lists(st.integers(0, 100), max_size=8))
def test_where_batches_are_cut_changes_nothing(places):
    whole = stream()
    score, reports = run([whole], "logistic")
    cut_score, cut_reports = run(cut(whole, places), "logistic")
    assert cut_reports == reports  # equal to the last bit
    assert cut_score.mean_loss == score.mean_loss
    assert cut_score.error_rate == score.error_rate
    assert cut_score.loss_since_report == score.loss_since_report


def test_without_reports_the_score_is_the_same():
    whole = stream()
    assert progressive(RunningMean(), [whole]).mean_loss == run([whole])[0].mean_loss


def test_batches_are_taken_one_at_a_time():
    learner = RunningMean()

    def batches():
        for learned in (0, 100, 200):
            assert len(learner.labels) == learned
            yield stream()

    assert progressive(learner, batches()).rows == 300


@pytest.mark.parametrize("step", [1, 2])
def test_memoryviews_are_arrays(step: int) -> None:
    view = memoryview(array("d", [0.5, 2.0, 1.0, 3.0]))[::step]
    score, same = ProgressiveScore("squared"), ProgressiveScore("squared")
    score.update(view, view, view)
    same.update(np.array(view), np.array(view), np.array(view))
    assert score.state == same.state
    classes = ClassScore("hinge", 4)
    classes.update(np.eye(len(view), 4), memoryview(array("d", [0.0, 1.0, 2.0, 3.0]))[: len(view)])
    assert classes.error_rate == 0.0


def test_a_loss_of_ones_own_is_asked_for_its_values() -> None:
    class Far(Squared):
        def _value(self, p: np.ndarray, y: np.ndarray) -> np.ndarray:
            return 100.0 + 0.0 * p

    score = ProgressiveScore(Far())
    score.update([1.0, 1.0], [1.0, -1.0])
    assert score.mean_loss == 100.0
    assert score.error_rate == 0.5
    classes = ClassScore(Far(), 2)
    classes.update([[1.0, 0.0], [1.0, 0.0]], [0, 1])
    assert classes.mean_loss == 100.0
    assert classes.error_rate == 0.5


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_classes_are_scored_as_defined(loss: str) -> None:
    rng = np.random.default_rng(0)
    p, y, h = 30 * rng.standard_normal((50, 7)), rng.integers(0, 7, 50), rng.random(50)
    signs = np.where(np.arange(7) == y[:, None], 1.0, -1.0)
    entropies = np.logaddexp.reduce(p, axis=1) - p[np.arange(50), y]
    for kind, losses in (
        (ClassScore, get_loss(loss).value(p, signs).mean(axis=1)),
        (SoftmaxScore, entropies),
    ):
        whole, parts = kind(loss, 7), kind(loss, 7)
        whole.update(p, y, h)
        for i in range(0, 50, 3):
            parts.update(p[i : i + 3], y[i : i + 3], h[i : i + 3])
        assert whole.state == parts.state
        assert whole.mean_loss == pytest.approx(h @ losses / h.sum(), rel=1e-13)
        assert whole.error_rate == pytest.approx(h @ (p.argmax(axis=1) != y) / h.sum(), rel=1e-13)


@pytest.mark.parametrize("label", [2.5, 3.0, -1.0, np.nan])
@pytest.mark.parametrize("kind", [ClassScore, SoftmaxScore])
def test_a_label_of_no_class_has_no_score(kind: type[ClassScore], label: float) -> None:
    with pytest.raises(ValueError, match="row 1: expected the number of one of 3 classes as the label, got"):
        kind("logistic", 3).update(np.zeros((2, 3)), [2.0, label])
