"""Rows that compiled code makes of columns: whatever the layout of texts, and nothing beyond the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sketchnewton import _native
from sketchnewton.core.batch import ParseError
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.streams import open_stream
from sketchnewton.streams.arrow_texts import text_cells
from sketchnewton.streams.records import read_records
from tests.streams.format_support import rows_of

INTEGERS = np.array([0, 1], np.int64)
OFFSETS = np.array([0, 2, 4], np.int64)
LETTERS = np.frombuffer(b"abcd", np.uint8)


@pytest.mark.parametrize(
    ("codes", "offsets", "data"),
    [
        (np.array([0, 2]), OFFSETS, LETTERS),  # a text that is not there
        (INTEGERS, np.array([0, 3, 2]), LETTERS),  # texts that end before they begin
        (INTEGERS, np.array([-1, 2, 4]), LETTERS),
        (INTEGERS, OFFSETS, LETTERS[:3]),  # beyond the data
        (INTEGERS, np.zeros(0, np.int64), LETTERS),  # no texts at all
    ],
)
def test_columns_that_point_elsewhere_are_refused(codes: Any, offsets: Any, data: Any) -> None:
    rows = _native.TableRows((1 << 18) - 1, None, False, [b"NA"], "numbers")
    rows.set_kind(rows.add_column(b"c", 0), "category")
    columns = _native.TableColumns(rows)
    with pytest.raises(ValueError, match="a text beyond the data"):
        columns.add_texts(rows, 0, codes, offsets, data)
    with pytest.raises(IndexError, match="no such column"):
        columns.add_texts(rows, 1, INTEGERS, OFFSETS, LETTERS)
    assert columns.add_texts(rows, 0, INTEGERS, OFFSETS, LETTERS) == []
    with pytest.raises(IndexError, match="no such text"):
        columns.leave_out(2)
    for labels, kept in ((np.zeros(3), None), (np.zeros(2), np.ones(1, bool))):
        with pytest.raises(ValueError, match="columns of different lengths"):
            columns.add_rows(rows, labels, None, None, kept)
    columns.add_rows(rows, np.zeros(2), None, None, np.array([True, False]))
    assert [len(part) for part in rows.take()[:4]] == [2, 1, 1, 1]


def test_texts_in_other_layouts_are_the_same(tmp_path: Path) -> None:
    """Dictionaries with unused and missing entries, views, large offsets, slices: one table."""
    texts = ["Rome", None, "NA", "2024-01-31 00:00:00", "7.0", "Rome", "Łódź", "unused"]
    plain = pa.array(texts)
    entries = pa.array(["never", "Rome", "NA", "2024-01-31 00:00:00", "7.0", "Łódź", None, "unused"])
    codes = pa.array([1, 6, 2, 3, 4, 1, 5, 7], pa.int8())
    layouts = {
        "plain": plain,
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "binary": plain.cast(pa.binary()),
        "dictionary": pa.DictionaryArray.from_arrays(codes, entries),
        "large dictionary": pa.DictionaryArray.from_arrays(codes, entries.cast(pa.large_string())),
    }
    kinds: tuple[Columns, ...] = (Columns(), Columns(text=("c:2",)), Columns(drop=("n",)))
    numbers = pa.array([1.5, 0.0, None, float("nan"), 1e10, -2.0, 3.0, 4.0])
    for columns in kinds:
        for names in (None, "exact"):
            read = {}
            for layout, column in layouts.items():
                table = pa.table({"y": [1.0] * 8, "n": numbers, "c": column}).slice(1, 6)
                known = Names(exact=True) if names else None
                read[layout] = rows_of(list(read_records(table, columns=columns, names=known)))
            assert all(rows == read["plain"] for rows in read.values()), read
            assert read["plain"]


def test_cells_that_do_not_fit_are_told_each_time(tmp_path: Path) -> None:
    """What is wrong with a text is not remembered as an answer: it is counted in every row that has it."""
    rows = 20_000  # of several batches
    table = pa.table({"y": [1.0] * rows, "price": (["1.5", "cheap"] * rows)[:rows]})
    pq.write_table(table, tmp_path / "t.parquet")
    columns = Columns(numeric=("price",))
    reader = open_stream(tmp_path / "t.parquet", columns=columns, on_error="skip")
    assert sum(len(batch) for batch in reader) == rows
    assert reader.misfits == rows // 2
    with pytest.raises(ParseError, match="row 2: expected a number in column 'price', got 'cheap'"):
        list(open_stream(tmp_path / "t.parquet", columns=columns))


def test_views_of_texts_are_texts() -> None:
    """Long ones and short ones, some of them missing, the same text in several places, and a part of an array."""
    words = ["a", None, "b", "word " * 9, "a", "word " * 9, "", None, "last"]
    for part in (slice(0, 9), slice(1, 8), slice(7, 8), slice(3, 3)):
        views = pa.array(words, pa.string_view())[part.start : part.stop]
        found = text_cells(views)
        assert [None if code < 0 else found[code].decode() for code in found.codes] == words[part]
        assert sorted(set(found.codes.tolist()) - {-1}) == list(range(len(found.offsets) - 1))
