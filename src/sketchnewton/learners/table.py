"""The feature table: one row of numbers per feature, contiguous, so that a feature costs one cache miss."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from sketchnewton import _native
from sketchnewton.core.state import zeros
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.base import Arrays, Learner

FIRST_CAPACITY = 1024
ITEM_SIZE = {"float32": 4, "float64": 8}


class FeatureTable:
    """Rows of `columns` numbers, padded to whole cache lines; row i belongs to feature i and starts at zero.

    Memory that no feature has touched is not committed: the system hands out zero pages on first use, so a table
    with a large index range costs what its features cost. `active[:count]` lists the features learned from;
    everything else is zero.
    """

    def __init__(self, columns: int, dtype: str) -> None:
        self.columns = columns
        self.dtype = dtype
        self.rows = self._zeros(0)
        self.active: Integers = zeros(0, "int64")

    @property
    def capacity(self) -> int:
        """How many features the table has room for."""
        return len(self.rows)

    def grow(self, largest: int, count: int) -> bool:
        """Make room for feature `largest`; `count` features are active. True if the arrays have moved."""
        if largest < self.capacity:
            return False
        capacity = max(FIRST_CAPACITY, 1 << int(largest).bit_length())
        try:
            rows = self._zeros(capacity)
            active = zeros(capacity, "int64")
        except (MemoryError, ValueError, OverflowError, TypeError):
            size = capacity * self.rows.shape[1] * ITEM_SIZE[self.dtype] / 2**30
            raise MemoryError(
                f"feature index {largest} needs a table of {size:.3g} GB: renumber or hash the features"
            ) from None
        _native.copy_rows(self.rows, rows, self.active, count)
        active[:count] = self.active[:count]
        self.rows, self.active = rows, active
        return True

    def arrays(self, count: int) -> dict[str, NDArray[Any]]:
        """What a model file keeps: the active features and their rows."""
        features, rows = zeros(count, "int64"), zeros((count, self.rows.shape[1]), self.dtype)
        features[:] = self.active[:count]
        _native.gather_rows(self.rows, rows, self.active, count)
        return {"features": features, "table": rows}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave."""
        features, rows = arrays["features"], arrays["table"]
        if features.dtype != np.int64 or features.ndim != 1 or rows.dtype != self.dtype:
            raise ValueError("the feature table has the wrong type")
        if rows.shape != (len(features), self.rows.shape[1]):
            raise ValueError("the feature table has the wrong shape")
        if len(features):
            if features.min() < 0 or len(np.unique(features)) != len(features):
                raise ValueError("the feature table lists impossible features")
            self.grow(int(features.max()), 0)
        self.rows[features] = rows
        self.active[: len(features)] = features

    def _zeros(self, capacity: int) -> NDArray[Any]:
        return zeros((capacity, _native.padded_columns(self.columns)), self.dtype)


class TableLearner(Learner):
    """A learner whose state is a feature table and a few small arrays."""

    takes_views: bool = False
    """Does it learn rows whose labels, weights and predictions are memoryviews, without NumPy?"""
    _kernel: _native.TableKernel  # views of the arrays; made anew whenever an array is replaced
    _scale_column: ClassVar[int] = 1  # of the table; greater than zero for features learned from

    def __init__(self, columns: int, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._table = FeatureTable(columns, parameters["dtype"])
        self._arrays["counts"] = zeros(3, "int64")  # rounds, active features, dimension

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return int(self._arrays["counts"][2])

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        with self._lock:
            features, values = self._learned_weights()
            weights = np.zeros((self.dimension, *values.shape[1:]))
        weights[features] = values
        return weights

    @property
    def features_seen(self) -> int:
        """How many features have been learned from."""
        return len(self._seen)

    @property
    def _seen(self) -> NDArray[np.int64]:
        return self._table.active[: int(self._arrays["counts"][1])]

    def settle(self) -> None:
        """Let NumPy take over the arrays of a learner that was made before it was there."""
        with self._lock:
            self._arrays = {name: np.asarray(array) for name, array in self._arrays.items()}
            self._table.rows, self._table.active = (
                np.asarray(self._table.rows),
                np.asarray(self._table.active),
            )

    @abstractmethod
    def _bind(self) -> _native.TableKernel:
        """The kernel over the arrays as they are now."""

    def _views(self) -> Arrays:
        """All arrays by the names that kernels know; a new dictionary, which the kernel keeps."""
        return {**self._arrays, "table": self._table.rows, "active": self._table.active}

    def _counters_fit(self) -> bool:
        """Kernels trust the counters of a model file, so they are checked when it is loaded."""
        return True

    def _reserve(self, largest: int, widest: int) -> None:
        if self._table.grow(largest, int(self._arrays["counts"][1])):
            self._kernel = self._bind()

    def _learn(self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats) -> None:
        self._kernel.learn(rows, labels, weights, out)

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        return self._kernel.learn_one(row, label)

    def _predict(self, rows: _native.Rows, out: Floats) -> None:
        self._kernel.predict(rows, out)

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            return self._seen.copy(), self._table.rows[self._seen, 0].astype(np.float64)

    def _all_arrays(self) -> Arrays:
        return self._arrays | self._table.arrays(int(self._arrays["counts"][1]))

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._table.restore(arrays)
        rounds, active, dimension = self._arrays["counts"]
        largest = self._seen.max(initial=-1) if active == len(arrays["features"]) else None
        fits = rounds >= 0 and largest is not None and dimension == largest + 1
        scales = arrays["table"][:, self._scale_column]
        if fits and not (np.isfinite(arrays["table"]).all() and (scales > 0).all()):
            raise ValueError("its feature table holds impossible numbers")
        if not fits or not self._counters_fit():
            raise ValueError("its counters contradict its arrays")
        self._kernel = self._bind()


def union(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The features of two tables together, and where those of each are in it."""
    features = np.union1d(mine, theirs)
    return features, np.searchsorted(features, mine), np.searchsorted(features, theirs)


def table_dtype(dtype: str) -> str:
    """The name of a precision that tables have."""
    name = dtype if isinstance(dtype, str) and dtype in ITEM_SIZE else np.dtype(dtype).name
    if name not in ITEM_SIZE:
        raise ValueError(f"dtype={dtype!r} is invalid: must be 'float32' or 'float64'")
    return name
