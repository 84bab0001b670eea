"""One pass of the default classifier against five epochs of scikit-learn's SGDClassifier, five-fold.

    python benchmarks/estimators.py [--data] [--rows 3000]

Digits, iris, wine and breast cancer, raw and through StandardScaler and MinMaxScaler; with --data also the sets of
`untuned_data.py` (shuffled; sparse ones are scaled without centring them). A line has the accuracy of the default,
of `loss="hinge"` and `"logistic"`, of `SGDClassifier(loss="log_loss")`, and of a constant.
The last lines say on how many tables the default is at least as accurate as SGDClassifier, and how far the losses
are from it on average.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
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
    "default": SketchedNewtonClassifier,
    "hinge": lambda: SketchedNewtonClassifier(loss="hinge"),
    "logistic": lambda: SketchedNewtonClassifier(loss="logistic"),
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
    for name, known in SETS.items():
        if known.scaled or known.grouped or name.endswith(", scaled") or (known.text and not known.shuffled):
            continue
        X, y = known.load()
        order = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[order], y[order]
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as SGDClassifier wants
        dense = X.shape[1] <= 1000
        for scale, scaler in (SCALERS if dense else SPARSE_SCALERS).items():
            yield f"{name} {scale}", X.toarray() if dense else X, y, scaler


def main() -> None:
    """Measure all tables, print a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", action="store_true", help="the sets of untuned_data.py, too")
    parser.add_argument("--rows", type=int, default=3000, help="of each of them at most")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # five epochs are few, and known to be
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    print(f"{'table':<28}" + "".join(f"{name:>10}" for name in CONTENDERS))
    results = []
    for name, X, y, scaler in tables(args.data, args.rows):
        row = [
            float(cross_val_score(make_pipeline(scaler(), make()), X, y, cv=folds).mean())
            for make in CONTENDERS.values()
        ]
        results.append(row)
        print(f"{name:<28}" + "".join(f"{accuracy:>10.4f}" for accuracy in row), flush=True)
    default, hinge, logistic, sgd, constant = np.array(results).T
    print(f"at least as accurate as SGDClassifier on {(default >= sgd).mean():.0%} of {len(results)} tables")
    print(
        f"mean accuracy {default.mean():.3f} against {sgd.mean():.3f}; "
        f"below the constant: {(default < constant).sum()}"
    )
    print(
        f"points below the default on average: hinge {100 * (default - hinge).mean():.2f}, "
        f"logistic {100 * (default - logistic).mean():.2f}"
    )


if __name__ == "__main__":
    main()
