"""How large are the errors? Figures 1 and 2 of the RFD paper: relative spectral error against sketch size.

    python benchmarks/sketch_errors.py [--data ../shared/data] [--plot errors.png]

‖AᵀA − (BᵀB + ridge·I)‖₂ / ‖AᵀA‖₂ for FD, CFD, RFD and PFD on a9a, mushrooms, w1a (where present) and on three
synthetic spectra, of which one is too flat for sketches of these sizes.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from sketchnewton import (
    CompensativeFrequentDirections,
    FrequentDirections,
    ParameterizedFrequentDirections,
    RobustFrequentDirections,
)

KINDS: dict[str, Callable[[int], Any]] = {
    "FD": FrequentDirections,
    "CFD": CompensativeFrequentDirections,
    "RFD": RobustFrequentDirections,
    **{f"PFD {b}": lambda m, b=b: ParameterizedFrequentDirections(m, beta=b) for b in (0.2, 0.4, 0.6, 0.8)},
}
FLAT = "linear spectrum"  # small sketches of it miss everything, and then half a bound is no good ridge
SIZES = (10, 20, 30, 40, 50, 60)


def matrices(data: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and matrices; rows in random order, as grouped rows are no stream."""
    random = np.random.default_rng(0)
    for name in ("a9a", "mushrooms", "w1a"):
        path = data / name / f"{name}.xz"
        if path.exists():
            with lzma.open(path) as file:
                X = load_svmlight_file(file)[0].toarray()
            yield name, X[random.permutation(len(X))]
    for name, spectrum in (
        ("power-law spectrum", np.arange(1, 201) ** -0.7),
        ("exponential spectrum", np.exp(-np.arange(200) / 20)),
        (FLAT, np.linspace(1, 0.01, 200)),
    ):
        rotation = np.linalg.qr(random.standard_normal((200, 200)))[0]
        yield name, (random.standard_normal((5000, 200)) * spectrum) @ rotation


def errors(A: np.ndarray) -> dict[str, list[float]]:
    """Relative spectral error per kind, one for each of SIZES."""
    exact = A.T @ A
    scale = np.linalg.norm(exact, 2)
    return {
        kind: [float(np.linalg.norm(exact - make(m).update(A).covariance(), 2) / scale) for m in SIZES]
        for kind, make in KINDS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    results, ratios = {}, []
    for name, A in matrices(args.data):
        results[name] = table = errors(A)
        print(f"{name}, {A.shape[0]}x{A.shape[1]}\n  m       " + "".join(f"{m:>10}" for m in SIZES))
        for kind, values in table.items():
            print(f"  {kind:<8}" + "".join(f"{value:10.5f}" for value in values))
        pairs = [(r, f) for r, f in zip(table["RFD"], table["FD"], strict=True) if f > 1e-12]
        ratios += [] if name == FLAT else [r / f for r, f in pairs]
        print("  RFD/FD  " + "".join(f"{r / f:10.3f}" for r, f in pairs), flush=True)
    below = sum(ratio <= 0.65 for ratio in ratios)
    print(f"RFD/FD without the {FLAT}: <= 0.65 in {below} of {len(ratios)} pairs, largest {max(ratios):.3f}")
    if args.plot:
        draw(args.plot, results)


def draw(path: Path, results: dict[str, dict[str, list[float]]]) -> None:
    from matplotlib import pyplot as plt  # optional

    figure, axes = plt.subplots(2, len(results), figsize=(3.2 * len(results), 6), layout="constrained")
    for column, (name, table) in enumerate(results.items()):
        for row, kinds in enumerate((("FD", "CFD", "RFD"), ("RFD", *[k for k in table if k[:3] == "PFD"]))):
            for kind in kinds:
                axes[row, column].semilogy(SIZES, table[kind], "o-", markersize=3, label=kind)
            axes[row, column].set(title=name, xlabel="m", ylabel="relative spectral error")
            axes[row, column].legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
