"""Rows that compiled parsers make of tables' cells."""

from __future__ import annotations

import math

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import NUMBER
from sketchnewton.features.kinds import (
    EXPECTED,
    MISSING_NAME,
    Cell,
    Misfit,
    category,
    expected_class,
    missing_texts,
    parse_number,
)
from sketchnewton.streams.reader import ReadOptions

__all__ = ["MISSING_CELL", "finished", "label_code", "table_rows", "weight_number"]

MISSING_CELL: Cell = [(MISSING_NAME, 1.0)]


def table_rows(options: ReadOptions) -> _native.TableRows:
    """No rows yet."""
    labels = "ignored" if options.ignore_labels else "numbers" if options.label_codes is None else "codes"
    return _native.TableRows(
        options.features.mask,
        None if options.names is None else options.names.table,
        options.features.expands,
        sorted(missing_texts(options.columns.missing) - {b""}),
        labels,
    )


def finished(rows: _native.TableRows, options: ReadOptions, first_line: int | None) -> Batch:
    """The rows as a batch; none are left."""
    indptr, indices, data, labels, weights, tags, spaces, numbers, entries = rows.take()
    batch = Batch(indptr, indices, data, labels, weights, first_line=first_line, tags=tags)
    if not options.features.expands:
        return batch
    return options.features.expanded(batch, spaces, entries, options.names, numbers)


def label_code(text: bytes, options: ReadOptions) -> float:
    """The number that stands for a label which is not missing; ``Misfit`` if there is none."""
    if options.label_codes is None:
        return parse_number(text)
    found = options.label_codes.get(category(text))
    if found is None:
        raise Misfit(expected_class(options.label_codes))
    return found


def weight_number(text: bytes) -> float:
    """A weight; ``Misfit`` if it is none."""
    value = parse_number(text) if text.strip() else math.nan
    if math.isnan(value):
        raise Misfit(EXPECTED[NUMBER])
    if value < 0.0:
        raise Misfit("expected a non-negative number")
    return value
