"""How fast is VW text parsed? The kernel alone, then whole files, beside Vowpal Wabbit and our svmlight parser.

    python benchmarks/parse_vw.py [--rows 100000] [--repeat 7]

Needs the extra `bench`. The rows are those of vowpal_wabbit.py, 76 MB of VW text. Contenders take turns; numbers
are medians, in megabytes of text per second. "names" is the same text with a letter before each number, so that
names are hashed. Vowpal Wabbit parses and does as little as it can with what it parsed (`--noop`).

"memchr" finds the line ends of the same text and does nothing else: what reading memory costs.

The exit code is 1 if the promise is broken: the kernels alone parse at least 1,000 MB/s of VW text and svmlight.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import vowpalwabbit
import zipf

from sketchnewton import _native
from sketchnewton.streams import Names, read_svmlight, read_vw

PROMISE = 1000.0
MASK = (1 << 18) - 1


def cut(text: bytes, size: int = 1 << 20) -> Iterator[memoryview]:
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + size) + 1
        yield memoryview(text)[start:end]
        start = end


def kernel(chunks: list[memoryview], names: Names | None = None) -> None:
    table = None if names is None else names.table
    for chunk in chunks:
        _native.parse_vw(chunk, 1 << 23, MASK, False, False, table)


def drain(reader: Iterator[object]) -> None:
    for _ in reader:
        pass


def theirs(path: Path) -> None:
    vowpalwabbit.Workspace(arg_list=["--quiet", "--noop", "-d", str(path)]).finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=zipf.ROWS)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        zipf.write_text(zipf.zipf_rows(args.rows), folder / "data.svm", folder / "data.vw")
        text = (folder / "data.vw").read_bytes()
        svmlight = list(cut((folder / "data.svm").read_bytes()))
        named = b"".join(
            b"".join((line[:2], line[2:].replace(b" ", b" f"), b"\n")) for line in text.splitlines()
        )
        (folder / "named.vw").write_bytes(named)
        sizes = {"svm": sum(map(len, svmlight)), "vw": len(text), "named": len(named)}
        numbers, letters = list(cut(text)), list(cut(named))
        contenders: dict[str, tuple[str, Callable[[], None]]] = {
            "memchr": ("vw", lambda: drain(iter([text.count(b"\n")]))),
            "kernel": ("vw", lambda: kernel(numbers)),
            "kernel, names": ("named", lambda: kernel(letters)),
            "kernel, names recorded": ("named", lambda: kernel(letters, Names())),
            "file": ("vw", lambda: drain(read_vw(folder / "data.vw"))),
            "file, names": ("named", lambda: drain(read_vw(folder / "named.vw"))),
            "svmlight kernel": (
                "svm",
                lambda: drain(_native.parse_svmlight(c, 1 << 23) for c in svmlight),
            ),
            "svmlight file": ("svm", lambda: drain(read_svmlight(folder / "data.svm"))),
            "vw --noop": ("vw", lambda: theirs(folder / "data.vw")),
            "vw --noop, names": ("named", lambda: theirs(folder / "named.vw")),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(args.repeat):
            for name, (_, work) in contenders.items():
                start = time.perf_counter()
                work()
                seconds[name].append(time.perf_counter() - start)
    speed = {
        name: sizes[kind] / 1e6 / statistics.median(seconds[name]) for name, (kind, _) in contenders.items()
    }
    print(f"{args.rows} rows, {len(text) / 1e6:.0f} MB, medians of {args.repeat}")
    for name, value in speed.items():
        print(f"{name:<24}{value:8.0f} MB/s{value / speed['vw --noop']:8.2f} × vw --noop")
    slower = min(speed["kernel"], speed["svmlight kernel"])
    kept = slower >= PROMISE
    print(f"{'kept' if kept else 'BROKEN'}: the kernels parse {slower:.0f} MB/s (at least {PROMISE:g})")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
