"""Rounds on Spark: broadcast the model, let every partition learn its part, merge what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sketchnewton.model import Model, shards
from sketchnewton.spark.records import listed, numbers, selected, tables, vectors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession
    from scipy.sparse import csr_array

    from sketchnewton.core.types import Floats

__all__ = ["Columns", "trained"]

_ORDER = "_skn_order"


class Columns(NamedTuple):
    """Which columns are features, label and weight; no column of features: all others are."""

    features: str | None
    label: str
    weight: str | None

    def parts(
        self, table: pa.Table, vector: bool
    ) -> tuple[pa.Table | csr_array, list[object], Floats | None]:
        """Records, labels and weights of an Arrow table."""
        labels, weights = listed(table, self.label), numbers(table, self.weight)
        if vector:
            return vectors(table.column(self.features)), labels, weights
        others = [name for name in (self.label, self.weight) if name is not None]
        return table.drop_columns(others), labels, weights


def trained(
    frame: DataFrame, base: Model, columns: Columns, *, rounds: int, partitions: int | None, seed: int | None
) -> Model:
    """The model after all rows of a DataFrame.

    With a `seed` rows are put into a random order first: rows that come ordered by their label, as they do from
    `randomSplit` and many tables, leave every partition with one class.
    """
    from pyspark.sql import functions as F

    others = [name for name in (columns.label, columns.weight) if name is not None]
    frame, vector = selected(frame, columns.features, others)
    spark = frame.sparkSession
    count = partitions or spark.sparkContext.defaultParallelism
    cached = None
    if seed is not None or rounds > 1:
        order = F.rand(seed) if seed is not None else F.monotonically_increasing_id() % 997 / 997
        frame = frame.withColumn(_ORDER, order)
        if seed is not None:
            frame = frame.repartition(count, _ORDER).sortWithinPartitions(_ORDER)
        elif partitions is not None:
            frame = frame.coalesce(count)
        cached = frame = frame.persist()
    elif partitions is not None:
        frame = frame.coalesce(count)
    try:
        state = base.to_bytes()
        for turn in range(rounds):
            part = frame
            if cached is not None:
                part = frame.filter((F.col(_ORDER) >= turn / rounds) & (F.col(_ORDER) < (turn + 1) / rounds))
                part = part.drop(_ORDER)
            state = _round(spark, part, state, columns, vector)
        return Model.from_bytes(state)
    finally:
        if cached is not None:
            cached.unpersist()


def _round(spark: SparkSession, frame: DataFrame, state: bytes, columns: Columns, vector: bool) -> bytes:
    """One job: every partition learns from the broadcast model; the models are merged in their order."""
    sent = spark.sparkContext.broadcast(state)

    def learn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        parts = (columns.parts(table, vector) for table in tables(batches))
        model = shards.learned(sent.value, parts)
        context = TaskContext.get()
        place = 0 if context is None else context.partitionId()
        schema = pa.schema([("partition", pa.int32()), ("model", pa.binary())])
        yield pa.RecordBatch.from_pylist([{"partition": place, "model": model}], schema)

    try:
        found = frame.mapInArrow(learn, "partition int, model binary").collect()
    finally:
        sent.unpersist()
    ordered: Sequence[Row] = sorted(found, key=lambda row: row["partition"])
    return shards.merged([bytes(row["model"]) for row in ordered], state)
