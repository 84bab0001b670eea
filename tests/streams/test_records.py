"""Records in memory become the batches that files of the same kind become, or an error that names the record."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.streams import Batch, Columns, Features, Names, ParseError, open_stream, read_records
from tests.streams.format_support import make_rows, rows_of

Record = dict[str, Any]
NAN = float("nan")

RECORDS: list[Record] = [
    {"label": 1, "age": 33, "city": "Rome", "user|id": 7.5},
    {"label": -1, "age": None, "city": "Oslo", "user|id": 0.0},
    {"label": 0.5, "age": 2, "city": None, "user|id": -1.0},
]

# --- the same table, whatever it comes as

NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
TEXTS = st.none() | st.from_regex(r"t[a-z,\" |é=]{0,4}", fullmatch=True)
TABLES = st.lists(
    st.fixed_dictionaries(
        {
            "label": st.floats(-9, 9),
            "_weight": st.sampled_from([1.0, 0.5, 3.0]),
            "age": NUMBERS.map(lambda value: None if value is None else float(value)),
            "city": TEXTS,
            "user|id": st.none() | st.integers(-(2**53), 2**53),
            "user|group": TEXTS,
        }
    ).map(lambda record: dict(sorted(record.items()))),  # all in one order, as in a table
    min_size=1,
    max_size=7,
)


def delimited(records: list[Record], delimiter: str) -> str:
    rows = [list(records[0]), *(["" if v is None else v for v in record.values()] for record in records)]
    if delimiter == "\t":
        return "".join("\t".join(map(str, row)) + "\n" for row in rows)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def table_of(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist(records)


IN_MEMORY: dict[str, Callable[[list[Record]], Any]] = {
    "dicts": lambda records: records,
    "an iterator": iter,
    "dicts of NumPy's numbers": lambda records: [
        {key: np.float64(value) if isinstance(value, float) else value for key, value in record.items()}
        for record in records
    ],
    "pandas": pd.DataFrame,
    "pandas with an index": lambda records: pd.DataFrame(
        records, index=[f"i{k}" for k in range(len(records))]
    ),
    "pandas with categories": lambda records: pd.DataFrame(records).astype({"city": "category"}),
    "polars": lambda records: pl.DataFrame(records, infer_schema_length=None),
    "polars with categories": lambda records: pl.DataFrame(records, infer_schema_length=None).with_columns(
        pl.col("city").cast(pl.Categorical)
    ),
    "pyarrow": table_of,
    "record batches": lambda records: table_of(records).to_reader(max_chunksize=2),
    "a record batch": pa.RecordBatch.from_pylist,
}
FILES: dict[str, Callable[[list[Record], Path], Any]] = {
    "csv": lambda records, path: path.write_text(delimited(records, ",")),
    "tsv": lambda records, path: path.write_text(delimited(records, "\t")),
    "jsonl": lambda records, path: path.write_text("".join(json.dumps(record) + "\n" for record in records)),
    "parquet": lambda records, path: pa.parquet.write_table(table_of(records), path),
    "arrow": lambda records, path: pa.feather.write_feather(table_of(records), str(path)),
}
Summary = tuple[list[Any], ...]


def summary(batches: Iterator[Batch]) -> Summary:
    """All numbers of all rows, to the last bit, wherever the batches were cut."""
    found: Summary = ([], [], [], [], [])
    for batch in batches:
        weights = np.ones(len(batch)) if batch.weights is None else batch.weights
        for into, array in zip(
            found, (np.diff(batch.indptr), batch.indices, batch.data, batch.labels, weights), strict=True
        ):
            into.extend(np.asarray(array).tolist())
    return found


WAYS = {
    "hashed": Features(),
    "few bits": Features(bits=4),
    "interactions": Features(interactions=("u:",), ngram=("2",)),
    "ignored": Features(ignore="u"),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=12, deadline=None)
@given(records=TABLES, categorical=st.booleans())
def test_the_same_table_gives_the_same_batches(
    way: str, exact: bool, tmp_path_factory: pytest.TempPathFactory, records: list[Record], categorical: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    how: dict[str, Any] = {"features": WAYS[way]}
    if categorical:  # of the numbers of a column that are written alike everywhere
        records = [{**record, "user|group": None, "age": 7} for record in records]
        how["columns"] = Columns(categorical=("age",))
    found: dict[str, tuple[Summary, dict[int, str]]] = {}
    for kind, make in IN_MEMORY.items():
        if categorical and kind.startswith("pandas"):
            continue  # whose columns of whole numbers and nothing are floats
        names = Names(exact=True) if exact else None
        rows = summary(read_records(make(records), names=names, **how))
        found[kind] = rows, names.readable() if names else {}
    for format, write in FILES.items():
        path = folder / f"rows.{format}"
        write(records, path)
        for kind, read in ((format, open_stream), (f"{format} by read_records", read_records)):
            names = Names(exact=True) if exact else None
            rows = summary(read(path, names=names, **how))  # type: ignore[operator]
            found[kind] = rows, names.readable() if names else {}
    for kind, rows_and_names in found.items():
        assert rows_and_names == found["dicts"], kind


def test_kinds_of_a_table_are_learned_and_used() -> None:
    kinds: dict[str, str] = {}
    list(read_records(pd.DataFrame({"zip": ["00133"], "x": [1.0]}), kinds=kinds))
    assert kinds == {"zip": "category", "x": "number"}
    columns = Columns().with_kinds(kinds)
    (as_number,), (as_text,) = (
        read_records({"zip": zip_code, "x": 1.0}, columns=columns) for zip_code in (133, "133")
    )
    np.testing.assert_array_equal(as_number.indices, as_text.indices)
    kinds.clear()
    list(read_records(pa.table({"zip": [133], "x": [1.0]}), columns=columns, kinds=kinds))
    assert kinds == {"zip": "category", "x": "number"}


def test_dicts_have_all_that_json_has() -> None:
    record = {
        "label": 1,
        "_tag": "first",
        "user": {"age": np.int64(33), "name": "anna", "old": np.bool_(True)},
        "words": ["a", "b"],
        "point": np.array([0.5, 2.0]),
        "pair": (3, 4),
        "no": None,
        "false": False,
        7: 2.5,
    }
    line = (
        '{"label": 1, "_tag": "first", "user": {"age": 33, "name": "anna", "old": true}, "words": ["a", "b"], '
        '"point": [0.5, 2.0], "pair": [3, 4], "no": null, "false": false, "7": 2.5}\n'
    )
    (batch,) = read_records(record, features=Features(interactions=("uw",)))
    (expected,) = _from_file(line, "jsonl", features=Features(interactions=("uw",)))
    assert rows_of([batch]) == rows_of([expected])
    assert batch.tags == [b"first"]


def _from_file(text: str, format: str, **how: Any) -> list[Batch]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{format}"
        path.write_text(text)
        return list(open_stream(path, **how))


# --- VW text, arrays, batches, paths

VW = "1 2.5 'a| x y:2 |user z\n\n-1 | x:0.5\n| nothing\n"


@pytest.mark.parametrize(
    "records",
    [
        VW,
        VW.rstrip("\n"),
        VW.encode(),
        VW.split("\n\n", maxsplit=1)[0] + "\n" + VW.split("\n\n")[1],
        [line + "\n" for line in VW.splitlines() if line],
        [line.encode() for line in VW.splitlines() if line],
        (line for line in VW.splitlines() if line),
    ],
)
def test_lines_of_vw_text(records: Any) -> None:
    assert rows_of(list(read_records(records))) == rows_of(_from_file(VW, "vw"))


def test_long_streams_of_lines_and_dicts_are_cut() -> None:
    batches = list(read_records(f"{k} | a:{k} b" for k in range(10_000)))
    assert [len(batch) for batch in batches] == [4096, 4096, 10_000 - 8192]
    dicts = list(read_records({"label": k, "a": k, "b": 1} for k in range(10_000)))
    assert summary(iter(batches)) == summary(iter(dicts))


@pytest.mark.parametrize("features", [Features(), Features(bits=3), Features(interactions=("  ",))])
@pytest.mark.parametrize("exact", [False, True])
def test_arrays_are_numbered_features(features: Features, exact: bool, tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(-1, 2, (5000, 11)).astype(np.float32)
    y = np.arange(5000.0)
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=y)
    kinds = {
        "file": path,
        "array": X,
        "columns first": np.asfortranarray(X),
        "whole numbers": X.astype(np.int8),
        "csr": scipy.sparse.csr_matrix(X),
        "csc": scipy.sparse.csc_array(X),
        "coo": scipy.sparse.coo_array(X),
    }
    found = {}
    for kind, records in kinds.items():
        names = Names(exact=True) if exact else None
        labels = None if kind == "file" else y
        found[kind] = summary(read_records(records, features=features, names=names, labels=labels))
    for kind, rows in found.items():
        assert rows == found["file"], kind


def test_batches_are_as_they_are(tmp_path: Path) -> None:
    batch = make_rows(1, 9, weights=True, tags=True)
    assert list(read_records(batch, features=Features(bits=2))) == [batch]
    assert list(read_records([batch[:3], batch[3:]], labels=np.arange(9)))[1].labels.tolist() == list(
        range(3, 9)
    )
    (tmp_path / "a.vw").write_text(VW)
    assert rows_of(list(read_records(open_stream(tmp_path / "a.vw")))) == rows_of(_from_file(VW, "vw"))


def test_paths(tmp_path: Path) -> None:
    one, two = tmp_path / "a.vw", tmp_path / "b|c.jsonl"
    one.write_text(VW)
    two.write_text(json.dumps(RECORDS[0]) + "\n")
    expected = rows_of([*_from_file(VW, "vw"), *read_records(RECORDS[0])])
    assert rows_of(list(read_records([one, two]))) == expected
    assert rows_of(list(read_records([str(one), two]))) == expected
    assert rows_of(list(read_records(str(one)))) == rows_of(list(read_records(one))) == expected[:-1]
    with pytest.raises(FileNotFoundError):
        list(read_records("no such file"))
    with pytest.raises(ValueError, match=r"must be a pathlib\.Path"):
        list(read_records([str(one), str(two)]))


def test_nothing_is_nothing() -> None:
    assert list(read_records([])) == []
    assert list(read_records(pd.DataFrame({"a": []}), labels=[])) == []
    assert list(read_records(np.empty((0, 3)))) == []


# --- labels and weights beside the records


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_labels_and_weights_take_the_place_of_columns(kind: str) -> None:
    records = [{**record, "label": "spam", "_weight": "heavy"} for record in RECORDS]
    found = read_records(IN_MEMORY[kind](records), labels=pd.Series([3, 4, 5]), weights=[1, 2, 0.5])
    expected = [
        {**r, "label": k, "_weight": w} for r, k, w in zip(RECORDS, (3, 4, 5), (1, 2, 0.5), strict=True)
    ]
    assert summary(found) == summary(read_records(expected))


@pytest.mark.parametrize("make", [lambda records: records, pd.DataFrame], ids=["dicts", "pandas"])
def test_a_named_label_need_not_be_there_if_labels_are(make: Callable[[list[Record]], Any]) -> None:
    records = [{"a": 1.0, "y": 5.0}, {"a": 2.0, "y": 6.0}]
    columns = Columns(label="clicked", weight="importance")
    (batch,) = read_records(make(records), columns=columns, labels=[1, -1], weights=[1, 1])
    assert batch.labels.tolist() == [1, -1]
    assert batch.weights is None
    assert len(batch.indices) == 4  # y is a feature
    with pytest.raises(ParseError, match="clicked"):
        list(read_records(make(records), columns=columns))


@pytest.mark.parametrize(
    "labels", [["spam", "ham", "spam"], np.array(["a", "b", "c"]), [b"a", None, 1], ["1", "2", "3"]]
)
def test_labels_that_are_no_numbers_are_left_to_the_caller(labels: Any) -> None:
    (batch,) = read_records(RECORDS, labels=labels)
    assert np.isnan(batch.labels).all()


def test_one_record_has_one_label() -> None:
    (batch,) = read_records(RECORDS[0], labels=-1, weights=2)
    assert (batch.labels.tolist(), batch.views.weights is None) == ([-1.0], False)
    (batch,) = read_records("7 | a", labels=[None])
    assert np.isnan(batch.labels).all()


# --- what is refused


VALUES = "expected a number, a text, true or false, a date, a list or a dict"
TEXTS_ARE_CLASSES = " (labels that are texts are classes: target=Signs(names=[…]) or Classes(names=[…]))"


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            [{"price": 1}, {"a": 2}, {"price": float("inf")}],
            "record 3: expected a finite number for 'price', got 'inf'",
        ),
        ([{"a": 1}, {"user": {"b": np.float32("inf")}}], "record 2: expected a finite number for 'b', got 'inf'"),
        ([{"a": 1, "label": "abc"}], "record 1: expected a number for 'label', got 'abc'" + TEXTS_ARE_CLASSES),
        ([{"a": 1, "_weight": -1}], "record 1: expected a non-negative number for '_weight', got '-1'"),
        ([{"a": 1}, {"a": 1 + 2j}], "record 2: " + VALUES + " for 'a', got '(1+2j)'"),
        ([{"a": 10**5000}], "record 1: expected a finite number for 'a', got 'an integer of thous…'"),
        ([{"a": {"b": {"c": 1}}}], "record 1: expected at most one level of objects for 'a', got '{…}'"),
        ([{(1, 2): 3}], "record 1: expected a text or a whole number as a name, got '(1, 2)'"),
        (pd.DataFrame({"price": [1.0, np.inf]}), "record 2: expected a finite number for 'price', got 'inf'"),
        (
            pl.DataFrame({"price": [1.0, None, float("inf")]}),
            "record 3: expected a finite number for 'price', got 'inf'",
        ),
        (pa.table({"_weight": [1.0, -1.0]}), "record 2: expected a non-negative number for '_weight', got '-1'"),
        (pa.table({"label": ["a"]}), "record 1: expected a number for 'label', got 'a'" + TEXTS_ARE_CLASSES),
        (["1 | a", "1 | b:x"], "record 2:7: expected a number after ':', got 'x'"),
        ("1 | a\n\n1 | b:x", "record 3:7: expected a number after ':', got 'x'"),
        (["1 | a", " \n"], "record 2: expected a line of VW text, got a blank one"),
        (["1 | a", "1 | b\n1 | c"], "record 2: expected a line of VW text, got a line end within it"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "record 2: expected a finite number for feature 1, got 'nan'"),
        (scipy.sparse.csr_array([[1.0], [np.inf]]), "record 2: expected a finite number for feature 0, got 'inf'"),
    ],
)  # fmt: skip
def test_errors_name_the_record_and_what_is_wrong(records: Any, message: str) -> None:
    delivered: list[int] = []
    with pytest.raises(ParseError) as error:
        delivered.extend(map(len, read_records(records)))
    assert str(error.value) == message
    number = message.removeprefix("record ").split(":")[0]
    blank = isinstance(records, str)
    assert sum(delivered) == (int(number) - 1 - blank if number.isdigit() else 0)


def test_too_many_interactions_name_the_record() -> None:
    record = {f"a{k}": 1 for k in range(700)}
    with pytest.raises(ParseError, match="record 1: a row from here on has too many interactions"):
        list(read_records([record], features=Features(interactions=(":::",))))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (5, "expected records as a dict, a table .*; got int"),
        (pd.Series([1.0]), "expected records as .*; got Series"),
        (pl.Series([1.0]), "expected records as .*; got Series"),
        ([[1.0, 2.0]], "record 1: expected a dict, .* got list"),
        ([{"a": 1}, "1 | a"], "record 2: expected a dict like the first, got str"),
        (["1 | a", {"a": 1}], "record 2: expected a line of VW text like the first, got dict"),
    ],
)
def test_what_is_no_record_is_refused(records: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        list(read_records(records))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1]}, "1 labels for at least 3 records"),
        ({"labels": [1] * 4}, "4 labels for 3 records"),
        ({"weights": [1] * 4}, "4 weights for 3 records"),
        ({"labels": [[1], [2], [3]]}, "expected one label per record"),
        ({"weights": ["a", "b", "c"]}, "expected numbers as weights"),
        ({"weights": [1, 1, -1]}, "record 3: expected a finite weight that is not negative, got '-1'"),
        ({"weights": [1, np.nan, 1]}, "record 2: expected a finite weight that is not negative, got 'nan'"),
    ],
)
def test_answers_that_do_not_belong_to_the_records(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_records(RECORDS, **options))


def test_arrays_that_are_no_rows_of_numbers() -> None:
    for X, message in ((np.ones(3), "two dimensions"), (np.array([["a"]]), "an array of numbers")):
        with pytest.raises(ValueError, match=message):
            read_records(X)
    with pytest.raises(ValueError, match="expected columns of numbers or of texts"):
        list(read_records(pd.DataFrame({"a": [1, "x"]})))


def test_tables_without_pyarrow_name_the_extra() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from sketchnewton.streams import read_records
try:
    list(read_records(pd.DataFrame({"a": [1.0]})))
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'sketchnewton[arrow]'" in done.stdout
