"""Standard output and standard error that whoever started the command has closed."""

from __future__ import annotations

import os
import sys

__all__ = ["replace_closed"]


def replace_closed() -> None:
    """Give the command a stdout and a stderr if it was started without (`>&-`, `2>&-`).

    Their descriptors would otherwise go to the next files that are opened. Messages go nowhere; output that nobody
    can receive is an error when it is written, which a descriptor for reading makes sure of.
    """
    for name, descriptor, access in (("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, access)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False))
