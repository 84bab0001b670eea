"""The types of option values: from text to a value, or to one line that says what is wrong."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

__all__ = [
    "at_least_one",
    "at_least_two",
    "at_least_zero",
    "bits",
    "clip",
    "columns",
    "curvature_weight",
    "delimiter",
    "finite",
    "label",
    "names",
    "oja_rate",
    "seconds",
    "share",
]


def _number(kind: Callable[[str], float], rule: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is invalid: must be {rule}")
        return value

    return convert


finite = _number(float, "a number", math.isfinite)
at_least_zero = _number(int, "a whole number >= 0", lambda value: value >= 0)
at_least_one = _number(int, "a whole number >= 1", lambda value: value >= 1)
at_least_two = _number(int, "a whole number >= 2", lambda value: value >= 2)
seconds = _number(float, "a number of seconds > 0", lambda value: 0.0 < value < 1e10)
share = _number(float, "between 0 and 1, such as 0.9", lambda value: 0.0 < value < 1.0)
bits = _number(int, "a whole number from 1 to 30", lambda value: 1 <= value <= 30)


def clip(text: str) -> str | float | None:
    """A bound, None for `none`, or `auto`."""
    return None if text == "none" else text if text == "auto" else finite(text)


def curvature_weight(text: str) -> str | float:
    """A number or a schedule."""
    if text.replace(" ", "") in ("1/t", "1/sqrt(t)", "sqrt(d/(C^2L^2t))"):
        return text
    return _number(float, "a number, 1/t, 1/sqrt(t) or sqrt(d/(C^2 L^2 t))", math.isfinite)(text)


def oja_rate(text: str) -> str | float | list[float]:
    """`adaptive`, a number, or one number per direction."""
    if text == "adaptive":
        return text
    rates = [finite(part) for part in text.split(",")]
    return rates[0] if len(rates) == 1 else rates


def delimiter(text: str) -> str:
    """A character, or `tab`."""
    found = "\t" if text in ("tab", "\\t") else text
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: must be one ASCII character, or tab")
    return found


def label(text: str) -> float | str:
    """A label: a number if it is one."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: must be names separated by commas")
    return found


def columns(text: str) -> list[str]:
    """Names of columns separated by commas; that of an index is empty in many tables."""
    return text.split(",")
