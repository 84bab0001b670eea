"""NumPy for modules that a command imports before it: loaded when it is first used.

Importing NumPy takes as long as learning tens of thousands of rows, so `skn train` learns meanwhile. Modules on
the way there import `np` from here; what there is of `numpy.typing` serves annotations alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
else:
    from types import ModuleType
    from typing import Any

    class _NumPy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # found without us from now on
            return value

    class NDArray:  # noqa: D101
        def __class_getitem__(cls, item: Any) -> Any:
            return Any

    np = _NumPy("numpy")
    ArrayLike = Floats = Integers = Any

__all__ = ["ArrayLike", "Floats", "Integers", "NDArray", "np"]
