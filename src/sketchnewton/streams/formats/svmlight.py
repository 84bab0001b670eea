"""svmlight/LIBSVM text as a stream of batches."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.error_policy import Problems
from sketchnewton.streams.formats.lines import BATCH_BYTES, MAX_LINE_BYTES, LineError, parse_lines
from sketchnewton.streams.reader import BatchReader, Parse
from sketchnewton.streams.source import Source


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    batch_bytes: int = BATCH_BYTES,
    prefetch: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> BatchReader:
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
    return BatchReader([os.fspath(path)], svmlight_parser(batch_bytes, max_line_bytes), prefetch=prefetch)


def svmlight_parser(
    batch_bytes: int = BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    features: Features | None = None,
    names: Names | None = None,
) -> Parse:
    """The format, for a ``BatchReader``. Features are in the default namespace."""
    made = features or Features()
    if names is not None:
        names.join(made.joins)

    def parse_text(text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        indptr, indices, data, labels, columns, lines, error = _native.parse_svmlight(text, max_line_bytes)
        batch = Batch(indptr, indices, data, labels, columns=columns, first_line=line)
        return made.indexed(batch, names), lines, error

    def parse(source: Source, problems: Problems) -> Iterator[Batch]:
        return parse_lines(source, parse_text, problems, batch_bytes, max_line_bytes)

    return parse
