"""Second-order online learning at first-order cost.

>>> import numpy as np
>>> from sketchnewton import SketchedNewton
>>> learner = SketchedNewton(sketch="oja", sketch_size=2)
>>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
>>> predictions = learner.learn(X, [1.0, -1.0, 1.0])   # each made before its row was learned
>>> learner.predict(X).shape
(3,)
"""

from __future__ import annotations

import importlib

from sketchnewton.core.names import AT_TOP_LEVEL, EXTRAS, SUBPACKAGES

__version__ = "0.1.0"

# Imported on first use, so that `import sketchnewton` and `skn --version` stay cheap. Type checkers read the stub.
__all__ = ["__version__"]
__all__ += list(AT_TOP_LEVEL)


def __getattr__(name: str) -> object:
    if name in SUBPACKAGES:
        return importlib.import_module(f"sketchnewton.{name}")
    if name not in AT_TOP_LEVEL:
        raise AttributeError(f"module 'sketchnewton' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"sketchnewton.{AT_TOP_LEVEL[name]}"), name)
    return found


def __dir__() -> list[str]:
    from importlib.util import find_spec

    # What `help` asks for must be there, also where an extra is not installed.
    there = [name for name in SUBPACKAGES if name not in EXTRAS or find_spec(EXTRAS[name])]
    return sorted([*__all__, *there])
