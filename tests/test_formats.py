"""Every format: round trips, cuts that change nothing, errors that say where, empty and large inputs."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.streams import (
    FORMATS,
    WRITABLE,
    Batch,
    Columns,
    Features,
    Names,
    ParseError,
    expand_paths,
    hash_feature,
    open_stream,
    open_writer,
    read_svmlight,
)
from sketchnewton.streams.formats import format_of_content

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Row = tuple[str, float, float, bytes, dict[int, float]]


def rows_of(batches: list[Batch]) -> list[Row]:
    """All rows, exactly; features of one index are added up."""
    rows: list[Row] = []
    for batch in batches:
        for i, label in enumerate(batch.labels.tolist()):
            features: dict[int, float] = {}
            for k in range(batch.indptr[i], batch.indptr[i + 1]):
                features[int(batch.indices[k])] = features.get(int(batch.indices[k]), 0.0) + float(
                    batch.data[k]
                )
            rows.append(
                (
                    repr(label),
                    1.0 if batch.weights is None else float(batch.weights[i]),
                    0.0 if batch.base is None else float(batch.base[i]),
                    b"" if batch.tags is None else batch.tags[i],
                    features,
                )
            )
    return rows


def drain(path: Path | str | list[str], **options: object) -> tuple[list[Row], str]:
    """All rows that arrive, and the error at the end."""
    batches = []
    try:
        for batch in open_stream(path, **options):  # type: ignore[arg-type]
            batches.append(batch)
    except ParseError as error:
        return rows_of(batches), str(error)
    return rows_of(batches), ""


def make_rows(seed: int, count: int, *, weights: bool, tags: bool, labels: bool = True) -> Batch:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, count)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.concatenate([np.sort(random.choice(40, n, replace=False)) for n in lengths] or [[]])
    data = random.normal(size=len(indices)) * 10.0 ** random.integers(-200, 200, len(indices))
    return Batch(
        indptr.astype(np.int64),
        indices.astype(np.int64),
        np.where(random.random(len(data)) < 0.3, 1.0, data),
        random.normal(size=count) if labels else np.full(count, np.nan),
        random.random(count) if weights else None,
        tags=[b"t%d" % i for i in range(count)] if tags else None,
    )


def cut_rows(batch: Batch, pieces: list[int]) -> list[Batch]:
    cuts = sorted({0, len(batch), *(p for p in pieces if p < len(batch))})
    result = []
    for a, b in itertools.pairwise(cuts):
        first, last = int(batch.indptr[a]), int(batch.indptr[b])
        result.append(
            Batch(
                batch.indptr[a : b + 1] - first,
                batch.indices[first:last],
                batch.data[first:last],
                batch.labels[a:b],
                None if batch.weights is None else batch.weights[a:b],
                tags=None if batch.tags is None else batch.tags[a:b],
            )
        )
    return result


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
    plain = format == "svmlight"
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


@pytest.mark.parametrize(
    ("format", "extra", "message"),
    [
        ("svmlight", {"weights": np.array([2.0])}, "svmlight has no place for weights"),
        ("svmlight", {"tags": [b"t"]}, "svmlight has no place for tags"),
        ("svmlight", {"labels": np.array([np.nan])}, "svmlight has no place for rows without a label"),
        ("jsonl", {"base": np.array([2.0])}, "jsonl has no place for base predictions"),
        ("parquet", {"base": np.array([2.0])}, "parquet has no place for base predictions"),
        ("npz", {"base": np.array([2.0])}, "npz has no place for base predictions"),
        ("csv", {"base": np.array([2.0])}, "csv has no place for base predictions"),
        ("vw", {"tags": [b"a b"]}, "vw has no place for the tag 'a b'"),
        ("csv", {"indices": np.array([7])}, "feature 7 is beyond the 3 columns"),
        ("jsonl", {"tags": [b"\xff"]}, "jsonl has no place for what is not UTF-8"),
    ],
)
def test_nothing_is_dropped_when_writing(
    format: str, extra: dict[str, object], message: str, tmp_path: Path
) -> None:
    values: dict[str, object] = {
        "indptr": np.array([0, 1]),
        "indices": np.array([1]),
        "data": np.array([1.0]),
        "labels": np.array([1.0]),
    }
    path = tmp_path / f"out.{format}"
    path.write_bytes(b"the old file")
    with pytest.raises(ValueError, match=message), open_writer(path, columns=3) as writer:
        writer.write(Batch(**(values | extra)))  # type: ignore[arg-type]
    assert path.read_bytes() == b"the old file"
    assert os.listdir(tmp_path) == [path.name]


def test_writers_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not say which format"):
        open_writer(tmp_path / "out")
    with pytest.raises(ValueError, match="cannot be written"):
        open_writer(tmp_path / "out.arrow")
    with (
        pytest.raises(ValueError, match="number of columns must be known"),
        open_writer(tmp_path / "o.csv") as w,
    ):
        w.write(make_rows(0, 3, weights=False, tags=False))
    with pytest.raises(ValueError, match="names must be exact"):
        open_writer(tmp_path / "out.vw", names=Names())
    assert os.listdir(tmp_path) == []


# --- tables

CSV = (
    "label,age,city,user|id,note\n"
    "1,33,Rome,7,\n"
    '-1,,"New York, NY",8,"say ""hi"""\n'
    "\n"
    '0.5,0,Rome,9,"two\nlines"\n'
)


def hashed(*names: str, values: dict[str, float] | None = None) -> dict[int, float]:
    given = dict.fromkeys(names, 1.0) | (values or {})
    return {
        hash_feature(*reversed(name.split("|", 1)) if "|" in name else (name,)): value
        for name, value in given.items()
    }


def test_csv_columns_become_features(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    rows, error = drain(path)
    assert error == ""
    assert [row[0] for row in rows] == ["1.0", "-1.0", "0.5"]
    assert rows[0][4] == hashed("city=Rome", values={"age": 33.0, "user|id": 7.0})
    assert rows[1][4] == hashed("city=New York, NY", 'note=say "hi"', values={"user|id": 8.0})
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


def test_types_are_remembered(tmp_path: Path) -> None:
    train, later = tmp_path / "train.csv", tmp_path / "later.csv"
    train.write_text("label,code\n1,A1\n0,17\n")
    later.write_text("label,code\n1,17\n")
    reader = open_stream(train)
    assert len(next(reader)) == 2
    assert reader.types == {"code": "text"}
    reader.close()
    columns = Columns.from_dict(json.loads(json.dumps(Columns().with_types(reader.types).to_dict())))
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
            "city": pa.array(["Rome", "Rome", None]),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "day": pa.array([1, 2, 3], pa.date32()),
        }
    )
    path = tmp_path / f"table.{ending}"
    write(table, path)
    rows, error = drain(path)
    assert error.startswith(
        f"{path}: expected numbers or texts in column 'day', got date32[day]: leave it out"
    )
    rows, error = drain(path, columns=Columns(drop=("day",)))
    assert error == ""
    assert rows == [
        ("1.0", 1.0, 0.0, b"", hashed("city=Rome", "kind=a", values={"age": 33.5, "ok": 1.0})),
        ("0.0", 1.0, 0.0, b"", hashed("city=Rome", "kind=b")),
        ("nan", 1.0, 0.0, b"", hashed("kind=a")),
    ]
    rows, error = drain(path, columns=Columns(categorical=("day",), drop=("age", "ok", "city", "kind")))
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
    assert sum(map(len, reader)) == 3
    assert (reader.skipped, reader.first_error) == (1, error)


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
    assert rows[0] == ("1.0", 2.0, 0.0, b"t", hashed("city=Rome", "ok", values={"price": 0.5}))
    assert rows[1][4] == hashed(
        "user|tags=a", "user|tags=b", values={"user|age": 33.0, "user|17": 2.0, "emb|0": 0.5, "emb|2": 2.0}
    )
    assert rows[2][0] == "nan"
    assert drain(path, columns=Columns(categorical=("price",)))[0][2][4] == hashed(
        "price=3", values={"price2": 1e-3}
    )


# --- what is refused: file, line, column, what was expected

MALFORMED = {
    ("csv", "short row"): (b"label,a,b\n1,2,3\n1,2\n", "3:1: expected 3 fields as in the header, got 2"),
    ("csv", "long row"): (b"label,a,b\n1,2,3\n\n1,2,3,4\n", "4:1: expected 3 fields as in the header, got 4"),
    ("csv", "label"): (b"label,a\n1,2\nx,3\n", "3:1: expected a number as the label, got 'x'"),
    ("csv", "open quote"): (
        b'label,a\n1,2\n1,"x\n\n',
        "3:3: expected a closing quote before the end of the file",
    ),
    ("csv", "nan"): (b"label,a\n1,2\n1,nan\n", "3:3: expected a finite number in column 'a', got 'nan'"),
    ("csv", "infinite"): (
        b"label,a\n1,2\n1,1e999\n",
        "3:3: expected a finite number in column 'a', got '1e999'",
    ),
    ("csv", "columns"): (b"label,a,a\n1,2,3\n", "1:1: column names must differ, but 'a' comes twice"),
    ("csv", "header"): (b"1,2\n3,4\n", "1:1: expected the names of the columns in the first line, got '1,2'"),
    ("tsv", "label"): (b"label\ta\n1\t2\ny\t3\n", "3:1: expected a number as the label, got 'y'"),
    ("jsonl", "no JSON"): (b'{"label": 1}\n{"label": 1,}\n', "2:13: expected JSON: "),
    ("jsonl", "no object"): (b'{"label": 1}\n[1, 2]\n', "2:1: expected an object, got '[1, 2]'"),
    ("jsonl", "two objects"): (
        b'{"label": 1}\n{"a": 1} {"b": 2}\n',
        "2:9: expected the end of the line after the object, got ' {\"b\": 2}'",
    ),
    ("jsonl", "label"): (b'{"label": 1}\n{"label": "x"}\n', "2:2: expected a number for 'label', got 'x'"),
    ("jsonl", "nan"): (b'{"label": 1}\n{"a": NaN}\n', "2:7: expected a finite number, got 'NaN'"),
    ("jsonl", "huge"): (b'{"label": 1}\n{"a": 1e999}\n', "2:2: expected a finite number for 'a', got 'inf'"),
    ("jsonl", "deep"): (
        b'{"label": 1}\n{"a": {"b": {"c": 1}}}\n',
        "2:2: expected at most one level of objects",
    ),
    ("jsonl", "UTF-8"): (b'{"label": 1}\n{"a": "\xff"}\n', "2:8: expected UTF-8, got '\\xff'"),
    ("jsonl", "twice"): (
        b'{"label": 1}\n{"label": 1, "label": 2}\n',
        "2:2: expected one value for 'label', got '2'",
    ),
    ("vw", "value"): (b"1 | a\n1 | a:x\n", "2:7: expected a number after ':', got 'x'"),
    ("svmlight", "value"): (b"1 1:1\n1 1:x\n", "2:5: expected a number after ':', got 'x'"),
}


@pytest.mark.parametrize(("format", "kind"), MALFORMED)
def test_malformed(format: str, kind: str, tmp_path: Path) -> None:
    text, message = MALFORMED[format, kind]
    path = tmp_path / f"bad.{format}"
    path.write_bytes(text)
    rows, error = drain(path)
    assert error.startswith(f"{path}:{message}")
    assert "\n" not in error
    if kind not in ("columns", "header"):
        assert len(rows) == 1, "the rows before the bad line are delivered"
        reader = open_stream(path, on_error="skip")
        if kind == "open quote":
            with pytest.raises(ParseError):
                list(reader)
        else:
            assert sum(map(len, reader)) == 1 + text.count(b"3,4,5")
            assert (reader.skipped, reader.first_error) == (1, error)


def test_text_in_a_column_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("label,zip\n" + "1,123\n" * 2000 + "1,A12\n2,5\n")
    rows, error = drain(path)
    assert len(rows) == 2000
    assert error == (
        f"{path}:2002:3: expected a number in column 'zip', got 'A12' (text in such a column: --categorical zip)"
    )
    rows, error = drain(path, columns=Columns(categorical=("zip",)))
    assert (len(rows), error) == (2002, "")
    rows, error = drain(path, on_error="skip")
    assert (len(rows), error) == (2001, "")


@pytest.mark.parametrize("role", ["weight", "tag", "drop", "categorical"])
def test_columns_that_are_not_there(role: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,a\n1,2\n")
    value = ("b",) if role in ("drop", "categorical") else "b"
    _, error = drain(path, columns=Columns(**{role: value}))  # type: ignore[arg-type]
    assert error == f"{path}:1:1: no column is named 'b'; there are label, a"


@pytest.mark.parametrize("format", ["parquet", "arrow", "npz"])
@pytest.mark.parametrize("text", [b"no such thing", b"PAR1", b"ARROW1", b"PK\x03\x04", b"\xff\xff\xff\xff"])
def test_damaged_archives(format: str, text: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"bad.{format}"
    path.write_bytes(text)
    rows, error = drain(path)
    assert rows == []
    assert error.startswith(f"{path}: expected ")
    assert "\n" not in error


@pytest.mark.parametrize("format", ["parquet", "npz"])
def test_truncated_archives(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut.{format}"
    with open_writer(path) as writer:
        writer.write(make_rows(1, 300, weights=True, tags=True))
    whole = path.read_bytes()
    for size in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:size])
        _, error = drain(path)
        assert error.startswith(f"{path}: expected ")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "expected the arrays of a CSR matrix, or 'X'; there are a"),
        ({"X": np.zeros(3)}, "array 'X': expected rows and columns"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(2)}, "array 'y': expected 3 numbers, one per row"),
        ({"X": np.array([["a"]])}, "array 'X': expected numbers"),
        ({"X": np.asfortranarray(np.ones((3, 2)))}, "array 'X': expected rows in order"),
        ({"X": np.array([[np.nan]])}, "row 1: expected finite numbers"),
        ({"indptr": [0, 2], "indices": [1], "data": [1.0]}, "array 'indptr': expected numbers that grow"),
        ({"indptr": [0, 1], "indices": [-1], "data": [1.0]}, "array 'indices': expected no negative number"),
        ({"indptr": [1, 1], "indices": [1], "data": [1.0]}, "array 'indptr': expected it to begin with 0"),
        ({"X": np.ones((1, 1)), "weights": [-1.0]}, "row 1: expected finite numbers, and a weight"),
        ({"format": b"csc", "indptr": [0]}, "expected a matrix in CSR form, got csc"),
        ({"X": np.array([[None]])}, "array 'X': expected numbers, got Python objects"),
    ],
)
def test_malformed_npz(arrays: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    rows, error = drain(path)
    assert rows == []
    assert error.startswith(f"{path}: {message}")


# --- cuts change nothing

csv_cells = st.sampled_from(["1", "2.5", "", "Rome", '"a,b"', '"two\nlines"', '"say ""x"""', "3"])
json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(-1e3, 1e3),
    st.text(max_size=5),
    st.lists(st.text(max_size=3)),
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(csv_cells, csv_cells), max_size=12),
    end=st.sampled_from(["", "1,2\n", "1,x,y", '1,"open', "z,1,2\n1,1,1\n"]),
    size=st.integers(1, 60),
    exact=st.booleans(),
    skip=st.booleans(),
)
def test_cuts_change_no_row_of_csv(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    end: str,
    size: int,
    exact: bool,
    skip: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "cuts.csv"
    path.write_text("label,a,b\n" + "".join(f"1,{a},{b}\n" for a, b in rows) + end)
    names = [Names(exact=True) if exact else None for _ in range(2)]
    options = {
        "on_error": "skip" if skip else "stop",
        "features": Features(interactions=("  ",)) if exact else None,
    }
    cut = drain(path, batch_bytes=size, names=names[0], **options)
    assert cut == drain(path, names=names[1], prefetch=False, **options)
    if names[0] is not None and names[1] is not None:
        assert names[0].readable() == names[1].readable()


@settings(max_examples=150, deadline=None)
@given(
    records=st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=4), max_size=6),
    end=st.sampled_from(["", '{"label": 1}', "{", '{"a": NaN}\n{"b": 1}\n', "[]\n"]),
    size=st.integers(1, 60),
    exact=st.booleans(),
)
def test_cuts_change_no_row_of_json(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, object]],
    end: str,
    size: int,
    exact: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "cuts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + end)
    names = [Names(exact=True) if exact else None for _ in range(2)]
    options = {
        "columns": Columns(label="label"),
        "features": Features(interactions=("::",)) if exact else None,
    }
    cut = drain(path, batch_bytes=size, names=names[0], **options)
    assert cut == drain(path, names=names[1], **options)


PIPED = {
    "svmlight": b"1 1:2 3:4\n# c\n-1 0:1\r\n2\n3 5:1",
    "vw": "1 2 'tag|ä ü:2 x |b:3 7 y:1e-3\n\n-1 | a b\r\n| c".encode(),
    "csv": CSV.encode(),
    "tsv": b"label\ta\tb\n1\t2\tx\n\n3\t\ty\r\n4\t5\tz",
    "jsonl": '{"label": 1, "ä": 2}\n\n{"y": 2, "b": {"c": "d"}}\r\n{"e": 1}'.encode(),
}


@pytest.mark.parametrize("format", PIPED)
@pytest.mark.parametrize("packed", [False, True])
@settings(max_examples=15, deadline=None)
@given(pieces=st.lists(st.integers(1, 30), min_size=1))
def test_pieces_of_a_pipe_change_no_row(
    tmp_path_factory: pytest.TempPathFactory, format: str, packed: bool, pieces: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"whole.{format}"
    path.write_bytes(PIPED[format])
    text = gzip.compress(PIPED[format]) if packed else PIPED[format]
    source, target = os.pipe()

    def write() -> None:
        with open(target, "wb", buffering=0) as pipe:
            sizes = itertools.cycle(pieces)
            at = 0
            while at < len(text):
                at += pipe.write(text[at : at + next(sizes)]) or 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert drain(f"/dev/fd/{source}", format=format) == drain(path)
    finally:
        writer.join()
        os.close(source)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 60), st.booleans())
def test_exact_names_of_numbers_do_not_depend_on_batches(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int, pairs: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "numbers.svm"
    with open_writer(path) as writer:
        writer.write(make_rows(seed, 10, weights=False, tags=False))
    how = Features(interactions=("  ",)) if pairs else Features()
    names = [Names(exact=True), Names(exact=True)]
    assert drain(path, batch_bytes=size, names=names[0], features=how) == drain(
        path, names=names[1], features=how
    )


# --- several inputs, names and contents


def test_several_files_are_one_stream(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.vw").write_text("1 | a\n")
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress(b"2 1:1\n"))
    (tmp_path / "sub" / "c.csv").write_text("label,x\n3,1\n")
    (tmp_path / "sub" / "d.jsonl").write_bytes(b"")
    (tmp_path / "_SUCCESS").write_text("no data")
    (tmp_path / ".hidden").write_text("no data")
    reader = open_stream(tmp_path)
    labels = []
    for batch in reader:
        labels += batch.labels.tolist()
    assert labels == [1.0, 2.0, 3.0]
    assert (
        reader.position
        == reader.size
        == sum((tmp_path / name).stat().st_size for name in ("a.vw", "b.svm.gz", "sub/c.csv", "sub/d.jsonl"))
    )
    assert [row[0] for row in drain(str(tmp_path / "*.vw"))[0]] == ["1.0"]
    assert expand_paths([str(tmp_path / "**" / "*.csv"), "-", str(tmp_path / "a.vw")]) == [
        str(tmp_path / "sub" / "c.csv"),
        "-",
        str(tmp_path / "a.vw"),
    ]
    (tmp_path / "odd[1].vw").write_text("7 | a\n")
    assert [row[0] for row in drain(tmp_path / "odd[1].vw")[0]] == ["7.0"]


def test_inputs_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file has such a name"):
        open_stream(str(tmp_path / "*.vw"))
    with pytest.raises(FileNotFoundError, match="no file in the directory"):
        open_stream(tmp_path)
    (tmp_path / "a.vw").write_text("1 | a\n")
    with pytest.raises(FileNotFoundError, match="No such file"):
        open_stream([str(tmp_path / "a.vw"), str(tmp_path / "b.vw")])
    with pytest.raises(ValueError, match="no input"):
        open_stream([])
    with pytest.raises(ValueError, match="format='xml' is invalid: must be one of svmlight, vw"):
        open_stream(tmp_path / "a.vw", format="xml")
    with pytest.raises(ValueError, match="on_error='no' is invalid"):
        open_stream(tmp_path / "a.vw", on_error="no")


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
        (b"\n\nlabel,a,b\n1,2,3\n", "csv"),
        (b"label\ta\tb\n", "tsv"),
        (b'\xef\xbb\xbf {"label": 1}\n', "jsonl"),
        (b"", "svmlight"),
        (b"what is this\n", "svmlight"),
    ],
)
def test_format_by_content(text: bytes, format: str, tmp_path: Path) -> None:
    assert format_of_content(text) == format


@pytest.mark.parametrize("kind", ["plain", "gzip", "bz2", "xz", "zstd"])
@pytest.mark.parametrize("format", ["svmlight", "vw", "csv", "tsv", "jsonl", "parquet", "npz"])
def test_standard_input_in_every_format(format: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{format}"
    batch = make_rows(5, 40, weights=False, tags=False)
    with open_writer(path, columns=40) as writer:
        writer.write(batch)
    pack: dict[str, Callable[[bytes], bytes]] = {
        "plain": bytes,
        "gzip": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zstd": zstd.compress,
    }
    program = (
        "from sketchnewton.streams import open_stream\n"
        "reader = open_stream('-')\n"
        "print(sum(len(batch) for batch in reader), reader.size, reader.path)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pack[kind](path.read_bytes()), capture_output=True, check=True
    )
    assert done.stdout == b"40 None <stdin>\n"


@pytest.mark.parametrize("format", FORMATS)
def test_empty_inputs(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"empty.{format}"
    path.write_bytes(b"")
    _, error = drain(path)
    assert error in (f"{path}:1:1: no examples", error if format in ("parquet", "arrow", "npz") else "")
    assert error.startswith(f"{path}:")
    if format in WRITABLE:
        with open_writer(path, columns=3) as writer:
            pass
        assert writer.rows == 0
        assert drain(path) == ([], f"{path}:1:1: no examples")
    if format in ("csv", "tsv"):
        path.write_bytes(b"label\n")
        assert drain(path) == ([], f"{path}:1:1: no examples")


@pytest.mark.slow
@pytest.mark.parametrize("format", WRITABLE)
def test_memory_does_not_grow_with_the_file(format: str, tmp_path: Path) -> None:
    """Ten times the rows, through a reader and a writer, need hardly more memory."""
    batch = make_rows(7, 2000, weights=False, tags=False)
    program = (
        "import resource, sys\n"
        "from sketchnewton.streams import open_stream, open_writer\n"
        "with open_writer(sys.argv[2], columns=40) as writer:\n"
        "    for batch in open_stream(sys.argv[1], batch_bytes=1 << 16):\n"
        "        writer.write(batch)\n"
        "print(writer.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    peaks = []
    for times in (5, 50):
        path = tmp_path / f"{times}.{format}"
        with open_writer(path, columns=40) as writer:
            for _ in range(times):
                writer.write(batch)
        done = subprocess.run(
            [sys.executable, "-c", program, str(path), str(tmp_path / f"copy.{format}")],
            capture_output=True,
            check=True,
        )
        rows, peak = map(int, done.stdout.split())
        assert rows == 2000 * times
        peaks.append(peak)
    assert peaks[1] <= 1.1 * peaks[0]


def test_svmlight_through_the_common_door(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1000000:2 3:4\n")
    assert drain(path)[0] == rows_of(list(read_svmlight(path)))
    assert drain(path, features=Features(bits=4))[0][0][4] == {0: 2.0, 3: 4.0}
    rows, _ = drain(path, features=Features(bits=30, interactions=("  ",)))
    assert len(rows[0][4]) == 5


def test_missing_pyarrow_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,a\n1,2\n")
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from sketchnewton.streams import open_stream\n"
        "list(open_stream(sys.argv[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"pip install 'sketchnewton[arrow]'" in done.stderr
