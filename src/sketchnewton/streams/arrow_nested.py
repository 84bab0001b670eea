"""Arrow's structs and lists, which are to mean what JSON's objects and lists do."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.streams.arrow_texts import TEXTS, import_arrow, text_cells
from sketchnewton.streams.column_rows import Lists, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["flat_piece", "flat_schema", "is_list", "list_cells", "structs_of"]


def structs_of(schema: pa.Schema) -> dict[str, list[str]]:
    """The columns of structs, and the columns that their members become: namespaces, ``user|age``."""
    found: dict[str, list[str]] = {}
    for field in schema:
        if str(field.type).startswith("struct<"):
            found[field.name] = [f"{field.name}|{member.name}" for member in field.type]
    return found


def flat_schema(schema: pa.Schema, structs: Collection[str]) -> pa.Schema:
    """The schema of what ``flat_piece`` makes."""
    arrow = import_arrow()
    fields = []
    for field in schema:
        if field.name not in structs:
            fields.append(field)
            continue
        if "|" in field.name:
            raise ValueError(f"expected no | in the name of a column of objects, got '{field.name}'")
        fields.append(arrow.field(field.name, arrow.null()))
        fields.extend(arrow.field(f"{field.name}|{member.name}", member.type) for member in field.type)
    return arrow.schema(fields)


def flat_piece(piece: pa.RecordBatch, structs: Collection[str]) -> pa.RecordBatch:
    """The members of some structs as columns, after one that is null where there is no struct."""
    arrow = import_arrow("compute")
    names: list[str] = []
    columns: list[pa.Array] = []
    for name, column in zip(piece.schema.names, piece.columns, strict=True):
        if name not in structs:
            names.append(name)
            columns.append(column)
            continue
        names += [name, *(f"{name}|{member.name}" for member in column.type)]
        columns += [arrow.compute.if_else(column.is_valid(), True, None), *column.flatten()]
    return arrow.RecordBatch.from_arrays(columns, names)


def is_list(kind: pa.DataType) -> bool:
    """Lists of any layout but views, many of which may show the same items."""
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def list_cells(column: pa.Array) -> Lists:
    """A column's lists."""
    arrow = import_arrow("compute")
    lengths = arrow.compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    items = column.flatten()
    if str(items.type).startswith("dictionary") and str(items.type.value_type) not in TEXTS:
        items = items.dictionary_decode()
    test = arrow.types
    of = items.type
    none = column.is_null().to_numpy(zero_copy_only=False)
    numbers = test.is_integer(of) or test.is_floating(of) or test.is_decimal(of) or test.is_boolean(of)
    if numbers or test.is_null(of):
        floats = items.cast(arrow.float64(), safe=False).fill_null(np.nan)
        return Lists(np.cumsum(lengths, dtype=np.int64), Numbers(floats.to_numpy(zero_copy_only=False)), none)
    return Lists(np.cumsum(lengths, dtype=np.int64), text_cells(items, encode=False), none)
