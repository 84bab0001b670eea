"""One pass of the default classifier against five epochs of scikit-learn's SGDClassifier, five-fold.

    python benchmarks/estimators.py [--data] [--rows 20000] [--part 1/2]

Digits, iris, wine and breast cancer, raw and through StandardScaler and MinMaxScaler; with --data also the sets of
`untuned_data.py` and sets of several classes (sparse ones are scaled without centring them). Rows are in the order
of their files, some of which are sorted by class; `fit` shuffles them, as SGDClassifier's does.

A line has the accuracy after one pass of the default (logistic loss), of `loss="hinge"` and `"squared"`, of the
default after five passes, of `SGDClassifier(loss="log_loss")`, and of a constant. The last lines say on how many
tables the default is at least as accurate as SGDClassifier, and how far the losses are from it on average.
--part shares the tables out among processes; --summary FILE … reads their lines.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from calibration import CLASSES
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler
from untuned_data import DATA, SETS

from sketchnewton import SketchedNewtonClassifier

TABLES = {"digits": load_digits, "iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
SCALERS = {"raw": FunctionTransformer, "standard": StandardScaler, "minmax": MinMaxScaler}
SPARSE_SCALERS: dict[str, Callable[[], Any]] = {
    "raw": FunctionTransformer,
    "standard": lambda: StandardScaler(with_mean=False),
    "maxabs": MaxAbsScaler,
}
CONTENDERS: dict[str, Any] = {
    "default": lambda: SketchedNewtonClassifier(max_iter=1, random_state=0),
    "hinge": lambda: SketchedNewtonClassifier(loss="hinge", max_iter=1, random_state=0),
    "squared": lambda: SketchedNewtonClassifier(loss="squared", max_iter=1, random_state=0),
    "5 passes": lambda: SketchedNewtonClassifier(random_state=0),
    "SGD": lambda: SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=0),
    "constant": DummyClassifier,
}


def tables(data: bool, rows: int) -> Iterator[tuple[str, Any, Any, Callable[[], Any]]]:
    """Name, rows, labels and scaler."""
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        for scale, scaler in SCALERS.items():
            yield f"{name} {scale}", X, y, scaler
    if not data or not DATA.exists():
        return
    for name, load in {**_of_two_classes(), **CLASSES}.items():
        if name in TABLES:
            continue
        X, y = load()
        kept = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
        X, y = X[kept], y[kept]
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as SGDClassifier wants
        dense = X.shape[1] <= 1000
        for scale, scaler in (SCALERS if dense else SPARSE_SCALERS).items():
            yield f"{name} {scale}", X.toarray() if dense else X, y, scaler


def _of_two_classes() -> dict[str, Callable[[], Any]]:
    """Each set once: no scaled forms, and texts shuffled."""
    return {
        name: known.load
        for name, known in SETS.items()
        if not (known.scaled or known.grouped or name.endswith(", scaled"))
        and (known.shuffled or not known.text)
    }


def main() -> None:
    """Measure all tables, print a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", action="store_true", help="the sets of untuned_data.py, too")
    parser.add_argument("--rows", type=int, default=20_000, help="of each of them at most")
    parser.add_argument("--part", default="1/1", help="I/N: only every Nth table, from the Ith")
    parser.add_argument("--summary", nargs="+", metavar="FILE", help="sum up what parts have printed")
    args = parser.parse_args()
    if args.summary:
        return summarise([_numbers(line) for file in args.summary for line in open(file) if _is_table(line)])
    warnings.simplefilter("ignore")  # five epochs are few, and known to be
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    print(f"{'table':<28}" + "".join(f"{name:>10}" for name in CONTENDERS))
    results = []
    part, parts = map(int, args.part.split("/"))
    for name, X, y, scaler in islice(tables(args.data, args.rows), part - 1, None, parts):
        row = [
            float(cross_val_score(make_pipeline(scaler(), make()), X, y, cv=folds).mean())
            for make in CONTENDERS.values()
        ]
        results.append(row)
        print(f"{name:<28}" + "".join(f"{accuracy:>10.4f}" for accuracy in row), flush=True)
    summarise(results)
    return None


def _is_table(line: str) -> bool:
    return len(line) > 28 and line[28:].replace(".", "").replace(" ", "").strip().isdigit()


def _numbers(line: str) -> list[float]:
    return [float(number) for number in line[28:].split()]


def summarise(results: list[list[float]]) -> None:
    """The last lines."""
    default, hinge, squared, passes, sgd, constant = np.array(results).T
    for name, accuracy in {"one pass": default, "five passes": passes}.items():
        print(
            f"{name}: at least as accurate as SGDClassifier on {(accuracy >= sgd).mean():.0%} of {len(results)} "
            f"tables, mean accuracy {accuracy.mean():.3f} against {sgd.mean():.3f}; "
            f"below the constant: {(accuracy < constant).sum()}"
        )
    print(
        f"points below the default on average: hinge {100 * (default - hinge).mean():.2f}, "
        f"squared {100 * (default - squared).mean():.2f}"
    )


if __name__ == "__main__":
    main()
