"""Standard output and standard error that were closed before the command started."""

from __future__ import annotations

import os
import sys

__all__ = ["replace_closed"]


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
