"""Columns of Arrow as texts, in the one form in which all formats have them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.features.kinds import number_text
from sketchnewton.streams.column_rows import Texts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TEXTS", "import_arrow", "is_text", "text_cells"]

TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
"""Names of Arrow's types of texts."""


def import_arrow(*modules: str) -> ModuleType:
    """The package ``pyarrow``, with some of its modules; says what to install where it is missing."""
    try:
        import pyarrow  # optional, and slow to import

        for module in modules:
            __import__(f"pyarrow.{module}")
    except ImportError:
        raise ModuleNotFoundError(
            "Parquet, Arrow and data frames need the package pyarrow: pip install 'sketchnewton[arrow]'"
        ) from None
    found: ModuleType = pyarrow
    return found


def text_cells(column: pa.Array, *, encode: bool = True) -> Texts:
    """A column's cells as texts; each different one is there once, or need not be if it is one already."""
    arrow = import_arrow()
    if str(column.type) == "null":
        return Texts(np.full(len(column), -1), np.zeros(1, np.int64), np.zeros(0, np.uint8))
    if str(column.type).startswith("dictionary"):
        codes, values = _entries_in_use(column)
    elif str(column.type).endswith("_view"):
        codes, values = _distinct_views(column)
    elif encode or not _is_quickly_text(column.type):
        column = column.dictionary_encode()
        codes, values = _places(column.indices), column.dictionary
    else:
        codes, values = np.arange(len(column)), column
    if values.null_count:
        known = np.append(values.is_valid().to_numpy(zero_copy_only=False), False)
        codes = np.where(known[codes], codes, -1)
    texts = _as_texts(values).cast(arrow.large_binary())
    _, offsets, data = texts.buffers()
    some = slice(texts.offset, texts.offset + len(texts) + 1)
    return Texts(
        codes,
        np.frombuffer(offsets, np.int64)[some] if len(texts) else np.zeros(1, np.int64),
        np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8),
        arrow.types.is_floating(values.type),
    )


def _without_views(column: pa.Array) -> pa.Array:
    """The same texts in a layout that pyarrow's functions know."""
    kind = str(column.type)
    return (
        column.cast("large_binary" if "binary" in kind else "large_string")
        if kind.endswith("_view")
        else column
    )


def _distinct_views(column: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The number of each cell among the views that are different, −1 where there is none; and what these show.

    Many views may show the same long text: it is copied once.
    """
    arrow = import_arrow()
    _, views, *data = column.buffers()
    shown = np.frombuffer(views, np.int64)[2 * column.offset :][: 2 * len(column)].reshape(-1, 2)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    distinct, codes = np.unique(np.where(known[:, None], shown, 0), axis=0, return_inverse=True)
    buffers = [None, arrow.py_buffer(distinct.tobytes()), *data]
    values = _without_views(arrow.Array.from_buffers(column.type, len(distinct), buffers)).dictionary_encode()
    places = _places(values.indices)[codes.reshape(-1)]
    return _in_use(np.where(known, places, -1), values.dictionary)


def _entries_in_use(column: pa.DictionaryArray) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The number of each cell among the entries that are in use, −1 where there is none; and these."""
    return _in_use(_places(column.indices), _without_views(column.dictionary))


def _in_use(codes: npt.NDArray[np.int64], entries: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The same without entries that no cell has."""
    used = np.zeros(len(entries) + 1, bool)
    used[codes] = True
    used[-1] = False  # a cell without an entry
    places = np.cumsum(used) - 1
    places[-1] = -1
    return places[codes], entries.take(import_arrow().array(np.flatnonzero(used)))


def _places(indices: pa.Array) -> npt.NDArray[np.int64]:
    """Which entry of its dictionary each cell is; −1 for none. Polars counts without a sign."""
    places: npt.NDArray[np.int64] = (
        indices.cast(import_arrow().int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    return places


def _is_quickly_text(kind: pa.DataType) -> bool:
    """Texts, and what pyarrow writes as we do."""
    return str(kind) in TEXTS or str(kind).startswith(("timestamp", "date", "int", "uint"))


def _as_texts(values: pa.Array) -> pa.Array:
    """Values in the one form in which all formats have them; texts need not be UTF-8."""
    kind = str(values.type)
    if kind in TEXTS:
        return values
    if kind.startswith("timestamp"):
        if values.type.tz is None:
            return values.cast("string")
        plain = values.cast(kind.partition(",")[0].removesuffix("]") + "]").cast("string")
        return import_arrow("compute").compute.binary_join_element_wise(plain, "Z", "")
    if kind.startswith(("date", "int", "uint", "bool")):
        return values.cast("string")
    if kind.startswith("time"):
        texts = values.cast("string").to_pylist()
        return import_arrow().array(
            [text.rstrip("0").rstrip(".") if text and "." in text else text for text in texts], "string"
        )
    if kind.startswith("decimal"):
        values = values.cast("float64")
    numbers = [None if value is None else number_text(value) for value in values.to_pylist()]
    return import_arrow().array(numbers, "large_binary")


def is_text(kind: pa.DataType) -> bool:
    """Texts, or a dictionary of texts: these are not written out, since a long one may be in every row."""
    return str(kind.value_type if str(kind).startswith("dictionary") else kind) in TEXTS
