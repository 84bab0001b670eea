"""How fast is svmlight text parsed? Kernel alone, then files of each kind through the reader thread.

    python benchmarks/parse_svmlight.py [--rows 100000]

Prints megabytes of text per second (best of several passes), beside scikit-learn's parser.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from sketchnewton._native import parse_svmlight
from sketchnewton.streams import read_svmlight

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NONZEROS = 60


def make_text(rows: int) -> bytes:
    random = np.random.default_rng(0)
    lines = []
    for _ in range(rows):
        indices = np.cumsum(random.integers(1, 30_000, NONZEROS)).tolist()
        values = random.random(NONZEROS).tolist()
        pairs = " ".join(f"{i}:{v:.6f}" for i, v in zip(indices, values, strict=True))
        lines.append(f"{random.integers(0, 2)} {pairs}\n")
    return "".join(lines).encode()


def cut(text: bytes, size: int) -> Iterator[memoryview]:
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + size) + 1
        yield memoryview(text)[start:end]
        start = end


def report(name: str, megabytes: float, work: Callable[[], object], passes: int = 5) -> None:
    best = np.inf
    for _ in range(passes):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(f"{name:<32}{megabytes / best:8.0f} MB/s")


def drain(path: Path, batch_bytes: int) -> None:
    with read_svmlight(path, batch_bytes=batch_bytes) as reader:
        for _ in reader:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    text = make_text(parser.parse_args().rows)
    megabytes = len(text) / 1e6
    sizes = [1 << k for k in (16, 18, 20, 22)]
    for size in sizes:
        chunks = list(cut(text, size))
        report(
            f"kernel, {size >> 10} KiB", megabytes, lambda c=chunks: [parse_svmlight(t, 1 << 23) for t in c]
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(text)
        for size in sizes:
            report(f"file, {size >> 10} KiB", megabytes, lambda s=size: drain(path, s))
        part = next(cut(text, 20_000_000))
        for kind in (gzip, bz2, lzma, zstd):
            path.write_bytes(kind.compress(part))
            report(f"file, {kind.__name__}", len(part) / 1e6, lambda: drain(path, 1 << 20), passes=2)
    report("scikit-learn", len(part) / 1e6, lambda: load_svmlight_file(io.BytesIO(part)), passes=1)


if __name__ == "__main__":
    main()
