"""What does Frequent Directions cost? Against a textbook version, the exact product, and sparse rows.

    python benchmarks/frequent_directions.py [dense|sparse] [--rows 50000] [--columns 1000] [--size 50]
                                             [--data ../shared/data]

Times are processor times, the best of several passes, all in one run. Set OPENBLAS_NUM_THREADS=1 for the sake of
the exact product and the textbook: the sketches do so by themselves. 20news is read where it is present.
"""

from __future__ import annotations

import argparse
import lzma
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import IncrementalPCA

from sketchnewton import FrequentDirections, SketchedPCA


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


def best(work: Callable[[], Any], passes: int) -> tuple[float, Any]:
    times, result = [], None
    for _ in range(passes):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def dense(rows: int, columns: int, m: int) -> None:
    random = np.random.default_rng(0)
    spectrum = (1 + np.arange(columns, dtype=np.float32)) ** np.float32(-0.7)
    A = random.standard_normal((rows, columns), np.float32) * spectrum
    print(f"{rows}x{columns} float32, m = {m}")
    product_time, product = best(lambda: A.T @ A, 7)
    scale = np.linalg.norm(product.astype(float), 2)

    def line(name: str, seconds: float, B: np.ndarray | None) -> None:
        error = "" if B is None else f"error {np.linalg.norm(product - B.T @ B, 2) / scale:.5f}"
        print(f"  {name:<28}{seconds:7.2f} s  {seconds / product_time:5.2f} x exact  {error}", flush=True)

    line("exact A.T @ A", product_time, None)
    for factor in (2, None, 1, 2.5, 3):  # the textbook beside the default, which is 2m
        if factor is None:
            line("textbook (2m rows, SVD)", *best(lambda: textbook(A, m), 1))
            line("exact A.T @ A, again", best(lambda: A.T @ A, 7)[0], None)
            continue
        seconds, sketch = best(
            lambda f=factor: FrequentDirections(m, buffer_size=int(f * m), dtype="float32").update(A), 7
        )
        line(f"ours, buffer of {factor}m rows", seconds, sketch.matrix)


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
        "the same, buffer of 4m": lambda: FrequentDirections(m, buffer_size=4 * m, dtype="float32").update(X),
        "FrequentDirections float64": lambda: FrequentDirections(m).update(X),
        "SketchedPCA(20)": lambda: SketchedPCA(20).partial_fit(X),
    }.items():
        seconds, result = best(work, 1)
        note = ""
        if isinstance(result, FrequentDirections):
            reading, _ = best(lambda s=result: s.components_, 1)
            share = result.error_bound / result.squared_norm
            note = f"and {reading:.2f} s to read, certified {share:.3%} of ‖A‖²_F"
        print(f"  {name:<28}{seconds:7.2f} s  {note}", flush=True)
    print(f"  largest memory so far        {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    try:
        IncrementalPCA(20).partial_fit(X)
    except TypeError as error:
        print(f"  IncrementalPCA.partial_fit: {error}")
    print(f"  rows made dense              {X.shape[0] * X.shape[1] * 8 / 1e9:.1f} GB")
    seconds, _ = best(lambda: IncrementalPCA(20, batch_size=100).fit(X[:500]), 1)
    print(
        f"  IncrementalPCA.fit, made dense in batches of 100: {seconds / 500 * X.shape[0]:.0f} s, from 500 rows"
    )


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
