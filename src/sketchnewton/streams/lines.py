"""Text in chunks of whole lines, each given to a parser; errors located."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.parallel import parse_in_parallel
from sketchnewton.streams.reader import MAX_LINE_BYTES, Parse, ReadOptions
from sketchnewton.streams.source import Source

_PATIENCE = 0.01  # seconds that a complete line of a slow pipe waits for others: they cost less together
_SHOWN = 20  # characters of an offending token in a message
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks; without one, every other byte of ASCII text is 0

LineError = tuple[int, str, bytes | None, int]
"""Column, message, token, and where the line behind begins."""
Parsed = tuple[Batch, int, LineError | None]
"""Rows, the number of good lines, and what stopped them."""
ParseText = Callable[[memoryview, int], Parsed]
"""Makes rows of whole lines and the number of the first."""


def line_parser(parse_text: ParseText, options: ReadOptions, comment: bytes = b"\0") -> Parse:
    """A format whose rows are lines of text, each parsed by itself, for a ``BatchReader``.

    Blank lines are no rows, nor are those that begin with a ``comment``.
    """
    # Names are numbered as they appear, so whoever collects them takes line after line.
    threads = options.threads if options.names is None else 1

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        return parse_lines(source, parse_text, policy, options, threads, comment)

    return parse


def parse_lines(
    source: Source,
    parse: ParseText,
    policy: ErrorPolicy,
    options: ReadOptions,
    threads: int = 1,
    comment: bytes = b"\0",
) -> Iterator[Batch]:
    """Parse chunk after chunk; errors come after the rows that precede them."""
    line = 1
    spare: list[bytearray] | None = [] if threads > 1 else None
    texts = chunks(source, options.batch_bytes, options.max_line_bytes, spare)
    parsed: Iterator[tuple[memoryview, Parsed | None]]
    if threads > 1:
        parsed = parse_in_parallel(source, texts, parse, threads, options.prepare)
    else:
        parsed = ((text, None) for text in texts)
    try:
        for text, first in parsed:
            batch, lines, error = parse(text, line) if first is None else first
            del first
            start = 0
            while True:
                if len(batch):
                    batch.first_line = line
                    if len(batch) != lines:  # some lines are no rows
                        batch.find_line = partial(_line_of_row, bytes(text[start:]), line, comment)
                    yield batch
                del batch  # whoever has it may be done with it before the next is parsed
                line += lines
                if error is None:
                    break
                column, message, token, behind = error
                policy.report(
                    ParseError(source.name, line, column, explain(message, token, options.max_line_bytes)),
                    can_go_on=token is not None,
                )
                line += 1
                start += behind
                with text[start:] as rest:
                    batch, lines, error = parse(rest, line)
            if spare is not None and isinstance(text.obj, bytearray):
                spare.append(text.obj)
                text.release()
    except ParseError as error:
        if error.line is not None:
            raise
        raise ParseError(source.name, line, error.column, error.message) from None


def chunks(
    source: Source, batch_bytes: int, max_line_bytes: int, spare: list[bytearray] | None = None
) -> Iterator[memoryview]:
    """Whole lines, about ``batch_bytes`` at a time; only the last one may lack its newline.

    A byte order mark is left out, UTF-16 is refused. In a regular file the cuts depend on the bytes alone; a slow
    pipe is also cut where it pauses. Errors leave the line to the caller, who counts lines. The next chunk takes
    the place of the last, unless there is a list of ``spare`` memory: then it has memory of its own, taken from
    there if the caller has put back what is done.
    """
    buffer = bytearray(batch_bytes)
    kept = 0  # bytes of a line whose end is still to come
    begun = False
    while True:
        filled, ended, failure = _fill(source, buffer, kept)
        cut = filled if ended else buffer.rfind(b"\n", kept, filled) + 1
        begin = 0 if begun or not cut else _text_begins(source.name, buffer[: min(cut, len(_BOM))])
        begun = begun or cut > 0
        if cut > begin and spare is not None:
            yield memoryview(buffer)[begin:cut]
        elif cut > begin:
            with memoryview(buffer) as view, view[begin:cut] as text:
                yield text
        if isinstance(failure, ParseError):
            raise ParseError(source.name, None, filled - cut + 1, failure.message)
        if failure is not None:
            raise failure
        if ended:
            return
        kept = filled - cut
        rest = buffer[cut:filled]
        if cut and spare is not None:
            buffer = spare.pop() if spare else bytearray(batch_bytes)
        buffer[:kept] = rest
        if kept > max_line_bytes:
            raise ParseError(source.name, None, 1, explain("", None, max_line_bytes))
        # A line longer than the buffer makes it grow, but never beyond the longest line allowed.
        size = batch_bytes if kept < batch_bytes else min(2 * kept, max_line_bytes + 1)
        if size < len(buffer):
            del buffer[size:]
        else:
            buffer.extend(bytes(size - len(buffer)))


def _line_of_row(text: bytes, line: int, comment: bytes, row: int) -> int | None:
    """The line of row number ``row`` of a text that begins in that line."""
    rows = (
        line + at
        for at, words in enumerate(map(bytes.split, text.split(b"\n")))
        if words and not words[0].startswith(comment)
    )
    return next(itertools.islice(rows, row, None), None)


def _text_begins(name: str, start: bytearray) -> int:
    """How many of the first bytes of a text are a byte order mark; ``ParseError`` if it is UTF-16."""
    if start.startswith(_UTF_16) or b"\0" in start[:2]:
        raise ParseError(
            name, 1, 1, "expected UTF-8, got UTF-16: iconv -f UTF-16 -t UTF-8 turns one into the other"
        )
    return len(_BOM) if start == _BOM else 0


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


def explain(message: str, token: bytes | None, max_line_bytes: int = MAX_LINE_BYTES) -> str:
    """Complete a message with what was found; no token means that the line is too long."""
    if token is None:
        return f"line too long: must have at most {max_line_bytes} bytes"
    if not token:
        return f"{message}, got nothing"
    text = token.decode("utf-8", "backslashreplace")
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f"{message}, got '{shown}'"
