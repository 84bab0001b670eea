"""Rows of Spark as records of a `Model`: columns of Arrow batches, or ML vectors as CSR matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sketchnewton.core.types import Floats, np

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from scipy.sparse import csr_array

__all__ = ["check_columns", "selected", "tables", "vectors"]

VECTOR = "vector"


def check_columns(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse columns that the DataFrame does not have, and DataFrames of Spark Connect."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise ValueError("a DataFrame of Spark Connect cannot broadcast a model: use a classic SparkSession")
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"column {name!r} is missing: the DataFrame has {', '.join(frame.columns)}")


def selected(frame: DataFrame, features: str | None, others: Sequence[str]) -> tuple[DataFrame, bool]:
    """The columns that training or predicting needs, and whether features are one column of ML vectors.

    Without a column of features all columns but `others` are features, each of its own type.
    """
    from pyspark.ml.linalg import VectorUDT

    check_columns(frame, [*others, *([] if features is None else [features])])
    if features is None:
        return frame, False
    if not isinstance(frame.schema[features].dataType, VectorUDT):
        raise ValueError(f"column {features!r} is no column of ML vectors: use VectorAssembler, or no column")
    return frame.select(features, *others), True


def vectors(column: pa.Array | pa.ChunkedArray) -> csr_array:
    """A column of ML vectors, as Arrow has them, as a CSR matrix."""
    from scipy.sparse import csr_array

    struct = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(struct, "storage"):
        struct = struct.storage
    if struct.null_count:
        raise ValueError("a vector of features is missing (null): drop such rows or fill them in")
    kinds = struct.field("type").to_numpy(zero_copy_only=False)
    sparse = kinds == 0
    values, indices = struct.field("values"), struct.field("indices")
    lengths = np.diff(values.offsets.to_numpy().astype(np.int64))
    data = values.flatten().to_numpy(zero_copy_only=False)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    column_of = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)  # of dense rows
    if sparse.any():
        column_of[np.repeat(sparse, lengths)] = indices.flatten().to_numpy(zero_copy_only=False)
    sizes = struct.field("size").to_numpy(zero_copy_only=False)
    width = int(max(np.nan_to_num(sizes.astype(float)).max(initial=0), lengths[~sparse].max(initial=0)))
    return csr_array((data, column_of, indptr), shape=(len(kinds), width))


def tables(batches: Iterable[pa.RecordBatch], rows: int = 8192) -> Iterator[pa.Table]:
    """Arrow batches as tables of at least so many rows but for the last: learning in small ones is slow."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if any(part.num_rows for part in waiting):
        yield pa.Table.from_batches(waiting)


def listed(table: pa.Table, name: str) -> list[object]:
    """A column as a list."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_decimal(column.type):  # classes are numbers then, as in the estimators
        column = column.cast(pa.float64())
    found: list[object] = column.to_pylist()
    return found


def numbers(table: pa.Table, name: str | None) -> Floats | None:
    """A column of numbers; None if there is none."""
    return None if name is None else table.column(name).to_numpy().astype(np.float64)
