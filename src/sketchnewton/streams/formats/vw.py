"""Vowpal Wabbit text as a stream of batches."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.names import Names, mask_of
from sketchnewton.features.options import Features
from sketchnewton.streams.error_policy import Problems
from sketchnewton.streams.formats.lines import BATCH_BYTES, MAX_LINE_BYTES, LineError, parse_lines
from sketchnewton.streams.reader import BatchReader, Parse
from sketchnewton.streams.source import Source


def read_vw(
    path: str | os.PathLike[str],
    *,
    features: Features | None = None,
    names: Names | None = None,
    batch_bytes: int = BATCH_BYTES,
    prefetch: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> BatchReader:
    """Read ``[label [importance [base]]] ['tag]|[namespace[:weight]] name[:value] … |…`` lines.

    Names become indices as in Vowpal Wabbit. A row without a label has the label NaN. All else is as for
    ``read_svmlight``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.vw"
    >>> _ = path.write_text("1 2.0 'second_house | price:0.25 sqft:.5 17\\n")
    >>> (batch,) = read_vw(path)
    >>> batch.labels, batch.weights, batch.tags, batch.indices.tolist()
    (array([1.]), array([2.]), [b'second_house'], [229902, 162853, 17])
    """
    if batch_bytes < 1:
        raise ValueError(f"batch_bytes={batch_bytes} is invalid: must be >= 1")
    if max_line_bytes < 1:
        raise ValueError(f"max_line_bytes={max_line_bytes} is invalid: must be >= 1")
    parse = vw_parser(batch_bytes, max_line_bytes, features, names)
    return BatchReader([os.fspath(path)], parse, prefetch=prefetch)


def vw_parser(
    batch_bytes: int = BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    features: Features | None = None,
    names: Names | None = None,
) -> Parse:
    """The format, for a ``BatchReader``."""
    made = features or Features()
    mask = mask_of(None) if names is not None and names.exact else made.mask
    table = names.table if names is not None else None
    if names is not None:
        names.join(made.joins)

    def parse_text(text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        indptr, indices, data, labels, columns, lines, error, weights, base, tags, spaces, entries = (
            _native.parse_vw(text, max_line_bytes, mask, made.string_values, made.expands, table)
        )
        batch = Batch(indptr, indices, data, labels, weights, columns, line, tags, base)
        return made.expanded(batch, spaces, entries, names) if made.expands else batch, lines, error

    def parse(source: Source, problems: Problems) -> Iterator[Batch]:
        return parse_lines(source, parse_text, problems, batch_bytes, max_line_bytes)

    return parse
