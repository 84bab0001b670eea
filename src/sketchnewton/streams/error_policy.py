"""What to do about bad rows and cells: stop at the first, or count them."""

from __future__ import annotations

from collections.abc import Callable

from sketchnewton.core.batch import ParseError

ON_ERROR = ("stop", "skip")


class ErrorPolicy:
    """Raises the first error, or counts errors and keeps the first of them.

    >>> policy = ErrorPolicy("skip")
    >>> policy.report(ParseError("a.vw", 7, 3, "expected a number after ':', got 'x'"))
    >>> policy.skipped, policy.first
    (1, "a.vw:7:3: expected a number after ':', got 'x'")
    """

    def __init__(self, on_error: str = "stop") -> None:
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error={on_error!r} is invalid: must be one of {', '.join(ON_ERROR)}")
        self.skips = on_error == "skip"
        self.skipped = 0
        self.first: str | None = None
        self.misfits = 0  # cells that are not of their column's kind, and were taken as missing
        self.first_misfit: str | None = None

    def report(self, error: ParseError, *, can_go_on: bool = True) -> None:
        """Raise the error, unless bad rows are to be skipped and the rows behind it can be found."""
        if not (self.skips and can_go_on):
            raise error
        self.skipped += 1
        if self.first is None:
            self.first = str(error)

    def report_misfit(self, locate: Callable[[], ParseError], count: int = 1) -> None:
        """Raise the error, unless a cell that does not fit its column is to be counted and taken as missing."""
        if not self.skips:
            raise locate()
        self.misfits += count
        if self.first_misfit is None:
            self.first_misfit = str(locate())
