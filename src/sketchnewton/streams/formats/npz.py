"""NumPy and SciPy archives: a dense ``X``, or what ``scipy.sparse.save_npz`` writes."""

from __future__ import annotations

import errno
import io
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.features.names import Names
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.seekable import seekable
from sketchnewton.streams.source import Source
from sketchnewton.streams.writer import BatchWriter

ROWS = 4096
"""Rows of a batch, at most."""
LABELS = ("labels", "y", "label", "target")
WEIGHTS = ("weights", "sample_weight", "weight")

_PIECE = 1 << 20
_CELLS = 1 << 22  # numbers held at a time, for rows that are very wide
_LONGEST_ROW = 1 << 23
_LONGEST_HEADER = 10_000
_WIDEST = 1 << 14  # bytes of a number or a tag
# What reading a header that somebody has edited may raise: NumPy takes it for Python.
_UNREADABLE = (
    *(ValueError, TypeError, SyntaxError, OverflowError, MemoryError, RecursionError),
    tokenize.TokenError,
)


def npz_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``.

    Arrays: ``data``, ``indices``, ``indptr`` and ``shape`` of a CSR matrix, or ``X``; ``y`` or ``labels`` if rows
    have labels; ``weights`` if they have weights; ``tags`` if they have tags. None is loaded whole.
    """

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        with seekable(source) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    for batch in _Archive(source.name, archive, policy, options).batches():
                        yield options.features.indexed(batch, options.names)
            except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError, OSError) as error:
                if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is an impossible place
                    raise
                raise ParseError(source.name, None, None, f"expected a NumPy archive: {error}") from None

    return parse


def rows_at_a_time(columns: int) -> int:
    """How many rows of a dense array make a batch."""
    return max(1, min(ROWS, _CELLS // max(1, columns)))


def sparse_rows(block: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], ...]:
    """The CSR arrays of dense rows."""
    filled = block != 0.0
    indptr = np.concatenate(([0], np.cumsum(filled.sum(axis=1, dtype=np.int64))))
    return indptr, np.nonzero(filled)[1].astype(np.int64), block[filled]


class _Array:
    """One array of the archive, read in order and in parts."""

    def __init__(self, path: str, name: str, file: IO[bytes]) -> None:
        self._path = path
        self.name = name
        self._file = file
        try:
            self.shape, fortran, self.dtype = _header(file)
        except _UNREADABLE as error:
            self.fail(f"expected an array: {' '.join(str(error).split())[:200]}")
        if self.dtype.hasobject:
            self.fail("expected numbers, got Python objects")
        if self.dtype.kind not in "biufSU" or not 0 < self.dtype.itemsize <= _WIDEST:
            self.fail(f"expected numbers or short texts, got {self.dtype}")
        if fortran and len(self.shape) > 1:
            self.fail("expected rows in order: save numpy.ascontiguousarray of it")

    def fail(self, message: str) -> NoReturn:
        raise ParseError(self._path, None, None, f"array '{self.name}': {message}")

    def numbers(self) -> _Array:
        """The array itself, which must be of numbers."""
        if self.dtype.kind not in "biuf":
            self.fail(f"expected numbers, got {self.dtype}")
        if not self.shape:
            self.fail("expected several numbers, got one")
        return self

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next numbers."""
        size = count * self.dtype.itemsize
        text = self._file.read(size)
        if len(text) != size:
            self.fail("expected more data: the archive is damaged")
        return np.frombuffer(text, self.dtype)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """The shape of an array, whether columns come first, and its type; no more is read than a header may have."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): (2, np.lib.format.read_array_header_1_0),
        (2, 0): (4, np.lib.format.read_array_header_2_0),
    }.get(version)
    if read is None:
        raise ValueError(f"unknown version {version}")
    length = file.read(read[0])
    if int.from_bytes(length, "little") > _LONGEST_HEADER:
        raise ValueError("its description is too long")
    text = file.read(int.from_bytes(length, "little"))
    shape, fortran, dtype = read[1](io.BytesIO(length + text))
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"impossible shape {shape}")
    return shape, fortran, dtype


class _Archive:
    def __init__(
        self, path: str, archive: zipfile.ZipFile, policy: ErrorPolicy, options: ReadOptions
    ) -> None:
        self._path = path
        self._zip = archive
        self._policy = policy
        self._options = options
        self._members = {name.removesuffix(".npy"): name for name in archive.namelist()}

    def _open(self, *names: str) -> _Array | None:
        for name in names:
            if name in self._members:
                info = self._zip.getinfo(self._members[name])
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    self._fail(f"array '{name}': expected no compression, or that of numpy.savez_compressed")
                return _Array(self._path, name, self._zip.open(info))
        return None

    def _fail(self, message: str) -> NoReturn:
        raise ParseError(self._path, None, None, message)

    def batches(self) -> Iterator[Batch]:
        kind = self._open("format")
        if kind is not None:
            name = kind.take(1)[0]
            text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
            if text != "csr":
                self._fail(f"expected a matrix in CSR form, got {text}: save its .tocsr()")
        dense = self._open("X", "x")
        if dense is not None:
            rows = dense.numbers().shape[0] if dense.shape else 0
            if len(dense.shape) != 2:
                dense.fail(f"expected rows and columns, got {len(dense.shape)} dimensions")
            parts = self._dense(dense)
        else:
            found = [self._open(name) for name in ("indptr", "indices", "data")]
            if None in found:
                known = ", ".join(sorted(self._members)) or "none"
                self._fail(f"expected the arrays of a CSR matrix, or 'X'; there are {known}")
            indptr, indices, data = (array.numbers() for array in found if array is not None)
            rows = indptr.shape[0] - 1
            parts = self._sparse(indptr, indices, data)
        yield from self._with_labels(parts, rows)

    def _dense(self, array: _Array) -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
        rows, columns = array.shape
        if rows > _CELLS and not columns:
            array.fail(f"expected columns, got {rows} rows of none")
        if columns > _CELLS:
            array.fail(f"expected at most {_CELLS} columns, got {columns}: save a sparse matrix")
        try:
            self._options.check_numbered(columns)
        except ValueError as error:
            self._fail(str(error))
        step = rows_at_a_time(columns)
        for start in range(0, rows, step):
            count = min(step, rows - start)
            yield sparse_rows(array.take(count * columns).reshape(count, columns).astype(np.float64))

    def _sparse(
        self, offsets: _Array, indices: _Array, data: _Array
    ) -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
        rows = offsets.shape[0] - 1
        last = int(offsets.take(1)[0])
        if last != 0:
            offsets.fail("expected it to begin with 0")
        done = 0
        while done < rows:
            count = min(ROWS, rows - done)
            with np.errstate(invalid="ignore"):  # what is no number is below those before it
                ends = np.concatenate(([last], offsets.take(count).astype(np.int64)))
            if np.any(np.diff(ends) < 0) or ends[-1] > data.shape[0] or ends[-1] > indices.shape[0]:
                offsets.fail("expected numbers that grow, up to the length of 'data'")
            for begin, end in _parts(ends):
                size = int(ends[end] - ends[begin])
                if size > _LONGEST_ROW:
                    offsets.fail(
                        f"row {done + begin + 1}: expected at most {_LONGEST_ROW} entries, got {size}"
                    )
                numbers = indices.take(size).astype(np.int64)
                if np.any(numbers < 0):
                    indices.fail("expected no negative number")
                yield ends[begin : end + 1] - ends[begin], numbers, data.take(size).astype(np.float64)
            last = int(ends[-1])
            done += count

    def _with_labels(self, parts: Iterator[tuple[npt.NDArray[Any], ...]], rows: int) -> Iterator[Batch]:
        labels, weights, tags = self._open(*LABELS), self._open(*WEIGHTS), self._open("tags")
        for array in (labels, weights, tags):
            if array is not None and array.shape not in ((rows,), (rows, 1)):
                array.fail(f"expected {rows} numbers, one per row, got the shape {array.shape}")
        done = 0
        for indptr, indices, data in parts:
            count = len(indptr) - 1
            y = np.full(count, np.nan) if labels is None else labels.numbers().take(count).astype(np.float64)
            w = np.ones(count) if weights is None else weights.numbers().take(count).astype(np.float64)
            names = None if tags is None else [_tag(tag) for tag in tags.take(count).tolist()]
            batch = Batch(indptr, indices, data, y, w, tags=names)
            yield from self._good_rows(batch, done)
            done += count

    def _good_rows(self, batch: Batch, done: int) -> Iterator[Batch]:
        weights = batch.weights if batch.weights is not None else np.ones(len(batch))
        row_of = np.repeat(np.arange(len(batch)), np.diff(batch.indptr))
        bad = np.zeros(len(batch), bool)
        bad[row_of[~np.isfinite(batch.data)]] = True
        bad |= ~(np.isfinite(weights) & (weights >= 0.0))
        bad |= np.isinf(batch.labels)
        start = 0
        for row in [*np.flatnonzero(bad).tolist(), len(batch)]:
            if row > start:
                yield _rows(batch, weights, start, row)
            if row < len(batch):
                message = f"row {done + row + 1}: expected finite numbers, and a weight that is not negative"
                self._policy.report(ParseError(self._path, None, None, message))
            start = row + 1


def _rows(batch: Batch, weights: npt.NDArray[np.float64], start: int, stop: int) -> Batch:
    begin, end = int(batch.indptr[start]), int(batch.indptr[stop])
    part = weights[start:stop]
    tags = batch.tags[start:stop] if batch.tags is not None else None
    return Batch(
        batch.indptr[start : stop + 1] - begin,
        batch.indices[begin:end],
        batch.data[begin:end],
        batch.labels[start:stop],
        part if np.any(part != 1.0) else None,
        tags=tags if tags is not None and any(tags) else None,
    )


def _parts(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Rows that have about `_CELLS` entries together, or one that has more."""
    begin = 0
    while begin < len(ends) - 1:
        end = int(np.searchsorted(ends, ends[begin] + _CELLS, side="right")) - 1
        end = max(begin + 1, end)
        yield begin, end
        begin = end


def _tag(tag: object) -> bytes:
    return tag if isinstance(tag, bytes) else str(tag).encode()


class NpzWriter(BatchWriter):
    """The CSR matrix of ``scipy.sparse.save_npz``, with ``labels``, and ``weights`` and ``tags`` if there are any.

    The arrays grow in temporary files, so memory does not.
    """

    format = "npz"

    def __init__(self, path: str, columns: int | None, names: Names | None) -> None:
        super().__init__(path, columns, names)
        self._parts = {name: self._stack.enter_context(_temporary()) for name in _DTYPES}
        self._parts["indptr"].write(bytes(8))
        self._count = 0
        self._weighted = False
        self._longest_tag = 0
        self._tag_texts: IO[bytes] = self._stack.enter_context(_temporary())

    def _write(self, batch: Batch) -> None:
        if batch.base is not None:
            raise self._refuse("base predictions")
        if self._names is not None:
            raise self._refuse("names")
        self._append("indptr", batch.indptr[1:] - batch.indptr[0] + self._count)
        self._append("indices", batch.indices)
        self._append("data", batch.data)
        self._append("labels", batch.labels)
        self._append("weights", np.ones(len(batch)) if batch.weights is None else batch.weights)
        self._weighted |= batch.weights is not None
        for tag in batch.tags or [b""] * len(batch):
            if b"\0" in tag:
                raise self._refuse("tags with a zero byte")
            self._longest_tag = max(self._longest_tag, len(tag))
            self._tag_texts.write(len(tag).to_bytes(4, "little") + tag)
        self._count += len(batch.indices)
        if len(batch.indices):
            self._columns = max(self._columns or 0, int(batch.indices.max()) + 1)

    def _append(self, name: str, array: npt.NDArray[Any]) -> None:
        self._parts[name].write(np.ascontiguousarray(array, _DTYPES[name]).data)

    def _end(self) -> None:
        lengths = {
            "indptr": self.rows + 1,
            "indices": self._count,
            "data": self._count,
            "labels": self.rows,
            "weights": self.rows,
        }
        target: Any = _Forward(self._file)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for name, array in (
                ("format", np.array(b"csr")),
                ("shape", np.array([self.rows, self._columns or 0], np.int64)),
            ):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array)
            for name, length in lengths.items():
                if name != "weights" or self._weighted:
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_header(member, (length,), _DTYPES[name])
                        _copy(self._parts[name], member)
            if self._longest_tag:
                with archive.open("tags.npy", "w", force_zip64=True) as member:
                    self._write_tags(member)

    def _write_tags(self, member: IO[bytes]) -> None:
        _write_header(member, (self.rows,), np.dtype(f"S{self._longest_tag}"))
        self._tag_texts.seek(0)
        for _ in range(self.rows):
            size = int.from_bytes(self._tag_texts.read(4), "little")
            member.write(self._tag_texts.read(size).ljust(self._longest_tag, b"\0"))


class _Forward:
    """A file to write to from beginning to end, since a compressed one can do no more."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write
        self.flush = file.flush


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="skn-")


_DTYPES = {
    "indptr": np.dtype("<i8"),
    "indices": np.dtype("<i8"),
    "data": np.dtype("<f8"),
    "labels": np.dtype("<f8"),
    "weights": np.dtype("<f8"),
}


def _write_header(member: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    source.seek(0)
    while piece := source.read(_PIECE):
        target.write(piece)


PARSERS = {"npz": npz_parser}
WRITERS = {"npz": NpzWriter}
