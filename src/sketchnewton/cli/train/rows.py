"""Parts of batches."""

from __future__ import annotations

from collections.abc import Iterator

from sketchnewton.evaluation import ProgressiveScore
from sketchnewton.streams import Batch

__all__ = ["cut_for_reports"]


def cut_for_reports(batches: Iterator[Batch], score: ProgressiveScore) -> Iterator[Batch]:
    """The same rows, cut after the first 1, 2, 4, 8, … that `score` has seen."""
    for batch in batches:
        begin = 0
        while begin < len(batch):
            end = min(len(batch), begin + (1 << score.rows.bit_length()) - score.rows)
            yield batch[begin:end]
            begin = end
