"""Memory for a learner's state: NumPy arrays, or what becomes one without a copy once NumPy is there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from sketchnewton import _native
from sketchnewton.core.types import NDArray, np

_here = threading.local()
_DTYPES = {"f": "float32", "d": "float64", "l": "int64", "q": "int64"}  # of memoryviews


class before_numpy:
    """Within, this thread makes memoryviews: they have items, slices and a shape, which is all that kernels need.

    `np.asarray` turns one into an array over the same memory.
    """

    def __enter__(self) -> None:
        self._outer = getattr(_here, "early", False)
        _here.early = True

    def __exit__(self, *_: object) -> None:
        _here.early = self._outer


def zeros(shape: int | tuple[int, ...], dtype: str = "float64") -> NDArray[Any]:
    """Zeros that start at a cache line. Pages that nobody has touched are not committed."""
    view: Any = _native.zeros((shape,) if isinstance(shape, int) else shape, dtype)
    return view if getattr(_here, "early", False) else np.asarray(view)


def first(array: Any, n: int) -> NDArray[Any]:
    """The first `n` rows: `array[:n]`, which a memoryview does not have for more than one dimension."""
    part: Any
    if not isinstance(array, memoryview) or array.ndim == 1:
        part = array[:n]
    else:
        shape: Any = (n, *array.shape[1:])  # type: ignore[index]
        kind: Any = array.format
        # Nor does it have views of no rows.
        part = (
            array.cast("B")[: n * (array.nbytes // len(array))].cast(kind, shape)
            if n
            else zeros(shape, _DTYPES[kind])
        )
    return part  # type: ignore[no-any-return]


def numbers(values: Sequence[float]) -> NDArray[Any]:
    """These numbers, one after the other."""
    made = zeros(len(values))
    for at, value in enumerate(values):
        made[at] = value
    return made
