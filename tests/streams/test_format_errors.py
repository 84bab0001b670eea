"""What is refused in every format, reading and writing: file, line, column, what was expected."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.streams import (
    FORMATS,
    WRITABLE,
    Batch,
    Columns,
    Names,
    ParseError,
    open_stream,
    open_writer,
)
from tests.streams.format_support import drain, make_rows


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
        ("tsv", {"tags": [b"a\tb"]}, "tsv has no place for tabs"),
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


def test_names_that_a_table_cannot_hold(tmp_path: Path) -> None:
    for key, message in (
        ({"a|b": {"c": 1}}, "no place for the namespace 'a|b'"),
        ({"c ": 1}, "tsv has no place for blanks at the ends of names"),
        ({}, "tsv has no place for a row of nothing"),
    ):
        source, target = tmp_path / "a.jsonl", tmp_path / "b.tsv"
        source.write_text(json.dumps(key) + "\n")
        names = Names(exact=True)
        batches = list(open_stream(source, names=names))
        with pytest.raises(ValueError, match=re.escape(message)), open_writer(target, names=names) as writer:
            writer.write(batches[0])


def test_too_many_columns_are_not_even_counted(tmp_path: Path) -> None:
    batch = Batch(np.array([0, 1]), np.array([10**15]), np.ones(1), np.ones(1))
    with (
        pytest.raises(ValueError, match="1000000000000001 columns are too many"),
        open_writer(tmp_path / "wide.csv", columns=batch.shape[1]) as writer,
    ):
        writer.write(batch)


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


MALFORMED = {
    ("csv", "short row"): (b"label,a,b\n1,2,3\n1,2\n", "3:1: expected 3 fields as in the header, got 2"),
    ("csv", "long row"): (b"label,a,b\n1,2,3\n\n1,2,3,4\n", "4:1: expected 3 fields as in the header, got 4"),
    ("csv", "label"): (b"label,a\n1,2\nx,3\n", "3:1: expected a number as the label, got 'x'"),
    ("csv", "open quote"): (
        b'label,a\n1,2\n1,"x\n\n',
        "3:3: expected a closing quote before the end of the file",
    ),
    ("csv", "infinite"): (
        b"label,a\n1,2\n1,1e999\n",
        "3:3: expected a finite number in column 'a', got '1e999'",
    ),
    ("csv", "columns"): (b"label,a,a\n1,2,3\n", "1:1: column names must differ, but 'a' comes twice"),
    ("csv", "header"): (b"1,2\n3,4\n", "1:1: expected the names of the columns in the first line, got '1,2'"),
    ("tsv", "label"): (b"label\ta\n1\t2\ny\t3\n", "3:1: expected a number as the label, got 'y'"),
    ("jsonl", "no JSON"): (b'{"label": 1}\n{"label": 1,}\n', "2:13: expected JSON: "),
    ("jsonl", "no object"): (b'{"label": 1}\n[1, 2]\n', "2:1: expected an object in each line, got '[1, 2]'"),
    ("jsonl", "two objects"): (
        b'{"label": 1}\n{"a": 1} {"b": 2}\n',
        "2:9: expected the end of the line after the object, got ' {\"b\": 2}'",
    ),
    ("jsonl", "label"): (
        b'{"label": 1}\n{"label": "x"}\n',
        "2:2: expected a number for 'label' (labels that are texts are classes: --classes a,b), got 'x'",
    ),
    ("jsonl", "label nan"): (
        b'{"label": 1}\n{"label": Infinity}\n',
        "2:2: expected a finite number for 'label', got 'inf'",
    ),
    ("jsonl", "huge"): (b'{"label": 1}\n{"a": 1e999}\n', "2:2: expected a finite number for 'a', got 'inf'"),
    ("jsonl", "no number"): (
        b'{"label": 1, "u": {"a": 1}}\n{"u": {"a": "x"}}\n',
        "2:8: expected a number for 'a' (text in such a column: --categorical u|a), got 'x'",
    ),
    ("jsonl", "deep"): (
        b'{"label": 1}\n{"a": {"b": {"c": 1}}}\n',
        "2:2: expected at most one level of objects",
    ),
    ("jsonl", "UTF-8"): (b'{"label": 1}\n{"a": "\xff"}\n', "2:8: expected UTF-8, got '\\xff'"),
    ("jsonl", "twice"): (
        b'{"label": 1}\n{"label": 1, "label": 2}\n',
        "2:14: expected each key of an object once, got 'label'",
    ),
    ("jsonl", "feature twice"): (
        b'{"label": 1, "a": 1}\n{"label": 1, "a": 2, "b": 1, "a": 3}\n',
        "2:30: expected each key of an object once, got 'a'",
    ),
    ("jsonl", "object twice"): (
        b'{"label": 1, "u": {"a": 1}}\n{"label": 1, "u": {"a": 1}, "u": {"b": 1}}\n',
        "2:29: expected each key of an object once, got 'u'",
    ),
    ("jsonl", "member twice"): (
        b'{"label": 1, "u": {"a": 1}}\n{"label": 1, "u": {"a": 1, "a": null}}\n',
        "2:28: expected each key of an object once, got 'a'",
    ),
    ("jsonl", "the same key elsewhere"): (
        b'{"label": 1, "a": 1}\n{"a": "{\\"a\\":", "u": {"b": 1}, "v": {"a": 1, "\\u0061" : 2}}\n',
        "2:47: expected each key of an object once, got 'a'",
    ),
    ("vw", "value"): (b"1 | a\n1 | a:x\n", "2:7: expected a number after ':', got 'x'"),
    ("svmlight", "value"): (b"1 1:1\n1 1:x\n", "2:5: expected a number after ':', got 'x'"),
}


MISFITS = ("infinite", "huge", "no number")  # their rows are good but for a cell


@pytest.mark.parametrize(("format", "kind"), MALFORMED)
def test_malformed(format: str, kind: str, tmp_path: Path) -> None:
    text, message = MALFORMED[format, kind]
    path = tmp_path / f"bad.{format}"
    path.write_bytes(text)
    rows, error = drain(path)
    assert error.startswith(f"{path}:{message}")
    assert "\n" not in error
    if kind in MISFITS:
        reader = open_stream(path, on_error="skip")
        assert sum(map(len, reader)) == 2
        assert (reader.skipped, reader.misfits, reader.first_misfit) == (0, 1, error)
    elif kind not in ("columns", "header"):
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
    assert (len(rows), error) == (2002, "")


@pytest.mark.parametrize("role", ["label", "weight", "tag", "drop", "categorical"])
def test_columns_that_are_not_there(role: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,a\n1,2\n")
    value = ("b",) if role in ("drop", "categorical") else "b"
    _, error = drain(path, columns=Columns(**{role: value}))  # type: ignore[arg-type]
    assert error == f"{path}:1:1: no column is named 'b'; there are label, a"
    roles = Columns(optional=("b",), **{role: value})  # type: ignore[arg-type]
    assert drain(path, columns=roles)[1] == ""


def test_the_nearest_column_is_named(tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    table.write_text("price,a\n1,2\n")
    lines.write_text('{"price": 1, "a": 2}\n{"a": 3}\n')
    columns = Columns(label="prize")
    _, error = drain(table, columns=columns)
    assert error == f"{table}:1:1: no column is named 'prize' (did you mean 'price'?); there are price, a"
    rows, error = drain(lines, columns=columns)
    assert rows == []
    assert error == f"{lines}:1:1: expected the label as 'prize' (did you mean 'price'?), got 'price, a'"
    assert drain(lines, columns=columns._replace(optional=("prize",)))[1] == ""
    rows, error = drain(lines, columns=Columns(label="price"))  # only the first row tells what there is
    assert (len(rows), error) == (2, "")
    rows, error = drain(lines, columns=columns, on_error="skip")
    assert (len(rows), error) == (1, "")


@pytest.mark.parametrize("format", ["parquet", "arrow", "npz"])
@pytest.mark.parametrize("text", [b"no such thing", b"PAR1", b"ARROW1", b"PK\x03\x04", b"\xff\xff\xff\xff"])
def test_damaged_archives(format: str, text: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"bad.{format}"
    path.write_bytes(text)
    rows, error = drain(path)
    assert rows == []
    assert error.startswith(f"{path}: expected ")
    assert "\n" not in error


def test_changed_arrow_files(tmp_path: Path) -> None:
    """No change of bytes may do more than to give other rows, or an error."""
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "changed.arrow"
    table = pa.table({"label": [1.0, 0.0, 1.0], "x": [1, 2, 3], "c": ["a", "bc", None]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    whole = path.read_bytes()
    script = """
import os, sys
from tests.streams.format_support import drain
path, whole = sys.argv[1], open(sys.argv[1], "rb").read()
for at in range(8, len(whole)):
    with open(path, "wb") as file:
        file.write(whole[:at] + bytes([whole[at] ^ 0xE1]) + whole[at + 1 :])
    error = drain(path, prefetch=False)[1]
    assert not error or error.startswith(path + ": "), error
os._exit(0)  # as `skn` does; pyarrow's own threads do not always survive damage and an orderly end
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b""), whole


def test_an_archive_with_an_impossible_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, X=np.ones((2, 2)))
    whole = path.read_bytes()
    at = whole.rindex(b"PK\x01\x02") + 42  # where the central directory says that the array begins
    path.write_bytes(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4 :])
    assert drain(path)[1].startswith(f"{path}: expected a NumPy archive: ")
    end = whole.rindex(b"PK\x05\x06") + 16  # where that directory begins
    path.write_bytes(whole[:end] + b"\xff\xff\xff\x7f" + whole[end + 4 :])
    assert drain(path)[1].startswith(f"{path}: expected a NumPy archive: ")


def test_an_integer_of_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text('{"a": 12}\n{"é": 1' + "0" * 5000 + "}\n")
    rows, error = drain(path)
    assert len(rows) == 1
    assert error.startswith(f"{path}:2:8: expected a finite number, got '1000")


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


def test_missing_pyarrow_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from sketchnewton.streams import open_stream\n"
        "list(open_stream(sys.argv[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"pip install 'sketchnewton[arrow]'" in done.stderr


@pytest.mark.parametrize("role", ["label", "weight", "tag"])
def test_types_that_are_neither_numbers_nor_texts(role: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    ipc = pytest.importorskip("pyarrow.ipc")
    columns = {
        "duration[ms]": arrow.array([1, 2], arrow.duration("ms")),
        "fixed_size_binary[2]": arrow.array([b"ab", b"cd"], arrow.binary(2)),
        "month_day_nano_interval": arrow.array([(1, 2, 3), (4, 5, 6)], arrow.month_day_nano_interval()),
    }
    for kind, values in columns.items():
        path = tmp_path / "odd.arrow"
        table = arrow.table({"y": [1.0, -1.0], "x": [1.0, 2.0], "odd": values})
        with arrow.OSFile(str(path), "wb") as file, ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        roles = Columns(**{"label": "y", **{role: "odd"}}, drop=("y",) if role == "label" else ())
        error = drain(path, columns=roles)[1]
        assert error == f"{path}: expected numbers or texts in column 'odd', got {kind}"
