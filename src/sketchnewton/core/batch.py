"""What a stream hands over: batches of rows, or an error that says where the input is wrong."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.hints import TYPE_CHECKING, Any, ClassVar, NamedTuple
from sketchnewton.core.types import ArrayLike, Floats, Integers, NDArray, np

if TYPE_CHECKING:
    from collections.abc import Callable

    View = memoryview[Any] | NDArray[Any]
else:
    View = Any
"""Numbers one after another: memory of a parser, or a NumPy array."""


class Views(NamedTuple):
    """The buffers of a batch as they are: what is read from here does not take NumPy.

    Row i has the entries ``indptr[i]`` to ``indptr[i + 1]`` of ``indices`` and ``data``; in a part of a larger
    batch ``indptr`` does not begin with 0.
    """

    indptr: View
    indices: View
    data: View
    labels: View
    weights: View | None = None
    base: View | None = None


_ANSWERS = frozenset(("labels", "weights"))


class Batch:
    """A batch of rows with labels, as streams produce and learners consume it.

    A batch looks like a SciPy CSR matrix to whoever reads ``indptr``, ``indices``, ``data`` and ``shape``:
    read-only NumPy arrays, made without a copy when they are first asked for. Indices are as the input has them:
    neither sorted nor free of duplicates, which mean their sum. ``batch[begin:end]`` is a part, without a copy.
    A batch does not change, nor may the arrays that it was made of: `rows` are checked once.

    ``labels`` are the labels of rows, ``weights`` their importance weights, ``base`` what is to be added to each
    prediction.

    >>> import numpy as np
    >>> batch = Batch(np.array([0, 2, 3]), np.array([4, 1, 7]), np.array([0.5, 2.0, 1.0]), np.array([1.0, -1.0]))
    >>> len(batch), batch.shape, batch[1:].indices
    (2, (2, 8), array([7]))
    """

    views: Views
    """The same numbers for those who do without NumPy."""
    columns: int | None
    """1 + the largest index, where the stream knows it already."""
    first_line: int | None
    """The line of the input at which the batch's text begins."""
    find_line: Callable[[int], int | None] | None
    """Finds the line of a row, where rows are not lines that follow one another."""
    tags: list[bytes] | None
    """What the input calls each row; None when no row is called anything."""

    prepared: Any
    """What a thread that parsed it has made of it already, where somebody asked for that."""

    format: ClassVar[str] = "csr"

    # Not a dataclass: importing what makes them would hold up a command that reads ahead.
    __slots__ = ("_arrays", "_rows", "columns", "find_line", "first_line", "prepared", "tags", "views")

    def __init__(
        self,
        indptr: View,
        indices: View,
        data: View,
        labels: View,
        weights: View | None = None,
        columns: int | None = None,
        first_line: int | None = None,
        tags: list[bytes] | None = None,
        base: View | None = None,
    ) -> None:
        self.views = Views(indptr, indices, data, labels, weights, base)
        self.columns = columns
        self.first_line = first_line
        self.tags = tags
        self.prepared = None
        self.find_line = None
        self._arrays: dict[str, NDArray[Any]] = {}
        self._rows: _native.Rows | None = None

    @property
    def indptr(self) -> Integers:
        """Row i has the entries ``indptr[i]`` to ``indptr[i + 1]``."""
        return self._array("indptr")

    @property
    def indices(self) -> Integers:
        """The feature of each entry."""
        return self._array("indices")

    @property
    def data(self) -> NDArray[Any]:
        """The value of each entry, float64 or float32."""
        return self._array("data")

    @property
    def labels(self) -> Floats:
        """NaN for a row that has none."""
        return self._array("labels")

    @property
    def weights(self) -> Floats | None:
        """Importance of each row; None when all are 1."""
        return None if self.views.weights is None else self._array("weights")

    @property
    def base(self) -> Floats | None:
        """What is to be added to each row's prediction; None when nothing is."""
        return None if self.views.base is None else self._array("base")

    @property
    def rows(self) -> _native.Rows:
        """The rows in the kernels' form, scanned, which takes about a tenth of the time of learning them."""
        if self._rows is None:
            views = self.views
            self._rows = csr_rows(views.indptr, views.indices, views.data)
            self._rows.scan()
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and 1 + the largest index of this batch: later batches may have more columns."""
        if self.columns is not None:
            return len(self), self.columns
        return len(self), int(self.indices.max(initial=-1)) + 1

    def line_of(self, row: int) -> int | None:
        """The line of the file that a row began in, if the parser knows; only of the batch that it made."""
        if self.find_line is not None:
            return self.find_line(row)
        return None if self.first_line is None else self.first_line + row

    def __len__(self) -> int:
        return len(self.views.labels)

    def __getitem__(self, which: slice) -> Batch:
        """Some rows that follow one another."""
        begin, end, step = which.indices(len(self))
        if step != 1:
            raise ValueError("a part of a batch has rows that follow one another: leave out the step")
        if begin == 0 and end == len(self):
            return self
        end = max(begin, end)
        views = self.views
        part = Batch(
            views.indptr[begin : end + 1],
            views.indices,
            views.data,
            views.labels[begin:end],
            None if views.weights is None else views.weights[begin:end],
            tags=None if self.tags is None else self.tags[begin:end],
            base=None if views.base is None else views.base[begin:end],
        )
        if self._rows is not None:
            part._rows = self._rows.part(begin, end)
            part._rows.scan()  # which is known already, unless some row of the batch is bad
        return part

    def keep(self, mask: NDArray[np.bool_]) -> Batch:
        """The rows where ``mask`` is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, rows: Integers) -> Batch:
        """The rows with these numbers, in this order."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.repeat(self.indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Batch(
            indptr,
            self.indices[entries],
            self.data[entries],
            self.labels[rows],
            None if self.weights is None else self.weights[rows],
            tags=None if self.tags is None else [self.tags[row] for row in rows.tolist()],
            base=None if self.base is None else self.base[rows],
        )

    def replace(self, **changes: object) -> Batch:
        """The same but for these fields."""
        if changes.keys() <= _ANSWERS:  # as for every row that is learned alone
            values: dict[str, Any] = changes
            views = self.views
            made = Batch(
                *views[:3],
                values.get("labels", views.labels),
                values.get("weights", views.weights),
                self.columns,
                self.first_line,
                self.tags,
                views.base,
            )
            made._rows = self._rows
            return made
        others = changes.keys().isdisjoint(("indptr", "indices", "data"))
        fields = self.views._asdict() if others else {name: getattr(self, name) for name in Views._fields}
        for name in ("columns", "first_line", "tags"):
            fields[name] = getattr(self, name)
        made = Batch(**fields | changes)
        if others:
            made._rows = self._rows
        return made

    def __reduce__(self) -> tuple[object, ...]:
        arrays = (self.indptr, self.indices, self.data, self.labels, self.weights)
        return Batch, (*arrays, self.columns, self.first_line, self.tags, self.base)

    def __repr__(self) -> str:
        names = (*Views._fields, "columns", "first_line", "tags")
        return f"Batch({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def _array(self, name: str) -> NDArray[Any]:
        array = self._arrays.get(name)
        if array is None:
            array = np.asarray(getattr(self.views, name))
            if name in ("indptr", "indices", "data"):
                array = self._own_part(name, array)
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            self._arrays[name] = array
        return array

    def _own_part(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Without what the batch that this is a part of has before and behind it."""
        first, last = int(self.views.indptr[0]), int(self.views.indptr[-1])
        if name == "indptr":
            return array - first if first else array
        return array[first:last]


def csr_rows(indptr: View, indices: View, data: View) -> _native.Rows:
    """CSR arrays in the kernels' form; they are converted if kernels do not know their types."""
    if _fits(indptr, "lq") and _fits(indices, "lqi") and _fits(data, "df"):
        return _native.csr_rows(indptr, indices, data)
    numbers, values = contiguous(indices), contiguous(data)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {values.dtype}")
    return _native.csr_rows(
        contiguous(indptr, np.int64),
        numbers if numbers.dtype == np.int32 else numbers.astype(np.int64, copy=False),
        values if values.dtype == np.float32 else values.astype(np.float64, copy=False),
    )


def contiguous(values: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    """The values in C order and aligned, as kernels read them: the array itself where it is so already."""
    if type(values) is np.ndarray and values.flags.carray and (dtype is None or values.dtype == dtype):
        return values
    refuse_masked(values, "an array")
    array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


def refuse_masked(X: object, name: str = "X") -> None:
    """Raise ValueError if entries of an array are masked: NumPy would take what is behind the mask."""
    if type(X) is not np.ndarray and isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{name} has masked entries: fill them, or leave out their rows")


def is_frame(X: object) -> bool:
    """Is it a table like pandas', whose columns are attributes, of whatever name (`format`, `indptr`)?"""
    return hasattr(type(X), "iloc")


def _fits(view: View, kinds: str) -> bool:
    """Is it memory of a parser, of one of these kinds?"""
    return isinstance(view, memoryview) and view.c_contiguous and view.format in kinds


class ParseError(ValueError):
    """Bad input, located: ``clicks.svm:1204:37: expected a number after ':', got 'abc'``.

    ``line`` and ``column`` count from 1, columns in bytes; both are None where the place is unknown.

    ``path`` names the input, ``message`` says what is wrong.
    """

    def __init__(self, path: str, line: int | None, column: int | None, message: str) -> None:
        super().__init__(path, line, column, message)
        self.path = path
        self.line = line
        self.column = column
        self.message = message

    def __str__(self) -> str:
        place = [self.path, *(str(number) for number in (self.line, self.column) if number is not None)]
        return f"{':'.join(place)}: {self.message}"


class IndexTooLarge(MemoryError):
    """A learner cannot make room for the feature of this index."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(f"feature index {index} {message}")
        self.index = index
