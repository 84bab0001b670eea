"""AdaGrad's family beside the figures of the ADA paper (Wan and Zhang 2019).

    python benchmarks/adaptive.py regression [--rounds 10000] [--permutations 5] [--full]
    python benchmarks/adaptive.py usps [--permutations 5] [--data ../shared/data]
    python benchmarks/adaptive.py cost

* regression: Figure 1. Rows N(1, Σ) in 500 dimensions, eigenvalues 100/j², absolute loss of a noiseless target,
  τ = 10; total loss with the best η and σ of the paper's grid, mean over permutations. `--full` adds ADA-FULL,
  whose 10,000 eigendecompositions of a 500 × 500 matrix take ten minutes per permutation (and serve the whole
  grid: with the absolute loss g = ±x, so that its matrix depends on neither η nor σ).
* usps: Table 3. Ten classes, cross-entropy, τ = 15, one pass. η and σ are those with the fewest mistakes while
  learning on the first permutation; the test file decides nothing.
* cost: a row of 60 non-zeros among 10⁴ to 10⁶ features, ADA-GP against diagonal AdaGrad; and a dense row of 500
  features, ADA-GP against ADA-FULL. Processor time of the learning thread. Exit code 1 if ADA-GP costs more than
  20 times AdaGrad at d = 10⁵, or ADA-FULL less than 20 times ADA-GP.
"""

from __future__ import annotations

import argparse
import lzma
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zipf
from sklearn.datasets import load_svmlight_file

from sketchnewton import (
    AdaGrad,
    CompositeAdaGrad,
    FullAdaGrad,
    Learner,
    RadaGrad,
    SketchedAdaGrad,
    SketchedNewton,
)

Make = Callable[[float, float], Learner]


def grid(largest: int) -> np.ndarray:
    """The paper's: 1e-4, 1e-3, …, 10^largest."""
    return 10.0 ** np.arange(-4, largest + 1)


# -- Figure 1


def regression_data(rounds: int, d: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(d)
    beta /= np.linalg.norm(beta)
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    scales = np.sqrt(100.0 / np.arange(1, d + 1) ** 2)
    X = 1.0 + (rng.standard_normal((rounds, d)) * scales) @ (Q * np.sign(np.diag(R))).T
    return X, X @ beta


def rp_son(eta: float, sigma: float) -> Learner:
    """H = σI + Σ ggᵀ/√t and steps ηH⁻¹g, as the ADA paper runs it: α = σ/η, gradients weighted by 1/(η√t)."""
    return _ScaledNewton(eta, sigma)


class _ScaledNewton(SketchedNewton):
    def __init__(self, eta: float, sigma: float) -> None:
        super().__init__(
            "rp", 10, alpha=sigma / eta, loss="absolute", clip=None, curvature=0.0, dtype="float64"
        )
        from sketchnewton import _native  # a schedule that users cannot choose

        self._problem = _native.problem(self.loss.code, 0.0, np.inf, 0.0, 1.0 / eta, 0.5)
        self._kernel = self._bind()


REGRESSION: dict[str, Make] = {
    "ADA-DIAG": lambda eta, sigma: AdaGrad(eta=eta, sigma=sigma, loss="absolute", dtype="float64"),
    "RADAGRAD": lambda eta, sigma: RadaGrad(10, eta=eta, sigma=sigma, loss="absolute"),
    "RP-SON": rp_son,
    "ADA-FD": lambda eta, sigma: SketchedAdaGrad(
        "fd", 10, of="gradients", eta=eta, sigma=sigma, loss="absolute", dtype="float64"
    ),
    "ADA-RFD": lambda eta, sigma: SketchedAdaGrad(
        "rfd", 10, of="gradients", eta=eta, sigma=sigma, loss="absolute", dtype="float64"
    ),
    "ADA-GP": lambda eta, sigma: SketchedAdaGrad(
        "rp", 10, of="gradients", eta=eta, sigma=sigma, loss="absolute", dtype="float64"
    ),
    "ADA-DP": lambda eta, sigma: SketchedAdaGrad(
        "rp", 10, of="data", eta=eta, sigma=sigma, loss="absolute", dtype="float64"
    ),
}


def total_loss(make: Make, eta: float, sigma: float, X: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.abs(make(eta, sigma).learn(X, y) - y).sum(), nan=np.inf))


def full_losses(X: np.ndarray, y: np.ndarray, values: np.ndarray) -> np.ndarray:
    """ADA-FULL's total loss for all η (rows) and σ (columns) at once."""
    d, n = X.shape[1], len(values)
    W, G, losses = np.zeros((d, n, n)), np.zeros((d, d)), np.zeros((n, n))
    for x, label in zip(X, y, strict=True):
        gap = np.tensordot(x, W, 1) - label
        losses += np.abs(gap)
        if not gap.all():
            raise ValueError("a gradient vanished: the grid does not share one matrix")
        G += np.outer(x, x)
        lengths, V = np.linalg.eigh(G)
        steps = V @ ((V.T @ x)[:, None] / (np.sqrt(np.maximum(lengths, 0))[:, None] + values))
        W -= steps[:, None, :] * (values[:, None] * np.sign(gap))
    return losses


def regression(args: argparse.Namespace) -> int:
    X, y = regression_data(args.rounds)
    orders = [np.random.default_rng(100 + p).permutation(len(y)) for p in range(args.permutations)]
    values = grid(2)
    print(
        f"T = {args.rounds}, d = 500, τ = 10, {args.permutations} permutations; total loss, mean ± deviation\n"
    )
    print(f"{'':<10}{'loss':>9}{'±':>7}{'/ DIAG':>9}{'η':>8}{'σ':>8}")
    diagonal = np.nan

    def line(name: str, losses: list[float], eta: float, sigma: float) -> None:
        mean = float(np.mean(losses))
        print(f"{name:<10}{mean:>9.1f}{np.std(losses):>7.1f}{mean / diagonal:>9.3f}{eta:>8g}{sigma:>8g}")
        sys.stdout.flush()

    for name, make in REGRESSION.items():
        if args.only and name not in args.only:
            continue
        first = np.array(
            [[total_loss(make, e, s, X[orders[0]], y[orders[0]]) for s in values] for e in values]
        )
        i, j = np.unravel_index(first.argmin(), first.shape)
        losses = [total_loss(make, values[i], values[j], X[order], y[order]) for order in orders[1:]]
        losses.insert(0, float(first.min()))
        diagonal = float(np.mean(losses)) if name == "ADA-DIAG" else diagonal
        line(name, losses, values[i], values[j])
    if args.full:
        tables = np.array([full_losses(X[order], y[order], values) for order in orders])
        i, j = np.unravel_index(tables[0].argmin(), tables[0].shape)
        line("ADA-FULL", list(tables[:, i, j]), values[i], values[j])
    return 0


# -- Table 3

CLASSES: dict[str, tuple[float, Make]] = {
    "ADA-DIAG": (
        89.30,
        lambda eta, sigma: CompositeAdaGrad(eta=eta, sigma=sigma, loss="logistic", classes=10),
    ),
    "ADA-GP": (
        91.11,
        lambda eta, sigma: SketchedAdaGrad(
            "rp", 15, of="gradients", eta=eta, sigma=sigma, loss="logistic", classes=10
        ),
    ),
    "ADA-DP": (
        90.99,
        lambda eta, sigma: SketchedAdaGrad(
            "rp", 15, of="data", eta=eta, sigma=sigma, loss="logistic", classes=10
        ),
    ),
}


def load_usps(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    parts: list[np.ndarray] = []
    for name in ("usps.xz", "usps.t.xz"):
        with lzma.open(folder / "usps" / name) as file:
            X, y = load_svmlight_file(file, n_features=256)
        parts += [X.toarray(), y - 1]
    return parts[0], parts[1], parts[2], parts[3]


def usps(args: argparse.Namespace) -> int:
    X, y, X_test, y_test = load_usps(args.data)
    orders = [np.random.default_rng(100 + p).permutation(len(y)) for p in range(args.permutations)]
    values = grid(1)

    def mistakes(make: Make, eta: float, sigma: float) -> int:
        return int((make(eta, sigma).learn(X[orders[0]], y[orders[0]]).argmax(axis=1) != y[orders[0]]).sum())

    print(f"usps, 10 classes, τ = 15, one pass, {args.permutations} permutations\n")
    print(f"{'':<10}{'test %':>8}{'±':>6}{'paper':>8}{'mistakes':>10}{'η':>8}{'σ':>8}")
    for name, (published, make) in CLASSES.items():
        if args.only and name not in args.only:
            continue
        counts = np.array([[mistakes(make, e, s) for s in values] for e in values])
        i, j = np.unravel_index(counts.argmin(), counts.shape)
        accuracies, wrong = [], []
        for order in orders:
            learner = make(values[i], values[j])
            wrong.append((learner.learn(X[order], y[order]).argmax(axis=1) != y[order]).sum())
            accuracies.append(100 * (learner.predict(X_test).argmax(axis=1) == y_test).mean())
        print(
            f"{name:<10}{np.mean(accuracies):>8.2f}{np.std(accuracies):>6.2f}{published:>8.2f}"
            f"{np.mean(wrong):>10.1f}{values[i]:>8g}{values[j]:>8g}"
        )
        sys.stdout.flush()
    return 0


# -- cost


def per_row(make: Callable[[], Learner], X: object, y: np.ndarray) -> float:
    """Microseconds of the second pass over the same rows: the steady state."""
    learner = make()
    learner.learn(X, y)
    start = time.thread_time()
    learner.learn(X, y)
    return (time.thread_time() - start) / len(y) * 1e6


def cost(args: argparse.Namespace) -> int:
    makers: dict[str, Callable[[], Learner]] = {
        "AdaGrad": lambda: AdaGrad(loss="logistic"),
        "ADA-GP": lambda: SketchedAdaGrad("rp", 10, loss="logistic"),
        "ADA-DP": lambda: SketchedAdaGrad("rp", 10, of="data", loss="logistic"),
        "ADA-FD": lambda: SketchedAdaGrad("fd", 10, loss="logistic"),
    }
    dimensions = (10**4, 10**5, 10**6)
    times: dict[tuple[str, int], float] = {}
    print("60 non-zeros, τ = 10, µs per row" + "".join(f"{f'd = {d:,}':>16}" for d in dimensions))
    data = {d: zipf.uniform_rows(args.rows, d) for d in dimensions}
    for name, make in makers.items():
        for d in dimensions:
            rows = data[d]
            times[name, d] = statistics.median(per_row(make, rows, rows.labels) for _ in range(args.repeat))
        print(f"{name:<32}" + "".join(f"{times[name, d]:>16.2f}" for d in dimensions))
    sparse = times["ADA-GP", 10**5] / times["AdaGrad", 10**5]
    growth = times["ADA-GP", 10**6] / times["ADA-GP", 10**4]
    X, y = regression_data(200)
    sketched = per_row(lambda: SketchedAdaGrad("rp", 10, loss="absolute"), X, y)
    full = per_row(lambda: FullAdaGrad(loss="absolute"), X[:20], y[:20])
    print(f"\nd = 500, dense: ADA-GP {sketched:.1f} µs, ADA-FULL {full:.0f} µs per row")
    print(f"ADA-GP / AdaGrad at d = 10⁵: {sparse:.1f} (at most 20)")
    print(f"ADA-GP at d = 10⁶ / d = 10⁴: {growth:.2f}")
    print(f"ADA-FULL / ADA-GP at d = 500: {full / sketched:.0f} (at least 20)")
    return int(sparse > 20 or full < 20 * sketched)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("regression", "usps", "cost"))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--permutations", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="ADA-FULL too")
    parser.add_argument("--only", nargs="*", default=[], help="names of the table's rows")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each data set of `cost`")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    return {"regression": regression, "usps": usps, "cost": cost}[args.part](args)


if __name__ == "__main__":
    sys.exit(main())
