"""What do engines cost? Dask, Spark and `skn train --shards` with one and two workers, and a model of larger ones.

    python benchmarks/cluster.py [--rows N] [--engine-rows N] [--repeat N] [--only promise shards dask spark]
                                 [--json FILE]

Needs two idle cores and a gigabyte of disk space for a while; `dask` and `spark` need these extras. Rows are those
of `zipf.py`. `--only promise` takes two minutes: the first file, alone and with two shards. The parts:

* `skn train --threads 1` on a file of `--rows` with 1,000 features and on one with 50,000: alone, with one shard
  and with two in sixteen rounds. These take turns, and the best of all turns counts. Beside wall time:
  processor time of all processes, and of the longest chain: wall time on idle cores if nothing overlapped, but
  NumPy is imported while shards learn, and shards read while models are merged.
* Dask and Spark fit `--engine-rows` that are in memory already, in one round and in sixteen. Beside it: what
  learning these rows costs without an engine, and hence the engine's overhead.
* Processor time of learning a row, of merging and of a model's way through bytes. Fitted to it, a model of costs
  predicts a billion rows on 64 workers.

The exit code is 1 if a promise is broken: two shards take at most 0.65 times as long as one process, with 1,000
features; merging 50,000 of them sixteen times costs more.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zipf
from scipy.sparse import csr_array

from sketchnewton import NewtonBank
from sketchnewton.model.shards import AT_ONCE

SHARDS_LIMIT = 0.65

# Runs a command as `skn` does, and says at the end how much processor time it and its children took.
LAUNCHER = """
import atexit, json, resource
from sketchnewton.cli.main import run

def say():
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps([time.ru_utime + time.ru_stime for time in used]), flush=True)

atexit.register(say)
run()
"""

FEATURES, FEW, NONZEROS, ROUNDS = 50_000, 1_000, 20, 16
BLOCK = 20_000  # rows of one block or of the text that is repeated
WIRE = 1.25e9  # bytes per second between machines: ten gigabit


def rows_in_memory(count: int, nonzeros: int = NONZEROS, features: int = FEATURES) -> tuple[csr_array, Any]:
    rows = zipf.zipf_rows(count, features, nonzeros)
    return csr_array((rows.data, rows.indices, rows.indptr), shape=(count, features)), rows.labels


# --- one machine: skn train --shards


COMMANDS = {"one process": 0, "1 shard": 1, "2 shards": 2}  # shards of each; 0: without --shards


def measure_shards(
    rows: int, features: int, repeat: int, names: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Seconds of these commands, the best of `repeat` turns."""
    with tempfile.TemporaryDirectory() as folder:
        part, unused, path = (Path(folder) / name for name in ("part.svm", "part.vw", "rows.svm"))
        zipf.write_text(zipf.zipf_rows(BLOCK * 5, features, NONZEROS), part, unused)
        text = part.read_bytes()
        with path.open("wb") as file:
            for _ in range(max(1, rows // (BLOCK * 5))):
                file.write(text)
        plain = ["train", str(path), "--threads", "1", "--quiet", "--model", str(Path(folder) / "m.skn")]
        turns: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for _ in range(repeat):
            for name, its in turns.items():
                count = COMMANDS[name]
                its.append(_timed([*plain, *(["--shards", str(count)] if count else [])], count))
    return {name: {what: min(turn[what] for turn in its) for what in its[0]} for name, its in turns.items()}


def _timed(arguments: list[str], shards: int) -> dict[str, float]:
    start = time.perf_counter()
    command = [sys.executable, "-c", LAUNCHER, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall = time.perf_counter() - start
    own, children = json.loads(done.stdout.splitlines()[-1])
    return {"wall": wall, "all": own + children, "chain": own + children / max(shards, 1)}


# --- engines


def fit_on_dask(workers: int, count: int, repeat: int) -> dict[str, float]:
    """Seconds of a fit with rows in the workers' memory, and of one that has hardly any."""
    import dask.array as da
    from dask import delayed
    from distributed import Client, LocalCluster, wait

    from sketchnewton.dask import SketchedNewtonClassifier

    def block(number: int, rows: int) -> csr_array:
        return rows_in_memory(rows)[0]

    def arrays(rows: int) -> tuple[Any, Any]:
        blocks = max(2, count // BLOCK)
        size = rows // blocks
        X = [
            da.from_delayed(delayed(block)(i, size), (size, FEATURES), meta=csr_array((0, 0)))
            for i in range(blocks)
        ]
        y = da.from_array(np.tile(rows_in_memory(size)[1], blocks), size)
        return da.concatenate(X), y

    with (
        LocalCluster(workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        full, empty = ([part.persist() for part in arrays(rows)] for rows in (count, 64 * workers))
        wait([*full, *empty])

        def fit(rounds: int, data: list[Any]) -> float:
            start = time.perf_counter()
            SketchedNewtonClassifier(rounds=rounds, shards=workers, loss="squared").partial_fit(
                *data, classes=[-1, 1]
            )
            return time.perf_counter() - start

        return _fits(fit, full, empty, repeat)


def fit_on_spark(workers: int, count: int, repeat: int) -> dict[str, float]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers make rows, too
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DoubleType, StructField, StructType

    from sketchnewton.model import shards
    from sketchnewton.spark import SketchedNewtonClassifier

    spark = (
        SparkSession.builder.master(f"local[{workers}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    schema = StructType([StructField("features", VectorUDT()), StructField("label", DoubleType())])

    def block(number: int, rows: int) -> list[tuple[Any, float]]:
        X, y = rows_in_memory(rows)
        return [
            (
                Vectors.sparse(
                    FEATURES,
                    X.indices[X.indptr[r] : X.indptr[r + 1]].tolist(),
                    X.data[X.indptr[r] : X.indptr[r + 1]].tolist(),
                ),
                float(y[r]),
            )
            for r in range(rows)
        ]

    def frame(rows: int) -> Any:
        size = rows // workers
        made = spark.sparkContext.parallelize(range(workers), workers).flatMap(lambda n: block(n, size))
        cached = spark.createDataFrame(made, schema).cache()
        cached.count()
        return cached

    start = shards.new_model([-1.0, 1.0], loss="squared")

    def fit(rounds: int, data: Any) -> float:
        begin = time.perf_counter()
        SketchedNewtonClassifier(rounds=rounds, partitions=workers, initialModel=start).fit(data)
        return time.perf_counter() - begin

    try:
        return _fits(fit, frame(count), frame(64 * workers), repeat)
    finally:
        spark.stop()


def _fits(fit: Any, full: Any, empty: Any, repeat: int) -> dict[str, float]:
    fit(1, empty)  # imports, and processes that start
    return {
        f"{name} {rounds}": min(fit(rounds, data) for _ in range(repeat))
        for (name, data), rounds in itertools.product((("full", full), ("empty", empty)), (1, ROUNDS))
    }


ENGINES = {"dask": fit_on_dask, "spark": fit_on_spark}


def measure_apart(what: str, workers: int, rows: int, repeat: int) -> dict[str, float]:
    """In a process of its own, since engines leave threads behind, and with one thread for linear algebra."""
    command = [sys.executable, __file__, "--run", what, str(workers), "--engine-rows", str(rows)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--repeat", str(repeat)], check=True, stdout=subprocess.PIPE, text=True, env=alone
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- the model of costs


class Costs(NamedTuple):
    """Processor seconds, and bytes."""

    row: float  # to learn a row
    nonzero: float  # and each of its non-zeros
    merge: float  # to merge, for each shard and feature
    wire: float  # to write a model's bytes and read them again, for each feature
    size: float  # bytes of a model, for each feature

    def learning(self, rows: float, nonzeros: float) -> float:
        return rows * (self.row + nonzeros * self.nonzero)

    def round(self, workers: int, features: float, *, tree: bool) -> float:
        """Of one merge of all shards: in a tree on the workers, or all of it on one machine."""
        merges, left = 0, workers
        while left > 1:
            left = math.ceil(left / AT_ONCE)
            merges += 1 if tree else left
        arriving = min(workers, AT_ONCE) * features * (self.merge + self.wire + self.size / WIRE)
        back = features * (self.wire + self.size / WIRE)  # to the workers
        return merges * arriving + back


def measure_costs(repeat: int) -> Costs:
    """Fitted to processor seconds, the least of `repeat` turns."""
    lengths = (5, 20, 60)
    seconds = []
    for nonzeros in lengths:
        X, y = rows_in_memory(BLOCK, nonzeros)
        seconds.append(_least(lambda X=X, y=y: NewtonBank().learn(X, y), repeat) / BLOCK)
    nonzero, row = np.polyfit(lengths, seconds, 1)

    merges, wires, sizes = [], [], []
    for features, count in itertools.product((20_000, 100_000), (2, AT_ONCE)):
        banks = [_bank(features, seed) for seed in range(count)]
        known = banks[0].features_seen
        merges.append(
            (count * known, _least(lambda banks=banks: copy.deepcopy(banks[0]).merge(*banks[1:]), repeat))
        )
        if count == 2:
            data = banks[0].to_bytes()
            wires.append(
                (known, _least(lambda bank=banks[0]: NewtonBank.from_bytes(bank.to_bytes()), repeat))
            )
            sizes.append((known, len(data)))
    return Costs(max(row, 0.0), nonzero, _slope(merges), _slope(wires), _slope(sizes))


def _bank(features: int, seed: int) -> NewtonBank:
    """One that knows all features."""
    rows = zipf.uniform_rows(features // 5, features, 20, seed)
    bank = NewtonBank()
    bank.learn(
        csr_array((rows.data, rows.indices, rows.indptr), shape=(features // 5, features)), rows.labels
    )
    return bank


def _least(work: Any, repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def _slope(points: list[tuple[float, float]]) -> float:
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


# --- what is said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the file for --shards")
    parser.add_argument("--engine-rows", type=int, default=400_000, help="for Dask and Spark")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--only", nargs="*", choices=["promise", "shards", *ENGINES], default=["shards", *ENGINES]
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # an engine and its workers
    args = parser.parse_args()
    if args.run:
        what, workers = args.run[0], int(args.run[1])
        run = ENGINES.get(what)
        result = run(workers, args.engine_rows, args.repeat) if run else measure_costs(args.repeat)._asdict()
        print(json.dumps(result))
        return 0
    found: dict[str, Any] = {}
    kept = True
    whole = "shards" in args.only
    for features in (FEW, FEATURES) if whole else (FEW,) if "promise" in args.only else ():
        names = COMMANDS if whole else ("one process", "2 shards")
        found[f"shards {features}"] = measure_shards(args.rows, features, args.repeat, names)
        ratio = show_shards(found[f"shards {features}"], args.rows, features)
        kept &= features != FEW or ratio <= SHARDS_LIMIT
    engines = [name for name in ENGINES if name in args.only]
    if engines:
        found |= measure_engines(engines, args.engine_rows, args.repeat)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    if not kept:
        print(f"BROKEN: two shards take more than {SHARDS_LIMIT} of one process's time")
    return int(not kept)


def measure_engines(names: list[str], rows: int, repeat: int) -> dict[str, Any]:
    """What they cost, and what larger clusters of them would take; prints both."""
    found: dict[str, Any] = {"costs": measure_apart("costs", 1, rows, repeat)}
    costs, overheads = Costs(**found["costs"]), {}
    print(f"\nlearning a row: {1e9 * costs.row:.0f} ns + {1e9 * costs.nonzero:.0f} ns per non-zero")
    print(f"merging: {1e9 * costs.merge:.0f} ns per shard and feature")
    print(f"a model in bytes and back: {1e9 * costs.wire:.0f} ns and {costs.size:.0f} bytes per feature")
    for name in names:
        found[name] = {n: measure_apart(name, n, rows, repeat) for n in (1, 2)}
        overheads[name] = show_engine(name, found[name], rows, costs)
    for name, overhead in overheads.items():
        predict(name, overhead, costs)
    return found


def show_engine(name: str, found: dict[int, dict[str, float]], rows: int, costs: Costs) -> float:
    """Prints a table; returns the engine's seconds for each round."""
    alone = costs.learning(rows, NONZEROS)
    print(f"\n{name}, {rows:,} rows; learning them without an engine: {alone:.1f} s")
    print(f"{'workers':>8}{'rounds':>8}{'seconds':>9}{'rows/s':>12}{'overhead':>10}")
    for (workers, its), rounds in itertools.product(found.items(), (1, ROUNDS)):
        seconds = its[f"full {rounds}"]
        print(
            f"{workers:>8}{rounds:>8}{seconds:>9.2f}{rows / seconds:>12,.0f}{seconds - alone / workers:>9.2f}s"
        )
    each = (found[2][f"empty {ROUNDS}"] - found[2]["empty 1"]) / (ROUNDS - 1)
    print(f"a round with hardly any rows: {1000 * each:.0f} ms")
    return each


def show_shards(found: dict[str, dict[str, float]], rows: int, features: int) -> float:
    """Prints a table; returns the wall time of two shards over that of one process."""
    print(f"\nskn train --threads 1, {rows:,} rows, {features:,} features: seconds")
    print(f"{'':<14}{'wall':>8}{'all processes':>16}{'longest chain':>16}{'rows/s':>12}")
    for name, its in found.items():
        line = f"{name:<14}{its['wall']:>8.2f}{its['all']:>16.2f}{its['chain']:>16.2f}"
        print(f"{line}{rows / its['wall']:>12,.0f}")
    ratios = {what: found["2 shards"][what] / found["one process"][what] for what in ("wall", "chain")}
    print(f"two shards ÷ one process: {ratios['wall']:.2f} in wall time, {ratios['chain']:.2f} by chains")
    return ratios["wall"]


def predict(name: str, overhead: float, costs: Costs) -> None:
    """A billion rows of 60 non-zeros, a million features."""
    rows, nonzeros, features = 1e9, 60, 1e6
    print(f"\npredicted: {rows:.0e} rows of {nonzeros} non-zeros, {features:.0e} features, {name}")
    print(f"{'workers':>8}{'rounds':>8}{'learning':>10}{'merging':>9}{'engine':>8}{'in all':>9}")
    for workers, rounds in itertools.product((1, 8, 64), (1, ROUNDS)):
        learning = costs.learning(rows, nonzeros) / workers
        merging = rounds * costs.round(workers, features, tree=name == "dask") if workers > 1 else 0.0
        engine = rounds * overhead
        total = learning + merging + engine
        print(f"{workers:>8}{rounds:>8}{learning:>9.0f}s{merging:>8.0f}s{engine:>7.0f}s{total:>8.0f}s")


if __name__ == "__main__":
    sys.exit(main())
