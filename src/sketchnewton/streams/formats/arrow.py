"""Parquet and Arrow tables, read and written by pyarrow (extra ``arrow``)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import TYPE_CHECKING, Any, BinaryIO, cast
from sketchnewton.features.columns import BOOLEAN, CATEGORY, NUMBER
from sketchnewton.features.names import Names
from sketchnewton.streams.advice import advice
from sketchnewton.streams.arrow_limits import CheckedMessages, check_parquet, cuts
from sketchnewton.streams.arrow_nested import flat_piece, flat_schema, is_list, list_cells, structs_of
from sketchnewton.streams.arrow_texts import TEXTS, import_arrow, is_text, text_cells
from sketchnewton.streams.column_rows import (
    Cells,
    ColumnRows,
    Fault,
    Faults,
    Lists,
    Numbers,
    Report,
    Texts,
    column_batches,
)
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.lines import explain
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


def parquet_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``."""

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        arrow = import_arrow("parquet")
        with seekable(source) as file:
            try:
                table = arrow.parquet.ParquetFile(file)
                rows = check_parquet(source.name, table.metadata)
                # A text that comes in many rows is there once.
                texts = _texts(table)
                table = arrow.parquet.ParquetFile(file, metadata=table.metadata, read_dictionary=texts)
                frame = Frame(source.name, table.schema_arrow, options, policy)
                wanted = frame.wanted if options.only_labels else None
                pieces = table.iter_batches(rows, columns=wanted or None, use_threads=False)
                yield from frame.batches(_counted(pieces, source, table.metadata.num_rows))
            except (arrow.ArrowException, OSError) as error:
                raise _damaged(source, "Parquet", error) from None

    return parse


def _texts(table: pa.Table) -> list[str]:
    """The columns of texts, and the texts inside structs and lists by their paths: ``u.a``, ``v.list.element``."""
    fields = {field.name: str(field.type) in TEXTS for field in table.schema_arrow}
    leaves = [table.schema.column(k) for k in range(len(table.schema))]
    inside = [
        leaf.path
        for leaf in leaves
        if leaf.path not in fields
        and leaf.physical_type == "BYTE_ARRAY"
        and leaf.logical_type.type != "DECIMAL"
    ]
    return [*(name for name, text in fields.items() if text), *inside]


def arrow_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``: both Arrow's file format (Feather 2) and its stream format."""

    def parse(source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        arrow = import_arrow("ipc")
        try:
            file = io.BufferedReader(SourceFile(source))
            with_end = _start(source).startswith(b"ARROW1")
            if with_end:  # eight bytes, then a stream, then where its parts are
                file.read(8)
            messages = CheckedMessages(source.name, cast("BinaryIO", file))
            stream = arrow.ipc.open_stream(io.BufferedReader(messages))
            yield from Frame(source.name, stream.schema, options, policy).batches(map(_whole, stream))
            if with_end and not _ends_with(cast("BinaryIO", file), b"ARROW1"):
                raise OSError("its end is missing")
        except (arrow.ArrowException, OSError) as error:
            raise _damaged(source, "Arrow", error) from None

    return parse


def _ends_with(file: BinaryIO, magic: bytes) -> bool:
    last = b""
    while part := file.read(1 << 16):
        last = (last + part)[-len(magic) :]
    return last == magic


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


class Frame:
    """One table: what its columns are, then its rows. A table in memory has no path; its rows are records."""

    def __init__(
        self, path: str | None, schema: pa.Schema, options: ReadOptions, policy: ErrorPolicy
    ) -> None:
        self._path = path
        self._arrow = import_arrow("compute")
        self._maker = ColumnRows(options, in_memory=path is None)
        self._policy = policy
        self._row = 0  # before the next batch
        self._schema_kinds: dict[str, str] = {}
        try:
            structs = structs_of(schema).items()
            self._structs = {name: of for name, of in structs if name not in options.columns.drop}
            self._schema = flat_schema(schema, self._structs)
            self._roles = options.roles(self._schema.names)
            self._check_roles()
            self._sparse = set(self._roles.features) == set(SPARSE) and all(
                str(schema.field(name).type).startswith(("list<", "large_list<")) for name in SPARSE
            )
            if not self._sparse:
                features = self._roles.features
                lists = any(is_list(self._schema.field(name).type) for name in features)
                options.check_known(features, others=lists)
                self._read_schema()
        except ValueError as error:
            raise self._wrong(str(error)) from None

    @property
    def wanted(self) -> list[str]:
        """The columns that are looked at; none if members of objects are among them: then all are read."""
        roles = self._roles
        if self._structs:
            return []
        return [name for name in (roles.label, roles.weight, roles.tag, *roles.features) if name is not None]

    def _check_roles(self) -> None:
        """Refuse objects and lists as labels, weights and tags."""
        for name in (self._roles.label, self._roles.weight, self._roles.tag):
            if name is None:
                continue
            found = self._schema.field(name).type
            if self._structs.get(name):
                raise ValueError(
                    f"column '{name}' is an object: name a member, such as {self._structs[name][0]}"
                )
            if name in self._structs or self._arrow.types.is_nested(found):
                raise ValueError(f"expected numbers or texts in column '{name}', got {found}")

    def _read_schema(self) -> None:
        """The kinds of columns; which of them are to be remembered is known when there are values."""
        for name in self._roles.features:
            found = self._schema.field(name).type
            if is_list(found) and self._kind(found.value_type) != "":
                continue
            kind = self._kind(found)
            if kind == "":
                raise ValueError(
                    f"expected numbers, texts or dates in column '{name}', or lists or an object of these, "
                    f"got {found}: leave it out (--drop {name})"
                )
            if kind is not None:
                self._schema_kinds[name] = kind

    def _kind(self, of: pa.DataType) -> str | None:
        """The kind of a column of this type; None if it has no values, empty if it has others."""
        test = self._arrow.types
        if test.is_dictionary(of):
            of = of.value_type
        if test.is_null(of):
            return None
        if test.is_boolean(of):
            return BOOLEAN
        if test.is_integer(of) or test.is_floating(of) or test.is_decimal(of):
            return NUMBER
        known = str(of) in TEXTS or test.is_date(of) or test.is_timestamp(of) or test.is_time(of)
        return CATEGORY if known else ""

    def batches(self, pieces: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
        """The rows of record batches, some thousands at a time."""
        for whole in pieces:
            piece = flat_piece(whole, self._structs) if self._structs else whole
            for start in range(0, piece.num_rows, ROWS):
                some = piece.slice(start, ROWS)
                for begin, end in cuts(self._path or "table", self._long_columns(some), some.num_rows):
                    part = some.slice(begin, end - begin)
                    make = partial(self._sparse_rows if self._sparse else self._rows, part)
                    yield from column_batches(make, part.num_rows, self._policy, self._located)
                    self._row += part.num_rows

    def _long_columns(self, piece: pa.RecordBatch) -> list[pa.Array]:
        roles = self._roles
        there = set(piece.schema.names)
        names = [name for name in (roles.label, roles.tag, *roles.features) if name in there]
        columns = [piece.column(name) for name in names]
        return [
            column
            for column in columns
            if is_text(column.type) or (is_list(column.type) and not self._sparse)
        ]

    def _rows(self, piece: pa.RecordBatch, report: Report) -> Batch:
        kinds = self._maker.kinds
        features: dict[str, Numbers | Texts | Lists] = {}
        for name in self._roles.features:
            if is_list(self._schema.field(name).type):
                features[name] = list_cells(piece.column(name))
                continue
            if name in self._structs:  # nothing but whether it is there
                features[name] = Numbers(np.full(piece.num_rows, np.nan))
                continue
            schema_kind = self._schema_kinds.get(name)
            kind = kinds.get(name) or schema_kind
            cells = self._cells(piece, name, numbers=kind in (NUMBER, BOOLEAN), encode=False)
            if self._maker.missing_numbers and schema_kind == NUMBER and isinstance(cells, Numbers):
                gone = np.isin(cells.values, self._maker.missing_numbers)
                cells = Numbers(np.where(gone, np.nan, cells.values))
            if name not in kinds and schema_kind is not None and self._maker.has_values(cells):
                kinds[name] = schema_kind
            features[name] = cells
        table = self._around(piece, features)
        for name, members in self._structs.items():
            known = piece.column(name).is_valid().to_numpy(zero_copy_only=False)
            table.absent.update({name: known, **dict.fromkeys(members, ~known)})
        return self._maker.batch(table, report)

    def _around(self, piece: pa.RecordBatch, features: dict[str, Numbers | Texts | Lists]) -> Cells:
        """The features with labels, weights and tags."""
        roles = self._roles
        label = roles.label and (
            roles.label,
            self._cells(piece, roles.label, self._maker.options.label_codes is None),
        )
        weight = roles.weight and (roles.weight, self._cells(piece, roles.weight, numbers=True))
        tags = None
        if roles.tag is not None:
            texts = text_cells(piece.column(roles.tag))
            tags = [texts.distinct[code] if code >= 0 else b"" for code in texts.codes.tolist()]
        return Cells(features, label or None, weight or None, tags, piece.num_rows)

    def _cells(
        self, piece: pa.RecordBatch, name: str, numbers: bool, *, encode: bool = True
    ) -> Numbers | Texts:
        """A column's cells: as numbers, if these are wanted and it has some, else as texts."""
        column = piece.column(name)
        if str(column.type).startswith("dictionary") and not is_text(column.type):
            column = column.dictionary_decode()
        if numbers and self._kind(column.type) in (NUMBER, BOOLEAN):
            floats = column.cast(self._arrow.float64(), safe=False)
            return Numbers(floats.fill_null(np.nan).to_numpy(zero_copy_only=False))
        if self._kind(column.type) == "":
            raise self._wrong(f"expected numbers or texts in column '{name}', got {column.type}")
        return text_cells(column, encode=encode)

    def _sparse_rows(self, piece: pa.RecordBatch, report: Report) -> Batch:
        cells = self._around(piece, {})
        labels, bad_labels = self._maker.labels(cells)
        weights, bad_weights = self._maker.weights(cells)
        indptr, indices = self._lists(piece, "indices")
        others, data = self._lists(piece, "values")
        message = "expected as many 'indices' as 'values', none negative and all finite"
        rows = np.flatnonzero(_unequal(indptr, indices, others, data)).tolist()
        faults = [*bad_labels, *bad_weights, *(Fault(row, "", message, b"") for row in rows)]
        kept = np.ones(piece.num_rows, bool)
        if faults:
            kept[list(report(Faults([], faults)))] = False
            if not kept.all():
                piece = piece.filter(self._arrow.array(kept))
                indptr, indices = self._lists(piece, "indices")
                data = self._lists(piece, "values")[1]
        tags = [tag for tag, stays in zip(cells.tags or (), kept, strict=bool(cells.tags)) if stays]
        batch = Batch(
            indptr,
            indices.astype(np.int64),
            data.astype(np.float64),
            labels[kept],
            None if weights is None else weights[kept],
            tags=tags if any(tags) else None,
        )
        options = self._maker.options
        return options.features.indexed(batch, options.names)

    def _lists(self, piece: pa.RecordBatch, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        column = piece.column(name).fill_null([])
        offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        return offsets - offsets[0], column.flatten().to_numpy(zero_copy_only=False)

    def _located(self, fault: Fault) -> ParseError:
        number = self._row + fault.row + 1
        in_memory = self._path is None
        message = fault.expected
        if fault.column:
            message += f" for '{fault.column}'" if in_memory else f" in column '{fault.column}'"
            message = explain(message, fault.token)
            is_label = fault.column == self._roles.label
            if is_label or fault.column in self._roles.features:
                columns = self._maker.options.columns
                message += advice(fault.expected, fault.column, columns, label=is_label, in_memory=in_memory)
        if in_memory:
            return ParseError(f"record {number}", None, None, message)
        return self._wrong(f"row {number}: {message}")

    def _wrong(self, message: str) -> ParseError:
        return ParseError("table" if self._path is None else self._path, None, None, message)


def _unequal(
    starts: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    others: npt.NDArray[np.int64],
    data: npt.NDArray[Any],
) -> npt.NDArray[np.bool_]:
    """Rows whose lists do not fit each other, or have a number that is not allowed."""
    bad: npt.NDArray[np.bool_] = np.diff(starts) != np.diff(others)
    for offsets, wrong in ((starts, indices < 0), (others, ~np.isfinite(data.astype(np.float64)))):
        for row in np.unique(np.searchsorted(offsets, np.flatnonzero(wrong), side="right") - 1):
            bad[row] = True
    return bad


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
