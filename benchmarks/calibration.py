"""Do probabilities come true? Calibration error, Brier score and log loss of the default, one pass, untuned.

    python benchmarks/calibration.py [--sets NAME ...] [--losses NAME ...]

`SketchedNewtonClassifier(loss=...)` by `predict_proba`, beside Vowpal Wabbit's logistic loss with the best of ten
`-l` in hindsight (`--oaa --probabilities` for several classes), Platt-scaled: of two classes, with a slope and an
intercept that minimise the log loss of its own progressive predictions. Several classes are also learned by
`ClassBank`.

Progressive: rows in blocks of ten, predicted before they are learned (Vowpal Wabbit: one by one); the best `-l`
and Platt's numbers are those of all these predictions. Held out: the last third after one pass over the others;
the best `-l` on these very rows, Platt's numbers from the rows before. Calibration error is ECE with 15 equal
bins, of the second of two classes, of the most probable one of several. By chance: the error that probabilities
which are perfectly right have on so many rows.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from untuned_data import DATA, SETS
from untuned_peers import RATES

from sketchnewton import ClassBank, SketchedNewtonClassifier
from sketchnewton.streams import read_svmlight

Array = NDArray[Any]
LOSSES = ("squared", "logistic", "hinge")  # "squared_hinge" is the squared loss within [-1, 1]
BINARY = (
    *("a9a", "cod-rna", "mnist 4/9", "census", "20news/1, shuffled", "20news/9, shuffled", "20news, 1 to 10"),
    *("covtype, shuffled", "magic04", "adult", "20news/3, shuffled", "20news, odd"),
    *("w1a", "splice", "usps, even digits"),  # smaller ones
)
BINS, BLOCK, LARGEST, LEAST = 15, 10, 20_000, 1e-15


# -- data


def several(*files: str) -> tuple[csr_array, Array]:
    """Classes as they come, shuffled."""
    batches = [batch for file in files for batch in read_svmlight(DATA / file)]
    width = max(1 + int(batch.indices.max(initial=0)) for batch in batches)
    parts = [csr_array((b.data, b.indices, b.indptr), shape=(len(b.labels), width)) for b in batches]
    return shuffled(csr_array(vstack(parts)), np.concatenate([b.labels for b in batches]))


def mnist() -> tuple[csr_array, Array]:
    images, labels = (
        gzip.decompress((DATA / "mnist" / f"train-{name}-ubyte.gz").read_bytes())
        for name in ("images-idx3", "labels-idx1")
    )
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)
    return shuffled(csr_array(X.astype(np.float64)), np.frombuffer(labels, np.uint8, offset=8))


def covtype() -> tuple[csr_array, Array]:
    with lzma.open(DATA / "covtype/covtype_7class_raw.csv.xz", "rt") as file:
        lines = file.read().splitlines()[1:]
    chosen = np.random.default_rng(0).permutation(len(lines))[:LARGEST]
    rows = np.array([lines[i].split(",") for i in chosen], np.float64)
    return csr_array(rows[:, :-1]), rows[:, -1].astype(int)


def digits() -> tuple[csr_array, Array]:
    X, y = load_digits(return_X_y=True)
    return shuffled(csr_array(X), y)


def shuffled(X: csr_array, y: Array) -> tuple[csr_array, Array]:
    order = np.random.default_rng(0).permutation(len(y))[:LARGEST]
    return X[order], y[order].astype(int)


CLASSES: dict[str, Callable[[], tuple[csr_array, Array]]] = {
    "mnist": mnist,
    "20 newsgroups": lambda: several("20news/20news_tfidf_train+test.xz"),
    "covtype, 7 classes": covtype,
    "usps": lambda: several("usps/usps.xz", "usps/usps.t.xz"),
    "digits": digits,
}


# -- measures


@dataclass(frozen=True)
class Measured:
    """Of some rows."""

    error: float
    log_loss: float
    brier: float
    calibration: float


def calibration_error(P: Array, y: Array) -> float:
    said, right = (P[:, 1], y == 1) if P.shape[1] == 2 else (P.max(axis=1), P.argmax(axis=1) == y)
    at = np.minimum((said * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(at, said, BINS) - np.bincount(at, right, BINS)).sum() / len(y))


def measure(P: Array, y: Array) -> Measured:
    wanted = np.arange(P.shape[1]) == y[:, None]
    return Measured(
        error=float((P.argmax(axis=1) != y).mean()),
        log_loss=float(-np.log(np.maximum(P[wanted], LEAST)).mean()),
        brier=float(((P - wanted) ** 2).sum(axis=1).mean() / (2 if P.shape[1] == 2 else 1)),
        calibration=calibration_error(P, y),
    )


def by_chance(P: Array, rounds: int = 20) -> float:
    """The calibration error if labels were drawn with the probabilities P."""
    random, sums = np.random.default_rng(0), P.cumsum(axis=1)
    draws = [(random.random((len(P), 1)) > sums).sum(axis=1) for _ in range(rounds)]
    return float(np.mean([calibration_error(P, np.minimum(y, P.shape[1] - 1)) for y in draws]))


# -- learners


def ours(loss: str, X: csr_array, y: Array, cut: int) -> tuple[Array, Array]:
    """Progressive and held-out probabilities."""
    model, classes = SketchedNewtonClassifier(loss=loss), np.unique(y)
    played, held = np.full((len(y), len(classes)), 1.0 / len(classes)), np.empty(0)
    for begin in [*range(0, cut, BLOCK), *range(cut, len(y), BLOCK)]:
        block = slice(begin, min(begin + BLOCK, cut if begin < cut else len(y)))
        if begin == cut:
            held = model.predict_proba(X[cut:])
        if begin:
            played[block] = model.predict_proba(X[block])
        model.partial_fit(X[block], y[block], classes=classes)
    return played, held


def bank_of_classes(X: csr_array, y: Array, cut: int) -> tuple[Array, Array]:
    """The same of one learner for all classes."""
    learner = ClassBank(int(y.max()) + 1)
    first = learner.learn(X[:cut], y[:cut].astype(float))
    held = learner.predict(X[cut:])
    return np.exp(np.concatenate([first, learner.learn(X[cut:], y[cut:].astype(float))])), np.exp(held)


def vw(rate: float, K: int, X: csr_array, y: Array, cut: int, folder: Path) -> tuple[Array, Array]:
    """The same of one run of Vowpal Wabbit; rows held out come twice, at first without labels."""
    options = ["--oaa", str(K), "--probabilities"] if K > 2 else []
    command = [sys.executable, "-m", "vowpalwabbit", "--loss_function", "logistic", *options, "-b", "22"]
    if K > 10:
        command[-1] = "24"
    data, found = folder / "data.vw", folder / "predictions"
    if not data.exists():
        rows = [
            " ".join(
                f"{i}:{v:.9g}" for i, v in zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)
            )
            for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
        ]
        labels = (y + 1 if K > 2 else 2 * y - 1).tolist()
        known = [f"{label} | {row}" for label, row in zip(labels, rows, strict=True)]
        data.write_text("\n".join([*known[:cut], *(f"| {row}" for row in rows[cut:]), *known[cut:]]) + "\n")
    subprocess.run([*command, "-l", str(rate), "-d", data, "-p", found, "--quiet"], check=True)
    lines = found.read_text().split("\n")[:-1]
    if K > 2:
        P = np.array([[float(part.partition(":")[2]) for part in line.split()] for line in lines if line])
    else:
        P = np.array(lines, np.float64)
    held = len(y) - cut
    return np.concatenate([P[:cut], P[cut + held :]]), P[cut : cut + held]


def platt(scores: Array, y: Array) -> Callable[[Array], Array]:
    fitted = LogisticRegression(C=1e6, max_iter=1000).fit(scores[:, None], y)
    return lambda s: np.asarray(fitted.predict_proba(s[:, None]))


def tuned_vw(X: csr_array, y: Array, cut: int) -> tuple[Measured, Measured]:
    """Of the best rate for each."""
    K = int(y.max()) + 1
    progressive, held = [], []
    with tempfile.TemporaryDirectory() as folder:
        for rate in RATES:
            P, Q = vw(rate, K, X, y, cut, Path(folder))
            if K == 2:
                P, Q = platt(P, y)(P), platt(P[:cut], y[:cut])(Q)
            progressive.append(measure(P, y))
            held.append(measure(Q, y[cut:]))
    least = lambda runs: min(runs, key=lambda run: run.log_loss)  # noqa: E731
    return least(progressive), least(held)


# -- the table


def cells(name: str, measured: Measured) -> str:
    numbers = "".join(f"{value:>8.4f}" for value in (measured.error, measured.log_loss, measured.brier))
    return f"{name:<14}{numbers}{measured.calibration:>7.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*BINARY, *CLASSES], help="names; default: all")
    parser.add_argument("--losses", nargs="*", default=list(LOSSES), help="default: all")
    args = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}")
    above: list[str] = []
    for name in args.sets:
        if name in CLASSES:
            X, y = CLASSES[name]()
        else:
            X, signs = SETS[name].load()
            y = signs > 0
        y = np.unique(y, return_inverse=True)[1]
        X.sort_indices()
        cut = 2 * len(y) // 3
        rivals = tuned_vw(X, y, cut)
        runs = {loss: ours(loss, X, y, cut) for loss in args.losses}
        if y.max() > 1:
            runs["class bank"] = bank_of_classes(X, y, cut)
        P, Q = next(iter(runs.values()))
        print(
            f"{name}, {len(y)} rows, {P.shape[1]} classes; by chance {by_chance(P):.3f}, {by_chance(Q):.3f}"
        )
        print(f"  {'':<14}" + 2 * f"{'error':>8}{'log':>8}{'brier':>8}{'ece':>7}   ")
        print(f"  {cells('vw, tuned', rivals[0])}   {cells('', rivals[1])[14:]}")
        for loss, (P, Q) in runs.items():
            found = measure(P, y), measure(Q, y[cut:])
            print(f"  {cells(loss, found[0])}   {cells('', found[1])[14:]}", flush=True)
            for kind, run, rival in zip(("progressive", "held out"), found, rivals, strict=True):
                if len(y) >= 10_000 and run.calibration > 0.02:
                    above.append(f"{name}, {loss}, {kind}: calibration error {run.calibration:.3f}")
                if len(y) >= 10_000 and run.log_loss > rival.log_loss:
                    above.append(
                        f"{name}, {loss}, {kind}: log loss {run.log_loss:.4f} > {rival.log_loss:.4f}"
                    )
    print("\n".join(["sets of 10,000 rows or more above .02, or above vw:", *above]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
