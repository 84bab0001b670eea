"""Where in the data something stands that a learner, not a parser, has refused."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence

from sketchnewton.core.batch import IndexTooLarge, ParseError
from sketchnewton.streams.lines import chunks
from sketchnewton.streams.reader import BATCH_BYTES, MAX_LINE_BYTES
from sketchnewton.streams.source import open_source

__all__ = ["located"]


def located(error: IndexTooLarge, paths: Sequence[str]) -> ValueError | MemoryError:
    """The error at the first place that has the index, if lines of a file that can be read again have it."""
    token = re.compile(rb"(?<=\s)0*%d(?=:)" % error.index)
    for path in paths:
        if not os.path.isfile(path):
            continue
        with contextlib.suppress(ParseError, OSError), contextlib.closing(open_source(path)) as source:
            line = 1
            for text in chunks(source, BATCH_BYTES, MAX_LINE_BYTES):
                found = token.search(text)
                before = bytes(text if found is None else text[: found.start()])
                line += before.count(b"\n")
                if found is not None:
                    return ParseError(path, line, len(before) - before.rfind(b"\n"), str(error))
    return error
