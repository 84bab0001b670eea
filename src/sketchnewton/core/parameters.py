"""Checks of parameters, once; each error names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
import operator

from sketchnewton.core.hints import SupportsFloat, SupportsIndex, cast
from sketchnewton.core.types import DTypeLike, np

__all__ = ["checked", "checked_clip", "checked_dtype", "checked_share", "checked_size"]


def checked(name: str, value: object, *, positive: bool = False) -> float:
    """The parameter as a finite number that is not negative, nor 0 if it must be `positive`."""
    number = _number(value)
    if number is None:
        raise ValueError(f"{name}={value!r} is invalid: must be a number")
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name}={value!r} is invalid: must be {'>' if positive else '>='} 0")
    return number


def checked_size(name: str, value: object, least: int = 1) -> int:
    """The parameter as a whole number of at least `least`."""
    number = _whole_number(value)
    if number is None or number < least:
        raise ValueError(f"{name}={value!r} is invalid: must be a whole number >= {least}")
    if number >= 2**63:
        raise ValueError(f"{name}={value!r} is invalid: must be below 2**63")
    return number


def checked_share(name: str, value: object) -> float:
    """The parameter as a number above 0 and at most 1."""
    number = _number(value)
    if number is None or not 0.0 < number <= 1.0:
        raise ValueError(f"{name}={value!r} is invalid: must be > 0 and <= 1")
    return number


def checked_clip(clip: object) -> float:
    """C of the projection onto |wᵀx| ≤ C; infinite for None."""
    return math.inf if clip is None or clip == math.inf else checked("clip", clip, positive=True)


def checked_dtype(value: DTypeLike) -> str:
    """The parameter as "float32" or "float64"."""
    if value in ("float32", "float64"):
        return str(value)
    try:
        name = np.dtype(value).name
    except TypeError:
        name = ""
    if value is None or name not in ("float32", "float64"):  # to NumPy, None is float64
        raise ValueError(f"dtype={value!r} is invalid: must be 'float32' or 'float64'")
    return name


def _number(value: object) -> float | None:
    """The value as a float, None if it is no number; text that reads as one will do."""
    if not (isinstance(value, str) or hasattr(value, "__float__")):
        return None
    try:
        return float(cast("SupportsFloat | str", value))
    except (OverflowError, TypeError, ValueError):
        return None


def _whole_number(value: object) -> int | None:
    """The value as an int, None if it is no whole number; 3.0 will do."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        return None
