"""Runs of other learners, each with one setting of its parameters, for `untuned.py` to compare with.

    python benchmarks/untuned_peers.py [--held-out] [--sets NAME ...]     # adds what is missing to the results

Progressive 0/1 error of one pass (untuned_peers.json), or with --held-out the error on a random third of the rows
after one pass over the others, in their order (untuned_peers_held_out.json). Needs the extra `bench`.
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
HELD_OUT = Path(__file__).with_name("untuned_peers_held_out.json")
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


def split(X: Any, y: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64], int]:
    """A random third of the rows comes last; how many come before."""
    order, cut = np.random.default_rng(1).permutation(len(y)), 2 * len(y) // 3
    order = np.concatenate([np.sort(order[:cut]), order[cut:]])
    return X[order], y[order], cut


def write_vw(X: Any, y: NDArray[np.float64], path: Path, cut: int | None = None) -> None:
    """Rows from `cut` on, which are held out, have no label."""
    with path.open("w") as out:
        for r in range(len(y)):
            part = slice(X.indptr[r], X.indptr[r + 1])
            features = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            label = f"{y[r]:g} " if cut is None or r < cut else ""
            out.write(f"{label}| {' '.join(f'{i}:{v:.9g}' for i, v in features)}\n")


def run_vw(options: list[str], folder: Path) -> NDArray[np.float64]:
    command = [sys.executable, "-m", "vowpalwabbit", *options, "-d", str(folder / "data.vw")]
    subprocess.run([*command, "-p", str(folder / "predictions"), "--quiet"], check=True)
    return np.loadtxt(folder / "predictions")


def run_ours(learner: Learner, X: Any, y: NDArray[np.float64], cut: int | None = None) -> float:
    """Progressive error, or that of rows from `cut` on after the others were learned."""
    if cut is None:
        return error(learner.learn(X, y), y)
    learner.learn(X[:cut], y[:cut])
    return error(learner.predict(X[cut:]), y[cut:])


def run(name: str, results: dict[str, dict[str, float]], folder: Path, held_out: bool) -> None:
    """Fill in what is missing of one data set."""
    its = results.setdefault(name, {})
    missing_vw = [key for key in VW if f"vw {key}" not in its]
    missing_ours = [(key, make) for key, make in ours() if key not in its]
    if not missing_vw and not missing_ours:
        return
    X, y = SETS[name].load()
    cut = None
    if held_out:
        X, y, cut = split(X, y)
    for key, make in missing_ours:
        its[key] = run_ours(make(), X, y, cut)
    if missing_vw:
        write_vw(X, y, folder / "data.vw", cut)
    for key in missing_vw:
        its[f"vw {key}"] = error(run_vw(VW[key], folder)[cut:], y[cut:])
    place = HELD_OUT if held_out else RESULTS
    place.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    best = min(its, key=lambda key: its[key])
    print(f"{name:<22}{len(y):>7} rows  best {its[best]:.4f} ({best})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="names; default: all")
    parser.add_argument("--held-out", action="store_true", help="errors on rows that are not learned")
    args = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}")
    place = HELD_OUT if args.held_out else RESULTS
    results = json.loads(place.read_text()) if place.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.sets:
            if not (args.held_out and SETS[name].grouped):  # of the other classes nothing would be known
                run(name, results, Path(folder), args.held_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
