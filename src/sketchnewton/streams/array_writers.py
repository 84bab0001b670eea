"""Batches into archives of arrays: SciPy's npz, and Parquet."""

from __future__ import annotations

import tempfile
import zipfile
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sketchnewton.core.batch import Batch
from sketchnewton.features.names import Names
from sketchnewton.streams.formats.arrow import import_arrow
from sketchnewton.streams.writers import BatchWriter

_PIECE = 1 << 20


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
        self._tag_texts: BinaryIO = self._stack.enter_context(_temporary())

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

    def _write_tags(self, member: Any) -> None:
        _write_header(member, (self.rows,), np.dtype(f"S{self._longest_tag}"))
        self._tag_texts.seek(0)
        for _ in range(self.rows):
            size = int.from_bytes(self._tag_texts.read(4), "little")
            member.write(self._tag_texts.read(size).ljust(self._longest_tag, b"\0"))


class _Forward:
    """A file to write to from beginning to end, since a compressed one can do no more."""

    def __init__(self, file: Any) -> None:
        self.write = file.write
        self.flush = file.flush


def _temporary() -> Any:
    return tempfile.TemporaryFile(prefix="skn-")


_DTYPES = {
    "indptr": np.dtype("<i8"),
    "indices": np.dtype("<i8"),
    "data": np.dtype("<f8"),
    "labels": np.dtype("<f8"),
    "weights": np.dtype("<f8"),
}


def _write_header(member: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)


def _copy(source: BinaryIO, target: Any) -> None:
    source.seek(0)
    while piece := source.read(_PIECE):
        target.write(piece)


class ParquetWriter(BatchWriter):
    """Columns ``label``, ``_weight``, ``_tag``, and the features as two lists: ``indices`` and ``values``."""

    format = "parquet"

    def __init__(self, path: str, columns: int | None, names: Names | None) -> None:
        self._arrow = import_arrow("parquet")
        super().__init__(path, columns, names)
        arrow = self._arrow
        self._schema = arrow.schema(
            [
                ("label", arrow.float64()),
                ("_weight", arrow.float64()),
                ("_tag", arrow.binary()),
                ("indices", arrow.list_(arrow.int64())),
                ("values", arrow.list_(arrow.float64())),
            ]
        )
        self._table = self._stack.enter_context(arrow.parquet.ParquetWriter(self._file, self._schema))

    def _write(self, batch: Batch) -> None:
        if batch.base is not None:
            raise self._refuse("base predictions")
        if self._names is not None:
            raise self._refuse("names")
        arrow = self._arrow
        offsets = arrow.array((batch.indptr - batch.indptr[0]).astype(np.int32))
        columns = [
            arrow.array(batch.labels, mask=np.isnan(batch.labels)),
            arrow.array(np.ones(len(batch)) if batch.weights is None else batch.weights),
            arrow.array(batch.tags or [b""] * len(batch), arrow.binary()),
            arrow.ListArray.from_arrays(offsets, arrow.array(batch.indices)),
            arrow.ListArray.from_arrays(offsets, arrow.array(np.asarray(batch.data, np.float64))),
        ]
        self._table.write_batch(arrow.record_batch(columns, schema=self._schema))
