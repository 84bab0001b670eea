"""Rows in random order: all batches of a stream, kept in memory and dealt out again."""

from __future__ import annotations

from collections.abc import Iterable

from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, Integers, NDArray, np

__all__ = ["concatenated", "random_order", "shuffled"]


def shuffled(batches: Iterable[Batch]) -> list[Batch]:
    """The rows of `batches` in random order, the same order for the same number of rows.

    >>> batch = Batch(np.arange(6), np.arange(5), np.ones(5), np.arange(5.0))
    >>> [part.labels.tolist() for part in shuffled([batch[:3], batch[3:]])]
    [[2.0, 4.0, 1.0], [0.0, 3.0]]
    """
    kept = [batch for batch in batches if len(batch)]
    if not kept:
        return []
    size = max(map(len, kept))
    whole = concatenated(kept)
    del kept
    order = random_order(len(whole))
    return [whole.take(order[begin : begin + size]) for begin in range(0, len(order), size)]


def random_order(count: int) -> Integers:
    """0 to `count` − 1, sorted by a hash (SplitMix64): unlike NumPy's generators, the same in all versions."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.argsort(x ^ (x >> np.uint64(31)), kind="stable")


def concatenated(batches: list[Batch]) -> Batch:
    """The rows of all `batches`, of which there is at least one."""
    lengths = np.concatenate([np.diff(batch.indptr) for batch in batches])
    tags = None
    if any(batch.tags is not None for batch in batches):
        tags = [tag for batch in batches for tag in batch.tags or [b""] * len(batch)]
    return Batch(
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate([batch.indices for batch in batches]),
        np.concatenate([batch.data for batch in batches]),
        np.concatenate([batch.labels for batch in batches]),
        _filled([batch.weights for batch in batches], batches, 1.0),
        tags=tags,
        base=_filled([batch.base for batch in batches], batches, 0.0),
    )


def _filled(columns: list[Floats | None], batches: list[Batch], value: float) -> NDArray[np.float64] | None:
    """The columns as one, `value` where a batch has none; None if all have none."""
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [
            np.full(len(batch), value) if column is None else column
            for column, batch in zip(columns, batches, strict=True)
        ]
    )
