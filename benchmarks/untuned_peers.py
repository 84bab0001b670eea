"""Runs of other learners, each with one setting of its parameters, for `untuned.py` to compare with.

    python benchmarks/untuned_peers.py [--sets NAME ...]     # adds what is missing to untuned_peers.json

Progressive 0/1 error of one pass. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from untuned_data import DATA, SETS

from sketchnewton import AdaGrad, Learner, SketchedNewton

RESULTS = Path(__file__).with_suffix(".json")
RATES = (0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0)  # 0.5 is the default
VW = {"default": [], "--coin": ["--coin"]} | {f"-l {rate:g}": ["-l", str(rate)] for rate in RATES}


def ours() -> Iterator[tuple[str, Callable[[], Learner]]]:
    """Our own learners over ladders of their parameters."""
    for eta in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        yield f"adagrad {eta:g}", lambda eta=eta: AdaGrad(eta=eta, clip=1.0, intercept=True)
    for sketch in ("oja", "rfd"):
        for diagonal in (False, True):
            for alpha in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0):
                name = f"son {sketch}{' diagonal' if diagonal else ''} {alpha:g}"
                yield (
                    name,
                    lambda s=sketch, d=diagonal, a=alpha: SketchedNewton(
                        s, 10, alpha=a, diagonal=d, intercept=True
                    ),
                )


def error(predictions: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    return float(np.mean((predictions >= 0) != (labels > 0)))


def write_vw(X: Any, y: NDArray[np.float64], path: Path) -> None:
    with path.open("w") as out:
        for r in range(len(y)):
            part = slice(X.indptr[r], X.indptr[r + 1])
            features = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            out.write(f"{y[r]:g} | {' '.join(f'{i}:{v:.9g}' for i, v in features)}\n")


def run_vw(options: list[str], folder: Path, labels: NDArray[np.float64]) -> float:
    command = [sys.executable, "-m", "vowpalwabbit", *options, "-d", str(folder / "data.vw")]
    subprocess.run([*command, "-p", str(folder / "predictions"), "--quiet"], check=True)
    return error(np.loadtxt(folder / "predictions"), labels)


def run(name: str, results: dict[str, dict[str, float]], folder: Path) -> None:
    """Fill in what is missing of one data set."""
    its = results.setdefault(name, {})
    missing_vw = [key for key in VW if f"vw {key}" not in its]
    missing_ours = [(key, make) for key, make in ours() if key not in its]
    if not missing_vw and not missing_ours:
        return
    X, y = SETS[name].load()
    for key, make in missing_ours:
        its[key] = error(make().learn(X, y), y)
    if missing_vw:
        write_vw(X, y, folder / "data.vw")
    for key in missing_vw:
        its[f"vw {key}"] = run_vw(VW[key], folder, y)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    best = min(its, key=lambda key: its[key])
    print(f"{name:<22}{len(y):>7} rows  best {its[best]:.4f} ({best})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="names; default: all")
    args = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.sets:
            run(name, results, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
