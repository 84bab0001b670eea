"""Parsed rows in a binary file, so that later passes need not parse the text again.

The file begins with a mark and a *key*, a JSON text that says what was read and how; a cache whose key is another
is stale and is built anew. Then come blocks, one per batch, each with a checksum, and an end that says how many
rows there are. It is written under another name and takes its own when it is whole. Numbers come back as they went
in; indices and values take fewer bytes where nothing is lost by it.

>>> import tempfile, os
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
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sketchnewton import _native, archive
from sketchnewton.streams.batch import Batch, ParseError
from sketchnewton.streams.files import Source
from sketchnewton.streams.reader import BatchReader

__all__ = ["CacheWriter", "open_cache"]

_MARK = b"sketchnewton cache 2\n"
_END = b"sketchnewton cache end 2\n"
_ENDING = struct.Struct("<qq")  # where the end begins, its checksum
_LENGTH = struct.Struct("<q")
# Of a block: rows, entries, columns (-1: unknown), first line (-1: unknown), bytes of the tags, which arrays,
# checksum of all this and of the arrays.
_BLOCK = struct.Struct("<qqqqqqq")
_LARGEST_KEY = 1 << 24

_INT32, _FLOAT32, _WEIGHTS, _TAGS, _BASE = 1, 2, 4, 8, 16
_HEAD = 256  # values looked at before all of them are

Array = npt.NDArray[Any]
Key = Mapping[str, Any]


class CacheWriter:
    """Writes batches to a file that appears at `path` when `commit` is called, and never otherwise."""

    def __init__(self, path: str, key: Key) -> None:
        self._path = os.path.realpath(path)
        self._temporary = archive.temporary_beside(self._path)
        self._rows = 0
        self._file: BinaryIO | None = open(self._temporary, "xb")  # noqa: SIM115 - `close` closes
        text = _key_bytes(key)
        self._file.write(_MARK + _LENGTH.pack(len(text)) + text)

    def write(self, batch: Batch) -> None:
        """Append a batch."""
        if self._file is None:
            raise ValueError("the cache is closed")
        flags, arrays = _packed(batch)
        tags = b"\n".join(batch.tags) if batch.tags else b""
        columns = -1 if batch.columns is None else batch.columns
        line = -1 if batch.first_line is None else batch.first_line
        facts = (len(batch), len(batch.indices), columns, line, len(tags), flags)
        check = _native.checksum(_BLOCK.pack(*facts, 0))
        for array in arrays:
            check = _native.checksum(_bytes_of(array), check)
        self._file.write(_BLOCK.pack(*facts, _native.checksum(tags, check)))
        for array in arrays:
            self._file.write(_bytes_of(array))
        self._file.write(tags)
        self._rows += len(batch)

    def commit(self, facts: Mapping[str, Any] | None = None) -> None:
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


def open_cache(path: str, key: Key, *, prefetch: bool = True) -> tuple[BatchReader, dict[str, Any]] | None:
    """The batches and the facts of the cache at `path`, if it is whole and has this key.

    None where there is none, or one to build anew. A file that is no cache at all is a `ParseError`: nobody asked
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
        if min(rows, entries, tag_bytes) < 0:
            raise self._damaged()
        arrays: list[Array] = []
        found = _native.checksum(_BLOCK.pack(*facts, 0))
        for dtype, length in _layout(rows, entries, flags):
            size = length * np.dtype(dtype).itemsize
            if size > self._left:
                raise self._damaged()
            array = _room(length, dtype)
            self._fill(_bytes_of(array))
            found = _native.checksum(_bytes_of(array), found)
            arrays.append(array)
        tags = self._take(tag_bytes)
        if _native.checksum(tags, found) != check:
            raise self._damaged()
        indptr, indices, data, labels, *rest = arrays
        return Batch(
            indptr,
            _as(np.int64, indices),
            _as(np.float64, data),
            labels,
            weights=rest.pop(0) if flags & _WEIGHTS else None,
            base=rest.pop(0) if flags & _BASE else None,
            tags=bytes(tags).split(b"\n") if flags & _TAGS else None,
            columns=None if columns < 0 else columns,
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


def _ending(path: str, file: BinaryIO, key: bytes) -> tuple[int, int, dict[str, Any]] | None:
    """Where the blocks begin and end, and the facts; None for a cache to build anew."""
    mark = file.read(len(_MARK))
    if mark != _MARK:
        if mark[: len(_MARK) - 2] == _MARK[:-2]:  # of another version
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
    if _native.checksum(text) != check:
        return None
    return begin, end, json.loads(text)


def _key_bytes(key: Key) -> bytes:
    text = json.dumps(key, sort_keys=True).encode()
    if len(text) > _LARGEST_KEY:
        raise ValueError("the key of a cache is too long")
    return text


def _packed(batch: Batch) -> tuple[int, list[Array]]:
    """The arrays as they are stored, in as few bytes as hold them exactly, and which they are."""
    flags = 0
    indices, data = batch.indices, batch.data
    if batch.shape[1] <= 1 << 31:
        indices, flags = indices.astype(np.int32, copy=False), flags | _INT32
    if data.dtype == np.float32 or (_is_float32(data[:_HEAD]) and _is_float32(data)):
        data, flags = data.astype(np.float32, copy=False), flags | _FLOAT32
    arrays: list[Array] = [batch.indptr, indices, data, batch.labels]
    if batch.weights is not None:
        arrays, flags = [*arrays, batch.weights], flags | _WEIGHTS
    if batch.base is not None:
        arrays, flags = [*arrays, batch.base], flags | _BASE
    if batch.tags:
        flags |= _TAGS
    layout = _layout(len(batch), len(batch.indices), flags)
    return flags, [np.ascontiguousarray(a, dtype) for a, (dtype, _) in zip(arrays, layout, strict=True)]


def _is_float32(values: Array) -> bool:
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())


def _layout(rows: int, entries: int, flags: int) -> list[tuple[str, int]]:
    layout = [
        ("<i8", rows + 1),
        ("<i4" if flags & _INT32 else "<i8", entries),
        ("<f4" if flags & _FLOAT32 else "<f8", entries),
        ("<f8", rows),
    ]
    return layout + [("<f8", rows)] * (bool(flags & _WEIGHTS) + bool(flags & _BASE))


def _room(length: int, dtype: npt.DTypeLike) -> Array:
    """An array of any content, in memory that an earlier batch may have had."""
    room: Array = np.asarray(_native.memory(length * np.dtype(dtype).itemsize)).view(dtype)
    return room


def _as(dtype: npt.DTypeLike, array: Array) -> Array:
    """The array as one of the kernels' own types: this thread has the time, the learner's has not."""
    if array.dtype == dtype:
        return array
    wide = _room(len(array), dtype)
    wide[:] = array
    return wide


def _bytes_of(array: Array) -> memoryview:
    return array.view(np.uint8).data
