"""Standard output, and what to do where it or standard error was closed before the command started."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from sketchnewton.core.hints import TextIO

__all__ = ["open_stdout", "replace_closed"]


def replace_closed() -> None:
    """Give the command a stdout and a stderr if it was started without them (`>&-`, `2>&-`).

    Otherwise the next files to be opened would get their descriptors. Messages are discarded; writing output is an
    error, because the new stdout is open for reading only.
    """
    for name, descriptor, access in (("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, access)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False))


@contextlib.contextmanager
def open_stdout() -> Iterator[TextIO]:
    """Standard output, flushed when the block ends; errors name it."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "<stdout>"
        raise
