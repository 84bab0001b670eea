"""Rows in shards, for tests of merged banks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

from sketchnewton import NewtonBank

LABELS = ("signs", "numbers")


def stream(rows: int, labels: str = "signs", seed: int = 0, d: int = 60) -> tuple[csr_array, np.ndarray]:
    """Sparse rows of features of many scales, some of them rare."""
    rng = np.random.default_rng(seed)
    X = random_array((rows, d), density=0.2, rng=rng, data_sampler=lambda size: rng.normal(size=size)).tocsr()
    truth = np.random.default_rng(99).normal(size=d)
    score = X @ truth + 0.3 * rng.normal(size=rows)
    X = csr_array(X @ np.diag(np.geomspace(1e-3, 1e3, d)))
    if labels == "counts":
        return X, rng.poisson(np.exp(1.0 + 0.3 * score)).astype(float)
    return X, np.where(score > 0, 1.0, -1.0) if labels == "signs" else 40.0 + 9.0 * score


def shards(k: int, labels: str = "signs", rows: int = 1200, **parameters: object) -> list[NewtonBank]:
    X, y = stream(rows, labels)
    banks = [NewtonBank(**parameters) for _ in range(k)]
    for i, bank in enumerate(banks):
        bank.learn(X[i::k], y[i::k])
    return banks


def mean_loss(bank: NewtonBank, X: csr_array, y: np.ndarray) -> float:
    return float(np.mean([bank.loss.value(p, label) for p, label in zip(bank.predict(X), y, strict=True)]))
