"""Every format: round trips, and what its rows mean."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.cli.main import main
from sketchnewton.core.formats import BY_NAME, TABLE
from sketchnewton.streams import (
    WRITABLE,
    Batch,
    Columns,
    Features,
    Names,
    format_of_name,
    formats,
    open_stream,
    open_writer,
    read_svmlight,
)
from sketchnewton.streams.opening import format_of_content
from tests.streams.format_support import CSV, drain, hashed, make_rows, rows_of


def cut_rows(batch: Batch, pieces: list[int]) -> list[Batch]:
    cuts = sorted({0, len(batch), *(p for p in pieces if p < len(batch))})
    return [batch[a:b] for a, b in itertools.pairwise(cuts)]


# --- round trips


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("format", WRITABLE)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(1, 30),
    pieces=st.lists(st.integers(1, 30), max_size=3),
    extras=st.booleans(),
    labels=st.booleans(),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    ending: str,
    seed: int,
    count: int,
    pieces: list[int],
    extras: bool,
    labels: bool,
) -> None:
    plain = BY_NAME[format].only_labels
    batch = make_rows(
        seed,
        count,
        weights=extras and not plain and (labels or format != "vw"),
        tags=extras and not plain,
        labels=labels or plain,
    )
    path = tmp_path_factory.getbasetemp() / f"trip.{format}{ending}"
    with open_writer(path, columns=40) as writer:
        for piece in cut_rows(batch, pieces):
            writer.write(piece)
    assert writer.rows == count
    assert drain(path) == (rows_of([batch]), "")


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_features_may_have_names_that_labels_may_have(format: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.csv", tmp_path / f"b.{format}"
    source.write_text("x,y,target,class\n1,2,3,4\n5,6,7,\n")
    assert main(["convert", str(source), str(target), "--label", "class", "--quiet"]) == 0
    assert drain(target) == drain(source, columns=Columns(label="class"))


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_round_trip_with_odd_names(format: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / f"b.{format}"
    texts = ["a|b", " a ", "a\rb", "a\nb", 'a"b', "a,b", "a\u00a0", "a\x0b", "é"]
    names = ["|", " ", "c d ", "\r", "8"]
    source.write_text(
        "".join(json.dumps({"label": 1, "_tag": text, "city": text}) + "\n" for text in texts)
        + "".join(json.dumps({"label": 1, "_weight": 2, "u": {name: 0.1}}) + "\n" for name in names)
    )
    assert main(["convert", str(source), str(target), "--quiet"]) == 0
    assert drain(target) == drain(source)


def test_columns_need_not_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("label,año,straße\n1,2.5,süd\n".encode("latin-1"))
    ((_, *_, features),), error = drain(path)
    assert error == ""
    assert sorted(features.values()) == [1.0, 2.5]


def test_a_row_without_a_tag_has_none_in_any_format(tmp_path: Path) -> None:
    """So that svmlight, which has no place for tags, has one for the rows of a Parquet file."""
    source, middle, target = tmp_path / "a.svm", tmp_path / "a.parquet", tmp_path / "b.svm"
    source.write_text("1 3:0.5\n-1 7:2\n")
    for first, second in ((source, middle), (middle, target)):
        assert main(["convert", str(first), str(second), "--quiet"]) == 0
    assert target.read_text() == source.read_text()


def test_tags_need_not_be_utf8(tmp_path: Path) -> None:
    source, target = tmp_path / "a.vw", tmp_path / "a.parquet"
    source.write_bytes(b"1 '\xff\xfe| 1:2\n")
    assert main(["convert", str(source), str(target), "--quiet"]) == 0
    assert drain(target) == drain(source)


def test_a_table_may_have_its_first_tag_late(tmp_path: Path) -> None:
    paths = [tmp_path / "a.vw", tmp_path / "b.vw"]
    paths[0].write_text("1 | 1:2\n")
    paths[1].write_text("1 3 'late| 1:2\n")
    target = tmp_path / "all.csv"
    assert main(["convert", *map(str, paths), str(target), "--quiet"]) == 0
    assert drain(target) == drain([str(path) for path in paths])


@pytest.mark.parametrize("format", ["vw", "csv", "tsv", "jsonl"])
def test_round_trip_with_names(format: str, tmp_path: Path) -> None:
    source = tmp_path / "a.vw"
    source.write_text("1 't| a:2 b |user x 17:0.5\n-1 | b:3 |item x\n")
    names = Names(exact=True)
    batches = list(open_stream(source, names=names))
    target = tmp_path / f"b.{format}"
    with open_writer(target, names=names) as writer:
        for batch in batches:
            writer.write(batch)
    # Hashed, and by name: the same features as those of the source.
    assert drain(target) == drain(source)
    again = Names(exact=True)
    list(open_stream(target, names=again))
    assert sorted(again.readable().values()) == sorted(names.readable().values())


def test_scipy_reads_what_is_written_and_is_read(tmp_path: Path) -> None:
    batch = make_rows(3, 50, weights=False, tags=False)
    with open_writer(tmp_path / "ours.npz") as writer:
        writer.write(batch)
    matrix = scipy.sparse.csr_matrix((batch.data, batch.indices, batch.indptr), shape=(50, batch.shape[1]))
    loaded = scipy.sparse.load_npz(tmp_path / "ours.npz")
    assert (loaded != matrix).nnz == 0
    for compressed in (True, False):
        scipy.sparse.save_npz(tmp_path / "theirs.npz", matrix, compressed=compressed)
        (theirs,) = open_stream(tmp_path / "theirs.npz")
        assert theirs.indices.tolist() == batch.indices.tolist()
        assert np.isnan(theirs.labels).all()
    table = np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 0]], np.float32)
    np.savez(tmp_path / "dense.npz", X=table, y=[1, 2, 3], sample_weight=[1, 2, 1])
    assert drain(tmp_path / "dense.npz")[0] == [
        ("1.0", 1.0, 0.0, b"", {1: 1.5}),
        ("2.0", 2.0, 0.0, b"", {0: 2.0}),
        ("3.0", 1.0, 0.0, b"", {}),
    ]


# --- tables


def test_csv_columns_become_features(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    rows, error = drain(path)
    assert error == ""
    assert [row[0] for row in rows] == ["1.0", "-1.0", "0.5"]
    assert rows[0][4] == hashed("city=Rome", "note=", values={"age": 33.0, "user|id": 7.0})
    assert rows[1][4] == hashed("age=", "city=New York, NY", 'note=say "hi"', values={"user|id": 8.0})
    assert rows[2][4] == hashed("city=Rome", "note=two\nlines", values={"user|id": 9.0})


def test_columns_have_roles(tmp_path: Path) -> None:
    path = tmp_path / "roles.csv"
    path.write_text("a,w,name,target,zip,x\n1,2,one,3,123,5\n2,0.5,two,4,456,6\n")
    roles = Columns(label="x", weight="w", tag="name", drop=("a",), categorical=("zip",))
    rows, error = drain(path, columns=roles)
    assert error == ""
    assert rows == [
        ("5.0", 2.0, 0.0, b"one", hashed("zip=123", values={"target": 3.0})),
        ("6.0", 0.5, 0.0, b"two", hashed("zip=456", values={"target": 4.0})),
    ]
    assert Columns.from_dict(json.loads(json.dumps(roles.to_dict()))) == roles


def test_kinds_are_remembered(tmp_path: Path) -> None:
    train, later = tmp_path / "train.csv", tmp_path / "later.csv"
    train.write_text("label,code\n1,A1\n0,17\n")
    later.write_text("label,code\n1,17\n")
    reader = open_stream(train)
    assert len(next(reader)) == 2
    assert reader.kinds == {"code": "category"}
    reader.close()
    columns = Columns.from_dict(json.loads(json.dumps(Columns().with_kinds(reader.kinds).to_dict())))
    assert drain(later, columns=columns)[0][0][4] == hashed("code=17")
    assert drain(later)[0][0][4] == hashed(values={"code": 17.0})


def as_parquet(table: pa.Table, path: Path) -> None:
    pa.parquet.write_table(table, path)


def as_feather(table: pa.Table, path: Path) -> None:
    pa.feather.write_feather(table, str(path), compression="lz4")


def as_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


TABLES: dict[str, tuple[str, Callable[[pa.Table, Path], None]]] = {
    "parquet": ("parquet", as_parquet),
    "feather": ("arrow", as_feather),
    "stream": ("arrow", as_stream),
}
every_table = pytest.mark.parametrize("kind", TABLES)


@every_table
def test_arrow_tables(kind: str, tmp_path: Path) -> None:
    ending, write = TABLES[kind]
    table = pa.table(
        {
            "label": pa.array([1, 0, None], pa.int8()),
            "age": pa.array([33.5, None, 0.0], pa.float32()),
            "ok": pa.array([True, False, None]),
            "city": pa.array(["Rome", "Rome", None], pa.string_view() if kind == "stream" else pa.string()),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "day": pa.array([1, 2, 3], pa.date32()),
        }
    )
    path = tmp_path / f"table.{ending}"
    write(table, path)
    rows, error = drain(path, columns=Columns(drop=("day",)))
    assert error == ""
    assert rows == [
        ("1.0", 1.0, 0.0, b"", hashed("city=Rome", "kind=a", values={"age": 33.5, "ok": 1.0})),
        ("0.0", 1.0, 0.0, b"", hashed("age=", "city=Rome", "kind=b")),
        ("nan", 1.0, 0.0, b"", hashed("ok=", "city=", "kind=a")),
    ]
    rows, error = drain(path, columns=Columns(drop=("age", "ok", "city", "kind")))
    assert [row[4] for row in rows] == [hashed(f"day=1970-01-0{day}") for day in (2, 3, 4)]
    # By content, compressed, from a pipe.
    unnamed = tmp_path / "unnamed"
    unnamed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(drain(unnamed, columns=Columns(drop=("day",)))[0]) == 3


@every_table
def test_bad_rows_of_tables(kind: str, tmp_path: Path) -> None:
    ending, write = TABLES[kind]
    path = tmp_path / f"bad.{ending}"
    write(pa.table({"label": [1.0, 2.0, 3.0, 4.0], "x": [1.0, 2.0, np.inf, 4.0]}), path)
    rows, error = drain(path)
    assert error == f"{path}: row 3: expected a finite number in column 'x', got 'inf'"
    assert [row[0] for row in rows] == ["1.0", "2.0"]
    reader = open_stream(path, on_error="skip")
    assert sum(map(len, reader)) == 4
    assert (reader.skipped, reader.misfits, reader.first_misfit) == (0, 1, error)


@pytest.mark.parametrize(("cell", "column"), [([[1, 2]], "x"), ([{"a": 1}], "x"), ({"a": {"b": 1}}, "x|a")])
def test_columns_nested_twice_are_refused(cell: object, column: str, tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    pa.parquet.write_table(pa.table({"label": [1.0], "x": [cell]}), path)
    _, error = drain(path)
    kinds = "expected numbers, texts or dates in column"
    assert error.startswith(f"{path}: {kinds} '{column}', or lists or an object of these, got ")
    assert error.endswith(f"leave it out (--drop {column})")


def test_long_lists(tmp_path: Path) -> None:
    """As long as a line of JSON may be, and not all rows at once."""
    long = pa.array([np.full(1 << 18, 0.5)] * 12)
    pa.parquet.write_table(pa.table({"label": [1.0] * 12, "x": long}), tmp_path / "long.parquet")
    assert [len(batch.data) for batch in open_stream(tmp_path / "long.parquet")] == [8 << 18, 4 << 18]
    pa.parquet.write_table(pa.table({"x": [[0.5] * ((1 << 18) + 1)]}), tmp_path / "longer.parquet")
    assert drain(tmp_path / "longer.parquet")[1].endswith(
        "a list of 262145 items: expected at most 262144 in a cell"
    )


# --- JSON lines


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = [
        {
            "label": 1,
            "_weight": 2,
            "_tag": "t",
            "price": 0.5,
            "city": "Rome",
            "ok": True,
            "no": False,
            "nil": None,
        },
        {"y": -1, "user": {"age": 33, "tags": ["a", "b"], "17": 2}, "emb": [0.5, 0, 2]},
        {"price": 3, "price2": 1e-3},
    ]
    path.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    rows, error = drain(path)
    assert error == ""
    assert rows[0] == ("1.0", 2.0, 0.0, b"t", hashed("city=Rome", "ok", "nil=", values={"price": 0.5}))
    assert rows[1][4] == hashed(
        "user|tags=a", "user|tags=b", values={"user|age": 33.0, "user|17": 2.0, "emb|0": 0.5, "emb|2": 2.0}
    )
    assert rows[2][0] == "nan"
    assert drain(path, columns=Columns(categorical=("price",)))[0][2][4] == hashed(
        "price=3", values={"price2": 1e-3}
    )


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (b"1 1:2 3:4\n", "svmlight"),
        (b"# a | comment\n1 1:2\n", "svmlight"),
        (b"-1.5\n", "svmlight"),
        (b"1 qid:3 1:2 # a|b\n", "svmlight"),
        (b"1 | a b\n", "vw"),
        (b"| a,b\n", "vw"),
        (b"1 2 'tag|a x:1\n", "vw"),
        (b"1 'a,b|f x\n", "vw"),
        (b"1,2 | a\n", "vw"),
        (b"'a,b|f x\n", "vw"),
        (b"label,u|a,u|b\n1,2,3\n", "csv"),
        (b"label\tu|a\tu|b\n", "tsv"),
        (b"\n\nlabel,a,b\n1,2,3\n", "csv"),
        (b"label\ta\tb\n", "tsv"),
        (b'\xef\xbb\xbf {"label": 1}\n', "jsonl"),
        (b"", "svmlight"),
        (b"what is this\n", "svmlight"),
    ],
)
def test_format_by_content(text: bytes, format: str, tmp_path: Path) -> None:
    assert format_of_content(text) == format


def test_svmlight_through_the_common_door(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1000000:2 3:4\n")
    assert drain(path)[0] == rows_of(list(read_svmlight(path)))
    assert drain(path, features=Features(bits=4))[0][0][4] == {0: 2.0, 3: 4.0}
    rows, _ = drain(path, features=Features(bits=30, interactions=("  ",)))
    assert len(rows[0][4]) == 5


def test_the_table_of_formats_agrees_with_their_modules() -> None:
    endings = [ending for format in TABLE for ending in format.endings]
    assert len(endings) == len(set(endings))
    for format in TABLE:
        module = import_module(f"sketchnewton.streams.formats.{format.module}")
        assert format.name in module.PARSERS
        assert (format.name in module.WRITERS) == format.writable
        for ending in format.endings:
            assert format_of_name(f"a{ending}") == format_of_name(f"A{ending.upper()}.gz") == format.name
        for magic in format.magic:
            assert format_of_content(magic + b"\0\1|,") == format.name
    modules = {module.name for module in iter_modules(formats.__path__)}
    assert modules == {format.module for format in TABLE}
