"""ADA Figure 1 read in other ways: is ADA-DP ever within 1.5 times of ADA-FULL at T = 10,000?

    python benchmarks/adaptive_readings.py [--rounds 10000] [--features 500] [--only "rows of length 1"]

Plain NumPy, one order of the rows, best η and σ of the paper's grid. With the absolute loss a gradient is ±x, so
that ADA-GP is ADA-DP in distribution and one metric serves the whole grid. ADA-FULL decomposes its matrix in every
round up to 1.6 d, then whenever the rows have become 0.8% more (one to two minutes for each reading).
"""

from __future__ import annotations

import argparse
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

GRID = 10.0 ** np.arange(-4, 3)


class Metric(Protocol):
    """H = σI + M for every σ of the grid."""

    def add(self, x: np.ndarray) -> None: ...

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        """H⁻¹ of vectors of shape (d, …, 1), or (d, …, σ), each with its σ: shape (d, …, σ)."""


class Diagonal:
    def __init__(self, d: int) -> None:
        self.squares = np.zeros(d)

    def add(self, x: np.ndarray) -> None:
        self.squares += x * x

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        return vectors / (np.sqrt(self.squares).reshape(-1, *[1] * (vectors.ndim - 1)) + GRID)


class Spectral:
    """M = V diag(roots) Vᵀ; outside the span of V the metric is σI."""

    vectors: np.ndarray
    roots: np.ndarray

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        shape = vectors.shape[1:]
        roots = self.roots.reshape(-1, *[1] * len(shape))
        inside = (self.vectors.T @ vectors.reshape(len(vectors), -1)).reshape(-1, *shape)
        shares = inside * (roots / (roots + GRID))
        back = (self.vectors @ shares.reshape(len(shares), -1)).reshape(len(vectors), *shares.shape[1:])
        return (vectors - back) / GRID


class Full(Spectral):
    def __init__(self, d: int) -> None:
        self.total, self.rows, self.last = np.zeros((d, d)), 0, 0

    def add(self, x: np.ndarray) -> None:
        self.total += np.outer(x, x)
        self.rows += 1
        if self.rows <= 1.6 * len(x) or self.rows > 1.008 * self.last:
            values, self.vectors = np.linalg.eigh(self.total)
            self.roots, self.last = np.sqrt(np.maximum(values, 0.0)), self.rows


class Projected(Spectral):
    def __init__(self, d: int, directions: int, deviation: float | None = None, late: bool = False) -> None:
        self.sketch = np.zeros((directions, d))
        self.rng = np.random.default_rng(1)
        self.deviation = deviation or directions**-0.5
        self.late = late  # the row itself counts from the next round on

    def add(self, x: np.ndarray) -> None:
        update = np.outer(self.deviation * self.rng.standard_normal(len(self.sketch)), x)
        if not self.late:
            self.sketch += update
        values, E = np.linalg.eigh(self.sketch @ self.sketch.T)
        self.roots = np.sqrt(np.maximum(values, 1e-12 * values[-1] + 1e-300))
        self.vectors = self.sketch.T @ (E / self.roots)
        if self.late:
            self.sketch += update


def least_loss(metric: Metric, X: np.ndarray, y: np.ndarray, dual: bool) -> float:
    """Total absolute loss with the best η (rows of the arrays below) and σ (columns)."""
    shape = (X.shape[1], len(GRID), len(GRID))
    W, gradients, losses = np.zeros(shape), np.zeros(shape), np.zeros(shape[1:])
    with np.errstate(all="ignore"):
        for x, label in zip(X, y, strict=True):
            gap = np.tensordot(x, W, 1) - label
            losses += np.abs(gap)
            metric.add(x)
            if dual:
                gradients += x[:, None, None] * np.sign(gap)
                W = -GRID[:, None] * metric.solve(gradients)
            else:
                W -= metric.solve(x[:, None])[:, None, :] * (GRID[:, None] * np.sign(gap))
    return float(np.nanmin(losses))


def data(rounds: int, d: int, reading: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    beta = rng.standard_normal(d)
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    j = np.arange(1, d + 1)
    X = rng.standard_normal((rounds, d)) * (
        100.0 / j**2 if reading == "100/j² of the root of Σ" else 10.0 / j
    )
    if reading != "Σ is diagonal":
        X = X @ (Q * np.sign(np.diag(R))).T
    if reading != "mean 0":
        X += 1.0
    if reading == "rows of length 1":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ (beta / np.linalg.norm(beta))


READINGS: dict[str, dict[str, object]] = {
    "nothing": {},
    "Σ is diagonal": {},
    "rows of length 1": {},
    "mean 0": {},
    "100/j² of the root of Σ": {},
    "dual averaging": {},
    "S without the row itself": {"late": True},
    "r from N(0, 1)": {"deviation": 1.0},
    "τ = 20": {"directions": 20},
    "τ = 40": {"directions": 40},
    "τ = 80": {"directions": 80},
    "τ = 160": {"directions": 160},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--only", nargs="+", choices=READINGS, default=list(READINGS))
    args = parser.parse_args()
    d = args.features
    known: dict[tuple[bytes, bool], tuple[float, float]] = {}  # what does not depend on the sketch
    print(f"{'read differently':<28}{'DIAG':>9}{'DP':>9}{'FULL':>9}{'DP/FULL':>9}{'DP/DIAG':>9}")
    for reading in args.only:
        X, y = data(args.rounds, d, reading)
        dual, key = reading == "dual averaging", (X[:1].tobytes(), reading == "dual averaging")
        sketched = least_loss(Projected(d, **({"directions": 10} | READINGS[reading])), X, y, dual)
        if key not in known:
            known[key] = (least_loss(Diagonal(d), X, y, dual), least_loss(Full(d), X, y, dual))
        diagonal, full = known[key]
        print(
            f"{reading:<28}{diagonal:>9.1f}{sketched:>9.1f}{full:>9.1f}"
            f"{sketched / full:>9.2f}{sketched / diagonal:>9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
