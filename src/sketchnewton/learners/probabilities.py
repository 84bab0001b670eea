"""From the scores of classes to probabilities."""

from __future__ import annotations

import math

from sketchnewton.core.types import Floats, NDArray, np
from sketchnewton.losses import Loss

LARGEST_LOGIT = 30.0  # so that 1/(1 + exp(−score)) is neither 0 nor 1


def class_probabilities(loss: Loss, scores: Floats, rows: int) -> Floats:
    """The probability of each class; `scores` has a column per class, or one, of the second against the first.

    Logistic loss: 1/(1 + exp(−score)); for more than two classes divided by their sum. Other losses: squared
    loss on labels ±1 estimates 2P − 1, so P = (1 + score)/2, and the hinge losses' margins are read the same
    way; these numbers are moved to the nearest point where they are probabilities (not negative, of sum one) and
    then, by Laplace's rule for a learner of `rows` rows and K classes, to (rows·P + 1)/(rows + K). No probability
    is 0 or 1.
    """
    single = scores.shape[1] == 1
    if single:
        scores = np.hstack([-scores, scores])
    if loss.link_kind != "logistic":
        nearest = nearest_probabilities((1.0 + scores) / 2.0)
        return np.asarray((rows * nearest + 1.0) / (rows + scores.shape[1]))
    positive = loss.link(np.clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT))
    if single:
        return positive
    low = scores.max(axis=1) < -LARGEST_LOGIT
    positive[low] = softmax(scores[low])  # 1/(1 + exp(−score)) is exp(score) there: classes keep their order
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def class_probabilities_of_row(loss: Loss, scores: list[float], rows: int) -> list[float]:
    """`class_probabilities` of a single row, without the cost of arrays."""
    single = len(scores) == 1
    if single:
        if loss.link_kind == "logistic":
            score = min(max(scores[0], -LARGEST_LOGIT), LARGEST_LOGIT)
            return [1.0 / (1.0 + math.exp(score)), 1.0 / (1.0 + math.exp(-score))]
        scores = [-scores[0], scores[0]]
    if loss.link_kind != "logistic":
        nearest = _nearest_probabilities_of_row([(1.0 + score) / 2.0 for score in scores])
        return [(rows * p + 1.0) / (rows + len(nearest)) for p in nearest]
    if max(scores) < -LARGEST_LOGIT:
        return _softmax_of_row(scores)
    within = [min(max(score, -LARGEST_LOGIT), LARGEST_LOGIT) for score in scores]
    positive = [1.0 / (1.0 + math.exp(-score)) for score in within]
    total = sum(positive)
    return [p / total for p in positive]


def softmax(scores: Floats) -> Floats:
    """exp(score) of each class, divided by their sum; none is 0 or 1."""
    powers = np.exp(np.maximum(scores - scores.max(axis=1, keepdims=True), -LARGEST_LOGIT))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _softmax_of_row(scores: list[float]) -> list[float]:
    top = max(scores)
    powers = [math.exp(max(score - top, -LARGEST_LOGIT)) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def cross_entropy(scores: Floats, classes: NDArray[np.intp]) -> Floats:
    """−log of the softmax probability of each row's class."""
    top = scores.max(axis=1)
    logs = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    return np.asarray(logs - scores[np.arange(len(scores)), classes])


def nearest_probabilities(values: Floats) -> Floats:
    """The Euclidean projection of each row onto the simplex; it keeps the order of a row's numbers.

    >>> nearest_probabilities(np.array([[0.2, 0.9, 0.1], [1.4, 1.2, -3.0]])).round(3).tolist()
    [[0.133, 0.833, 0.033], [0.6, 0.4, 0.0]]
    """
    ordered = -np.sort(-values, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    counts = np.arange(1, values.shape[1] + 1)
    kept = (ordered * counts > excess).sum(axis=1)  # how many stay positive
    shift = np.take_along_axis(excess, kept[:, None] - 1, axis=1) / kept[:, None]
    projected = np.maximum(values - shift, 0.0)
    return np.asarray(projected / projected.sum(axis=1, keepdims=True))


def _nearest_probabilities_of_row(values: list[float]) -> list[float]:
    total, shift = -1.0, 0.0
    for count, value in enumerate(sorted(values, reverse=True), start=1):
        total += value
        if value * count <= total:
            break
        shift = total / count
    projected = [max(value - shift, 0.0) for value in values]
    scale = sum(projected)
    return [value / scale for value in projected]
