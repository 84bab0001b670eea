"""Speed over commits: what learning and reading cost, kept in `history.json`, which the documentation site shows.

    python benchmarks/history.py [--rows 20000] [--repeat 5]

Machines differ, so each cost is a ratio of processor times on the machine at hand: learning is divided by
scikit-learn's `SGDClassifier` on the same rows, reading by Python's `split` of the same text. Contenders take
turns; numbers are medians. The result replaces that of the same commit, if there is one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse
import sklearn
import zipf
from sklearn.linear_model import SGDClassifier

from sketchnewton import AdaGrad, NewtonBank, OnlineGradient, SketchedNewton
from sketchnewton.streams import open_stream

HISTORY = Path(__file__).parent / "history.json"
LEARNERS: dict[str, Callable[[], Any]] = {
    "NewtonBank, the default": NewtonBank,
    "SketchedNewton, Oja, m = 10": lambda: SketchedNewton("oja", 10),
    "SketchedNewton, rfd, m = 10": lambda: SketchedNewton("rfd", 10),
    "AdaGrad": AdaGrad,
    "OnlineGradient": OnlineGradient,
}
FORMATS = ("svmlight", "vw", "csv", "jsonl")


def seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def ratios(tasks: dict[str, Callable[[], object]], reference: str, repeat: int) -> dict[str, float]:
    """Median times of the tasks, divided by that of the reference."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    middle = {name: statistics.median(each) for name, each in times.items()}
    return {name: round(middle[name] / middle[reference], 3) for name in tasks if name != reference}


def learning(count: int, repeat: int) -> dict[str, float]:
    rows = zipf.zipf_rows(count)
    X = scipy.sparse.csr_matrix((rows.data, rows.indices, rows.indptr))
    tasks: dict[str, Callable[[], object]] = {
        name: lambda make=make: make().learn(rows, rows.labels) for name, make in LEARNERS.items()
    }
    tasks["reference"] = lambda: SGDClassifier(loss="log_loss").partial_fit(X, rows.labels, classes=[-1, 1])
    return ratios(tasks, "reference", repeat)


def texts(count: int) -> dict[str, str]:
    """The same rows in each format; tables have their first six values as columns."""
    rows = zipf.zipf_rows(count)
    found: dict[str, list[str]] = {name: [] for name in FORMATS}
    found["csv"].append("label,a,b,c,d,e,f")
    for row in range(count):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        label, values = int(rows.labels[row]), rows.data[part].tolist()
        pairs = " ".join(f"{i + 1}:{v}" for i, v in zip(rows.indices[part].tolist(), values, strict=True))
        found["svmlight"].append(f"{label} {pairs}")
        found["vw"].append(f"{label} | {pairs}")
        cells = (values + [0.0] * 6)[:6]
        found["csv"].append(",".join(map(str, [label, *cells])))
        found["jsonl"].append(json.dumps({"label": label, **dict(zip("abcdef", cells, strict=True))}))
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def reading(count: int, repeat: int) -> dict[str, float]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts(count).items():
            path = Path(folder) / f"rows.{name}"
            path.write_text(text)
            separator = "," if name in ("csv", "jsonl") else " "
            tasks: dict[str, Callable[[], object]] = {
                f"read {name}": lambda path=path, name=name: sum(
                    len(b) for b in open_stream(path, format=name)
                ),
                "reference": lambda path=path, separator=separator: path.read_text().split(separator),
            }
            found.update(ratios(tasks, "reference", repeat))
    return found


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=HISTORY.parent, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    entry = {
        "commit": git("rev-parse", "--short=10", "HEAD"),
        "date": git("show", "--no-patch", "--format=%cs", "HEAD"),
        "scikit-learn": sklearn.__version__,
        "costs": {**learning(args.rows, args.repeat), **reading(args.rows, args.repeat)},
    }
    entries = json.loads(HISTORY.read_text()) if HISTORY.exists() else []
    entries = [other for other in entries if other["commit"] != entry["commit"]] + [entry]
    HISTORY.write_text(json.dumps(entries, indent=1) + "\n")
    for name, cost in entry["costs"].items():
        print(f"{name:<32} {cost:7.2f}")


if __name__ == "__main__":
    main()
