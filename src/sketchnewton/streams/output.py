"""Bytes into a new file or to standard output, compressed when the file's name says so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sketchnewton.core import archive
from sketchnewton.core.formats import COMPRESSED
from sketchnewton.core.hints import Any, BinaryIO


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """A file that appears at ``path`` when the block ends, and does not if it fails; ``-`` is standard output.

    Errors name it.
    """
    if path == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except OSError as error:
            error.filename = error.filename or "<stdout>"
            raise
        return
    ending = os.path.splitext(path.lower())[1]
    with archive.replacement_of(os.path.realpath(path)) as file:
        if ending not in COMPRESSED:
            yield file
            return
        with _compressor(file, ending) as compressed:
            yield compressed


def _compressor(file: BinaryIO, ending: str) -> Any:
    # Imported only where such a file is written.
    if ending == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if ending == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if ending == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file, "wb")
