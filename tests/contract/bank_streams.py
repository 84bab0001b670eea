"""Streams for the tests of the bank."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchnewton import NewtonBank
from sketchnewton.core.names import LOSS_PARAMETERS, LOSSES
from sketchnewton.losses import get_loss
from tests.contract.learners import sparse_stream


def regression_stream(rounds: int, seed: int = 0, **shape: Any) -> tuple[Any, Any]:
    X, _ = sparse_stream(rounds, seed=seed, **shape)
    rng = np.random.default_rng(seed)
    y = X @ rng.standard_normal(X.shape[1]) + 0.3 * rng.standard_normal(rounds)
    return X, y


def count_stream(rounds: int, seed: int = 0, mean: float = 5.0) -> tuple[Any, Any]:
    X, score = regression_stream(rounds, seed, d=60, non_zeros=10)
    rate = np.exp(score / 2 / score.std())
    return X, np.random.default_rng(seed).poisson(mean * rate / rate.mean()).astype(float)


ALL_LOSSES = [*(name for name in LOSSES if name not in LOSS_PARAMETERS), "quantile:0.8", "huber:0.7"]


def stream_for(loss: str, rounds: int) -> tuple[Any, Any]:
    """Rows and labels that suit the loss."""
    if loss == "poisson":
        return count_stream(rounds)
    X, y = regression_stream(rounds, d=60, non_zeros=10)
    return X, np.sign(y) if get_loss(loss).sign_labels or loss == "squared" else y


def adversaries(rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows and labels by one of several rules, all out to hurt."""
    n, d = int(rng.integers(2, 120)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    kind = rng.integers(6)
    if kind == 0:
        y = rng.choice([-1.0, 1.0], n)
    elif kind == 1:  # flips in runs
        y = np.where((np.arange(n) // rng.integers(1, 9)) % 2 == 0, 1.0, -1.0)
    elif kind == 2:  # a rule that turns round
        y = np.sign(X[:, 0] + 1e-12) * np.where(np.arange(n) < n // 2, 1, -1)
    elif kind == 3:  # one row again and again, with any label
        X[:] = X[0]
        y = rng.choice([-1.0, 1.0], n)
    elif kind == 4:  # always against the prediction
        learner, y = NewtonBank(dtype="float64"), np.empty(n)
        for i in range(n):
            y[i] = -1.0 if learner.predict(X[i : i + 1])[0] >= 0 else 1.0
            learner.learn(X[i : i + 1], y[i : i + 1])
    else:  # against the leading expert
        learner, y = NewtonBank(dtype="float64"), np.empty(n)
        for i in range(n):
            leader = learner.predict_experts(X[i : i + 1])[0, learner.expert_shares.argmax()]
            y[i] = -1.0 if leader >= 0 else 1.0
            learner.learn(X[i : i + 1], y[i : i + 1])
    return X, y
