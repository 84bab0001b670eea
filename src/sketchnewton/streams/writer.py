"""Batches into files, in every format that can hold them; a file is whole or absent."""

from __future__ import annotations

import itertools
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.formats import WRITABLE
from sketchnewton.core.types import np
from sketchnewton.features.columns import LABELS, TAG, WEIGHT
from sketchnewton.features.names import Names
from sketchnewton.streams.formats import make_writer
from sketchnewton.streams.opening import format_of_name

_LIST = ", ".join(WRITABLE)


def open_writer(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: int | None = None,
    names: Names | None = None,
) -> BatchWriter:
    """A writer of batches to ``path``, in ``format`` or the format of its name; ``-`` is standard output.

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
    return make_writer(chosen, name, columns, names)


class BatchWriter(ABC):
    """Writes batches to one file; see ``open_writer``.

    ``path`` is the file, ``columns`` the number of features where it is known, ``names`` their names.
    """

    format = ""

    def __init__(self, path: str, columns: int | None, names: Names | None) -> None:
        from sketchnewton.streams.output import open_output  # readers of the same module write nothing

        self.path = path
        self.rows = 0
        self._columns = columns
        self._names = names
        self._known_names: list[tuple[bytes, bytes]] = []
        self._known_columns: list[str] = []
        self._stack = ExitStack()
        self._file = self._stack.enter_context(open_output(path))

    def write(self, batch: Batch) -> None:
        """Append rows; ``ValueError`` if the format cannot hold them, ``OSError`` if the disk cannot."""
        self._write(batch)
        self.rows += len(batch)

    def close(self) -> None:
        """Finish the file and put it in its place."""
        self.__exit__(None, None, None)

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._end()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        self._stack.__exit__(kind, value, trace)

    @abstractmethod
    def _write(self, batch: Batch) -> None: ...

    def _end(self) -> None:  # noqa: B027 - most formats have no end
        pass

    def _refuse(self, what: str) -> ValueError:
        others = ", ".join(name for name in WRITABLE if name != self.format)
        return ValueError(f"{self.path}: {self.format} has no place for {what}; another format may: {others}")

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
    """The namespace and the name that a key of the table stands for: see native/text/names.hpp."""
    space = bytearray()
    at = 1
    while at < len(key) and key[at : at + 1] != b"^":
        at += key[at : at + 1] == b"\\"
        space += key[at : at + 1]
        at += 1
    return (bytes(space), key[at + 1 :]) if at < len(key) else (b"", key[1:])


def pairs_of(batch: Batch) -> Iterator[bytes]:
    """`` index:value …`` of each row."""
    text, ends = _native.write_pairs(batch.indptr, batch.indices, np.asarray(batch.data, np.float64))
    start = 0
    for end in ends.tolist():
        yield text[start:end]
        start = end


def short(number: float) -> str:
    """The number in as few characters as give it back."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else repr(number)


def row_fields(batch: Batch) -> Iterator[tuple[float, float, bytes, float]]:
    """Label, weight, tag and base of each row."""
    n = len(batch)
    weights = batch.weights.tolist() if batch.weights is not None else [1.0] * n
    bases = batch.base.tolist() if batch.base is not None else [0.0] * n
    yield from zip(batch.labels.tolist(), weights, batch.tags or [b""] * n, bases, strict=True)


def row_values(batch: Batch) -> Iterator[dict[int, float]]:
    """Value by index of each row; what comes twice is added up."""
    indices, data = batch.indices.tolist(), batch.data.tolist()
    for start, end in itertools.pairwise(batch.indptr.tolist()):
        values: dict[int, float] = {}
        for index, value in zip(indices[start:end], data[start:end], strict=True):
            values[index] = values.get(index, 0.0) + value
        yield values
