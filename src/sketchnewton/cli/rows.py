"""Parts of batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sketchnewton.streams import Batch

__all__ = ["cut", "kept"]


def cut(batch: Batch, begin: int, end: int) -> Batch:
    """Rows `begin` to `end` − 1, as views."""
    if begin == 0 and end >= len(batch):
        return batch
    first, last = int(batch.indptr[begin]), int(batch.indptr[end])
    return dataclasses.replace(
        batch,
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


def kept(batch: Batch, mask: npt.NDArray[np.bool_]) -> Batch:
    """The rows where `mask` is true."""
    lengths = np.diff(batch.indptr)
    entries = np.repeat(mask, lengths)
    return dataclasses.replace(
        batch,
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
