"""Online learners: a row comes in, a prediction goes out, the model learns from the answer."""

from __future__ import annotations

import importlib

from sketchnewton.core.names import IN_LEARNERS

# Imported on first use: a command needs one or two of them, and starting must be quick. Type checkers read stubs.
__all__ = list(IN_LEARNERS)


def __getattr__(name: str) -> object:
    if name not in IN_LEARNERS:
        raise AttributeError(f"module 'sketchnewton.learners' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"sketchnewton.learners.{IN_LEARNERS[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
