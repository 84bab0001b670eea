"""What a person sees on stderr while a command runs: lines, a table, a progress bar on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TextIO

__all__ = ["Console", "amount", "counted", "number", "percent", "terminal_width"]

_BAR_EVERY = 0.1  # seconds


def number(value: float) -> str:
    """Five significant digits: 0.12345, 12.346, 12346, 1.2346e+07."""
    return f"{value:#.5g}".removesuffix(".")


def amount(count: float) -> str:
    """A count with thousands separators: 1,234,567."""
    return f"{count:,.0f}"


def counted(count: int, noun: str) -> str:
    """A count of things: 1 row, 1,234 rows."""
    return f"{amount(count)} {noun if count == 1 else noun + 's'}"


def percent(rate: float | None) -> str:
    """An error rate as a percentage; `-` where there is none."""
    return "-" if rate is None else f"{rate:.2%}"


def terminal_width(stream: TextIO | None) -> int:
    """Columns of the terminal that `stream` writes to; 80 if it is none. The variable COLUMNS overrules it."""
    # What `shutil.get_terminal_size` does, whose module takes long to import.
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(stream.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


class Console:
    """Lines on stderr, and below them a progress bar if stderr is a terminal. Silent if `quiet`."""

    def __init__(self, quiet: bool = False, *, bar: bool = True) -> None:
        self._quiet = quiet
        self._bar = bar and not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = False
        self._next = 0.0

    def line(self, text: str = "") -> None:
        """Print a line, above the bar if there is one."""
        if not self._quiet:
            self.clear()
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def progress(self, fraction: float | None, note: str = "") -> None:
        """Redraw the bar, a few times per second at most. `None` is an unknown size: the note alone."""
        now = time.monotonic()
        if not self._bar or now < self._next:
            return
        self._next = now + _BAR_EVERY
        width = terminal_width(sys.stderr) - 1
        if fraction is None:
            text = note
        else:
            cells = max(4, min(40, width - len(note) - 8))
            full = round(cells * min(max(fraction, 0.0), 1.0))
            text = f"{'━' * full}{'╌' * (cells - full)} {fraction:4.0%}  {note}"
        sys.stderr.write(f"\r{text[:width]}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False
