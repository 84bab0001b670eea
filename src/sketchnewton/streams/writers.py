"""Batches into files, in every format that can hold them; a file is whole or absent."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO

import numpy as np

from sketchnewton import _native
from sketchnewton.core import archive
from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import LABELS, TAG, WEIGHT
from sketchnewton.features.names import Names
from sketchnewton.streams.opening import format_of_name

WRITABLE = ("svmlight", "vw", "csv", "tsv", "jsonl", "npz", "parquet")

_MOST_COLUMNS = 1 << 14  # of a dense table


def open_writer(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: int | None = None,
    names: Names | None = None,
) -> BatchWriter:
    """A writer of batches, in ``format`` or in that which the name says; ``-`` is standard output.

    A name that ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed. CSV and TSV are dense and need to
    know how many ``columns`` there will be. With exact ``names``, VW text, CSV and JSON have the names of the
    features instead of their numbers.

    Use it as ``with open_writer(path) as writer: writer.write(batch)``: the file appears when the block ends,
    and does not if it fails.

    >>> import pathlib, tempfile
    >>> from sketchnewton.streams import open_stream
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.vw").write_text("1 2.5 't| 7:0.25 9\\n")
    >>> with open_writer(folder / "a.jsonl") as writer:
    ...     for batch in open_stream(folder / "a.vw"):
    ...         writer.write(batch)
    >>> print((folder / "a.jsonl").read_text().strip())
    {"label": 1, "_weight": 2.5, "_tag": "t", "7": 0.25, "9": 1}
    """
    name = os.fspath(path)
    chosen = format or format_of_name(name)
    if chosen is None:
        raise ValueError(f"{name}: the name does not say which format to write: must be one of {_LIST}")
    if chosen not in WRITABLE:
        raise ValueError(f"format={chosen!r} cannot be written: must be one of {_LIST}")
    if names is not None and not names.exact:
        raise ValueError("names must be exact: hashes cannot be turned back into all of their names")
    return _WRITERS[chosen](name, columns, names)


_LIST = ", ".join(WRITABLE)


class BatchWriter(ABC):
    """Writes batches to one file; see ``open_writer``."""

    format = ""

    def __init__(self, path: str, columns: int | None, names: Names | None) -> None:
        self.path = path
        self.rows = 0
        self._columns = columns
        self._names = names
        self._known_names: list[tuple[bytes, bytes]] = []
        self._known_columns: list[str] = []
        self._stack = ExitStack()
        self._file = self._stack.enter_context(_output(path))
        self._begun = False

    def write(self, batch: Batch) -> None:
        """Append rows; ``ValueError`` if the format cannot hold them, ``OSError`` if the disk cannot."""
        if not self._begun:
            self._begin(batch)
            self._begun = True
        self._write(batch)
        self.rows += len(batch)

    def close(self) -> None:
        """Finish the file and put it in its place."""
        self.__exit__(None, None, None)

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._end()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        self._stack.__exit__(kind, value, trace)

    def _begin(self, batch: Batch) -> None:  # noqa: B027 - most formats have no beginning
        pass

    @abstractmethod
    def _write(self, batch: Batch) -> None: ...

    def _end(self) -> None:  # noqa: B027 - most formats have no end
        pass

    def _refuse(self, what: str) -> ValueError:
        return ValueError(f"{self.path}: {self.format} has no place for {what}; another format may: {_LIST}")

    def _text(self, text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise self._refuse(f"what is not UTF-8: {text.decode('utf-8', 'backslashreplace')!r}") from None

    def _column_names(self) -> list[str]:
        """The features' names as columns have them: ``space|name``."""
        known = self._known_columns
        for space, name in self._plain_names()[len(known) :]:
            if b"|" in space:
                raise self._refuse(f"the namespace '{self._text(space)}'")
            column = self._text(space + b"|" + name if space or b"|" in name else name)
            if column in (LABELS[0], WEIGHT, TAG):
                raise self._refuse(f"a feature named '{column}'")
            known.append(column)
        return known

    def _plain_names(self) -> list[tuple[bytes, bytes]]:
        """The namespace and the name of each feature, by its index."""
        assert self._names is not None
        if self._names.table.joins:
            raise self._refuse("interactions and n-grams by name")
        known = self._known_names
        known += map(_plain_name, self._names.table.keys(len(known)))
        return known


def _plain_name(key: bytes) -> tuple[bytes, bytes]:
    """The namespace and the name that a key of the table stands for: see native/names.hpp."""
    space = bytearray()
    at = 1
    while at < len(key) and key[at : at + 1] != b"^":
        at += key[at : at + 1] == b"\\"
        space += key[at : at + 1]
        at += 1
    return (bytes(space), key[at + 1 :]) if at < len(key) else (b"", key[1:])


def _pairs(batch: Batch) -> Iterator[bytes]:
    """`` index:value …`` of each row."""
    text, ends = _native.write_pairs(batch.indptr, batch.indices, np.asarray(batch.data, np.float64))
    start = 0
    for end in ends.tolist():
        yield text[start:end]
        start = end


def _short(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else repr(number)


def _row_fields(batch: Batch) -> Iterator[tuple[float, float, bytes, float]]:
    """Label, weight, tag and base of each row."""
    n = len(batch)
    weights = batch.weights.tolist() if batch.weights is not None else [1.0] * n
    bases = batch.base.tolist() if batch.base is not None else [0.0] * n
    yield from zip(batch.labels.tolist(), weights, batch.tags or [b""] * n, bases, strict=True)


def _row_values(batch: Batch) -> Iterator[dict[int, float]]:
    """Value by index of each row; what comes twice is added up."""
    indices, data = batch.indices.tolist(), batch.data.tolist()
    for start, end in itertools.pairwise(batch.indptr.tolist()):
        values: dict[int, float] = {}
        for index, value in zip(indices[start:end], data[start:end], strict=True):
            values[index] = values.get(index, 0.0) + value
        yield values


class _Svmlight(BatchWriter):
    format = "svmlight"

    def _write(self, batch: Batch) -> None:
        for what, there in (
            ("weights", batch.weights is not None),
            ("tags", batch.tags is not None),
            ("base predictions", batch.base is not None),
            ("rows without a label", bool(np.isnan(batch.labels).any())),
            ("names", self._names is not None),
        ):
            if there:
                raise self._refuse(what)
        lines = zip(batch.labels.tolist(), _pairs(batch), strict=True)
        self._file.write(b"".join(b"%b%b\n" % (_short(label).encode(), pairs) for label, pairs in lines))


class _Vw(BatchWriter):
    format = "vw"

    def _write(self, batch: Batch) -> None:
        pairs = _pairs(batch) if self._names is None else self._named(batch)
        lines = []
        for (label, weight, tag, base), features in zip(_row_fields(batch), pairs, strict=True):
            words = [] if math.isnan(label) else [_short(label)]
            if weight != 1.0 or base != 0.0:
                words.append(_short(weight))
            if base != 0.0:
                words.append(_short(base))
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
                text += b" " + name + b":" + _short(value).encode()
            yield text


class _Csv(BatchWriter):
    format = "csv"

    def _begin(self, batch: Batch) -> None:
        width = len(self._column_names()) if self._names is not None else self._columns
        if width is None:
            raise ValueError(f"{self.path}: {self.format} is dense: the number of columns must be known")
        if width > _MOST_COLUMNS:
            raise ValueError(
                f"{self.path}: {self.format} is dense, and {width} columns are too many: "
                f"must be at most {_MOST_COLUMNS}"
            )
        names = self._column_names() if self._names is not None else map(str, range(width))
        self._width = width
        self._weighted, self._tagged = batch.weights is not None, batch.tags is not None
        header = ["label", *["_weight"] * self._weighted, *["_tag"] * self._tagged, *names]
        self._rows([header])

    def _write(self, batch: Batch) -> None:
        if batch.base is not None:
            raise self._refuse("base predictions")
        if (batch.weights is not None and not self._weighted) or (
            batch.tags is not None and not self._tagged
        ):
            raise self._refuse("weights or tags that the first rows did not have")
        largest = int(batch.indices.max(initial=-1))
        if largest >= self._width:
            raise ValueError(f"{self.path}: feature {largest} is beyond the {self._width} columns")
        table = []
        for (label, weight, tag, _), values in zip(_row_fields(batch), _row_values(batch), strict=True):
            cells = [""] * self._width
            for index, value in values.items():
                cells[index] = _short(value)
            start = ["" if math.isnan(label) else _short(label)]
            if self._weighted:
                start.append(_short(weight))
            if self._tagged:
                start.append(self._text(tag))
            table.append(start + cells)
        self._rows(table)

    def _rows(self, rows: list[list[str]]) -> None:
        lines: list[str] = []
        # Blanks at the ends of a column's name would otherwise be taken for layout.
        bare = self._begun or all(cell == cell.strip() for cell in rows[0])
        # The writer quotes what its own line end has in it, so a carriage return must be part of that.
        csv.writer(
            _Lines(lines), lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL if bare else csv.QUOTE_ALL
        ).writerows(rows)
        self._file.write("".join(f"{line[:-2]}\n" for line in lines).encode())


class _Lines:
    def __init__(self, lines: list[str]) -> None:
        self.write = lines.append


class _Tsv(_Csv):
    format = "tsv"

    def _rows(self, rows: list[list[str]]) -> None:
        for row in rows:
            if any(c in cell for cell in row for c in "\t\r\n"):
                raise self._refuse("tabs and line ends within names and tags")
            if row == [""]:
                raise self._refuse("a row of nothing")
        if not self._begun and any(name != name.strip() for name in rows[0]):
            raise self._refuse("blanks at the ends of names")
        self._file.write("".join("\t".join(row) + "\n" for row in rows).encode())


class _JsonLines(BatchWriter):
    format = "jsonl"

    def _write(self, batch: Batch) -> None:
        if batch.base is not None:
            raise self._refuse("base predictions")
        names = None if self._names is None else self._column_names()
        # Where there is a feature whose name may stand for the label, all rows must have one, or none by name.
        doubtful = not set(LABELS).isdisjoint(names or ())
        lines = []
        for (label, weight, tag, _), values in zip(_row_fields(batch), _row_values(batch), strict=True):
            record: dict[str, object] = {}
            if doubtful or not math.isnan(label):
                record["label"] = None if math.isnan(label) else _plain(label)
            if weight != 1.0:
                record["_weight"] = _plain(weight)
            if tag:
                record["_tag"] = self._text(tag)
            for index, value in values.items():
                record[str(index) if names is None else names[index]] = _plain(value)
            lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.write("".join(lines).encode())


def _plain(number: float) -> float | int:
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _npz(path: str, columns: int | None, names: Names | None) -> BatchWriter:
    from sketchnewton.streams.array_writers import NpzWriter

    return NpzWriter(path, columns, names)


def _parquet(path: str, columns: int | None, names: Names | None) -> BatchWriter:
    from sketchnewton.streams.array_writers import ParquetWriter

    return ParquetWriter(path, columns, names)


_WRITERS: dict[str, Callable[[str, int | None, Names | None], BatchWriter]] = {
    "svmlight": _Svmlight,
    "vw": _Vw,
    "csv": _Csv,
    "tsv": _Tsv,
    "jsonl": _JsonLines,
    "npz": _npz,
    "parquet": _parquet,
}


class _Stdout(AbstractContextManager[BinaryIO]):
    def __enter__(self) -> BinaryIO:
        return sys.stdout.buffer

    def __exit__(self, *_: object) -> None:
        sys.stdout.buffer.flush()


def _output(path: str) -> AbstractContextManager[Any]:
    """A new file, compressed if its name says so."""
    if path == "-":
        return _Stdout()
    stack = ExitStack()
    file = stack.enter_context(archive.replacement_of(os.path.realpath(path)))
    ending = os.path.splitext(path.lower())[1]
    return _Opened(stack, stack.enter_context(_compressor(file, ending)) if ending in _COMPRESSED else file)


def _compressor(file: BinaryIO, ending: str) -> Any:
    # Imported only where such a file is written.
    if ending == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if ending == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if ending == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file, "wb")


_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")


class _Opened(AbstractContextManager[Any]):
    def __init__(self, stack: ExitStack, file: Any) -> None:
        self._stack = stack
        self._file = file

    def __enter__(self) -> Any:
        return self._file

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)
