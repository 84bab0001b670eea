"""Tables read into features: sketchnewton's readers against pyarrow's, on the same files.

    python benchmarks/tables.py [--rows 10000] [--columns 20] [--repeats 7]

Three things are timed, in turns, by processor time: pyarrow reading the file into a table; the same and then the
features of that table, which is what "end to end" means; and ``open_stream``. All read with one thread. Tables are
of numbers, and of a mixture: numbers, categories, booleans, dates with times, missing cells. The rows of the last
two are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from sketchnewton.streams import open_stream
from sketchnewton.streams.records import read_records

pa.set_cpu_count(1)


def main() -> None:
    """Write the tables, time the readers, print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    print(
        f"{args.rows:,} rows, {args.columns} columns; medians of {args.repeats}, milliseconds of processor time"
    )
    print(f"{'table':<18}{'pyarrow reads':>15}{'and features':>15}{'sketchnewton':>15}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, table in (("numbers", numbers(args)), ("mixed", mixture(args))):
            for form in ("csv", "jsonl", "parquet"):
                path = os.path.join(folder, f"{kind}.{form}")
                write(table, path)
                compare(f"{kind} {form}", path, args.repeats)


def numbers(args: argparse.Namespace) -> pa.Table:
    """A table of numbers with six digits."""
    random = np.random.default_rng(0)
    columns = {f"x{k}": np.round(random.normal(size=args.rows), 6) for k in range(args.columns)}
    return pa.table({"label": random.choice([-1, 1], args.rows), **columns})


def mixture(args: argparse.Namespace) -> pa.Table:
    """A table of all sorts of columns."""
    random = np.random.default_rng(1)
    rows = args.rows
    some = [
        lambda: pa.array(np.round(random.normal(size=rows), 4), mask=random.random(rows) < 0.05),
        lambda: pa.array(random.integers(0, 1000, rows)),
        lambda: pa.array([f"city {k}" for k in random.integers(0, 50, rows)]),
        lambda: pa.array([f"user{k:08d}" for k in random.integers(0, rows, rows)]),
        lambda: pa.array(random.random(rows) < 0.5),
        lambda: pa.array(np.datetime64("2024-01-01T00:00:01") + random.integers(0, 10**7, rows)),
    ]
    columns = {f"c{k}": some[k % len(some)]() for k in range(args.columns)}
    return pa.table({"label": random.choice([-1, 1], rows), **columns})


def write(table: pa.Table, path: str) -> None:
    """One table as a file of the kind that its ending says."""
    if path.endswith("parquet"):
        pa.parquet.write_table(table, path)
    elif path.endswith("csv"):
        pa.csv.write_csv(table, path)
    else:
        with open(path, "w") as file:
            for record in table.to_pylist():
                file.write(json.dumps(record, default=lambda value: value.isoformat()) + "\n")


def read_arrow(path: str) -> pa.Table:
    """By pyarrow's own reader, with one thread."""
    if path.endswith("parquet"):
        return pa.parquet.read_table(path, use_threads=False)
    if path.endswith("csv"):
        return pa.csv.read_csv(path, pa.csv.ReadOptions(use_threads=False))
    return pa.json.read_json(path, pa.json.ReadOptions(use_threads=False))


def compare(name: str, path: str, repeats: int) -> None:
    """Time the three in turns, print the medians."""
    jobs: list[Callable[[], object]] = [
        lambda: read_arrow(path),
        lambda: list(read_records(read_arrow(path))),
        lambda: list(open_stream(path, prefetch=False)),
    ]
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(repeats + 1):
        for job, spent in zip(jobs, times, strict=True):
            start = time.process_time()
            job()
            spent.append(1e3 * (time.process_time() - start))
    plain, features, ours = (statistics.median(spent[1:]) for spent in times)
    print(f"{name:<18}{plain:>15.1f}{features:>15.1f}{ours:>15.1f}{ours / plain:>9.2f}")
    check(path)


def check(path: str) -> None:
    """Both ways lead to the same rows."""
    ours, theirs = list(open_stream(path, prefetch=False)), list(read_records(read_arrow(path)))
    for field in ("indices", "data", "labels"):
        a, b = (np.concatenate([getattr(batch, field) for batch in batches]) for batches in (ours, theirs))
        if not np.array_equal(a, b):
            print(f"  {field} differ: {len(a)} and {len(b)}")


if __name__ == "__main__":
    main()
