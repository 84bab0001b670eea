"""`skn train --predictions FILE`: a resumed run continues the file, which ends as that of an undisturbed run.

An unfinished run notes how many bytes belong to the rows that its model has learned, and their checksum. Who
finishes the run takes these bytes from where it left them: after Ctrl-C from FILE; after a kill from `FILE.run`,
which a run with checkpoints writes until it is over.
"""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Iterator

from sketchnewton.cli.io.files import open_output
from sketchnewton.core import archive
from sketchnewton.core.hints import Any, BinaryIO, TextIO
from sketchnewton.core.types import Header

__all__ = ["PredictionFile"]

_BLOCK = 1 << 20


class PredictionFile:
    """The predictions of a run, on one `scale`; `kept`: even a kill leaves those that a checkpoint has noted."""

    def __init__(self, path: str, scale: str | None, *, kept: bool) -> None:
        self._path = path
        self._part = f"{os.path.realpath(path)}.run"
        self._scale = scale
        self._kept = kept
        self._is_file = path != "-" and (os.path.isfile(path) or not os.path.exists(path))
        self._earlier: str | None = None  # where the lines of the run that is continued are
        self._sum = _Sum()
        self._text: TextIO | None = None

    def note(self) -> Header | None:
        """How far it has come; None if nobody can continue it. What is kept is on the disk, then."""
        if not self._is_file:
            return None
        if self._text is not None:
            self._text.flush()
            if self._kept:
                os.fsync(self._text.fileno())
        return {"bytes": self._sum.size, "checksum": self._sum.checksum, "scale": self._scale}

    def continues(self, note: Header | None) -> bool:
        """Whether what the run of this note has written is still there: then it is continued."""
        if note is None or note["scale"] != self._scale or not self._is_file:
            return False
        for place in (self._part, self._path):
            found = _Sum()
            with contextlib.suppress(OSError), open(place, "rb") as file:
                for block in _blocks(file, note["bytes"]):
                    found.add(block)
            if (found.size, found.checksum) == (note["bytes"], note["checksum"]):
                self._earlier, self._sum = place, found
                return True
        return False

    @contextlib.contextmanager
    def opened(self) -> Iterator[TextIO]:
        """A text file that appears at its place when the block ends, and does not if it fails."""
        if not self._is_file:
            with open_output(self._path) as file:
                yield file
            return
        target = os.path.realpath(self._path)
        place = archive.temporary_beside(target)
        try:
            with archive.created(place, archive.mode_of(target)) as binary:
                self._copy_earlier(binary)
                if self._kept:
                    os.replace(place, self._part)
                    place = self._part
                self._text = io.TextIOWrapper(_Summed(binary, self._sum), encoding="utf-8")
                yield self._text
                text, self._text = self._text, None
                text.detach()  # written, but not closed
                binary.flush()
                os.fsync(binary.fileno())
            os.replace(place, target)
        except BaseException as error:
            if not self._kept:  # else the last checkpoint needs it
                with contextlib.suppress(OSError):
                    os.unlink(place)
            if isinstance(error, OSError) and error.filename is None:  # of a write
                error.filename = self._path
            raise
        if self._earlier == self._part and not self._kept:
            os.unlink(self._part)

    def _copy_earlier(self, binary: BinaryIO) -> None:
        if self._earlier is not None:
            with open(self._earlier, "rb") as earlier:
                for block in _blocks(earlier, self._sum.size):
                    binary.write(block)
            binary.flush()


class _Sum:
    """How much was written, and a checksum of it."""

    def __init__(self) -> None:
        self.size = 0
        self.checksum = 0

    def add(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        self.checksum = zlib.crc32(data, self.checksum)


class _Summed(io.BufferedIOBase):
    """A file that counts what is written to it."""

    def __init__(self, file: BinaryIO, total: _Sum) -> None:
        self.name = file.name
        self._file = file
        self._total = total

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def flush(self) -> None:
        self._file.flush()

    def write(self, data: Any, /) -> int:
        self._file.write(data)
        self._total.add(data)
        return len(data)


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The first `size` bytes, as far as there are so many."""
    while size and (block := file.read(min(size, _BLOCK))):
        size -= len(block)
        yield block
