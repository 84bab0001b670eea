"""What a table larger than caches costs: features drawn uniformly from 2²⁴, all of which have been met.

    python benchmarks/large_tables.py [--rows 10000] [--repeat 15] [--json]

For each learner the processor time per non-zero among 10⁴ features, which caches hold, and among 2²⁴, by turns.
Beside them the time of a loop that reads one number of each of such lines, and of one that writes it, too, as a
learner must (`touch_lines.cpp`, compiled here): in the same order, prefetched like the learner's rows, with large
pages and small ones, and behind the same look-up of places where the learner's table is packed.

Memory is what others share: on a machine in use the loops are slower, too. Nothing is promised.
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
from types import SimpleNamespace

import numpy as np

from sketchnewton import Learner, NewtonBank, SketchedNewton

WIDTH, SMALL, LARGE = 60, 10**4, 1 << 24
KINDS: dict[str, Callable[[], Learner]] = {
    "none": lambda: SketchedNewton("none", 0),
    "oja": lambda: SketchedNewton("oja", 10),
    "default": NewtonBank,
    "fd": lambda: SketchedNewton("fd", 10),
}
_PART = 40_000  # rows in memory at a time


def rows_of(features: np.ndarray) -> SimpleNamespace:
    """Rows of ones; what two features of a row have in common counts once."""
    features = np.sort(features, axis=1)
    kept = np.ones(features.shape, bool)
    kept[:, 1:] = features[:, 1:] != features[:, :-1]
    indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    indices = features[kept]
    return SimpleNamespace(
        format="csr", indptr=indptr, indices=indices, data=np.ones(len(indices)), shape=(len(features), LARGE)
    )


def time_of(learner: Learner, features: np.ndarray, random: np.random.Generator) -> float:
    """Nanoseconds per non-zero."""
    rows, labels = rows_of(features), np.where(random.random(len(features)) < 0.5, -1.0, 1.0)
    start = time.thread_time()
    learner.learn(rows, labels)
    return 1e9 * (time.thread_time() - start) / len(rows.indices)


def measure(kind: str, rows: int, repeat: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    small, large = KINDS[kind](), KINDS[kind]()
    names = random.permutation(LARGE)[: LARGE // WIDTH * WIDTH].reshape(-1, WIDTH)
    for start in range(0, len(names), _PART):  # all are met
        time_of(large, names[start : start + _PART], random)
    time_of(large, random.integers(0, LARGE, (_PART, WIDTH)), random)
    time_of(small, random.integers(0, SMALL, (rows, WIDTH)), random)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(repeat):
        times["small"].append(time_of(small, random.integers(0, SMALL, (rows, WIDTH)), random))
        times["large"].append(time_of(large, random.integers(0, LARGE, (rows, WIDTH)), random))
    table = large._table  # type: ignore[attr-defined]
    found = {name: statistics.median(values) for name, values in times.items()}
    row_bytes = table.width * table.rows.itemsize
    return {**found, "row_bytes": row_bytes, "packed": float(table.packed)}


def touch(program: Path, rows: int, row_bytes: int, pages: str, packed: bool) -> tuple[float, float]:
    """Nanoseconds per feature that reading its line takes, and reading and writing it."""
    features = np.sort(np.random.default_rng(1).integers(0, LARGE, (rows, WIDTH)), axis=1)
    words = [program, str(LARGE), str(row_bytes), pages, "packed" if packed else "plain"]
    done = subprocess.run(words, input=features.tobytes(), capture_output=True, check=True)
    reads, writes = map(float, done.stdout.split()[:2])
    return reads, writes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=15, help="measurements")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "touch_lines"
        source = Path(__file__).with_name("touch_lines.cpp")
        subprocess.run(["c++", "-std=c++20", "-O2", "-o", program, source], check=True)
        for kind in args.kind or KINDS:
            its = measure(kind, args.rows, args.repeat)
            for pages in ("large", "small"):
                line = touch(program, args.rows, int(its["row_bytes"]), pages, bool(its["packed"]))
                its[f"read, {pages} pages"], its[f"written, {pages} pages"] = line
            results[kind] = its
            if not args.json:
                print(
                    f"{kind:<8} {its['small']:6.2f} ns in caches, {its['large']:6.2f} ns in 2^24 features: "
                    f"{its['large'] / its['small']:.2f} times; lines of {its['row_bytes']:.0f} bytes, "
                    + ", ".join(f"{what} {its[what]:.2f}" for what in its if "pages" in what),
                    flush=True,
                )
    if args.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
