"""Is the default, untuned, as good at regression as Vowpal Wabbit tuned, whatever the unit of the target?

    python benchmarks/untuned_regression.py [--json]

Progressive squared error of one pass, in units of the target's variance: scikit-learn's diabetes (scaled and raw
features) and rows made after the California housing data (incomes, ages, rooms, coordinates; capped prices), with
targets multiplied by 1, 10⁻⁶ and 10⁶. Vowpal Wabbit has the best of ten `-l` in hindsight.

Needs the extra `bench`.

The exit code is 1 if the default is worse on any of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes
from untuned_peers import RATES, write_vw

from sketchnewton import NewtonBank

Floats = NDArray[np.float64]
UNITS = (1.0, 1e-6, 1e6)


def california(rows: int = 5000) -> tuple[Floats, Floats]:
    random = np.random.default_rng(0)
    income, age = random.gamma(3, 1.3, rows), random.integers(1, 52, rows).astype(float)
    rooms, bedrooms = np.exp(random.normal(1.6, 0.35, rows)), np.exp(random.normal(0.07, 0.15, rows))
    people, household = np.exp(random.normal(7, 0.75, rows)), np.exp(random.normal(1.05, 0.25, rows))
    north = random.uniform(32.5, 42, rows)
    east = -124 + 0.9 * (42 - north) + random.normal(0, 1.2, rows)
    price = 0.43 * income + 0.009 * age - 0.1 * rooms + 0.6 * bedrooms - 0.04 * household
    price += -0.42 * (north - 35) - 0.43 * (east + 119) + random.normal(0, 0.6, rows)
    X = np.column_stack([income, age, rooms, bedrooms, people, household, north, east])
    return X, np.clip(price - price.min() / 2, 0.15, 5)


def vw_best(X: Floats, y: Floats, folder: Path) -> float:
    write_vw(csr_array(X), y, folder / "data.vw")
    losses = []
    for rate in RATES:
        command = [sys.executable, "-m", "vowpalwabbit", "-l", str(rate), "-d", str(folder / "data.vw")]
        subprocess.run([*command, "-p", str(folder / "predictions"), "--quiet"], check=True)
        losses.append(np.mean((np.loadtxt(folder / "predictions") - y) ** 2))
    return float(min(losses))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    args = parser.parse_args()
    sets = {
        "diabetes": load_diabetes(return_X_y=True),
        "diabetes, raw": load_diabetes(return_X_y=True, scaled=False),
        "like California": california(),
    }
    results: list[tuple[str, float, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, target) in sets.items():
            for unit in UNITS:
                y = target * unit
                bank = float(np.mean((NewtonBank().learn(X, y) - y) ** 2))
                peer = vw_best(X, y, Path(folder))
                results.append((name, unit, bank / y.var(), peer / y.var()))
    if args.json:
        print(json.dumps(results))
    else:
        print(f"{'':<18}{'unit':>8}{'bank':>9}{'vw tuned':>10}")
        for name, unit, bank, peer in results:
            print(f"{name:<18}{unit:>8g}{bank:>9.4f}{peer:>10.4f}{'' if bank <= peer else '  WORSE'}")
    return int(any(bank > peer for *_, bank, peer in results))


if __name__ == "__main__":
    sys.exit(main())
