"""Rows that compiled parsers make: those that the definition of kinds, and the reading of dicts, give."""

from __future__ import annotations

import json
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sketchnewton import _native
from sketchnewton.features.columns import Columns
from sketchnewton.features.kinds import MISSING_NAME, Misfit, features_of, is_missing, missing_texts
from sketchnewton.features.names import Names
from sketchnewton.streams import open_stream
from sketchnewton.streams.records import read_records

KINDS = {
    "number": "numeric",
    "boolean": "boolean",
    "category": "categorical",
    "text": "text",
    "text:2": "text",
    "date": "dates",
}
AWKWARD = [
    *("", " ", "NA", " NA ", "nan", "NAN", "inf", "-inf", "1", " 1 ", "+1", "-0", "007", "1.", ".5", "1e5"),
    *("1e400", "1e-400", "1_0", "0x10", "1,5", "7.0", "7.00", "-0.0", "00.0", "-7.0", "1.50", "0.0", "10"),
    *("true", "TRUE", "False", "yes", "No", "Rome", "say hi", "Good food. GOOD", "a_b9", "café", "日本 語"),
    *("2024-01-31", "2024-02-30", "2024-02-29", "1999-12-31", "0000-01-01", "0001-01-01", "9999-12-31"),
    *(
        "2024-01-31T12:30",
        "2024-01-31 00:00:00.000",
        "2024-01-31T23:59:59Z",
        "2024-01-31T24:00",
        " 2024-01-31 ",
    ),
    *(
        "2024-01-31T12:30:00.250",
        "2024-01-31T12:30:00+02:00",
        "2024-01-31T12:30 Z",
        "2024-W05-1",
        "2000-01-01",
    ),
    *("12345678901234567890", "0.1234567890123456789", "2024-01-31T12:30:6", "abcd-efghijklmnopq", "1-1"),
]
CELLS = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(string.digits + "+-.eE ", max_size=24),
    st.text(string.ascii_letters + string.digits + " _-:.é", max_size=20),
    st.builds(repr, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(str, st.datetimes()),
)


def defined(kind: str, cell: str) -> list[tuple[int, float]] | None:
    """The features of the cell of a column ``c`` by the definition; None if it is not of this kind."""
    text = cell.encode()
    try:
        cells = [(MISSING_NAME, 1.0)] if is_missing(text, missing_texts(["-1"])) else features_of(kind, text)
    except Misfit:
        return None
    return [
        (_native.name_hash(b"c" + ending, 0) & 2**18 - 1, value) for ending, value in cells if value != 0.0
    ]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(CELLS, min_size=1, max_size=12))
def test_cells_become_what_their_kind_defines(tmp_path: Path, kind: str, form: str, cells: list[str]) -> None:
    path = tmp_path / f"a.{form}"
    if form == "csv":
        path.write_text("label,c\n" + "".join(f'1,"{cell}"\n' for cell in cells))
    else:
        path.write_text("".join(json.dumps({"label": 1, "c": cell}) + "\n" for cell in cells))
    column = "c:2" if kind == "text:2" else "c"
    columns = Columns(missing=("-1",), **{KINDS[kind]: (column,)})  # type: ignore[arg-type]
    reader = open_stream(path, columns=columns, on_error="skip", prefetch=False)
    batches = list(reader)
    rows = []
    for batch in batches:
        for begin, end in zip(batch.indptr[:-1], batch.indptr[1:], strict=True):
            rows.append(
                list(zip(batch.indices[begin:end].tolist(), batch.data[begin:end].tolist(), strict=True))
            )
    expected = [defined(kind, cell) for cell in cells]
    missing = [(_native.name_hash(b"c=", 0) & 2**18 - 1, 1.0)]
    assert rows == [missing if features is None else features for features in expected]
    assert reader.misfits == expected.count(None)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(AWKWARD),
    st.text(max_size=8),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["x", "y z", "é", '"', "b|c"]), SCALARS, max_size=3),
)
KEYS = st.sampled_from(["a", "b", "a|b", "label", "y", "_tag", "é", 'q"', "", "\\"])


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=8),
    ascii_only=st.booleans(),
)
def test_json_lines_are_dicts(tmp_path: Path, records: list[dict[str, object]], ascii_only: bool) -> None:
    """Up to the first mistake the rows, the kinds and the names are those of the same dicts in memory."""
    path = tmp_path / "a.jsonl"
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in records]
    path.write_text("\n".join(lines), "utf-8", "surrogatepass")
    outcomes = []
    for in_memory in (False, True):
        names, kinds = Names(exact=True), dict[str, str]()
        rows: list[tuple[float, list[int], list[float], bytes]] = []
        failed = False
        try:
            if in_memory:
                batches = list_until_error(
                    read_records([json.loads(line) for line in lines], names=names, kinds=kinds)
                )
            else:
                reader = open_stream(path, names=names, prefetch=False)
                batches = list_until_error(reader)
                kinds.update(reader.kinds)
        except ValueError:
            failed = True
        for batch in batches[0]:
            for row in range(len(batch)):
                begin, end = batch.indptr[row : row + 2]
                label = float(batch.labels[row])
                tag = batch.tags[row] if batch.tags else b""
                rows.append(
                    (
                        7.5 if np.isnan(label) else label,
                        batch.indices[begin:end].tolist(),
                        batch.data[begin:end].tolist(),
                        tag,
                    )
                )
        outcomes.append((rows, kinds, failed or batches[1]))
    assert outcomes[0] == outcomes[1]


def list_until_error(batches: object) -> tuple[list[object], bool]:
    """What came before an error, and whether there was one."""
    found: list[object] = []
    try:
        for batch in batches:  # type: ignore[attr-defined]
            found.append(batch)
    except ValueError:
        return found, True
    return found, False


def test_rows_that_are_left_out_leave_no_names(tmp_path: Path) -> None:
    for form, bad in (("csv", "x,b,1\n"), ("jsonl", '{"label": "x", "city": "b", "n": 1}\n')):
        path = tmp_path / f"a.{form}"
        good = ["1,a,2\n", "1,c,2\n"]
        if form == "jsonl":
            good = [json.dumps({"label": 1, "city": line[2], "n": 2}) + "\n" for line in good]
        path.write_text(("label,city,n\n" if form == "csv" else "") + good[0] + bad + good[1])
        names = Names(exact=True)
        reader = open_stream(path, names=names, on_error="skip", prefetch=False)
        rows = [index for batch in reader for index in batch.indices.tolist()]
        assert reader.skipped == 1
        assert rows == [0, 1, 2, 1]
        assert set(names.readable().values()) == {"city=a", "n", "city=c"}


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_tables_of_text_need_neither_pyarrow_nor_numpy(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    tab = "\t" if form == "tsv" else ","
    lines = [f"label{tab}city{tab}n", f"1{tab}Rome{tab}2.5", f"-1{tab}Oslo{tab}3"]
    if form == "jsonl":
        lines = ['{"label": 1, "city": "Rome", "n": 2.5}', '{"label": -1, "city": "Oslo", "n": 3}']
    path.write_text("\n".join(lines) + "\n")
    program = (
        "import sys; sys.modules['pyarrow'] = sys.modules['numpy'] = None\n"
        "from sketchnewton.streams import open_stream\n"
        "print([list(batch.views.data) for batch in open_stream(sys.argv[1])])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[[1.0, 2.5, 1.0, 3.0]]\n", "")
