"""What the RFD paper measures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from experiments.data import load
from experiments.passes import Method, learner_of, mistakes, running_mean
from sketchnewton import (
    CompensativeFrequentDirections,
    FrequentDirections,
    ParameterizedFrequentDirections,
    RobustFrequentDirections,
)

SPECTRA = ("power law", "exponential")


def _sketch(kind: str, m: int) -> Any:
    if kind.startswith("PFD"):
        return ParameterizedFrequentDirections(m, beta=float(kind.split()[1]))
    kinds = {
        "FD": FrequentDirections,
        "CFD": CompensativeFrequentDirections,
        "RFD": RobustFrequentDirections,
    }
    return kinds[kind](m)


def _matrix(folder: str, data: str, rows: int) -> Any:
    """Rows in random order, at most so many; a synthetic matrix by the law of its spectrum."""
    random = np.random.default_rng(0)
    if data in SPECTRA:
        d = np.arange(200)
        spectrum = (d + 1.0) ** -0.7 if data == "power law" else np.exp(-d / 20)
        rotation = np.linalg.qr(random.standard_normal((200, 200)))[0]
        return (random.standard_normal((rows, 200)) * spectrum) @ rotation
    X, _ = load(data, Path(folder))
    return X[random.permutation(X.shape[0])[:rows]]


def spectral_errors(
    folder: str, data: str, sizes: list[int], kinds: list[str], rows: int
) -> dict[str, list[float]]:
    """‖AᵀA − (BᵀB + ridge·I)‖₂ / ‖AᵀA‖₂ of every kind, one for each size."""
    A = _matrix(folder, data, rows)
    scale = _largest(A, None)
    return {kind: [_largest(A, _sketch(kind, m).update(A)) / scale for m in sizes] for kind in kinds}


def _largest(A: Any, sketch: Any) -> float:
    """The spectral norm of AᵀA less the sketch; by Lanczos where d is large."""
    d = A.shape[1]
    if d <= 2000:
        exact = A.T @ A if isinstance(A, np.ndarray) else (A.T @ A).toarray()
        left = np.linalg.eigvalsh(exact - (0 if sketch is None else sketch.covariance()))
        return float(max(-left[0], left[-1]))
    B, ridge = (sketch.matrix, sketch.ridge) if sketch is not None else (np.zeros((1, d)), 0.0)

    def times(v: Any) -> Any:
        v = v.ravel()
        return A.T @ (A @ v) - B.T @ (B @ v) - ridge * v

    start = np.random.default_rng(0).standard_normal(d)
    operator = LinearOperator((d, d), matvec=times, dtype=np.float64)
    return float(abs(eigsh(operator, k=1, v0=start, tol=1e-3, ncv=40, return_eigenvectors=False)[0]))


def split_pass(folder: str, data: str, methods: list[Method], seed: int) -> list[dict[str, Any]]:
    """For every method one pass over 70% of the rows, drawn by the seed.

    Accuracy on the other rows, error while learning and its curve, processor time per row.
    """
    X, y = load(data, Path(folder))
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.7 * len(y))
    train, test = order[:cut], order[cut:]
    X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
    found = []
    for method in methods:
        learner = learner_of(method)
        begun = time.process_time()
        wrong = mistakes(learner.learn(X_train, y_train), y_train)
        seconds = (time.process_time() - begun) / cut
        accuracy = 1.0 - float(mistakes(learner.predict(X_test), y_test).mean())
        found.append(
            {
                "accuracy": accuracy,
                "online": float(wrong.mean()),
                "curve": running_mean(wrong, 40),
                "seconds": seconds,
            }
        )
    return found
