"""What does Frequent Directions cost? Against a textbook version, the exact product, and sparse rows.

    python benchmarks/frequent_directions.py [dense|sparse] [--rows 50000] [--columns 1000] [--size 50]
                                             [--data ../shared/data]

Times are the best of several passes, in which all take turns. Set OPENBLAS_NUM_THREADS=1 to compare processor
times: the sketches use one thread by themselves, the exact product and the textbook as many as there are.
20news is read where it is present.
"""

from __future__ import annotations

import argparse
import lzma
import math
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import IncrementalPCA

from sketchnewton import FrequentDirections, SketchedPCA

EXACT = "exact A.T @ A"


def textbook(A: np.ndarray, m: int) -> np.ndarray:
    """Frequent Directions as in its paper: 2m rows, a full SVD whenever they are filled."""
    B = np.zeros((2 * m, A.shape[1]), A.dtype)
    count = 0
    for row in A:
        if count == 2 * m:
            _, sigma, Vt = np.linalg.svd(B, full_matrices=False)
            sigma = np.sqrt(np.maximum(sigma**2 - sigma[m - 1] ** 2, 0))
            B[: m - 1] = sigma[: m - 1, None] * Vt[: m - 1]
            B[m - 1 :] = 0
            count = m - 1
        B[count] = row
        count += 1
    _, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    return np.sqrt(np.maximum(sigma**2 - sigma[m - 1] ** 2, 0))[: m - 1, None] * Vt[: m - 1]


def best(works: dict[str, Callable[[], Any]], passes: int) -> dict[str, tuple[float, float, Any]]:
    """The least processor time, the least time by the clock, and the result of each."""
    found: dict[str, tuple[float, float, Any]] = {}
    for _ in range(passes):
        for name, work in works.items():
            start, begun = time.process_time(), time.perf_counter()
            result = work()
            spent, passed = time.process_time() - start, time.perf_counter() - begun
            before = found.get(name, (math.inf, math.inf, None))
            found[name] = min(before[0], spent), min(before[1], passed), result
    return found


def dense(rows: int, columns: int, m: int) -> None:
    random = np.random.default_rng(0)
    spectrum = (1 + np.arange(columns, dtype=np.float32)) ** np.float32(-0.7)
    A = random.standard_normal((rows, columns), np.float32) * spectrum
    print(f"{rows}x{columns} float32, m = {m}")
    works: dict[str, Callable[[], Any]] = {EXACT: lambda: A.T @ A}
    for factor in (3, 1, 2, 2.5, 4):  # the default first
        works[f"ours, buffer of {factor}m rows"] = lambda f=factor: FrequentDirections(
            m, buffer_size=int(f * m), dtype="float32"
        ).update(A)
    found = best(works, 7) | best({"textbook (2m rows, SVD)": lambda: textbook(A, m)}, 1)
    spent, passed, product = found.pop(EXACT)
    print(f"  {EXACT:<28}{spent:7.2f} s of a processor, {passed:.2f} by the clock")
    scale = np.linalg.norm(product.astype(float), 2)
    for name, (own, clock, result) in found.items():
        B = result.matrix if isinstance(result, FrequentDirections) else result
        error = np.linalg.norm(product - B.T @ B, 2) / scale
        print(
            f"  {name:<28}{own:7.2f} s {own / spent:6.2f} x exact, "
            f"by the clock {clock:.2f} s {clock / passed:6.2f} x, error {error:.5f}",
            flush=True,
        )


def sparse(path: Path, m: int) -> None:
    if not path.exists():
        print(f"{path}: not there, 20news skipped")
        return
    with lzma.open(path) as file:
        X, _ = load_svmlight_file(file)
    X = X[np.random.default_rng(0).permutation(X.shape[0])].astype(np.float32)
    print(f"20news {X.shape[0]}x{X.shape[1]}, {X.nnz} non-zeros, m = {m}")
    for name, work in {
        "FrequentDirections float32": lambda: FrequentDirections(m, dtype="float32").update(X),
        "the same, buffer of 2m": lambda: FrequentDirections(m, buffer_size=2 * m, dtype="float32").update(X),
        "the same, buffer of 4m": lambda: FrequentDirections(m, buffer_size=4 * m, dtype="float32").update(X),
        "FrequentDirections float64": lambda: FrequentDirections(m).update(X),
        "SketchedPCA(20)": lambda: SketchedPCA(n_components=20).partial_fit(X),
    }.items():
        seconds, _, result = best({name: work}, 1)[name]
        note = ""
        if isinstance(result, FrequentDirections):
            reading = best({name: lambda s=result: s.components_}, 1)[name][0]
            share = result.error_bound / result.squared_norm
            note = f"and {reading:.2f} s to read, certified {share:.3%} of ‖A‖²_F"
        print(f"  {name:<28}{seconds:7.2f} s  {note}", flush=True)
    print(f"  largest memory so far        {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    try:
        IncrementalPCA(20).partial_fit(X)
    except TypeError as error:
        print(f"  IncrementalPCA.partial_fit: {error}")
    print(f"  rows made dense              {X.shape[0] * X.shape[1] * 8 / 1e9:.1f} GB")
    name = "IncrementalPCA.fit, made dense in batches of 100"
    seconds = best({name: lambda: IncrementalPCA(20, batch_size=100).fit(X[:500])}, 1)[name][0]
    print(f"  {name}: {seconds / 500 * X.shape[0]:.0f} s, from 500 rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("dense", "sparse"), help="both if not given")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    args = parser.parse_args()
    if args.part != "sparse":
        dense(args.rows, args.columns, args.size)
    if args.part != "dense":
        sparse(args.data / "20news" / "20news_tfidf_train+test.xz", args.size)


if __name__ == "__main__":
    main()
