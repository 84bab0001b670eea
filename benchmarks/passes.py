"""How much faster are later passes, which read the cache instead of the text?

    python benchmarks/passes.py [--rows 100000] [--repeat 7]

The rows of vowpal_wabbit.py as VW text; whole commands of two passes, which build the cache anew each time and
tell the seconds of each pass themselves. Numbers are medians; ratios are of passes of one command.

The exit code is 1 if the promise is broken: with the Oja sketch of size 10 the second pass is at least twice as
fast as the first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import zipf

PROMISE = 2.0
LEARNERS = {
    "default": [],
    "oja, m = 10": ["--sketch", "oja", "--sketch-size", "10"],
    "no sketch": ["--sketch", "none"],
}


def seconds_of(data: Path, options: list[str]) -> list[float]:
    """Of each pass of one command."""
    Path(f"{data}.skn-cache").unlink(missing_ok=True)
    command = [sys.executable, "-m", "sketchnewton", "train", str(data), "--passes", "2", "--json", "--quiet"]
    done = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE)
    seconds: list[float] = json.loads(done.stdout)["pass_seconds"]
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=zipf.ROWS)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    times: dict[str, list[list[float]]] = {name: [] for name in LEARNERS}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.vw"
        zipf.write_text(zipf.zipf_rows(args.rows), Path(folder) / "data.svm", data)
        print(f"{args.rows} rows, {data.stat().st_size / 1e6:.0f} MB, medians of {args.repeat}")
        data.read_bytes()  # into memory, for the first as for the others
        for _ in range(args.repeat):
            for name, options in LEARNERS.items():
                times[name].append(seconds_of(data, options))
    print(f"{'':<16}{'first pass':>12}{'second':>12}{'ratio':>8}{'smallest':>10}{'largest':>9}")
    ratio = {}
    for name, runs in times.items():
        first, second = (statistics.median(column) for column in zip(*runs, strict=True))
        ratios = [one / two for one, two in runs]
        ratio[name] = statistics.median(ratios)
        spread = f"{ratio[name]:>8.2f}{min(ratios):>10.2f}{max(ratios):>9.2f}"
        print(f"{name:<16}{first:>10.3f} s{second:>10.3f} s{spread}")
    found = ratio["oja, m = 10"]
    kept = found >= PROMISE
    print(
        f"{'kept' if kept else 'BROKEN'}: the second pass is {found:.2f} times as fast (at least {PROMISE:g})"
    )
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
