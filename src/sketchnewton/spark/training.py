"""Rounds on Spark: broadcast the model, let every partition learn its part, merge what comes back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
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
    """The model after all rows of a DataFrame; before many rounds the driver learns the first rows of partitions.

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
            first = 0
            if turn == 0 and cached is not None:
                first = shards.warm_up_rows(base.learner, part.rdd.getNumPartitions(), rounds)
                state = _warmed_up(part, state, columns, vector, first) if first else state
            state = _round(spark, part, state, columns, vector, first)
        return Model.from_bytes(state)
    finally:
        if cached is not None:
            cached.unpersist()


def _warmed_up(frame: DataFrame, state: bytes, columns: Columns, vector: bool, count: int) -> bytes:
    """The model after so many rows of each partition, which the driver learns."""

    def head(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows = [table.slice(0, count) for table in itertools.islice(tables(batches, count), 1)]
        if rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows[0].schema) as stream:
                stream.write_table(rows[0])
            yield _placed(sink.getvalue().to_pybytes())

    import pyarrow as pa

    found = [pa.ipc.open_stream(rows).read_all() for rows in _collected(frame, head)]
    return shards.learned(state, [columns.parts(table, vector) for table in found]) if found else state


def _round(
    spark: SparkSession, frame: DataFrame, state: bytes, columns: Columns, vector: bool, first: int
) -> bytes:
    """One job: every partition learns from the broadcast model; the models are merged in their order.

    The first rows of each partition, which the model knows, are left out.
    """
    sent = spark.sparkContext.broadcast(state)

    def learn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = (columns.parts(table, vector) for table in tables(_behind(batches, first)))
        yield _placed(shards.learned(sent.value, parts))

    try:
        return shards.merged(_collected(frame, learn), state)
    finally:
        sent.unpersist()


def _behind(batches: Iterator[pa.RecordBatch], first: int) -> Iterator[pa.RecordBatch]:
    """All rows but so many first ones."""
    for batch in batches:
        rest = batch.slice(min(first, batch.num_rows))
        first -= batch.num_rows - rest.num_rows
        if rest.num_rows:
            yield rest


def _placed(data: bytes) -> pa.RecordBatch:
    """What a partition gives, with its number."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    place = 0 if context is None else context.partitionId()
    schema = pa.schema([("partition", pa.int32()), ("data", pa.binary())])
    return pa.RecordBatch.from_pylist([{"partition": place, "data": data}], schema)


def _collected(
    frame: DataFrame, give: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[bytes]:
    """What partitions give, in their order."""
    found: Sequence[Row] = frame.mapInArrow(give, "partition int, data binary").collect()
    return [bytes(row["data"]) for row in sorted(found, key=lambda row: row["partition"])]
