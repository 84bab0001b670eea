"""What a stream hands over: batches of rows, or an error that says where the input is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sketchnewton import _native

if TYPE_CHECKING:  # a command parses ahead while NumPy is still being imported
    import numpy as np
    import numpy.typing as npt


class Batch:
    """Rows and their labels: the one currency between streams and learners.

    A batch looks like a SciPy CSR matrix to whoever reads ``indptr``, ``indices``, ``data`` and ``shape``.
    Indices are as the input has them: neither sorted nor free of duplicates, which mean their sum.

    >>> import numpy as np
    >>> batch = Batch(np.array([0, 2]), np.array([4, 1]), np.array([0.5, 2.0]), np.array([1.0]))
    >>> len(batch), batch.shape
    (1, (1, 5))
    """

    indptr: npt.NDArray[np.int64]
    """Row i has the entries ``indptr[i]`` to ``indptr[i + 1]``."""
    indices: npt.NDArray[np.int64]
    data: npt.NDArray[np.float64] | npt.NDArray[np.float32]
    labels: npt.NDArray[np.float64]
    """NaN for a row that has none."""
    weights: npt.NDArray[np.float64] | None
    """Importance of each row; None when all are 1."""
    columns: int | None
    """1 + the largest index, where the stream knows it already."""
    first_line: int | None
    """The line of the input at which the batch's text begins."""
    tags: list[bytes] | None
    """What the input calls each row; None when no row is called anything."""
    base: npt.NDArray[np.float64] | None
    """What is to be added to each row's prediction; None when nothing is."""
    rows: _native.Rows | None
    """The same in the kernels' form, looked over already; for those who do not write to the arrays."""

    format: ClassVar[str] = "csr"

    # Not a dataclass: importing what makes them would hold up a command that reads ahead.
    __slots__ = (
        "base",
        "columns",
        "data",
        "first_line",
        "indices",
        "indptr",
        "labels",
        "rows",
        "tags",
        "weights",
    )

    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int64],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
        labels: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64] | None = None,
        columns: int | None = None,
        first_line: int | None = None,
        tags: list[bytes] | None = None,
        base: npt.NDArray[np.float64] | None = None,
        rows: _native.Rows | None = None,
    ) -> None:
        values = (base, columns, data, first_line, indices, indptr, labels, rows, tags, weights)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a batch is not changed: use replace({name}=…)")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({name: getattr(self, name) for name in self.__slots__ if name != "rows"},)

    def replace(self, **changes: Any) -> Batch:
        """The same but for these fields."""
        kept = {name: getattr(self, name) for name in self.__slots__}
        if not changes.keys().isdisjoint(("indptr", "indices", "data")):
            kept["rows"] = None
        return Batch(**kept | changes)

    def looked_over(self) -> Batch:
        """The same with `rows`, which takes about a tenth of the time of learning them."""
        if self.rows is not None:
            return self
        try:
            rows = _native.csr_rows(self.indptr, self.indices, self.data)
        except (
            TypeError,
            ValueError,
        ):  # of other types, or unfit: a learner will tell
            return self
        rows.scan()
        return self.replace(rows=rows)

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "rows")
        return f"Batch({', '.join(shown)})"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and 1 + the largest index of this batch: later batches may have more columns."""
        if self.columns is not None:
            return len(self.labels), self.columns
        return len(self.labels), int(self.indices.max(initial=-1)) + 1


def _restored(fields: dict[str, Any]) -> Batch:
    return Batch(**fields)


class Delayed:
    """A batch whose arrays are memoryviews still; calling it makes it one of NumPy's arrays, which takes NumPy."""

    __slots__ = ("views",)

    def __init__(self, *views: Any, **others: Any) -> None:
        self.views = Batch(*views, **others)

    def __len__(self) -> int:
        return len(self.views)

    def __call__(self) -> Batch:
        """The batch."""
        import numpy as np  # not before it is needed

        its = self.views
        arrays = {
            name: getattr(its, name) for name in ("indptr", "indices", "data", "labels", "weights", "base")
        }
        made = {name: np.asarray(view) for name, view in arrays.items() if view is not None}
        return its.replace(**made, rows=its.rows)

    def looked_over(self) -> Delayed:
        """The same with `rows`."""
        self.views = self.views.looked_over()
        return self


class ParseError(ValueError):
    """Bad input, located: ``clicks.svm:1204:37: expected a number after ':', got 'abc'``.

    ``line`` and ``column`` count from 1, columns in bytes; both are None where the place is unknown.
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
