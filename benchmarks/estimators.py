"""One pass of the default classifier against five epochs of scikit-learn's SGDClassifier, five-fold.

    python benchmarks/estimators.py

Digits, iris, wine and breast cancer, raw and through StandardScaler and MinMaxScaler. A line has the accuracy of
the default, of `loss="hinge"` and `"logistic"`, of `SGDClassifier(loss="log_loss")`, and of a constant.
The last lines say on how many tables the default is at least as accurate as SGDClassifier, and how far the losses
are from it on average.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from sketchnewton import SketchedNewtonClassifier

TABLES = {"digits": load_digits, "iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
SCALERS = {"raw": FunctionTransformer, "standard": StandardScaler, "minmax": MinMaxScaler}
CONTENDERS: dict[str, Any] = {
    "default": SketchedNewtonClassifier,
    "hinge": lambda: SketchedNewtonClassifier(loss="hinge"),
    "logistic": lambda: SketchedNewtonClassifier(loss="logistic"),
    "SGD": lambda: SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=0),
    "constant": DummyClassifier,
}


def main() -> None:
    """Measure all tables, print a line for each."""
    warnings.simplefilter("ignore")  # five epochs are few, and known to be
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    print(f"{'table':<18}" + "".join(f"{name:>10}" for name in CONTENDERS))
    results = []
    for table, load in TABLES.items():
        X, y = load(return_X_y=True)
        for scale, scaler in SCALERS.items():
            row = [
                float(cross_val_score(make_pipeline(scaler(), make()), X, y, cv=folds).mean())
                for make in CONTENDERS.values()
            ]
            results.append(row)
            print(
                f"{table + ' ' + scale:<18}" + "".join(f"{accuracy:>10.4f}" for accuracy in row), flush=True
            )
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
