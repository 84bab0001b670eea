"""Do prediction intervals cover what they say, and are they no wider than those of online quantile regression?

    python benchmarks/intervals.py [--rows N] [--json]

The default learner, progressively: each label's interval is asked for before the label is learned. Coverage of the
nominal levels after the first 100 rows; and mean widths as a multiple of two `NewtonBank(loss="quantile:…")`, at
the coverage which those reach (they cover less than they say; where an interval is infinite, neither counts). Then
coverage of the last fifth of the rows by a model that learned the others, where rows are exchangeable.

The exit code is 1 if a coverage is off by more than 2 points (held out: plus two standard deviations).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from untuned_data import DATA
from untuned_regression import california

from sketchnewton import NewtonBank
from sketchnewton.streams import read_svmlight

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats]
COVERAGES = (0.5, 0.8, 0.9, 0.95)
WARM = 100


def covtype(rows: int, *, shuffled: bool) -> Rows:
    """Elevation, by all else."""
    parts = []
    for batch in read_svmlight(DATA / "covtype/covtype.binary.scale01.xz"):
        dense = np.zeros((len(batch.labels), 55))
        dense[np.repeat(np.arange(len(dense)), np.diff(batch.indptr)), batch.indices] = batch.data
        parts.append(dense)
        if sum(map(len, parts)) >= rows * (10 if shuffled else 1):
            break
    X = np.vstack(parts)
    X = X[np.random.default_rng(0).permutation(len(X))] if shuffled else X
    return X[:rows, 2:], X[:rows, 1]


def noisy(rows: int, seed: int, kind: str) -> Rows:
    """Linear rules: noise that is the same for all, grows with features, or with the label; and drifts."""
    random = np.random.default_rng(seed)
    X, w, t = random.uniform(0, 1, (rows, 8)), random.standard_normal(8), np.arange(rows)
    z, mean, era = random.standard_normal(rows), X @ w, t * 5 // rows
    labels = {
        "even": mean + z,
        "by a feature": mean + (0.1 + X[:, 0] + X[:, 1] ** 2) * z,
        "by the label": (1 + X @ np.abs(w)) * np.exp(0.3 * z),
        "counts": random.poisson(np.exp(mean)).astype(float),
        "drifting mean": mean + z + np.cumsum(random.standard_normal(rows) * 0.05),
        "drifting noise": mean + np.exp(1.5 * np.sin(t / 1500)) * z,
        "new rules": (X * random.standard_normal((5, 8))[era]).sum(axis=1)
        + np.array([1, 0.2, 3, 1, 0.5])[era] * z,
        "skewed": mean + (0.1 + 2 * X[:, 0]) * (random.gamma(2, 1, rows) - 2),
        "new noise": mean + (0.1 + 2 * np.where(2 * t < rows, X[:, 0], X[:, 4])) * z,
    }
    return X, labels[kind]


SETS: dict[str, Callable[[int], Rows]] = {
    "covtype": lambda rows: covtype(rows, shuffled=False),
    "covtype, shuffled": lambda rows: covtype(rows, shuffled=True),
    "like California": california,
    **{
        kind: (lambda rows, seed=seed, kind=kind: noisy(rows, seed, kind))
        for seed, kind in enumerate(
            (
                "even",
                "by a feature",
                "by the label",
                "counts",
                "drifting mean",
                "drifting noise",
                "new rules",
                "skewed",
                "new noise",
            )
        )
    },
}
EXCHANGEABLE = (
    "covtype, shuffled",
    "like California",
    "even",
    "by a feature",
    "by the label",
    "counts",
    "skewed",
)


def progressive(X: Floats, y: Floats, coverages: list[float]) -> Floats:
    """Rows × 2 × coverages."""
    bank = NewtonBank()
    made = np.empty((len(y), 2, len(coverages)))
    for i in range(len(y)):
        made[i] = bank.interval(bank.predict(X[i : i + 1]), coverages, X[i : i + 1])[0]
        bank.learn(X[i : i + 1], y[i : i + 1])
    return made


def covered(bounds: Floats, y: Floats) -> Floats:
    inside = (bounds[:, 0] <= y[:, None]) & (y[:, None] <= bounds[:, 1])
    return np.asarray(inside.mean(axis=0))


def measured(X: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Coverage, width over that of quantile regression, and coverage of held-out rows."""
    peers = np.stack(
        [
            [NewtonBank(loss=f"quantile:{(1 + sign * c) / 2}").learn(X, y) for c in COVERAGES]
            for sign in (-1, 1)
        ]
    ).transpose(2, 0, 1)[WARM:]
    reached = covered(peers, y[WARM:])
    made = progressive(X, y, [*COVERAGES, *reached.tolist()])[WARM:]
    own, same = made[:, :, : len(COVERAGES)], made[:, :, len(COVERAGES) :]
    widths, finite = same[:, 1] - same[:, 0], np.isfinite(same).all(axis=1)
    theirs = peers[:, 1] - peers[:, 0]
    ratios = [widths[finite[:, k], k].mean() / theirs[finite[:, k], k].mean() for k in range(len(COVERAGES))]
    split = len(y) * 4 // 5
    bank = NewtonBank()
    bank.learn(X[:split], y[:split])
    held_out = covered(bank.interval(bank.predict(X[split:]), COVERAGES, X[split:]), y[split:])
    return covered(own, y[WARM:]), np.array(ratios), held_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    args = parser.parse_args()
    results, wrong = {}, False
    if not args.json:
        print(f"{'':<18}{'coverage of ' + ', '.join(map(str, COVERAGES)):<28}{'width, of peers':<28}held out")
    for name, make in SETS.items():
        X, y = make(args.rows)
        coverage, width, held_out = measured(X, y)
        nominal = np.array(COVERAGES)
        wrong |= bool((np.abs(coverage - nominal) > 0.02).any())
        if name in EXCHANGEABLE:
            noise = 2 * np.sqrt(nominal * (1 - nominal) / (len(y) / 5))
            wrong |= bool((np.abs(held_out - nominal) > 0.02 + noise).any())
        results[name] = [coverage.tolist(), width.tolist(), held_out.tolist()]
        if not args.json:
            cells = [" ".join(f"{one:.3f}" for one in part) for part in (coverage, width, held_out)]
            print(
                f"{name:<18}{cells[0]:<28}{cells[1]:<28}{cells[2] if name in EXCHANGEABLE else ''}",
                flush=True,
            )
    if args.json:
        print(json.dumps(results))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
