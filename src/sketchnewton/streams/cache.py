"""Parsed rows in a binary file, so that later passes need not parse the text again.

The file begins with a mark and a *key*, a JSON text that says what was read and how; a cache whose key is another
is stale and is rebuilt. Then come blocks, one per batch, each with a checksum, and an end that says how many
rows there are. It is written under another name and takes its own when it is whole. Numbers come back as they went
in; indices and values take fewer bytes where nothing is lost by it. Nothing here takes NumPy but arrays that are
its own already.

>>> import tempfile, os
>>> import numpy as np
>>> path = os.path.join(tempfile.mkdtemp(), "clicks.skn-cache")
>>> with CacheWriter(path, {"size": 7}) as writer:
...     writer.write(Batch(np.array([0, 2]), np.array([4, 1]), np.array([0.5, 2.0]), np.array([1.0])))
...     writer.commit()
>>> reader, facts = open_cache(path, {"size": 7})
>>> [batch.indices.tolist() for batch in reader], facts
([[4, 1]], {'rows': 1})
>>> open_cache(path, {"size": 8}) is None
True
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate

from sketchnewton import _native
from sketchnewton.core import archive
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import Any, BinaryIO
from sketchnewton.core.types import Header, np
from sketchnewton.streams.reader import BatchReader
from sketchnewton.streams.source import Source

__all__ = ["CacheWriter", "open_cache"]

_MARK = b"sketchnewton cache 5\n"
_END = b"sketchnewton cache end 5\n"
_ENDING = struct.Struct("<qq")  # where the end begins, its checksum
_LENGTH = struct.Struct("<q")
# Of a block: rows, entries, columns (-1: unknown), first line (-1: unknown), bytes of the tags, which arrays,
# checksum of all this and of the arrays.
_BLOCK = struct.Struct("<qqqqqqq")
_LARGEST_KEY = 1 << 24

_INT32, _FLOAT32, _WEIGHTS, _TAGS, _BASE = 1, 2, 4, 8, 16
_FLAGS = 31
Key = Mapping[str, Any]


class CacheWriter:
    """Writes batches to a file that appears at `path` when `commit` is called, and never otherwise."""

    def __init__(self, path: str, key: Key) -> None:
        self._path = os.path.realpath(path)
        self._temporary = archive.temporary_beside(self._path)
        self._rows = 0
        mode = archive.mode_of(self._path)
        self._file: BinaryIO | None = archive.created(self._temporary, mode)
        text = _key_bytes(key)
        self._file.write(_MARK + _LENGTH.pack(len(text)) + text)

    def write(self, batch: Batch) -> None:
        """Append a batch."""
        if self._file is None:
            raise ValueError("the cache is closed")
        flags, arrays = _packed(batch)
        tags = b"".join(batch.tags) if batch.tags else b""
        columns = -1 if batch.columns is None else batch.columns
        line = -1 if batch.first_line is None else batch.first_line
        entries = int(batch.views.indptr[-1]) - int(batch.views.indptr[0])
        facts = (len(batch), entries, columns, line, len(tags), flags)
        check = _native.checksum(_BLOCK.pack(*facts, 0))
        for numbers in arrays:
            check = _native.checksum(numbers, check)
        self._file.write(_BLOCK.pack(*facts, _native.checksum(tags, check)))
        for numbers in arrays:
            self._file.write(numbers)
        self._file.write(tags)
        self._rows += len(batch)

    def commit(self, facts: Mapping[str, object] | None = None) -> None:
        """The cache is whole: give it its name. `facts` come back from `open_cache`."""
        if self._file is None:
            raise ValueError("the cache is closed")
        text = json.dumps({**(facts or {}), "rows": self._rows}).encode()
        begin = self._file.tell()
        self._file.write(text + _ENDING.pack(begin, _native.checksum(text)) + _END)
        self._file.flush()
        self._file.close()
        self._file = None
        os.replace(self._temporary, self._path)

    def close(self) -> None:
        """Give up what is not committed."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)

    def __enter__(self) -> CacheWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_cache(path: str, key: Key, *, prefetch: bool = True) -> tuple[BatchReader, Header] | None:
    """The batches and the facts of the cache at `path`, if it is whole and has this key.

    None where there is none, or one to rebuild. A file that is no cache at all is a `ParseError`: nobody asked
    to overwrite it.
    """
    try:
        with open(path, "rb") as file:
            ending = _ending(path, file, _key_bytes(key))
    except FileNotFoundError:
        return None
    if ending is None:
        return None
    begin, end, facts = ending
    reader = BatchReader([path], lambda source, _: _Blocks(source, begin, end).batches(), prefetch=prefetch)
    return reader, facts


class _Blocks:
    """The blocks of a cache from its `begin`ning to its `end`."""

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self._source = source
        self._begin = begin
        self._left = end

    def batches(self) -> Iterator[Batch]:
        self._take(self._begin)
        while self._left:
            yield self._batch()

    def _batch(self) -> Batch:
        *facts, check = _BLOCK.unpack(self._take(_BLOCK.size))
        rows, entries, columns, line, tag_bytes, flags = facts
        if min(rows, entries, tag_bytes) < 0 or flags & ~_FLAGS:
            raise self._damaged()
        arrays: list[memoryview] = []
        found = _native.checksum(_BLOCK.pack(*facts, 0))
        for kind, length in _layout(rows, entries, flags):
            size = length * _SIZES[kind]
            if size > self._left:
                raise self._damaged()
            memory = _native.Memory(size)
            with memoryview(memory) as room:
                self._fill(room)
            memory.seal()  # before it is checked: it stays what it is then
            found = _native.checksum(memory, found)
            arrays.append(_cast(memoryview(memory), kind))
        tags = self._take(tag_bytes)
        if _native.checksum(tags, found) != check:
            raise self._damaged()
        indptr, indices, data, labels, *rest = arrays
        try:
            _native.csr_rows(indptr, indices, data)
        except ValueError:  # they do not fit each other
            raise self._damaged() from None
        if indptr[0] != 0 or indptr[-1] != entries:
            raise self._damaged()
        return Batch(
            indptr,
            # Kernels' own types: this thread has the time, the learner's has not.
            _native.widened(indices) if flags & _INT32 else indices,
            _native.widened(data) if flags & _FLOAT32 else data,
            labels,
            weights=rest.pop(0) if flags & _WEIGHTS else None,
            base=rest.pop(0) if flags & _BASE else None,
            tags=_cut(bytes(tags), rest.pop(0)) if flags & _TAGS else None,
            columns=None if columns < 0 else columns,  # for people: learners look at indices
            first_line=None if line < 0 else line,
        )

    def _take(self, size: int) -> bytearray:
        if size > self._left:
            raise self._damaged()
        data = bytearray(size)
        with memoryview(data) as view:
            self._fill(view)
        return data

    def _fill(self, view: memoryview) -> None:
        at = 0
        while at < len(view):
            with view[at:] as free:
                count = self._source.readinto(free)
            if not count:
                raise self._damaged()
            at += count
        self._left -= at

    def _damaged(self) -> ParseError:
        return ParseError(
            self._source.name, None, None, "the cache is damaged: delete it to have it built again"
        )


def _ending(path: str, file: BinaryIO, key: bytes) -> tuple[int, int, Header] | None:
    """Where the blocks begin and end, and the facts; None for a cache to rebuild."""
    mark = file.read(len(_MARK))
    if mark != _MARK:
        empty = not mark and stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # as `mktemp` leaves it
        if empty or mark[: len(_MARK) - 2] == _MARK[:-2]:  # of another version
            return None
        raise ParseError(
            path, None, None, "not a cache of skn, so it is not overwritten: give another --cache"
        )
    length = file.read(_LENGTH.size)
    if len(length) < _LENGTH.size or _LENGTH.unpack(length)[0] != len(key) or file.read(len(key)) != key:
        return None
    begin = file.tell()
    size = file.seek(0, os.SEEK_END)
    tail = _ENDING.size + len(_END)
    if size < begin + tail:
        return None
    file.seek(size - tail)
    last = file.read(tail)
    end, check = _ENDING.unpack(last[: _ENDING.size])
    if last[_ENDING.size :] != _END or not begin <= end <= size - tail:
        return None
    file.seek(end)
    text = file.read(size - tail - end)
    facts = _facts(text) if _native.checksum(text) == check else None
    return None if facts is None else (begin, end, facts)


def _facts(text: bytes) -> Header | None:
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _key_bytes(key: Key) -> bytes:
    # The numbers of blocks are in the byte order of the machine.
    text = json.dumps([sys.byteorder, key], sort_keys=True).encode()
    if len(text) > _LARGEST_KEY:
        raise ValueError("the key of a cache is too long")
    return text


def _packed(batch: Batch) -> tuple[int, list[memoryview]]:
    """The bytes of the arrays as they are stored, as few as hold them exactly, and which they are."""
    flags = 0
    views = batch.views
    if views.indptr[0] != 0 or views.indptr[-1] != len(views.indices):  # a part of another batch
        views = views._replace(indptr=batch.indptr, indices=batch.indices, data=batch.data)
    indices, data = _numbers(views.indices, "q"), _numbers(views.data, "d")
    if (narrow := _native.narrowed(indices)) is not None:
        indices, flags = narrow, flags | _INT32
    if (narrow := _native.narrowed(data)) is not None:
        data, flags = narrow, flags | _FLOAT32
    arrays = [_numbers(views.indptr, "q"), indices, data, _numbers(views.labels, "d")]
    if views.weights is not None:
        arrays, flags = [*arrays, _numbers(views.weights, "d")], flags | _WEIGHTS
    if views.base is not None:
        arrays, flags = [*arrays, _numbers(views.base, "d")], flags | _BASE
    if batch.tags:  # any byte may be in one
        arrays, flags = [*arrays, memoryview(array("q", map(len, batch.tags)))], flags | _TAGS
    return flags, [_cast(numbers, "B") for numbers in arrays]


_SIZES = {kind: struct.calcsize(kind) for kind in "qdif"}


def _layout(rows: int, entries: int, flags: int) -> list[tuple[str, int]]:
    """Kind and length of each array, in the order of the file."""
    layout = [
        ("q", rows + 1),
        ("i" if flags & _INT32 else "q", entries),
        ("f" if flags & _FLOAT32 else "d", entries),
        ("d", rows),
    ]
    layout += [("d", rows)] * (bool(flags & _WEIGHTS) + bool(flags & _BASE))
    return [*layout, ("q", rows)] if flags & _TAGS else layout


def _cut(text: bytes, lengths: memoryview) -> list[bytes]:
    return [text[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]


def _cast(view: memoryview, kind: Any) -> memoryview:
    return view.cast(kind) if len(view) else memoryview(array(kind))  # nothing cannot be cast


def _numbers(values: object, kind: str) -> memoryview:
    """The array's numbers, one after the other, as those of this kind."""
    if isinstance(values, memoryview):  # of a stream's own making
        return values
    return np.ascontiguousarray(values, kind).data
