"""Checks of the parameters that sketches share; each error names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
import operator
from typing import Any

__all__ = ["checked_dtype", "checked_share", "checked_size"]


def checked_size(name: str, value: Any, least: int = 1) -> int:
    """The parameter as a whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name}={value!r} is invalid: must be a whole number >= {least}")
    return number


def checked_share(name: str, value: Any, *, one: bool = True) -> float:
    """The parameter as a number above 0 and at most 1, or below 1 if not `one`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (0.0 < number <= 1.0) or (number == 1.0 and not one):
        raise ValueError(f"{name}={value!r} is invalid: must be > 0 and {'<=' if one else '<'} 1")
    return number


def checked_dtype(value: Any) -> str:
    """The parameter as "float32" or "float64"."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    if name not in ("float32", "float64"):
        raise ValueError(f'dtype={value!r} is invalid: must be "float32" or "float64"')
    return name
