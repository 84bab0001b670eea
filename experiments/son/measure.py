"""What the SON paper measures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from experiments.data import DATA_SETS, load, read, with_constant
from experiments.passes import Method, learner_of, mistakes, running_mean
from sketchnewton import SketchedNewton
from sketchnewton.cli.pictures.demo_data import ill_conditioned

Floats = npt.NDArray[np.float64]
STEPS = [2.0**j for j in range(-3, 7)]
"""The paper's 1/α."""


def alpha_of(step: float, diagonal: bool = False) -> float:
    """The paper's program takes half of the squared loss, so that its α is α/2 for (p − y)².

    With the diagonal, half of the loss halves √D too, which makes rows twice as long: its α is then 2α.
    """
    return 0.5 / step if diagonal else 2.0 / step


def synthetic_error(methods: list[Method], kappa: float, seed: int, rows: int) -> float:
    """The least error of the methods on §5.1's data."""
    X, y = ill_conditioned([kappa], rows, seed=seed)[kappa]
    return min(float(mistakes(learner_of(method).learn(X, y), y).mean()) for method in methods)


def progressive_error(folder: str, data: str, method: Method, shuffled: bool | None = None) -> float:
    """Share of the rows of one pass whose sign was predicted wrong."""
    X, y = _rows(data, folder, shuffled)
    return float(mistakes(learner_of(method).learn(X, y), y).mean())


def progressive_curve(folder: str, data: str, method: Method) -> tuple[list[float], list[float]]:
    """Rows, and the error up to there."""
    X, y = _rows(data, folder)
    return running_mean(mistakes(learner_of(method).learn(X, y), y), 50)


def _rows(data: str, folder: str, shuffled: bool | None = None) -> tuple[csr_array, Floats]:
    X, y = load(data, Path(folder), shuffled=shuffled)
    return with_constant(X), y


def eigenvalue_curve(
    kappa: float, rate: float | str, seed: int, rows: int
) -> tuple[list[float], list[float]]:
    """Along one pass of Oja-SON: rows, and how far off the top ten eigenvalues of Σĝĝᵀ are."""
    X, y = ill_conditioned([kappa], rows, seed=seed)[kappa]
    learner = SketchedNewton("oja", 10, alpha=1.0, dtype="float64", oja_rate=rate)
    places = np.unique(np.geomspace(20, rows, 40).astype(int))
    exact, errors, begin = np.zeros((X.shape[1],) * 2), [], 0
    for end in places:
        part = slice(begin, end)
        exact += _metric(X[part], learner.learn(X[part], y[part]) - y[part])
        errors.append(_largest_error(exact, learner.spectrum))
        begin = end
    return places.astype(float).tolist(), errors


def eigenvalue_error(folder: str, data: str, rate: float | str, rows: int | None) -> float:
    """How far off the top ten eigenvalues of Σĝĝᵀ are after one pass with diagonal adaptation off."""
    X, y = (part[:rows] for part in load(data, Path(folder)))
    learner = SketchedNewton("oja", 10, alpha=1.0, dtype="float64", oja_rate=rate)
    exact = _metric(X, learner.learn(X, y) - y)
    return _largest_error(exact, learner.spectrum)


def _metric(X: Any, residuals: Floats) -> Floats:
    """Σĝĝᵀ, ĝ = √σ·2(p − y)x with σ = 1/8 of the squared loss on |p| ≤ 1."""
    weights = 0.125 * 4.0 * residuals**2
    if isinstance(X, np.ndarray):
        return X.T @ (X * weights[:, None])
    return (X.T @ csr_array(X.multiply(weights[:, None]))).toarray()


def _largest_error(exact: Floats, spectrum: Floats) -> float:
    true = np.linalg.eigvalsh(exact)[::-1][:10]
    true = true[true > 1e-9 * true[0]]
    found = np.zeros(len(true))
    found[: len(spectrum)] = spectrum[: len(true)]
    return float(np.max(np.abs(found - true) / true))


def order_facts(folder: str, data: str) -> dict[str, float]:
    """What the order of the file gives away, and how many features a row has."""
    X, y = load(data, Path(folder), shuffled=False)
    return {
        "rows": len(y),
        "nonzeros": X.nnz / len(y),
        "changes": int(np.count_nonzero(np.diff(y))),
        "rarer": float(min(np.mean(y > 0), np.mean(y < 0))),
    }


def news_split(folder: str, positive: list[int], shuffled: bool) -> list[float]:
    """m = 0 without and with diagonal on 20news with these classes against the others."""
    X, classes = read(Path(folder) / DATA_SETS["20news"].files[0].path)
    order = np.random.default_rng(0).permutation(len(classes)) if shuffled else np.arange(len(classes))
    X, y = with_constant(X[order]), np.where(np.isin(classes[order], positive), 1.0, -1.0)

    def error(step: float, diagonal: bool) -> float:
        learner = SketchedNewton(
            "none", 0, alpha=alpha_of(step, diagonal), diagonal=diagonal, project=False, dtype="float64"
        )
        return float(mistakes(learner.learn(X, y), y).mean())

    return [min(error(step, diagonal) for step in STEPS) for diagonal in (False, True)]


def relative_cost(folder: str, data: str, methods: dict[str, Method]) -> dict[str, float]:
    """Processor time of one pass, in µs per row: the least of five, the methods in turn."""
    X, y = (part[:20_000] for part in _rows(data, folder))
    seconds = {name: float("inf") for name in methods}
    for _ in range(5):
        for name, method in methods.items():
            learner = learner_of(method)
            begun = time.process_time()
            learner.learn(X, y)
            seconds[name] = min(seconds[name], time.process_time() - begun)
    return {name: 1e6 * value / len(y) for name, value in seconds.items()}
