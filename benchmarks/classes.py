"""What do many classes cost, and how well are they told apart, beside Vowpal Wabbit's `--oaa`?

    python benchmarks/classes.py [--classes 20] [--rows 100000] [--words 50000] [--repeat 3] [--file rows.vw]

Texts of K classes: words drawn by Zipf's law, and a twentieth as many from thirty words of the class; or
the rows of a file in VW's format, shuffled and repeated. Whole commands, from text to model, take turns; times are
medians. Then the error on rows that none of them has learned, from the models.

Needs the extra `bench`. The exit code is 1 if a promise is broken: faster than a bank per class, and the
error on the other rows not above that of `--oaa`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np

OWN, SHARE = 30, 0.05  # words of a class; share of a text that they make


def texts(classes: int, rows: int, words: int, seed: int = 0) -> list[str]:
    """Rows in VW's format, labels 1…classes."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, words + 1) ** 1.05
    cumulative = (popularity / popularity.sum()).cumsum()
    own = rng.integers(min(200, words // 2), words, (classes, OWN))
    lines = []
    for label in rng.integers(0, classes, rows):
        length = int(rng.integers(30, 120))
        common = np.searchsorted(cumulative, rng.random(length)).clip(0, words - 1)
        mine = own[label][rng.integers(0, OWN, rng.binomial(length, SHARE))]
        found, counts = np.unique(np.concatenate([common, mine]), return_counts=True)
        values = (1 + np.log(counts)) / np.linalg.norm(1 + np.log(counts))
        pairs = " ".join(f"{word}:{value:.4f}" for word, value in zip(found, values, strict=True))
        lines.append(f"{label + 1} | {pairs}\n")
    return lines


def commands(folder: Path, classes: int) -> dict[str, tuple[list[str], list[str]]]:
    """How each contender learns, and how it then predicts the class of other rows."""
    skn = [str(Path(sysconfig.get_path("scripts")) / "skn")]
    vw = [sys.executable, "-m", "vowpalwabbit", "--quiet"]
    train, test = str(folder / "train.vw"), str(folder / "test.vw")
    both = {}
    for name, options in {"bank of classes": ["--learner", "class-bank"], "a bank per class": []}.items():
        model = str(folder / f"{name}.skn")
        learn = ["train", train, "--multiclass", str(classes), "--model", model, "--quiet", *options]
        both[name] = ([*skn, *learn], [*skn, "test", model, test, "--json"])
    model, said = str(folder / "model.vw"), str(folder / "said.txt")
    both["vw --oaa"] = (
        [*vw, "-d", train, "--oaa", str(classes), "-b", "18", "-f", model],
        [*vw, "-d", test, "-t", "-i", model, "-p", said],
    )
    return both


def error(name: str, command: list[str], labels: list[str], folder: Path) -> float:
    """The share of other rows whose class is wrong."""
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if name.startswith("vw"):
        said = (folder / "said.txt").read_text().split()
        return sum(a != b for a, b in zip(said, labels, strict=True)) / len(labels)
    return float(json.loads(out)["error"])


def main() -> int:
    """Measure, print, and say by the exit code whether the promises hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in {"classes": 20, "rows": 100_000, "words": 50_000, "repeat": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--file", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        folder, more = Path(kept), args.rows // 5
        if args.file is None:
            lines = texts(args.classes, args.rows + more, args.words)
            train, test = lines[: args.rows], lines[args.rows :]
        else:
            rng, lines = np.random.default_rng(0), args.file.read_text().splitlines(keepends=True)
            order = rng.permutation(len(lines))
            test = [lines[i] for i in order[: len(lines) // 5]]
            train = [lines[i] for i in rng.choice(order[len(lines) // 5 :], args.rows)]
        (folder / "train.vw").write_text("".join(train))
        (folder / "test.vw").write_text("".join(test))
        contenders = commands(folder, args.classes)
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(args.repeat):
            for name, (learn, _) in contenders.items():
                start = time.perf_counter()
                subprocess.run(learn, check=True, capture_output=True)
                times[name].append(time.perf_counter() - start)
        labels = [line.split(None, 1)[0] for line in test]
        errors = {name: error(name, then, labels, folder) for name, (_, then) in contenders.items()}
    for name, seconds in times.items():
        print(f"{name:18s} {statistics.median(seconds):7.2f} s   error {errors[name]:.4f}")
    mine = statistics.median(times["bank of classes"])
    ratios = {name: statistics.median(seconds) / mine for name, seconds in times.items()}
    print(", ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items()), "times as long as the first")
    return int(ratios["a bank per class"] < 1 or errors["bank of classes"] > errors["vw --oaa"])


if __name__ == "__main__":
    sys.exit(main())
