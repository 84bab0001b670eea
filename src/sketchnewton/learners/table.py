"""The feature table: one row of numbers per feature, contiguous, so that a feature costs one cache miss."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod

from sketchnewton import _native
from sketchnewton.core.batch import IndexTooLarge
from sketchnewton.core.checks import all_finite
from sketchnewton.core.hints import Any, ClassVar, Self
from sketchnewton.core.persistence import expect
from sketchnewton.core.state import Buffers, State, Vector, View, dtype_name, view_of, zeros
from sketchnewton.core.types import Arrays, Floats, Integers, NDArray, np
from sketchnewton.learners.base import Learner
from sketchnewton.learners.table_pages import TablePages

FIRST_CAPACITY = 16
ITEM_SIZE = {"float32": 4, "float64": 8}
LARGE = 1 << 26  # bytes of a table: from here on pages touched here and there cost more than looking for rows
DENSE = 4  # from a quarter of its features on a packed table saves less than looking for rows costs


class FeatureTable:
    """Rows of `columns` numbers, padded to whole cache lines; all start at zero.

    `active[:count]` lists the features learned from. Row i belongs to feature i, or, if the table is `packed`, to
    that whose place is i: rows then follow one another, from 1 on, in the order in which features were first met,
    and row 0 stays zero. Memory that no feature has touched is not committed: the system hands out zero pages on
    first use. So a large index range costs what its features cost: a cache line and four bytes each if the table
    is packed, up to a page if not.

    `pack_from` is how many bytes a table has to have room for to be packed; 0 for always. One that is not always
    packed is to be `unpacked` when a quarter of its features are there: looking for a row takes time, too. If it
    then has to have room for many more features, it is packed again. `pages` are to be told now and then how many
    features there are, and how often they were used.
    """

    def __init__(self, columns: int, dtype: str, pack_from: float = math.inf) -> None:
        self.dtype = dtype
        self._pack_from = pack_from
        self.width = _native.padded_columns(columns)
        self.capacity = 0
        """How many features the table has room for."""
        self.unpack_at = math.inf
        """How many features it has when it should be unpacked."""
        self.small = False
        """Whether it has no room for so many features that anything is to be done but to grow."""
        self._plain = False  # packed no longer
        self._memory = State(self._fresh(0))
        self.pages = TablePages(self._memory)
        """Whether they are large ones."""

    @property
    def packed(self) -> bool:
        """Do rows follow one another?"""
        return "places" in self._memory

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, whether or not a feature has them."""
        return self._memory["table"]

    def rows_of_active(self, count: int) -> NDArray[Any]:
        """The rows of the `count` active features, in their order; to be read only."""
        rows: NDArray[Any] = self.rows[np.asarray(self._places(count))[:count]]
        return rows

    @property
    def active(self) -> NDArray[np.int64]:
        """The features learned from, first of all."""
        return self._memory["active"]

    def views(self) -> dict[str, View]:
        """The table and the list of features, by the names that kernels know."""
        return self._memory.views()

    def grown(self, largest: int, count: int) -> FeatureTable:
        """A table with the same `count` active features, and room for feature `largest`."""
        capacity = max(FIRST_CAPACITY, 1 << int(largest).bit_length())
        wider = self._twin()
        wider._plain = self._plain and count * DENSE >= capacity  # else each new one takes a page
        return wider._moved(capacity, count, largest)

    def _twin(self) -> FeatureTable:
        """One with the same memory."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def copy(self, count: int) -> FeatureTable:
        """A table with the same `count` active features."""
        return self._moved(self.capacity, count, self.capacity - 1)

    def unpacked(self, count: int) -> FeatureTable:
        """A table with the same `count` active features, row i for feature i."""
        made = self._twin()
        made._plain = True
        return made.copy(count)

    def _moved(self, capacity: int, count: int, largest: int) -> FeatureTable:
        try:
            memory = self._fresh(capacity)
        except (MemoryError, ValueError, OverflowError, TypeError):
            size = capacity * self.width * ITEM_SIZE[self.dtype] / 2**30
            raise IndexTooLarge(
                largest, f"needs a table of {size:.3g} GB: renumber or hash the features"
            ) from None
        listed, rows = self._memory.view("active"), self._memory.view("table")
        memory["active"][:count] = listed[:count]
        made = self._twin()
        made._memory, made.capacity, made.unpack_at = State(memory), capacity, math.inf
        made.pages = TablePages(made._memory)
        if made.packed:
            made.unpack_at = capacity / DENSE if self._pack_from else math.inf
            _native.number_features(listed, count, memory["places"])
            made.pages.expect(count)
        elif count * DENSE >= capacity:
            made.pages.expect(capacity)
        made.small = capacity < min(made.unpack_at, made.pages.due)
        _native.copy_rows(rows, self._places(count), memory["table"], made._places(count), count)
        return made

    def saved(self, count: int) -> dict[str, View]:
        """What a model file keeps: the active features and their rows; those in use if these are in order."""
        active, table, places = self._memory.view("active"), self._memory.view("table"), self._places(count)
        if self.packed and _native.are_counted(places):
            return {"features": active[:count], "table": table[1 : 1 + count]}
        features, rows = zeros(count, "int64"), zeros((count, self.width), self.dtype)
        features[:] = active[:count]
        _native.gather_rows(table, rows, places, count)
        return {"features": features, "table": rows}

    def restore(self, arrays: Arrays) -> None:
        """Take back what `saved` gave."""
        features, rows = arrays["features"], arrays["table"]
        if dtype_name(features) != "int64" or features.ndim != 1 or dtype_name(rows) != self.dtype:
            raise ValueError("the feature table has the wrong type")
        if rows.shape != (len(features), self.width):
            raise ValueError("the feature table has the wrong shape")
        if not len(features):
            return
        listed = view_of("features", features)
        least, largest = _native.extremes(listed)
        if least < 0 or not _native.are_distinct(listed):
            raise ValueError("the feature table lists impossible features")
        grown = self.grown(largest, 0)
        self._memory, self.capacity, self.unpack_at = grown._memory, grown.capacity, grown.unpack_at
        self.pages, self.small = grown.pages, grown.small
        self._memory.view("active").cast("B")[: listed.nbytes] = listed.cast("B")
        if self.packed:
            _native.number_features(listed, len(listed), self._memory.view("places"))
            listed = self._places(len(listed))
            self.pages.expect(len(listed))
        _native.scatter_rows(view_of("table", rows), self._memory.view("table"), listed)

    def column(self, number: int, count: int) -> View:
        """A column of the rows of the `count` active features, as float64; without NumPy."""
        table = self._memory.view("table")
        return _native.column(table, number % self.width, self._places(count), count)

    def listed(self, count: int) -> View:
        """The `count` active features; without NumPy."""
        return self._memory.view("active")[:count]

    def _places(self, count: int) -> View:
        """The numbers of the rows of the `count` active features."""
        listed = self._memory.view("active")
        return _native.places_of(listed, count, self._memory.view("places")) if self.packed else listed

    def _fresh(self, capacity: int) -> dict[str, View]:
        """Memory for so many features."""
        packed = not self._plain and capacity * self.width * ITEM_SIZE[self.dtype] >= self._pack_from
        memory = {
            "active": zeros(capacity, "int64"),
            "table": zeros((capacity + packed, self.width), self.dtype),
        }
        if packed:
            memory["places"] = zeros(capacity, "int32")
        return memory


class TableLearner(Learner):
    """A learner whose state is a feature table and a few small arrays."""

    _kernel: _native.RowKernel  # views of the arrays; rebuilt whenever an array is replaced
    _pack_from: float = math.inf  # bytes that a table has room for if it is packed
    _scale_column: ClassVar[int] = 1  # of the table; greater than zero for features learned from
    _lists_of_features: ClassVar[
        tuple[str, ...]
    ] = ()  # all saved arrays of indices, if they can be renumbered

    def __init__(self, columns: int, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._table = FeatureTable(columns, parameters["dtype"], self._pack_from)
        self._state["counts"] = zeros(3, "int64")  # rounds, active features, dimension

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return int(self._state.view("counts")[2])

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
        return int(self._state.view("counts")[1])

    def renumbered(self, places: Integers) -> Self:
        """A learner that knows of feature `places[i]` what this one knows of feature i."""
        if not self._lists_of_features:
            return super().renumbered(places)
        with self._lock:
            arrays = {name: np.array(array) for name, array in self._all_arrays().items()}
        for name in self._lists_of_features:
            arrays[name] = places[arrays[name]]
        arrays["counts"][2] = 1 + arrays["features"].max(initial=-1)
        return self._with(arrays)

    @property
    def _seen(self) -> NDArray[np.int64]:
        return self._table.active[: self.features_seen]

    @abstractmethod
    def _bind(self) -> _native.RowKernel:
        """The kernel over the arrays as they are now."""

    def _views(self) -> dict[str, View]:
        """All arrays by the names that kernels know; a new dictionary, which the kernel keeps."""
        return self._state.views() | self._table.views()

    def reader(self) -> Self | None:
        """The same learner over the same memory, with a kernel of its own; None where kernels share their work.

        It only predicts, and only as long as nobody learns: so several threads can.
        """
        if not self._only_reads:
            return None
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._lock = threading.RLock()
        made._kernel = made._bind()
        return made

    @property
    def _only_reads(self) -> bool:
        """Whether kernels write to no array when they predict."""
        return False

    def _counters_fit(self) -> bool:
        """Kernels trust the counters of a model file, so they are checked when it is loaded."""
        return True

    def _reserve(self, largest: int, widest: int) -> None:
        before = self._table
        if largest >= before.capacity:
            self._table = before.grown(largest, self.features_seen)
        elif before.small:  # a call that learns one row takes a tenth longer if it counts features
            return None
        elif before.unpack_at <= self.features_seen:
            self._table = before.unpacked(self.features_seen)
        elif before.pages.due <= self.features_seen:
            return before.pages.tend(self.features_seen, self.rows_seen * widest)
        else:
            return None
        try:
            self._kernel = self._bind()
        except BaseException:
            self._table = before
            raise

    def _replace(self, arrays: dict[str, View]) -> None:
        """These arrays of the state instead of those of the same names; all or, if memory runs out, none."""
        if arrays:
            self._kernel = self._state.replaced(arrays, self._bind)

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        self._kernel.learn(rows, labels, weights, out)

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        return self._kernel.learn_one(row, label)

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        self._kernel.predict(rows, out)

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            return self._seen.copy(), self._table.rows_of_active(len(self._seen))[:, 0].astype(np.float64)

    def _all_arrays(self) -> Buffers:
        return {**super()._all_arrays(), **self._table.saved(self.features_seen)}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        rounds, active, dimension = self._state.view("counts").tolist()
        features = expect(arrays, "features", "int64", (None,))
        largest = _native.extremes(view_of("features", features))[1] if len(features) else -1
        if (
            rounds < 0 or active != len(features) or dimension != largest + 1
        ):  # before there is a table for them
            raise ValueError("its counters contradict its arrays")
        self._table.restore(arrays)
        least = _native.look(self._table.column(self._scale_column, active))[1]
        if not (all_finite(arrays["table"]) and least > 0):
            raise ValueError("its feature table holds impossible numbers")
        if not self._counters_fit():
            raise ValueError("its counters contradict its arrays")
        self._kernel = self._bind()


def union(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The features of two tables together, and where those of each are in it."""
    features = np.union1d(mine, theirs)
    return features, np.searchsorted(features, mine), np.searchsorted(features, theirs)
