"""The types that all modules share, and NumPy for those that a command imports before it.

Importing NumPy takes as long as learning tens of thousands of rows, so `skn train` learns meanwhile. Modules on
the way there import `np` from here, which loads NumPy when it is first used; what there is of `numpy.typing`
serves annotations alone.
"""

from __future__ import annotations

import os

from sketchnewton.core.hints import TYPE_CHECKING, Any, TypeAlias

Path = str | os.PathLike[str]
Header = dict[str, Any]
"""Names and values that JSON can hold."""
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
"""What a decoder of JSON gives."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Array = NDArray[Any]
    Arrays = dict[str, Array]
else:
    from types import ModuleType

    class _NumPy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # found without us from now on
            return value

    class NDArray:
        """Stands for that of `numpy.typing` in annotations that are evaluated."""

        def __class_getitem__(cls, item: object) -> Any:
            return Any

    np = _NumPy("numpy")
    Array = ArrayLike = Arrays = DTypeLike = Floats = Integers = Any

__all__ = [
    "Array",
    "ArrayLike",
    "Arrays",
    "DTypeLike",
    "Floats",
    "Header",
    "Integers",
    "Json",
    "NDArray",
    "Path",
    "np",
]
