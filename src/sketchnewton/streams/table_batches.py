"""Cells of a table become a batch; what is wrong with them is reported as the stream's reader was told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.features.table_rows import Fault, Faults, Report, RowMaker
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.reader import ReadOptions

__all__ = ["row_maker", "table_batches"]


def row_maker(options: ReadOptions) -> RowMaker:
    """What makes rows of a table's cells as the options say; it knows the kinds that need not be found out."""
    return RowMaker(
        options.features,
        options.names,
        options.columns,
        options.known_kinds(),
        options.label_codes,
        labels_wanted=not options.ignore_labels,
        only_labels=options.only_labels,
    )


def table_batches(
    make: Callable[[Report], Batch], rows: int, policy: ErrorPolicy, locate: Callable[[Fault], ParseError]
) -> Iterator[Batch]:
    """The batch that ``make`` makes of so many rows; ``locate`` makes an error of a fault.

    Rows up to the first fault if the stream is to stop there. If bad rows are to be skipped, those without a
    usable label or weight are; a cell that does not fit is missing.
    """
    first: Fault | None = None

    def report(faults: Faults) -> Iterable[int]:
        nonlocal first
        if not policy.skips:
            first = min((*faults.rows, *faults.cells), key=lambda fault: fault.row)
            return range(first.row, rows)
        skipped: dict[int, Fault] = {}
        for fault in sorted(faults.rows, key=lambda fault: fault.row):
            if skipped.setdefault(fault.row, fault) is fault:
                policy.report(locate(fault))
        for fault in sorted(faults.cells, key=lambda fault: fault.row):
            if fault.row not in skipped:
                policy.report_misfit(partial(locate, fault))
        return skipped

    batch = make(report)
    if len(batch):
        yield batch
    if first is not None:
        raise locate(first)
