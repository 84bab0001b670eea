"""Memory for a learner's state: native, with NumPy arrays over it for those who ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sketchnewton import _native
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.types import NDArray, np

if TYPE_CHECKING:
    from typing import TypeVar

    Made = TypeVar("Made")
    View = memoryview[float]
    Vector = NDArray[np.float64] | View
    Buffers = Mapping[str, NDArray[Any] | View]
else:
    Buffers = Vector = View = Any

__all__ = ["Buffers", "State", "Vector", "View", "dtype_name", "filled", "view_of", "zeros"]

_DTYPES = {"f": "float32", "d": "float64", "i": "int32", "l": "int64", "q": "int64"}  # of memoryviews


class State:
    """Arrays by name, all of them float32, float64, int32 or int64 in C order: what kernels work on.

    `state[name]` is a NumPy array and `state.view(name)` a memoryview, both over the same memory. Views never
    import NumPy, and reading a single number from one is faster. An assigned array replaces the one of that name
    and must have its type and number of dimensions; it is copied only if kernels cannot work on it as it is.

    >>> state = State({"counts": zeros(2, "int64")})
    >>> state["counts"][0] = 3
    >>> state.view("counts")[0]
    3
    >>> state["counts"] = np.arange(10)[::2]
    >>> state.view("counts").tolist()
    [0, 2, 4, 6, 8]
    >>> state["counts"] = np.zeros(2)
    Traceback (most recent call last):
        ...
    ValueError: array 'counts' has the wrong type or shape
    """

    __slots__ = ("_arrays", "_views")

    def __init__(self, arrays: Buffers | None = None) -> None:
        self._views: dict[str, View] = {}
        self._arrays: dict[str, NDArray[Any]] = {}  # those that somebody has asked for
        self.update(arrays or {})

    def __getitem__(self, name: str) -> NDArray[Any]:
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = np.asarray(self._views[name])
        return array

    def __setitem__(self, name: str, values: View | NDArray[Any]) -> None:
        view = _usable(values)
        old = self._views.get(name)
        if view is None or (old is not None and _kind(old) != _kind(view)):
            raise ValueError(f"array {name!r} has the wrong type or shape")
        self._views[name] = view
        self._arrays.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._views

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def update(self, arrays: Buffers) -> None:
        """Assign all of these."""
        for name, values in arrays.items():
            self[name] = values

    def view(self, name: str) -> View:
        """The array as a memoryview."""
        return self._views[name]

    def views(self) -> dict[str, View]:
        """All arrays as memoryviews; a new dictionary."""
        return dict(self._views)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of them as NumPy's; a new dictionary."""
        return {name: self[name] for name in self._views}

    def shape(self, name: str) -> tuple[int, ...]:
        """The array's shape."""
        return _shape(self._views[name])

    def dtype(self, name: str) -> str:
        """The name of the array's type."""
        return _DTYPES[self._views[name].format]

    def resize(self, name: str, length: int, used: int) -> None:
        """Replace the array by one of so many rows, zero but for the first `used`, which it keeps."""
        self[name] = self.resized(name, length, used)

    def replaced(self, arrays: Buffers, then: Callable[[], Made]) -> Made:
        """Assign all of these, and return what `then` gives; if it fails, everything is as it was."""
        old = dict(self._views)
        try:
            self.update(arrays)
            return then()
        except BaseException:
            self._views, self._arrays = old, {}
            raise

    def resized(self, name: str, length: int, used: int) -> View:
        """What `resize` would replace the array by."""
        old = self._views[name]
        new = zeros((length, *_shape(old)[1:]), self.dtype(name))
        if used and new.nbytes:
            size = used * (old.nbytes // len(old))
            new.cast("B")[:size] = old.cast("B")[:size]
        return new

    def copy(self) -> State:
        """The same numbers in memory of their own."""
        made = State()
        for name, view in self._views.items():
            made._views[name] = new = zeros(_shape(view), self.dtype(name))
            if new.nbytes:
                new.cast("B")[:] = view.cast("B")
        return made

    def head(self, name: str, length: int) -> View:
        """The first rows of the array: the same memory, unless there are none."""
        view = self._views[name]
        shape = (length, *_shape(view)[1:])
        if 0 in shape:  # of which there are no views
            return zeros(shape, self.dtype(name))
        part: View = view.cast("B")[: length * (view.nbytes // len(view))].cast(view.format, shape)  # type: ignore[call-overload]
        return part

    def heads(self, name: str, lengths: Sequence[int], room: int) -> View:
        """A copy in which row i has the first `lengths[i]` of its entries, and zeros up to `room` of them."""
        view = self._views[name]
        made = zeros((len(view), room, *_shape(view)[2:]), self.dtype(name))
        if made.nbytes and any(lengths):
            source, target = view.cast("B"), made.cast("B")
            entry = made.nbytes // (len(view) * room)
            for row, length in enumerate(lengths):
                begin, place = row * _shape(view)[1] * entry, row * room * entry
                target[place : place + length * entry] = source[begin : begin + length * entry]
        return made


def zeros(shape: int | tuple[int, ...], dtype: str = "float64") -> View:
    """Zeros that start at a cache line. Pages that nobody has touched are not committed."""
    return _native.zeros((shape,) if isinstance(shape, int) else shape, dtype)


def view_of(name: str, values: NDArray[Any] | View) -> View:
    """An array of a file as kernels want it; ValueError if it is of a type that they do not know."""
    view = _usable(values)
    if view is None:
        raise ValueError(f"array {name!r} has the wrong type or shape")
    return view


def dtype_name(values: NDArray[Any] | View) -> str:
    """The name of its type, whatever holds it."""
    if isinstance(values, memoryview):
        return _DTYPES.get(values.format, values.format)
    return str(values.dtype.name) if values.dtype.isnative else str(values.dtype.str)


def filled(values: Iterable[float]) -> View:
    """These numbers, one after the other, as float64."""
    numbers = list(values)
    made = zeros(len(numbers))
    for at, value in enumerate(numbers):
        made[at] = value
    return made


def _usable(values: NDArray[Any] | View) -> View | None:
    """The values as kernels want them; None if they are of another type."""
    if isinstance(values, memoryview):
        return values if values.format in _DTYPES and values.c_contiguous and not values.readonly else None
    if not (values.dtype.isnative and values.dtype.name in _DTYPES.values()):
        return None
    if values.flags.carray:
        view: memoryview[Any] = values.data
        return view
    copied = zeros(values.shape, values.dtype.name)
    np.asarray(copied)[...] = values
    return copied


def _kind(view: View) -> tuple[str, int]:
    return _DTYPES[view.format], view.ndim


def _shape(view: View) -> tuple[int, ...]:
    return view.shape or ()
