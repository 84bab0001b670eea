"""Vowpal Wabbit text: ``[label [importance [base]]] ['tag]|[namespace[:weight]] name[:value] … |…``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.names import mask_of
from sketchnewton.streams.lines import LineError, ParseText, line_parser
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.writer import BatchWriter, pairs_of, row_fields, short


def vw_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``."""
    return line_parser(vw_lines(options), options)


def vw_lines(options: ReadOptions) -> ParseText:
    """What parses lines."""
    features, names = options.features, options.names
    mask = mask_of(None) if names is not None and names.exact else features.mask
    table = names.table if names is not None else None

    def parse_text(text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        indptr, indices, data, labels, columns, lines, error, weights, base, tags, spaces, entries = (
            _native.parse_vw(
                text, options.max_line_bytes, mask, features.string_values, features.expands, table
            )
        )
        batch = Batch(indptr, indices, data, labels, weights, columns, line, tags, base)
        if features.expands:
            batch = features.expanded(batch, spaces, entries, names)
        return batch, lines, error

    return parse_text


class VwWriter(BatchWriter):
    """Has all that a batch has; with exact names the features have theirs."""

    format = "vw"

    def _write(self, batch: Batch) -> None:
        pairs = pairs_of(batch) if self._names is None else self._named(batch)
        lines = []
        for (label, weight, tag, base), features in zip(row_fields(batch), pairs, strict=True):
            words = [] if math.isnan(label) else [short(label)]
            if weight != 1.0 or base != 0.0:
                words.append(short(weight))
            if base != 0.0:
                words.append(short(base))
            if math.isnan(label) and words:
                raise self._refuse("a weight or a base without a label")
            if any(c in b" \t\r\n|" for c in tag):
                raise self._refuse(f"the tag {tag.decode('utf-8', 'backslashreplace')!r}")
            start = "".join(word + " " for word in words).encode()
            lines.append(start + (b"'" + tag if tag else b"") + b"|" + features + b"\n")
        self._file.write(b"".join(lines))

    def _named(self, batch: Batch) -> Iterator[bytes]:
        names = self._plain_names()
        for start, end in itertools.pairwise(batch.indptr.tolist()):
            text = b""
            last: bytes | None = b""
            for index, value in zip(
                batch.indices[start:end].tolist(), batch.data[start:end].tolist(), strict=True
            ):
                space, name = names[index]
                if any(c in b" \t\r\n|:" for c in space + name) or not name:
                    raise self._refuse(f"the name {name.decode('utf-8', 'backslashreplace')!r}")
                if space != last:
                    text += (b" |" if text else b"") + space
                    last = space
                text += b" " + name + b":" + short(value).encode()
            yield text


PARSERS = {"vw": vw_parser}
WRITERS = {"vw": VwWriter}
