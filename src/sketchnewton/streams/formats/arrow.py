"""Parquet and Arrow tables, read and written by pyarrow (extra ``arrow``)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.types import Floats
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.table_rows import NUMBER, TEXT, Numbers, Roles, RowMaker, Texts
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.seekable import SourceFile, seekable
from sketchnewton.streams.source import Source
from sketchnewton.streams.writer import BatchWriter

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 8192
"""Rows of a batch, at most."""
SPARSE = ("indices", "values")
"""Two columns of lists: a row's features by number, as ``open_writer`` writes them."""

_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def import_arrow(*modules: str) -> ModuleType:
    """The package ``pyarrow``, with some of its modules; says what to install where it is missing."""
    try:
        import pyarrow  # optional, and slow to import

        for module in modules:
            __import__(f"pyarrow.{module}")
    except ImportError:
        raise ModuleNotFoundError(
            "CSV, Parquet, Arrow and data frames need the package pyarrow: pip install 'sketchnewton[arrow]'"
        ) from None
    found: ModuleType = pyarrow
    return found


def parquet_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``."""

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        arrow = import_arrow("parquet")
        with seekable(source) as file:
            try:
                table = arrow.parquet.ParquetFile(file)
                frame = Frame(source.name, table.schema_arrow, options, policy)
                pieces = table.iter_batches(ROWS, use_threads=False)
                yield from frame.batches(_counted(pieces, source, table.metadata.num_rows))
            except (arrow.ArrowException, OSError) as error:
                raise _damaged(source, "Parquet", error) from None

    return parse


def arrow_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``: both Arrow's file format (Feather 2) and its stream format."""

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        arrow = import_arrow("ipc")
        try:
            if not _start(source).startswith(b"ARROW1"):
                stream = arrow.ipc.open_stream(io.BufferedReader(SourceFile(source)))
                yield from Frame(source.name, stream.schema, options, policy).batches(map(_whole, stream))
                return
            with seekable(source) as file:
                table = arrow.ipc.open_file(file)
                pieces = map(_whole, map(table.get_batch, range(table.num_record_batches)))
                yield from Frame(source.name, table.schema, options, policy).batches(pieces)
        except (arrow.ArrowException, OSError) as error:
            raise _damaged(source, "Arrow", error) from None

    return parse


def _start(source: Source) -> bytes:
    if source.plain_file is None:
        return source.first_line(8)
    with open(source.plain_file, "rb") as file:
        return file.read(8)


def _counted(pieces: Iterable[pa.RecordBatch], source: Source, rows: int) -> Iterator[pa.RecordBatch]:
    """The same; the source of so many rows knows how far the reader is, if it is read where it lies."""
    plain = source.plain_file is not None
    done = 0
    for piece in pieces:
        yield piece
        done += piece.num_rows
        if plain and source.size is not None:
            source.advance(source.size * done // rows)


def _whole(piece: pa.RecordBatch) -> pa.RecordBatch:
    """The record batch, looked over: what a damaged file says of its own layout, pyarrow would follow anywhere."""
    piece.validate(full=True)
    return piece


def _damaged(source: Source, kind: str, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return error
    reason = (str(error).splitlines() or ["invalid data"])[0]
    return ParseError(source.name, None, None, f"expected {kind} data: {reason}")


def text_column(column: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """Each cell's number among the distinct ones, −1 where there is none; and those."""
    encoded = column.dictionary_encode()
    if hasattr(encoded, "num_chunks"):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.cast("binary").to_pylist()  # which need not be UTF-8


class Frame:
    """One table: what its columns are, then its rows. A table in memory has no path; its rows are records."""

    def __init__(
        self, path: str | None, schema: pa.Schema, options: ReadOptions, policy: ErrorPolicy
    ) -> None:
        self._path = path
        self._arrow = import_arrow()
        self._maker = RowMaker(options.features, options.names, options.types)
        self._policy = policy
        self._row = 0  # before the next batch
        self._schema = schema
        try:
            self._roles = Roles.of(schema.names, options.columns)
            self._sparse = set(self._roles.features) == set(SPARSE) and all(
                str(schema.field(name).type).startswith(("list", "large_list")) for name in SPARSE
            )
            if not self._sparse:
                self._find_types(options.columns)
        except ValueError as error:
            raise self._wrong(str(error)) from None

    def _find_types(self, columns: Columns) -> None:
        types = self._maker.types
        types.update({name: kind for name, kind in columns.types if name not in types})
        types.update(dict.fromkeys(columns.categorical, TEXT))
        is_type = self._arrow.types
        for name in self._roles.features:
            kind = self._schema.field(name).type
            if is_type.is_dictionary(kind):
                kind = kind.value_type
            text = str(kind) in _TEXTS
            number = any(
                test(kind)
                for test in (
                    is_type.is_integer,
                    is_type.is_floating,
                    is_type.is_boolean,
                    is_type.is_decimal,
                    is_type.is_null,
                )
            )
            if name in types:
                continue
            if not (text or number):
                other = "" if is_type.is_nested(kind) else f" or take it as text (--categorical {name})"
                raise ValueError(
                    f"expected numbers or texts in column '{name}', got {kind}: "
                    f"leave it out (--drop {name}){other}"
                )
            types[name] = TEXT if text else NUMBER

    def batches(self, pieces: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
        """The rows of record batches, some thousands at a time."""
        for piece in pieces:
            for start in range(0, piece.num_rows, ROWS):
                part = piece.slice(start, ROWS)
                yield from self._good_rows(part)
                self._row += part.num_rows

    def _good_rows(self, piece: pa.RecordBatch) -> Iterator[Batch]:
        numbers = {name: self._numbers(piece, name) for name in self._numeric()}
        bad = np.zeros(piece.num_rows, bool)
        for name, (values, null) in numbers.items():
            bad |= ~np.isfinite(values) & ~null
            if name == self._roles.weight:
                bad |= null | (values < 0.0)
        if self._sparse:
            bad |= self._bad_lists(piece)
        start = 0
        for row in [*np.flatnonzero(bad).tolist(), piece.num_rows]:
            if row > start:
                yield self._batch(piece.slice(start, row - start), numbers, slice(start, row))
            if row < piece.num_rows:
                self._policy.report(self._mistake(piece, numbers, row))
            start = row + 1

    def _numeric(self) -> list[str]:
        roles = self._roles
        features = [] if self._sparse else [n for n in roles.features if self._maker.types[n] == NUMBER]
        return [name for name in (roles.label, roles.weight, *features) if name is not None]

    def _numbers(self, piece: pa.RecordBatch, name: str) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """A column's values, and where there is none."""
        column = _decoded(piece.column(name))
        null = column.is_null().to_numpy(zero_copy_only=False)
        try:
            if self._arrow.types.is_null(column.type):
                return np.full(len(column), np.nan), null
            floats = column.cast(self._arrow.float64(), safe=False)
        except (self._arrow.ArrowInvalid, self._arrow.ArrowNotImplementedError):
            raise self._wrong(f"expected numbers in column '{name}', got {column.type}") from None
        return floats.fill_null(np.nan).to_numpy(zero_copy_only=False), null

    def _bad_lists(self, piece: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Rows whose lists do not fit each other, or have a number that is not allowed."""
        (starts, indices), (others, data) = self._lists(piece, "indices"), self._lists(piece, "values")
        bad: npt.NDArray[np.bool_] = np.diff(starts) != np.diff(others)
        for offsets, wrong in ((starts, indices < 0), (others, ~np.isfinite(data.astype(np.float64)))):
            for row in np.unique(np.searchsorted(offsets, np.flatnonzero(wrong), side="right") - 1):
                bad[row] = True
        return bad

    def _lists(self, piece: pa.RecordBatch, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        column = piece.column(name).fill_null([])
        offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        return offsets - offsets[0], column.flatten().to_numpy(zero_copy_only=False)

    def _batch(
        self, piece: pa.RecordBatch, numbers: dict[str, tuple[Floats, npt.NDArray[np.bool_]]], part: slice
    ) -> Batch:
        roles = self._roles
        labels = numbers[roles.label][0][part] if roles.label else np.full(piece.num_rows, np.nan)
        weights = numbers[roles.weight][0][part] if roles.weight else None
        tags = None
        if roles.tag is not None:
            codes, distinct = self._texts(piece, roles.tag)
            tags = [distinct[code] if code >= 0 else b"" for code in codes.tolist()]
            tags = tags if any(tags) else None
        if self._sparse:
            indptr, indices = self._lists(piece, "indices")
            data = self._lists(piece, "values")[1].astype(np.float64)
            if weights is not None and not np.any(weights != 1.0):
                weights = None
            batch = Batch(indptr, indices.astype(np.int64), data, labels, weights, tags=tags)
            return self._maker.features.indexed(batch, self._maker.names)
        cells: dict[str, Numbers | Texts] = {}
        for name in roles.features:
            if name in numbers:
                cells[name] = Numbers(numbers[name][0][part])
            else:
                cells[name] = Texts(*self._texts(piece, name))
        return self._maker.batch(cells, labels, weights, tags)

    def _texts(self, piece: pa.RecordBatch, name: str) -> tuple[npt.NDArray[np.int64], list[bytes]]:
        column = _decoded(piece.column(name))
        bytes_already = "binary" in str(column.type)
        return text_column(column.cast(self._arrow.binary() if bytes_already else self._arrow.string()))

    def _mistake(
        self, piece: pa.RecordBatch, numbers: dict[str, tuple[Floats, npt.NDArray[np.bool_]]], row: int
    ) -> ParseError:
        number = self._row + row + 1
        for name, (values, null) in numbers.items():
            value = float(values[row])
            weight = name == self._roles.weight
            if weight and (null[row] or value < 0.0):
                expected = "expected a non-negative number"
            elif not null[row] and not np.isfinite(value):
                expected = "expected a finite number"
            else:
                continue
            got = "nothing" if null[row] else f"'{value:g}'"
            if self._path is None:
                return ParseError(f"record {number}", None, None, f"{expected} for '{name}', got {got}")
            return self._wrong(f"row {number}: {expected} in column '{name}', got {got}")
        message = "expected as many 'indices' as 'values', none negative and all finite"
        if self._path is None:
            return ParseError(f"record {number}", None, None, message)
        return self._wrong(f"row {number}: {message}")

    def _wrong(self, message: str) -> ParseError:
        return ParseError("table" if self._path is None else self._path, None, None, message)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if str(column.type).startswith("dictionary") else column


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


PARSERS = {"parquet": parquet_parser, "arrow": arrow_parser}
WRITERS = {"parquet": ParquetWriter}
