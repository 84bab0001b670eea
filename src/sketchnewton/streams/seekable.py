"""Inputs as files that libraries can read or seek in."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from sketchnewton.core.hints import TYPE_CHECKING, BinaryIO
from sketchnewton.streams.source import Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE = 1 << 20


class SourceFile(io.RawIOBase):
    """A source as a file to read from, once and in order."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """As ``Source.readinto``."""
        with memoryview(buffer) as view:
            return self._source.readinto(view) if view else 0


@contextmanager
def seekable(source: Source) -> Iterator[BinaryIO]:
    """A file in which one can seek: the source's own, or a copy on disk if it is a pipe or compressed."""
    path = source.plain_file
    if path is not None:
        with open(path, "rb") as file:
            yield file
        return
    with tempfile.TemporaryFile(prefix="skn-") as copy:
        buffer = bytearray(_PIECE)
        with memoryview(buffer) as view:
            while count := source.readinto(view):
                copy.write(view[:count])
        copy.seek(0)
        yield copy
