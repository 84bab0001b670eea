"""How promises are checked: each is a small function whose name, in words, says what is promised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

Subject = TypeVar("Subject")
Promises = dict[str, Callable[[Subject], None]]
"""Promises by what they say, in words."""


def by_title(*promises: Callable[[Subject], None]) -> Promises[Subject]:
    """A table of promises: the name of each function, in words."""
    return {promise.__name__.replace("_", " "): promise for promise in promises}


def check(promises: Promises[Subject], subject: Subject, only: Iterable[str] | None) -> None:
    """Check these promises, or some of them, in order; AssertionError names the first that is broken."""
    wanted = list(promises if only is None else only)
    for title in wanted:
        if title not in promises:
            raise ValueError(f"{title!r} is not a promise: choose from {', '.join(map(repr, promises))}")
    for title in wanted:
        try:
            promises[title](subject)
        except Exception as error:  # whatever went wrong, the promise was not kept
            what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise AssertionError(f"broken promise: {title}: {what}{str(error).strip()}") from error


# Not `assert`, which `python -O` leaves out.


def require(holds: object, message: str) -> None:
    """AssertionError with this message unless it holds."""
    if not holds:
        raise AssertionError(message)


def require_same(actual: object, expected: object, message: str) -> None:
    """Arrays of the same shape and numbers, to the last bit; NaN equals NaN."""
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected), err_msg=message, strict=True)


def require_close(actual: Any, expected: Any, message: str, atol: float, rtol: float = 0.0) -> None:
    """Numbers that differ by at most `atol` + `rtol` times the expected ones."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=message)


def require_finite(values: Any, message: str) -> None:
    """Neither NaN nor infinity."""
    require(np.isfinite(values).all(), f"{message}: not finite")


def require_refused(
    call: Callable[[], object], pattern: str, what: str, error: type[Exception] = ValueError
) -> None:
    """The call must raise that error with a message in which the pattern occurs."""
    try:
        call()
    except error as refusal:
        require(
            re.search(pattern, str(refusal)),
            f"{what}: expected an error that says {pattern!r}, got {str(refusal)!r}",
        )
        return
    raise AssertionError(f"{what}: expected {error.__name__}, but there was no error")
