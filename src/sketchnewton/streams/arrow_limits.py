"""What a Parquet or Arrow file would become in memory, looked at before pyarrow makes it so.

A few bytes can stand for gigabytes: compressed buffers, run lengths, dictionaries. A file whose parts would take
much memory *and* are many times what lies on disk is refused; a large file of ordinary data is neither.
"""

from __future__ import annotations

import io
import struct

import numpy as np
import numpy.typing as npt

from sketchnewton.core.batch import ParseError
from sketchnewton.core.hints import TYPE_CHECKING, Any, BinaryIO
from sketchnewton.streams.reader import MAX_LINE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import WriteableBuffer
    from pyarrow import parquet

TEXT_BYTES = 32 << 20
"""Of the texts that are looked at together."""
MAX_ITEMS = 1 << 18
"""Of a list in a cell."""
ENTRIES = 1 << 22
"""Of the lists that are read together, if rows are alike."""

_LARGE = 64 << 20
_RATIO = 100
_PIECE = 1 << 20
_LONGEST_METADATA = 16 << 20


def check_expansion(path: str, stored: int, becomes: int) -> None:
    """Refuse a part of a file that would become far more than it is."""
    if becomes > _LARGE and becomes > _RATIO * stored:
        raise ParseError(
            path, None, None, f"{stored} bytes would become {becomes >> 20} MB in memory: not ordinary data"
        )


def check_parquet(path: str, metadata: parquet.FileMetaData) -> int:
    """Refuse row groups that would become far more than they are; how many rows to read at a time."""
    rows = 8192
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        chunks = [group.column(k) for k in range(group.num_columns)]
        stored = sum(max(0, chunk.total_compressed_size) for chunk in chunks)
        for chunk in chunks:
            if chunk.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
                check_expansion(path, stored, chunk.total_uncompressed_size)
            if chunk.num_values > group.num_rows > 0:  # lists
                check_expansion(path, stored, 8 * chunk.num_values)
                rows = min(rows, max(1, ENTRIES * group.num_rows // chunk.num_values))
    return rows


class CheckedMessages(io.RawIOBase):
    """An Arrow stream as a file to read from, whose messages were looked at before pyarrow sees them."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__()
        self._path = path
        self._file = file
        self._parts: list[bytes] = []  # of the message that is being read
        self._ended = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """The next bytes of whole messages."""
        if not self._parts and not self._ended:
            self._next()
        if not self._parts:
            return 0
        with memoryview(buffer) as view:
            count = min(len(view), len(self._parts[0]))
            view[:count] = self._parts[0][:count]
        rest = self._parts[0][count:]
        self._parts[:1] = [rest] if rest else []
        return count

    def _next(self) -> None:
        prefix = self._take(4)
        if prefix == b"\xff\xff\xff\xff":  # as all have it since 2019
            prefix += self._take(4)
        length = int.from_bytes(prefix[-4:], "little")
        if len(prefix) < 4 or length == 0:
            self._parts, self._ended = [prefix] if prefix else [], True
            return
        if length > _LONGEST_METADATA:
            raise self._damaged()
        metadata = self._take(length)
        try:
            message = Message(metadata)
            body = self._take(message.body_length)
            if len(metadata) < length or len(body) < message.body_length:  # pyarrow would ask for all of it
                raise IndexError
            message.check(self._path, body)
        except (struct.error, IndexError):
            raise self._damaged() from None
        self._parts = [part for part in (prefix, metadata, body) if part]

    def _take(self, size: int) -> bytes:
        """So many bytes, or fewer at the end; memory grows with what is there, not with what is said to be."""
        parts = []
        while size > 0 and (part := self._file.read(min(size, _PIECE))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _damaged(self) -> ParseError:
        return ParseError(self._path, None, None, "expected Arrow data: a message is damaged")


class Message:
    """As much as must be known of a message of Arrow's stream format, which is a flatbuffer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._table = self._number("<I", 0)
        place = self._field(self._table, 3)
        self.body_length: int = self._number("<q", place) if place else 0
        if self.body_length < 0:
            raise IndexError

    def check(self, path: str, body: bytes) -> None:
        """Refuse a record batch that would become far more than it is."""
        kind_at, header_at = self._field(self._table, 1), self._field(self._table, 2)
        kind = self._number("<B", kind_at) if kind_at and header_at else 0
        batch = self._follow(header_at) if header_at else 0
        if kind == 2:  # a dictionary, whose values are a record batch
            values = self._field(batch, 1)
            batch = self._follow(values) if values else 0
        if kind not in (2, 3) or not batch:
            return
        length = self._field(batch, 0)
        check_expansion(path, len(self._data) + len(body), self._number("<q", length) if length else 0)
        buffers = self._field(batch, 2)
        if not self._field(batch, 3) or not buffers:  # not compressed
            return
        start = self._follow(buffers)
        becomes = 0
        for k in range(self._number("<I", start)):
            at, size = struct.unpack_from("<qq", self._data, start + 4 + 16 * k)
            if size >= 8:
                becomes += max(0, struct.unpack_from("<q", body, at)[0])
        check_expansion(path, len(self._data) + len(body), becomes)

    def _number(self, form: str, at: int) -> int:
        if at < 0:
            raise IndexError
        number: int = struct.unpack_from(form, self._data, at)[0]
        return number

    def _follow(self, at: int) -> int:
        return at + self._number("<I", at)

    def _field(self, table: int, index: int) -> int:
        """Where a field of a table is; 0 if it has none."""
        layout = table - self._number("<i", table)
        if 4 + 2 * index >= self._number("<H", layout):
            return 0
        offset = self._number("<H", layout + 4 + 2 * index)
        return table + offset if offset else 0


def cuts(path: str, columns: list[pa.Array], rows: int) -> list[tuple[int, int]]:
    """Where to cut rows with these columns of texts and lists, so that no part has too much of them."""
    total = np.zeros(rows, np.int64)
    for column in columns:
        if "list<" in str(column.type):
            total += _list_bytes(path, column)
            continue
        lengths = text_lengths(column)
        if len(lengths) and int(lengths.max()) > MAX_LINE_BYTES:
            longest = int(lengths.max())
            raise ParseError(
                path, None, None, f"a text of {longest} bytes: expected at most {MAX_LINE_BYTES} in a cell"
            )
        if len(lengths) == rows:  # not those of a dictionary, which are there once
            total += lengths
    ends = np.cumsum(total)
    parts = []
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + TEXT_BYTES, side="right")))
        parts.append((start, end))
        start = end
    return parts


def _list_bytes(path: str, column: pa.Array) -> npt.NDArray[np.int64]:
    """The bytes of each list's items as features."""
    lengths: npt.NDArray[np.int64] = (
        column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    if len(lengths) and int(lengths.max()) > MAX_ITEMS:
        raise ParseError(
            path, None, None, f"a list of {int(lengths.max())} items: expected at most {MAX_ITEMS} in a cell"
        )
    return 16 * lengths


def text_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """The bytes of each cell, or of each entry of the dictionary."""
    if str(column.type).startswith("dictionary"):
        return np.append(text_lengths(column.dictionary), 0)[: len(column.dictionary)]
    if str(column.type).endswith("_view"):  # four bytes of length before twelve others
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
        return views[column.offset : column.offset + len(column), 0].astype(np.int64)
    start, stop = column.offset, column.offset + len(column) + 1
    offsets: npt.NDArray[Any] = np.frombuffer(column.buffers()[1] or bytes(8), _offset_type(column))
    return np.diff(offsets[start:stop]).astype(np.int64)


def _offset_type(column: pa.Array) -> type:
    return np.int64 if str(column.type).startswith("large") else np.int32
