"""The task graph of a training: chains of blocks that learn, and trees of merges, round after round."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeGuard

import dask

from sketchnewton.core.types import Array, ArrayLike, np
from sketchnewton.model import Model, shards
from sketchnewton.sketches.blocks import row_blocks

if TYPE_CHECKING:
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    import pandas as pd
    from dask.delayed import Delayed
    from scipy.sparse import sparray, spmatrix

    Collection: TypeAlias = da.Array | dd.DataFrame | db.Bag
    Column: TypeAlias = da.Array | dd.Series | db.Bag
    Block: TypeAlias = Array | sparray | spmatrix | pd.DataFrame | Sequence[Mapping[str, object]]
    Rows: TypeAlias = tuple[Block, list[object] | Array | None, ArrayLike | None]  # with labels and weights

__all__ = ["Blocks", "blocks_of", "loaded", "shard_count", "trained"]


class Blocks(NamedTuple):
    """Records, labels and weights, block by block, as delayed values; None where there are none."""

    records: Sequence[Delayed]
    labels: Sequence[Delayed | str | None]
    weights: Sequence[Delayed | None]


def is_collection(X: object) -> TypeGuard[Collection]:
    """Whether rows are Dask's, not in memory."""
    return hasattr(X, "dask")


def blocks_of(X: Collection, y: Column | str | None, weights: Column | None) -> Blocks:
    """The blocks of Dask collections, which must be cut alike; `y` may be the name of a column or key of X."""
    records = row_blocks(X)
    return Blocks(
        records,
        [y] * len(records) if y is None or isinstance(y, str) else _column(X, y, len(records), "y"),
        [None] * len(records) if weights is None else _column(X, weights, len(records), "sample_weight"),
    )


def _column(X: Collection, column: Column, count: int, name: str) -> list[Delayed]:
    """The blocks of a column beside X."""
    if not hasattr(column, "dask"):
        raise ValueError(f"{name} is a {type(column).__name__}: must be a Dask collection, as X is")
    if hasattr(column, "numblocks"):
        if column.ndim != 1:
            raise ValueError(f"{name} has {column.ndim} dimensions: must have one")
        if hasattr(X, "numblocks") and column.chunks[0] != X.chunks[0] and column.shape == X.shape[:1]:
            column = column.rechunk((X.chunks[0],))
        parts = list(column.to_delayed().ravel())
    else:
        parts = list(column.to_delayed())
    if len(parts) != count:
        raise ValueError(f"{name} has {len(parts)} blocks and X has {count}: rechunk one like the other")
    return parts


def shard_count(wanted: int | None, blocks: int) -> int:
    """How many shards learn at a time: as asked for, or as many as there are cores."""
    if wanted is not None:
        if wanted < 1:
            raise ValueError(f"shards={wanted} is invalid: must be >= 1")
        return min(wanted, blocks)
    try:
        from distributed import get_client

        cores = sum(get_client().nthreads().values())
    except (ImportError, ValueError):  # another scheduler
        from dask.system import CPU_COUNT

        cores = CPU_COUNT
    return max(1, min(int(cores), blocks))


def trained(base: Model, blocks: Blocks, wanted: int | None, rounds: int) -> Model:
    """The model after all blocks: `rounds` times every shard learns its part of its blocks, and all are merged.

    Before many rounds one task learns the first rows of blocks, as `shards.warm_up_rows` says.
    """
    if rounds < 1:
        raise ValueError(f"rounds={rounds} is invalid: must be >= 1")
    run = uuid.uuid4().hex[:8]
    learn, merge = dask.delayed(_learned, pure=True), dask.delayed(_merged, pure=True)
    count = shard_count(wanted, len(blocks.records))
    state = dask.delayed(base.to_bytes(), pure=True, name=f"model-{run}")
    each = list(zip(*blocks, strict=True))
    first = shards.warm_up_rows(base.learner, max(1, len(each)), rounds)
    asked = min(-(-shards.WARM_UP // first), len(each)) if first else 0  # of many blocks not all
    if asked:
        take, learn_first = dask.delayed(_first_rows, pure=True), dask.delayed(_with_rows, pure=True)
        heads = [take(*each[at], rounds, first, dask_key_name=f"first-{run}-{at}") for at in range(asked)]
        state = learn_first(state, heads, dask_key_name=f"warm_up-{run}")
    for turn in range(rounds):
        states = []
        for shard in range(count):
            own = state
            for block in range(shard, len(blocks.records), count):
                key = f"learn-{run}-{turn}-{block}"  # the same for every run of the task: shown by its first word
                known = first if turn == 0 and block < asked else 0
                own = learn(own, *each[block], turn, rounds, known, dask_key_name=key)
            states.append(own)
        level = 0
        while len(states) > 1:
            groups = [states[at : at + shards.AT_ONCE] for at in range(0, len(states), shards.AT_ONCE)]
            states = [
                merge(group, state, dask_key_name=f"merge-{run}-{turn}-{level}-{at}")
                for at, group in enumerate(groups)
            ]
            level += 1
        state = states[0]
    return Model.from_bytes(state.compute())


@functools.lru_cache(maxsize=4)
def loaded(model: bytes) -> Model:
    """The model of these bytes, which many blocks share; it is not to learn."""
    return Model.from_bytes(model)


def _learned(
    model: bytes,
    records: Block,
    labels: Iterable[object] | None,
    weights: ArrayLike | None,
    turn: int,
    rounds: int,
    known: int,
) -> bytes:
    """The model after a block's part of a round, the first `known` rows of which it has learned before."""
    part = shards.part_of_round(len_of(records), turn, rounds)
    return _with_rows(model, [_rows(records, labels, weights, slice(part.start + known, part.stop))])


def _first_rows(
    records: Block, labels: Iterable[object] | None, weights: ArrayLike | None, rounds: int, count: int
) -> Rows | None:
    """The first rows of a block's part of the first round."""
    part = shards.part_of_round(len_of(records), 0, rounds)
    return _rows(records, labels, weights, slice(0, min(count, part.stop)))


def _rows(
    records: Block, labels: Iterable[object] | None, weights: ArrayLike | None, part: slice
) -> Rows | None:
    """Some rows of a block with labels and weights; None if there are none."""
    if part.start >= part.stop:
        return None
    rest, known = with_labels(rows_of(records, part), labels, part)
    own = None if weights is None else np.ascontiguousarray(np.asarray(weights, np.float64)[part])
    return rest, known, own


def _with_rows(model: bytes, parts: list[Rows | None]) -> bytes:
    rows = [part for part in parts if part is not None]
    return shards.learned(model, rows) if rows else model


def _merged(models: list[bytes], base: bytes) -> bytes:
    return shards.merged(models, base)


def len_of(records: Block) -> int:
    """The number of rows of a block."""
    return int(records.shape[0]) if hasattr(records, "shape") else len(records)


def rows_of(records: Block, part: slice) -> Block:
    """Some rows of a block: an array, a sparse matrix, a DataFrame, or a list of records."""
    if _is_frame(records):
        return records.iloc[part]
    if hasattr(records, "tocsr"):
        return records.tocsr()[part]
    return records[part] if hasattr(records, "shape") else list(records)[part]


def with_labels(
    records: Block, labels: Iterable[object] | None, part: slice = slice(None)
) -> tuple[Block, list[object] | Array | None]:
    """Records without their labels, and the labels; these are of the same rows, or a name of a column or key."""
    if not isinstance(labels, str):
        return records, None if labels is None else _listed(labels)[part]
    if _is_frame(records):
        if labels not in records.columns:
            raise ValueError(
                f"column {labels!r} is missing: there are {', '.join(map(str, records.columns))}"
            )
        return records.drop(columns=[labels]), list(records[labels])
    for record in records:
        if labels not in record:
            raise ValueError(f"a record has no {labels!r}: {str(record)[:80]}")
    rest = [{name: value for name, value in record.items() if name != labels} for record in records]
    return rest, [record[labels] for record in records]


def _is_frame(records: object) -> TypeGuard[pd.DataFrame]:
    return hasattr(records, "iloc")


def _listed(labels: Iterable[object]) -> list[object] | Array:
    return np.asarray(labels) if hasattr(labels, "__array__") else list(labels)
