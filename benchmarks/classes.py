"""What do many classes cost, and how well are they told apart, beside Vowpal Wabbit's `--oaa`?

    python benchmarks/classes.py [--classes 20] [--rows 100000] [--words 50000] [--repeat 3] [--file rows.vw]
                                 [--without "a bank per class"]

Texts of K classes: words drawn by Zipf's law, and a twentieth as many from thirty words of the class; or
the rows of a file in VW's format, shuffled and repeated. Whole commands, from text to model, take turns; times are
medians, as is the processor time of all threads, which other work on the computer changes less. Then the error on
rows that none of them has learned, from the models.

Needs the extra `bench`. The exit code is 1 if a promise is broken: faster than a bank per class, and the
error on the other rows not above that of `--oaa`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

_MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6]))
"""

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


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and GB of memory that a command takes."""
    # By a small process: what this one has counts as memory of those that it starts.
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command], check=True, capture_output=True, text=True
    )
    seconds, processor, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, processor, memory


def main() -> int:
    """Measure, print, and say by the exit code whether the promises hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in {"classes": 20, "rows": 100_000, "words": 50_000, "repeat": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--without", nargs="*", default=[], help="a bank per class, vw --oaa")
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
        contenders = {
            name: both for name, both in commands(folder, args.classes).items() if name not in args.without
        }
        costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in contenders}
        for _ in range(args.repeat):
            for name, (learn, _) in contenders.items():
                costs[name].append(measured(learn))
        labels = [line.split(None, 1)[0] for line in test]
        errors = {name: error(name, then, labels, folder) for name, (_, then) in contenders.items()}
    medians = {name: tuple(map(statistics.median, zip(*each, strict=True))) for name, each in costs.items()}
    for name, (seconds, processor, memory) in medians.items():
        print(
            f"{name:18s} {seconds:7.2f} s, processor {processor:6.2f} s, {memory:.2f} GB  error {errors[name]:.4f}"
        )
    ratios = {name: each[0] / medians["bank of classes"][0] for name, each in medians.items()}
    print(", ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items()), "times as long as the first")
    slower = ratios.get("a bank per class", math.inf) < 1
    return int(slower or errors["bank of classes"] > errors.get("vw --oaa", math.inf))


if __name__ == "__main__":
    sys.exit(main())
