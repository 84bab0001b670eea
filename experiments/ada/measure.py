"""What the ADA paper measures on convex problems."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data import load
from sketchnewton import CompositeAdaGrad, FullAdaGrad, RadaGrad, SketchedAdaGrad, SketchedNewton
from sketchnewton.learners import OneVsAll

Floats = npt.NDArray[np.float64]
SKETCHES = {"ADA-FD": ("fd", "gradients"), "ADA-GP": ("rp", "gradients"), "ADA-DP": ("rp", "data")}


def learner_of(method: str, tau: int, eta: float, sigma: float, loss: str, classes: int | None = None) -> Any:
    """A method of the paper."""
    if method == "RP-SON":  # its η_t is 1/√t; η and σ of the grid make one parameter, α
        newton = {"sketch": "rp", "sketch_size": tau, "alpha": sigma / eta, "loss": loss, "clip": None}
        newton |= {"curvature": 0.0, "curvature_weight": "1/sqrt(t)", "dtype": "float64"}
        return OneVsAll(SketchedNewton, classes, newton) if classes else SketchedNewton(**newton)
    if method == "ADA-FULL":
        return FullAdaGrad(eta=eta, sigma=sigma, loss=loss, classes=classes)
    if method == "RADAGRAD":
        return RadaGrad(tau, eta=eta, sigma=sigma, loss=loss, classes=classes)
    if method == "ADA-DIAG":
        return CompositeAdaGrad.simplest(eta=eta, sigma=sigma, loss=loss, classes=classes, dtype="float64")
    sketch, of = SKETCHES[method]
    return SketchedAdaGrad(
        sketch, tau, of=of, eta=eta, sigma=sigma, loss=loss, classes=classes, dtype="float64"
    )


def pairs(method: str, grid: list[float]) -> list[tuple[float, float]]:
    """Every η with every σ; for RP-SON only their ratio matters."""
    if method == "RP-SON":
        return [(1.0, alpha) for alpha in sorted({float(f"{s / e:.3g}") for s in grid for e in grid})]
    return [(eta, sigma) for eta in grid for sigma in grid]


def _regression_data(rounds: int, d: int) -> tuple[Floats, Floats]:
    """Rows N(1, Σ) with eigenvalues 100/j², and a noiseless linear target."""
    random = np.random.default_rng(0)
    beta = random.standard_normal(d)
    Q = np.linalg.qr(random.standard_normal((d, d)))[0]
    X = 1.0 + (random.standard_normal((rounds, d)) * (10.0 / np.arange(1, d + 1))) @ Q.T
    return X, X @ (beta / np.linalg.norm(beta))


def _curve(losses: Floats) -> tuple[list[float], list[float]]:
    """The total of the first n losses, for 50 n."""
    places = np.unique(np.linspace(1, len(losses), 51).astype(int)[1:])
    return places.astype(float).tolist(), np.cumsum(losses)[places - 1].tolist()


def _order(rounds: int, seed: int) -> npt.NDArray[np.intp]:
    return np.random.default_rng(100 + seed).permutation(rounds)


def regression(method: str, tau: int, rounds: int, d: int, seeds: int, grid: list[float]) -> dict[str, Any]:
    """Regret (the best fixed weights lose nothing) with the η and σ of least loss on the first permutation."""
    X, y = _regression_data(rounds, d)
    orders = [_order(rounds, seed) for seed in range(seeds)]

    def losses(pair: tuple[float, float], order: npt.NDArray[np.intp]) -> tuple[Floats, float]:
        learner, begun = learner_of(method, tau, *pair, loss="absolute"), time.process_time()
        with np.errstate(all="ignore"):
            predictions = learner.learn(X[order], y[order])
        seconds = time.process_time() - begun
        return np.nan_to_num(np.abs(predictions - y[order]), nan=1e9), seconds

    best = min(pairs(method, grid), key=lambda pair: float(losses(pair, orders[0])[0].sum()))
    runs = [losses(best, order) for order in orders]
    return {
        "regret": float(np.mean([loss.sum() for loss, _ in runs])),
        "spread": float(np.std([loss.sum() for loss, _ in runs])),
        "curve": _curve(np.mean([loss for loss, _ in runs], axis=0)),
        "seconds": min(seconds for _, seconds in runs),
        "eta": best[0],
        "sigma": best[1],
    }


def full_regression(rounds: int, d: int, seed: int, grid: list[float]) -> dict[str, Any]:
    """ADA-FULL on one permutation, with every η and σ of the grid at once: the curves of all, by η and then σ.

    A gradient of the absolute loss is ±x, so Σggᵀ, whose decomposition takes all the time, is the same for all.
    """
    X, y = _regression_data(rounds, d)
    order = _order(rounds, seed)
    etas, sigmas = np.array(grid)[:, None], np.array(grid)
    G, W, losses = (
        np.zeros((d, d)),
        np.zeros((d, len(grid), len(grid))),
        np.empty((rounds, len(grid), len(grid))),
    )
    begun = time.process_time()
    with np.errstate(all="ignore"):
        for t, (x, label) in enumerate(zip(X[order], y[order], strict=True)):
            gaps = np.tensordot(x, W, 1) - label
            losses[t] = np.nan_to_num(np.abs(gaps), nan=1e9)
            G += np.outer(x, x)
            values, V = np.linalg.eigh(G)
            roots = np.sqrt(np.maximum(values, 0.0))[:, None]
            steps = V @ ((V.T @ x)[:, None] / (sigmas + roots))  # H⁻¹x, a column for each σ
            W -= steps[:, None, :] * (etas * np.sign(gaps))
    return {
        "curves": [[_curve(losses[:, i, j]) for j in range(len(grid))] for i in range(len(grid))],
        "seconds": time.process_time() - begun,
    }


def classification(
    folder: str, train: str, test: str, method: str, tau: int, seeds: int, grid: list[float], rows: int | None
) -> dict[str, Any]:
    """One pass, cross-entropy: mistakes, and accuracy on test rows, along it.

    η and σ are those of fewest mistakes on so many rows of the first permutation.
    """
    X, y = load(train, Path(folder))
    X_test, y_test = load(test, Path(folder))
    X, X_test = X.toarray(), X_test.toarray()
    names = np.unique(y)
    y, y_test = np.searchsorted(names, y), np.searchsorted(names, y_test)
    orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(seeds)]

    def run(pair: tuple[float, float], order: npt.NDArray[np.intp], points: int) -> dict[str, Any]:
        learner = learner_of(method, tau, *pair, loss="logistic", classes=len(names))
        ends = np.linspace(0, len(order), points + 1).astype(int)
        wrong, accuracies = 0, []
        counts = []
        with np.errstate(all="ignore"):
            for begin, end in pairwise(ends):
                part = order[begin:end]
                scores = learner.learn(X[part], y[part].astype(np.float64))
                wrong += int(np.count_nonzero(np.argmax(scores, axis=1) != y[part]))
                counts.append(wrong)
                if points > 1:
                    accuracies.append(float(np.mean(np.argmax(learner.predict(X_test), axis=1) == y_test)))
        return {"mistakes": counts, "accuracies": accuracies, "rows": ends[1:].astype(float).tolist()}

    best = min(pairs(method, grid), key=lambda pair: int(run(pair, orders[0][:rows], 1)["mistakes"][-1]))
    runs = [run(best, order, 15) for order in orders]
    final = [100 * each["accuracies"][-1] for each in runs]
    return {
        "accuracy": float(np.mean(final)),
        "spread": float(np.std(final)),
        "rows": runs[0]["rows"],
        "mistakes": np.mean([each["mistakes"] for each in runs], axis=0).tolist(),
        "accuracies": np.mean([each["accuracies"] for each in runs], axis=0).tolist(),
        "eta": best[0],
        "sigma": best[1],
    }
