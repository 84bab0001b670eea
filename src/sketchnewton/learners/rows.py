"""From what users have (arrays, sparse matrices, tables) to the rows that kernels read."""

from __future__ import annotations

import math

from sketchnewton import _native
from sketchnewton.core.batch import Batch, contiguous, csr_rows, is_frame
from sketchnewton.core.hints import Any
from sketchnewton.core.types import ArrayLike, Floats, np

LARGEST_VALUE = _native.LARGEST_VALUE


def as_rows(X: Any) -> _native.Rows:
    """View `X` as rows: a 2-D array, a CSR matrix, a `Batch`, or whatever numpy or `tocsr` makes into one."""
    if isinstance(X, _native.Rows):
        return X
    if isinstance(X, Batch):
        return X.rows
    if not isinstance(X, np.ndarray) and not is_frame(X):
        if hasattr(X, "tocsr") and (getattr(X, "format", "csr") != "csr" or not hasattr(X, "indptr")):
            X = X.tocsr()
        if hasattr(X, "indptr"):
            return csr_rows(X.indptr, X.indices, X.data)
    X = np.asarray(X)
    if X.dtype not in (np.float64, np.float32):
        if X.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: X has dtype {X.dtype}")
        X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: expected two dimensions, one row per example")
    return _native.dense_rows(contiguous(X))


def column_names(X: object) -> tuple[str, ...] | None:
    """The names of a table's columns if all of them are text, as scikit-learn reads them; None for other rows."""
    if type(X) is np.ndarray or isinstance(X, Batch):
        return None
    names = getattr(X, "column_names" if hasattr(type(X), "column_names") else "columns", None)
    if names is None or len(names) == 0 or not all(isinstance(name, str) for name in names):
        return None
    return tuple(map(str, names))


def check_names(names: tuple[str, ...] | None, known: tuple[str, ...] | None) -> None:
    """Refuse columns that are not those known, or not in their order."""
    if names is None or known is None or names == known:
        return
    should = "The feature names should match those that were passed during fit"
    if len(names) != len(known):
        raise ValueError(f"{should}: {len(names)} columns instead of {len(known)}")
    at = next(i for i, (name, wanted) in enumerate(zip(names, known, strict=True)) if name != wanted)
    order = ", in the same order" if set(names) == set(known) else ""
    raise ValueError(f"{should}{order}: column {at} is {names[at]!r} instead of {known[at]!r}")


def checked_scan(rows: _native.Rows) -> tuple[int, int]:
    """Return the largest feature index and the widest row, or refuse what no learner may see."""
    largest, widest, bad_row, feature, value = rows.scan()
    if bad_row >= 0:
        where = f"row {bad_row}, feature {feature}"
        if feature < 0:
            raise ValueError(f"X has a negative feature index: {where}")
        if math.isnan(value):
            raise ValueError(f"X contains NaN: {where}")
        if math.isinf(value):
            raise ValueError(f"X contains infinity: {where}")
        raise ValueError(f"X contains {value:g}, beyond ±{LARGEST_VALUE:g}: {where}; rescale the feature")
    return largest, widest


def as_vector(values: ArrayLike, name: str, length: int) -> Floats:
    """View `values` as `length` float64 numbers."""
    vector: Floats = contiguous(values, np.float64)
    if vector.ndim == 0:
        vector = vector.reshape(1)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}: expected ({length},), one number per row of X")
    return vector


def check_class_labels(labels: Floats, classes: int) -> None:
    """Refuse labels that are not the number of a class, 0 to `classes` − 1."""
    for at in _native.LabelRule.classes(classes, zero=True).unfit(labels)[:1]:
        raise ValueError(f"label {labels[at]:g} at position {at} is invalid: classes are 0 to {classes - 1}")


def as_weights(values: ArrayLike | None, length: int) -> Floats | None:
    """View `values` as importance weights: from 0 to what learners take; None stands for all ones."""
    if values is None:
        return None
    weights = as_vector(values, "sample_weight", length)
    bad = ~((weights >= 0) & (weights <= LARGEST_VALUE))
    if bad.any():
        row = int(bad.argmax())
        must = "finite and >= 0" if not 0 <= weights[row] < math.inf else f"at most {LARGEST_VALUE:g}"
        raise ValueError(f"sample_weight={weights[row]:g} at row {row} is invalid: must be {must}")
    return weights
