"""What a person sees on stderr while a command runs: lines, a table, a progress bar on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable

from sketchnewton.cli.io.standard_streams import open_stdout
from sketchnewton.core.hints import TextIO

__all__ = [
    "Console",
    "amount",
    "counted",
    "number",
    "percent",
    "print_page",
    "printable",
    "say",
    "terminal_width",
]

_BAR_EVERY = 0.1  # seconds

_ESCAPES = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != ord("\t")},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    **{code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)},
    **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(128, 256)},  # bytes of a path that are not UTF-8
}


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
    """Width of the terminal that `stream` writes to; 80 if it is not a terminal. COLUMNS overrides both."""
    # As `shutil.get_terminal_size`, whose module is slow to import.
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(AttributeError, ValueError, OSError):
        if stream is not None:
            return os.get_terminal_size(stream.fileno()).columns or 80
    return 80


def printable(text: str) -> str:
    """`text` with every character escaped that could steer a terminal, break the line or change its direction.

    Names and paths come from files and may hold anything. Whatever shows them to people passes here. Byte order
    marks are escaped, too: nobody would see them.
    """
    return text if text.isprintable() else text.translate(_ESCAPES)


def print_page(lines: Iterable[str]) -> None:
    """Print lines for people on stdout."""
    with open_stdout() as stdout:
        stdout.writelines(f"{printable(line)}\n" for line in lines)


def say(text: str) -> None:
    """Write to stderr. A log that cannot be written, as on a full disk, must not end the work it tells of."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:  # whoever read it, as `head` does, has had enough
        raise
    except OSError as error:
        lost.append(error)
        del lost[1:]


lost: list[OSError] = []
"""Why the first message that could not be written was not."""


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
            say(f"{printable(text)}\n")

    def progress(self, fraction: float | None, note: str = "") -> None:
        """Redraw the bar, a few times per second at most. If the size is unknown (`None`), show the note only."""
        now = time.monotonic()
        if not self._bar or now < self._next:
            return
        self._next = now + _BAR_EVERY
        width = terminal_width(sys.stderr) - 1
        if fraction is None:
            text = printable(note)
        else:
            cells = max(4, min(40, width - len(note) - 8))
            full = round(cells * min(max(fraction, 0.0), 1.0))
            text = f"{'━' * full}{'╌' * (cells - full)} {fraction:4.0%}  {printable(note)}"
        say(f"\r{text[:width]}\x1b[K")
        self._drawn = True

    def clear(self) -> None:
        """Remove the bar."""
        if self._drawn:
            say("\r\x1b[K")
            self._drawn = False
