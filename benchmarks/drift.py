"""River's drifting streams of two classes: the default, untuned, against River's logistic regression, tuned.

    python benchmarks/drift.py

The peer is `StandardScaler() | LogisticRegression(SGD(lr))` with the best of eight learning rates, chosen in
hindsight for each stream and each column. Streams that change at once take another rule every 3,000 rows and come
back to the first one. A line has the progressive error rate and log loss of both, and the leading expert.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import linear_model, optim, preprocessing
from river.datasets import synth

from sketchnewton import NewtonBank

ROWS, CHANGES = 15_000, 5
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 3.0)
STREAMS = (
    "hyperplane, 5 of 10 drift",
    "hyperplane, all drift fast",
    "moving centroids",
    "moving centroids, slow",
    "SEA, changing",
    "SEA, changing, 10% noise",
    "Agrawal, changing",
    "STAGGER, changing",
    "sine, changing",
    "mixed, changing",
)
WON = 0.9  # of the streams

Rows = list[tuple[dict[Any, Any], Any]]


def rows_of(name: str, seed: int) -> Rows:
    """A stream of River."""
    if name == "hyperplane, 5 of 10 drift":
        return take(synth.Hyperplane(seed=seed, n_features=10, n_drift_features=5, mag_change=0.001), ROWS)
    if name == "hyperplane, all drift fast":
        return take(synth.Hyperplane(seed=seed, n_features=10, n_drift_features=10, mag_change=0.01), ROWS)
    if name.startswith("moving"):
        speed = 0.001 if name.endswith("slow") else 0.005
        made = synth.RandomRBFDrift(
            seed, seed + 1, n_features=20, n_centroids=20, change_speed=speed, n_drift_centroids=20
        )
        return take(made, ROWS)
    part = ROWS // CHANGES
    parts = [take(changing(name, i % (CHANGES - 1), seed + i), part) for i in range(CHANGES)]
    return [row for rows in parts for row in rows]


def changing(name: str, rule: int, seed: int) -> Any:
    """The stream with one of four rules."""
    if name.startswith("SEA"):
        return synth.SEA(variant=rule, noise=0.1 if name.endswith("noise") else 0.0, seed=seed)
    if name.startswith("Agrawal"):
        return synth.Agrawal(classification_function=(0, 2, 5, 8)[rule], seed=seed)
    if name.startswith("STAGGER"):
        return synth.STAGGER(classification_function=rule % 3, seed=seed)
    if name.startswith("sine"):
        return synth.Sine(classification_function=rule, seed=seed)
    return synth.Mixed(classification_function=rule % 2, seed=seed)


def take(stream: Any, rows: int) -> Rows:
    """Its first rows."""
    return [(x, bool(y)) for x, y in islice(iter(stream), rows)]


def numbers(rows: Rows) -> Iterator[dict[str, float]]:
    """Texts as indicators."""
    for x, _ in rows:
        yield {
            (f"{name}={value}" if isinstance(value, str) else str(name)): (
                1.0 if isinstance(value, str) else float(value)
            )
            for name, value in x.items()
        }


def measures(odds: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """The error rate, a score of 0 counting as half of one, and the log loss."""
    wrong = np.where(odds == 0, 0.5, np.sign(odds) != y)
    return float(wrong.mean()), float(np.logaddexp(0, -y * odds).mean())


def ours(rows: Rows, y: NDArray[np.float64], loss: str) -> tuple[float, float, str]:
    """The default; of the squared loss, probabilities are those that are calibrated."""
    names: dict[str, int] = {}
    dicts = list(numbers(rows))
    for x in dicts:
        for name in x:
            names.setdefault(name, len(names))
    X = np.zeros((len(rows), len(names)))
    for i, x in enumerate(dicts):
        for name, value in x.items():
            X[i, names[name]] = value
    learner = NewtonBank(loss=loss)
    wrong, log_loss = measures(learner.learn(X, y), y)
    return wrong, log_loss, learner.leading_expert


def peer(rows: Rows, y: NDArray[np.float64]) -> tuple[float, float]:
    """The least of each measure over all learning rates."""
    found = []
    dicts = list(numbers(rows))
    for rate in RATES:
        scaler = preprocessing.StandardScaler()
        model = linear_model.LogisticRegression(optim.SGD(rate))
        chances = np.empty(len(rows))
        for i, x in enumerate(dicts):
            scaler.learn_one(x)
            scaled = scaler.transform_one(x)
            chances[i] = model.predict_proba_one(scaled)[True]
            model.learn_one(scaled, y[i] > 0)
        chances = chances.clip(1e-9, 1 - 1e-9)
        found.append(measures(np.log(chances / (1 - chances)), y))
    wrong, log_loss = np.min(found, axis=0)
    return float(wrong), float(log_loss)


def main() -> int:
    """Print a line for each stream; 1 if less than nine of ten are won."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="streams of each kind")
    parser.add_argument("--loss", default="logistic", choices=["logistic", "squared"])
    options = parser.parse_args()
    print(f"{'stream':<28}{'seed':>5}{'error':>9}{'River':>8}{'log loss':>11}{'River':>8}  leading expert")
    won = []
    for name in STREAMS:
        for seed in range(1, options.seeds + 1):
            rows = rows_of(name, seed)
            y = np.where([label for _, label in rows], 1.0, -1.0)
            wrong, log_loss, leading = ours(rows, y, options.loss)
            theirs = peer(rows, y)
            won.append((wrong <= theirs[0], log_loss <= theirs[1]))
            print(
                f"{name:<28}{seed:>5}{wrong:>9.4f}{theirs[0]:>8.4f}{log_loss:>11.4f}{theirs[1]:>8.4f}  {leading}",
                flush=True,
            )
    errors, losses = np.mean(won, axis=0)
    kept = errors >= WON
    print(f"errors at or below River's: {errors:.0%} (promised: {WON:.0%}; {'kept' if kept else 'BROKEN'})")
    if options.loss == "logistic":
        print(f"log losses at or below River's: {losses:.0%}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
