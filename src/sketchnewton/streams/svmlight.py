"""svmlight/LIBSVM text as a stream of batches, parsed ahead of the learner by a thread of its own."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections.abc import Iterator

from sketchnewton import _native
from sketchnewton.streams.batch import Batch, ParseError
from sketchnewton.streams.files import Cancelled, Source, open_source

BATCH_BYTES = 1 << 20
MAX_LINE_BYTES = 8 << 20
_PATIENCE = 0.01  # seconds that a complete line of a slow pipe waits for others: they cost less together
_AHEAD = 2  # batches waiting: one is enough to keep both threads busy, two absorb their unevenness
_SHOWN = 20  # characters of an offending token in a message


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    batch_bytes: int = BATCH_BYTES,
    prefetch: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> SvmlightReader:
    """Read ``label [qid:N] index:value index:value … [# comment]`` lines; ``-`` is standard input.

    Indices are kept as written, be they counted from 0 or from 1; query numbers are ignored. Compressed
    input is recognised by its content. Memory is bounded by ``batch_bytes`` and the longest line, which may
    have ``max_line_bytes``. With ``prefetch`` a thread parses ahead while the caller learns.

    A producer that is slower than the reader, at the other end of a pipe, need not fill a batch: the lines
    that are there are delivered.

    Bad input raises ``ParseError`` after all rows before it were delivered.
    """
    if batch_bytes < 1:
        raise ValueError(f"batch_bytes={batch_bytes} is invalid: must be >= 1")
    if max_line_bytes < 1:
        raise ValueError(f"max_line_bytes={max_line_bytes} is invalid: must be >= 1")
    return SvmlightReader(open_source(path), batch_bytes, max_line_bytes, prefetch=prefetch)


class SvmlightReader(Iterator[Batch]):
    """The batches of one input, in order; closes itself at the end, on errors and when dropped.

    ``position`` of ``size`` compressed bytes were needed for what was delivered so far; ``size`` is None
    for a pipe. ``rows`` counts the delivered rows.
    """

    def __init__(self, source: Source, batch_bytes: int, max_line_bytes: int, *, prefetch: bool) -> None:
        self.path = source.name
        self.size = source.size
        self.position = 0
        self.rows = 0
        batches = _batches(source, batch_bytes, max_line_bytes)
        self._steps = _Prefetched(source, batches) if prefetch else _Direct(source, batches)
        # Also runs when the interpreter exits: a thread that is still inside compiled code by then would
        # bring the process down.
        self._finalizer = weakref.finalize(self, self._steps.close)

    def __next__(self) -> Batch:
        if not self._finalizer.alive:
            raise StopIteration
        try:
            batch, self.position = self._steps.next()
        except BaseException:
            self.close()
            raise
        self.rows += len(batch)
        return batch

    def close(self) -> None:
        """Stop reading and release the input; harmless when repeated."""
        self._finalizer()

    def __enter__(self) -> SvmlightReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_Step = tuple[Batch, int]  # and the position behind it


class _Direct:
    """Reads when asked."""

    def __init__(self, source: Source, steps: Iterator[_Step]) -> None:
        self._source = source
        self._steps = steps

    def next(self) -> _Step:
        return next(self._steps)

    def close(self) -> None:
        self._source.close()


class _Prefetched:
    """Reads ahead in a thread, which knows nothing of the reader, so that a dropped reader is collected."""

    def __init__(self, source: Source, steps: Iterator[_Step]) -> None:
        self._source = source
        self._stop = threading.Event()
        self._queue: queue.Queue[_Step | BaseException | None] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._run, args=(steps,), name="skn-reader", daemon=True)
        self._thread.start()

    def _run(self, steps: Iterator[_Step]) -> None:
        last: BaseException | None = None
        try:
            for step in steps:
                self._queue.put(step)
                if self._stop.is_set():
                    return
        except Cancelled:
            return
        except BaseException as error:  # whatever it is, it belongs to the thread that waits for rows
            last = error
        finally:
            self._source.close()
        self._queue.put(last)

    def next(self) -> _Step:
        item = self._queue.get()
        if item is None:
            raise StopIteration
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self._stop.set()
        self._source.cancel()
        # The thread may be waiting for room. It puts at most one item after this, for which there is room.
        while not self._queue.empty():
            self._queue.get_nowait()
        # The garbage collector may call from any thread. A disk that does not answer must not block exit.
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)


def _batches(source: Source, batch_bytes: int, max_line_bytes: int) -> Iterator[_Step]:
    """Parse chunk after chunk; errors come after the rows that precede them."""
    line = 1
    empty = True
    try:
        for text in _chunks(source, batch_bytes, max_line_bytes):
            indptr, indices, data, labels, columns, lines, error = _native.parse_svmlight(
                text, max_line_bytes
            )
            if len(labels):
                empty = False
                batch = Batch(indptr, indices, data, labels, columns=columns, first_line=line)
                yield batch, source.position
            line += lines
            if error is not None:
                column, message, token = error
                raise ParseError(source.name, line, column, _explain(message, token, max_line_bytes))
    except ParseError as error:
        if error.line is not None:
            raise
        raise ParseError(source.name, line, error.column, error.message) from None
    if empty:
        raise ParseError(source.name, 1, 1, "no examples")


def _chunks(source: Source, batch_bytes: int, max_line_bytes: int) -> Iterator[memoryview]:
    """Whole lines, about ``batch_bytes`` at a time; only the last one may lack its newline.

    In a regular file the cuts depend on the bytes alone; a slow pipe is also cut where it pauses. Errors leave
    the line to the caller, who counts lines.
    """
    buffer = bytearray(batch_bytes)
    kept = 0  # bytes of a line whose end is still to come
    while True:
        filled, ended, failure = _fill(source, buffer, kept)
        cut = filled if ended else buffer.rfind(b"\n", kept, filled) + 1
        if cut:
            with memoryview(buffer) as view, view[:cut] as text:
                yield text
        if isinstance(failure, ParseError):
            raise ParseError(source.name, None, filled - cut + 1, failure.message)
        if failure is not None:
            raise failure
        if ended:
            return
        buffer[: filled - cut] = buffer[cut:filled]
        kept = filled - cut
        if kept > max_line_bytes:
            raise ParseError(source.name, None, 1, _explain("", None, max_line_bytes))
        # A line longer than the buffer makes it grow, but never beyond the longest line allowed.
        size = batch_bytes if kept < batch_bytes else min(2 * kept, max_line_bytes + 1)
        if size < len(buffer):
            del buffer[size:]
        else:
            buffer.extend(bytes(size - len(buffer)))


def _fill(source: Source, buffer: bytearray, filled: int) -> tuple[int, bool, ParseError | OSError | None]:
    """Fill the buffer from ``filled`` on, or as far as a producer comes in time once there is a whole line.

    Returns where the bytes end, whether that is the end of the input, and what else stopped them.
    """
    patience: float | None = None  # until when
    with memoryview(buffer) as view:
        while filled < len(buffer):
            if patience is not None and not source.ready(max(0.0, patience - time.monotonic())):
                break
            try:
                with view[filled:] as free:
                    count = source.readinto(free)
            except (ParseError, OSError) as error:
                return filled, False, error
            if count == 0:
                return filled, True, None
            if patience is None and buffer.find(b"\n", filled, filled + count) >= 0:
                patience = time.monotonic() + _PATIENCE
            filled += count
    return filled, False, None


def _explain(message: str, token: bytes | None, max_line_bytes: int) -> str:
    """Complete a message with what was found; no token means that the line is too long."""
    if token is None:
        return f"line too long: must have at most {max_line_bytes} bytes"
    if not token:
        return f"{message}, got nothing"
    text = token.decode("utf-8", "backslashreplace")
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f"{message}, got '{shown}'"
