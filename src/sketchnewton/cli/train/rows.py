"""Parts of batches."""

from __future__ import annotations

from collections.abc import Iterator

from sketchnewton.core.types import NDArray, np
from sketchnewton.evaluation import ProgressiveScore
from sketchnewton.streams import Batch

__all__ = ["cut", "cut_for_reports", "kept"]


def cut(batch: Batch, begin: int, end: int) -> Batch:
    """Rows `begin` to `end` − 1, as views."""
    if begin == 0 and end >= len(batch):
        return batch
    first, last = int(batch.indptr[begin]), int(batch.indptr[end])
    return batch.replace(
        indptr=batch.indptr[begin : end + 1] - first,
        indices=batch.indices[first:last],
        data=batch.data[first:last],
        labels=batch.labels[begin:end],
        weights=None if batch.weights is None else batch.weights[begin:end],
        tags=None if batch.tags is None else batch.tags[begin:end],
        base=None if batch.base is None else batch.base[begin:end],
        columns=None,
        first_line=None,
    )


def kept(batch: Batch, mask: NDArray[np.bool_]) -> Batch:
    """The rows where `mask` is true."""
    lengths = np.diff(batch.indptr)
    entries = np.repeat(mask, lengths)
    return batch.replace(
        indptr=np.concatenate(([0], np.cumsum(lengths[mask]))),
        indices=batch.indices[entries],
        data=batch.data[entries],
        labels=batch.labels[mask],
        weights=None if batch.weights is None else batch.weights[mask],
        tags=None
        if batch.tags is None
        else [tag for tag, stays in zip(batch.tags, mask, strict=True) if stays],
        base=None if batch.base is None else batch.base[mask],
        columns=None,
        first_line=None,
    )


def cut_for_reports(batches: Iterator[Batch], score: ProgressiveScore) -> Iterator[Batch]:
    """The same rows, cut after the first 1, 2, 4, 8, … that `score` has seen."""
    for batch in batches:
        begin = 0
        while begin < len(batch):
            end = min(len(batch), begin + (1 << score.rows.bit_length()) - score.rows)
            yield cut(batch, begin, end)
            begin = end
