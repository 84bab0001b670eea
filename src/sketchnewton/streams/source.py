"""Bytes from a file, a pipe or standard input, decompressed when their first bytes say so."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import threading
from collections.abc import Callable

from sketchnewton.core.batch import ParseError
from sketchnewton.core.hints import Any, BinaryIO, NamedTuple, Protocol

_PIECE = 1 << 17  # compressed bytes read at a time


class Source:
    """The decompressed bytes of one input, with its progress.

    ``size`` is the compressed size of a regular file and None for a pipe. One thread reads and closes; any
    thread may ``cancel``, which ends a read that waits for a pipe.

    ``raw`` has the bytes as they are stored. ``help`` parses some of them, where whoever waits for rows can do
    that; it is False if there is nothing to do.
    """

    def __init__(self, raw: _Raw, size: int | None) -> None:
        self.name = raw.name
        self.size = size
        self._raw = raw
        self._bytes: _Raw | _Inflate | None = None
        self._peeked = b""
        self.help: Callable[[], bool] = _no_help

    @property
    def position(self) -> int:
        """Compressed bytes read so far."""
        return self._raw.position

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the rest."""
        return self._raw.cancelled

    def readinto(self, buffer: memoryview) -> int:
        """Read at most ``len(buffer)`` bytes; 0 means the end. Damaged compression is a ``ParseError``."""
        if self._peeked:
            count = min(len(buffer), len(self._peeked))
            buffer[:count] = self._peeked[:count]
            self._peeked = self._peeked[count:]
            return count
        if self._bytes is None:
            self._bytes = self._recognise()
        return self._bytes.readinto(buffer)

    def first_line(self, limit: int) -> bytes:
        """The beginning, up to the first line that is not blank, or ``limit`` bytes; it is still to be read."""
        piece = bytearray(limit)
        while len(self._peeked) < limit and b"\n" not in self._peeked.lstrip():
            if self._bytes is None:
                self._bytes = self._recognise()
            with memoryview(piece) as view, view[: limit - len(self._peeked)] as free:
                count = self._bytes.readinto(free)
            if count == 0:
                break
            self._peeked += piece[:count]
        return self._peeked

    @property
    def plain_file(self) -> str | None:
        """The path, where the bytes are those of a regular file as it is stored and none was read yet."""
        if self.size is None or self._peeked or self._raw.position or self.name == "<stdin>":
            return None
        if self._bytes is None:
            self._bytes = self._recognise()
        return self.name if self._bytes is self._raw else None

    def advance(self, position: int) -> None:
        """Tell how far a reader of ``plain_file`` is, which reads by itself."""
        self._raw.position = position

    def ready(self, seconds: float) -> bool:
        """Whether a read need not wait for a slow producer, who is given some seconds to deliver."""
        return bool(self._peeked) or (self._bytes or self._raw).ready(seconds)

    def _recognise(self) -> _Raw | _Inflate:
        start = b""
        # Only as long as it may become a magic number: a first line that is short must not wait for the next.
        while any(codec.magic != start and codec.magic.startswith(start) for codec in _CODECS):
            more = self._raw.read(_LONGEST_MAGIC - len(start))
            if not more:
                break
            start += more
        self._raw.unread(start)
        codec = next((codec for codec in _CODECS if start.startswith(codec.magic)), None)
        return self._raw if codec is None else _Inflate(self._raw, codec)

    def cancel(self) -> None:
        """Make the read in progress, and all later ones, end with ``Cancelled``."""
        self._raw.cancel()

    def close(self) -> None:
        """Release the file."""
        self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_help() -> bool:
    return False


class Cancelled(Exception):
    """A read was ended by ``Source.cancel``."""


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open ``path``, or standard input for ``-``; gzip, bzip2, xz and zstd are detected from the first bytes."""
    name = os.fspath(path)
    if name != "-":
        return _from_file(name, open(name, "rb", buffering=0))
    name = "<stdin>"
    if sys.stdin is None or sys.stdin.closed:
        raise OSError(errno.EBADF, "standard input is closed", name)
    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # replaced by an object in memory
        return Source(_Raw(name, sys.stdin.buffer, waits=False, owned=False), None)
    return _from_file(name, open(descriptor, "rb", buffering=0, closefd=False))


def source_of_bytes(data: bytes, name: str) -> Source:
    """Bytes in memory, never decompressed: their size is a bound on what they become. Errors call them `name`."""
    raw = _Raw(name, io.BytesIO(data), waits=False)
    source = Source(raw, None)
    source._bytes = raw
    return source


def _from_file(name: str, file: BinaryIO) -> Source:
    status = os.fstat(file.fileno())
    regular = stat.S_ISREG(status.st_mode)
    return Source(_Raw(name, file, waits=not regular), status.st_size if regular else None)


class _Raw:
    """The bytes as stored, their count, and a way to stop waiting for them."""

    def __init__(self, name: str, file: BinaryIO, *, waits: bool, owned: bool = True) -> None:
        self.name = name
        self.position = 0
        self._file: Any = file
        self._owned = owned
        self._ahead = b""
        self.cancelled = False
        # A read of a pipe may wait for ever, and no thread can interrupt another's read: so wait until
        # either the pipe or this one has something to say.
        self._wake = os.pipe() if waits else None
        self._lock = threading.Lock()  # between cancel and close

    def readinto(self, buffer: memoryview) -> int:
        if self._ahead:
            count = min(len(buffer), len(self._ahead))
            buffer[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
        else:
            count = self._readinto(buffer)
        self.position += count
        return count

    def ready(self, seconds: float) -> bool:
        return bool(self._ahead) or self._poll(seconds)

    def _poll(self, seconds: float | None = None) -> bool:
        """Wait until there is something to read, an end or a cancellation included."""
        if self._wake is None:
            return True
        import select  # only for pipes

        poll = select.poll()
        poll.register(self._file.fileno(), select.POLLIN)
        poll.register(self._wake[0], select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))

    def _readinto(self, buffer: memoryview) -> int:
        count: int | None = None
        while count is None:  # a descriptor that does not block had nothing after all
            self._poll()
            if self.cancelled:
                raise Cancelled
            try:
                count = self._file.readinto(buffer)
            except OSError as error:
                error.filename = self.name
                raise
        return count

    def read(self, size: int) -> bytes:
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            count = self.readinto(view)
        return bytes(buffer[:count])

    def unread(self, data: bytes) -> None:
        self._ahead = data + self._ahead
        self.position -= len(data)

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._wake is not None:
                os.write(self._wake[1], b"\0")

    def close(self) -> None:
        with self._lock:
            if self._owned:
                self._file.close()
            for end in self._wake or ():
                os.close(end)
            self._wake = None


class _Decoder(Protocol):
    """One compressed stream: what bz2, lzma and zstd offer."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gunzip:
    """zlib behind the interface of the other decoders; checks gzip's sum and length."""

    def __init__(self) -> None:
        import zlib  # slow to import, and not every stream is compressed

        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def _bunzip2() -> _Decoder:
    import bz2  # imported only where such a file is read, as below

    return bz2.BZ2Decompressor()


def _unxz() -> _Decoder:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


def _unzstd() -> _Decoder:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    decoder: _Decoder = zstd.ZstdDecompressor()
    return decoder


class _Codec(NamedTuple):
    name: str
    magic: bytes
    decoder: Callable[[], _Decoder]


_CODECS = (
    _Codec("gzip", b"\x1f\x8b", _Gunzip),
    _Codec("bzip2", b"BZh", _bunzip2),
    _Codec("xz", b"\xfd7zXZ\x00", _unxz),
    _Codec("zstd", b"\x28\xb5\x2f\xfd", _unzstd),
)
_LONGEST_MAGIC = max(len(codec.magic) for codec in _CODECS)


class _Inflate:
    """Decompresses streams that follow one another (``cat a.gz b.gz``), refusing all that is not one.

    The standard library's file classes take a damaged second stream for the end of the data.
    """

    def __init__(self, raw: _Raw, codec: _Codec) -> None:
        self._raw = raw
        self._codec = codec
        self._decoder: _Decoder | None = None
        self._pending = b""

    def readinto(self, buffer: memoryview) -> int:
        while True:
            if self._decoder is None and not self._next_stream():
                return 0
            output = self._step(len(buffer))
            if output:
                buffer[: len(output)] = output
                return len(output)

    def ready(self, seconds: float) -> bool:
        if self._pending or (self._decoder is not None and not self._decoder.needs_input):
            return True
        return self._raw.ready(seconds)

    def _next_stream(self) -> bool:
        # Zeros between and after streams are padding, as tape and block devices leave it.
        start = self._pending.lstrip(b"\0")
        while not start:
            piece = self._raw.read(_PIECE)
            if not piece:
                return False
            start = piece.lstrip(b"\0")
        self._pending = start
        self._decoder = self._codec.decoder()
        return True

    def _step(self, size: int) -> bytes:
        decoder = self._decoder
        if decoder is None:
            return b""
        data, self._pending = self._pending, b""
        ended = False
        if not data and decoder.needs_input:
            data = self._raw.read(_PIECE)
            ended = not data
        try:
            output = decoder.decompress(data, size)
        except MemoryError:
            raise
        except Exception as error:  # each library has its own class for damage
            raise self._damage(str(error) or "invalid data") from None
        if decoder.eof:
            self._pending = decoder.unused_data
            self._decoder = None
        elif ended and not output:
            raise self._damage("the file ends too early")
        return output

    def _damage(self, reason: str) -> ParseError:
        return ParseError(self._raw.name, None, None, f"damaged {self._codec.name} data: {reason}")
