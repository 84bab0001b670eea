"""Small files that stand for much: refused in little memory and time, or read in parts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MEMORY, SECONDS = 500e6, 5.0

READ = """
import resource, sys, time
import numpy, pyarrow, pyarrow.parquet, pyarrow.ipc, pyarrow.compute
from sketchnewton import _native
from sketchnewton.streams import open_stream
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, start = peak(), time.process_time()
try:
    rows = sum(len(batch) for batch in open_stream(sys.argv[1]))
    print("rows", rows)
except ValueError as error:
    print("refused", str(error).replace(chr(10), "NEWLINE"))
print(peak() - before)
print(time.process_time() - start)
"""


def read(path: Path) -> tuple[str, str]:
    """ "rows" or "refused", and the rest of the line; what it costs is checked."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer, memory, seconds = done.stdout.splitlines()
    assert float(memory) <= MEMORY, (answer, float(memory) / 1e6)
    assert float(seconds) <= SECONDS, (answer, seconds)
    kind, _, rest = answer.partition(" ")
    return kind, rest


def parquet(path: Path, table: Any, **how: Any) -> Path:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, path, **how)
    assert path.stat().st_size < 200_000
    return path


def table_of(cells: list[str], **more: Any) -> Any:
    import pyarrow as pa

    return pa.table({"label": np.ones(len(cells)), "text": pa.array(cells), **more})


@pytest.mark.slow
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("rows", [1, 2])
def test_parquet_with_one_long_text(tmp_path: Path, dictionary: bool, rows: int) -> None:
    cells = ["a" * (256 << 20), "b"][:rows]
    path = parquet(tmp_path / "a.parquet", table_of(cells), compression="zstd", use_dictionary=dictionary)
    assert read(path)[0] == "refused"


@pytest.mark.slow
def test_parquet_with_a_text_in_many_rows(tmp_path: Path) -> None:
    """The text is there once, so it can be read."""
    path = parquet(tmp_path / "a.parquet", table_of(["a" * (1 << 17)] * 8000), compression="zstd")
    assert read(path) == ("rows", "8000")


@pytest.mark.slow
@pytest.mark.parametrize("nested", ["object", "list"])
def test_parquet_with_a_nested_text_in_many_rows(tmp_path: Path, nested: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1200, pa.int32()), pa.array(["a" * (1 << 19)]))
    starts = pa.array(range(1201), pa.int32())
    objects = pa.StructArray.from_arrays([texts], ["a"])
    cells = objects if nested == "object" else pa.ListArray.from_arrays(starts, texts)
    path = tmp_path / "a.parquet"
    table = pa.table({"label": [1.0] * 1200, "u": cells})
    pa.parquet.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    assert read(path) == ("rows", "1200")


@pytest.mark.slow
def test_parquet_with_a_long_list(tmp_path: Path) -> None:
    import pyarrow as pa

    zeros = np.zeros(1 << 26, np.int64)
    offsets = pa.array(np.array([0, len(zeros)], np.int32))
    table = pa.table(
        {
            "label": [1.0],
            "indices": pa.ListArray.from_arrays(offsets, pa.array(zeros)),
            "values": pa.ListArray.from_arrays(offsets, pa.array(zeros.astype(np.float64))),
        }
    )
    assert read(parquet(tmp_path / "a.parquet", table, compression="zstd"))[0] == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["string", "dictionary", "large_string"])
def test_arrow_with_one_long_text(tmp_path: Path, stream: bool, kind: str) -> None:
    import pyarrow as pa

    column = pa.array(["a" * (256 << 20)], "large_string" if kind == "large_string" else "string")
    column = column.dictionary_encode() if kind == "dictionary" else column
    table = pa.table({"label": [1.0], "text": column})
    path = tmp_path / "a.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), table.schema, options=options) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 200_000
    assert read(path)[0] == "refused"


def test_arrow_with_views_of_one_text(tmp_path: Path) -> None:
    import pyarrow as pa

    text = b"a" * (1 << 20)
    view = np.zeros((8000, 4), np.int32)
    view[:, 0] = len(text)
    view[:, 1] = int.from_bytes(b"aaaa", "little")
    buffers = [None, pa.py_buffer(view.tobytes()), pa.py_buffer(text)]
    table = pa.table({"label": np.ones(8000), "text": pa.Array.from_buffers(pa.string_view(), 8000, buffers)})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 2_000_000
    assert read(path) == ("rows", "8000")


def npz(path: Path, **arrays: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in arrays.items():
            with file.open(f"{name}.npy", "w") as member:
                member.write(data)
                if name in ("X", "data"):
                    for _ in range(64):
                        member.write(bytes(1 << 24))
    assert path.stat().st_size < 2_000_000
    return path


def header(shape: str, descr: str = "'<f8'", size: int = 0) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(max(size, 118)) + "\n"
    if size:
        return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "X",
    [
        header("(1, 134217728)"),
        header("(1, 1099511627776)"),
        header("(1, 4)", size=1 << 28),
        header("(4, 4)", "'V0'"),
        header("(1, 2)", "'S100000000'"),
        header("(-1, 4)"),
        header("(True, 4)"),
        header("()"),
        header("(2,)"),
        header("(1152921504606846976, 0)"),
        header("(4, 4)", "[('a', '<f8')]"),
        header("(4, 4)", "'|O'"),
        header("(4, 4", "'<f8'"),
        header("((((((((4,", "'<f8'"),
        header("(4, 4)", "'" + "9" * 50 + "f8'"),
        b"\x93NUMPY\x01\x00",
        b"",
    ],
)
def test_npz_with_an_odd_header(tmp_path: Path, X: bytes) -> None:
    kind, message = read(npz(tmp_path / "a.npz", X=X))
    assert kind == "refused"
    assert "a.npz: " in message
    assert "NEWLINE" not in message


@pytest.mark.slow
@pytest.mark.parametrize("indptr", [[0, 1 << 27], [0, 1 << 60], [0.0, np.nan], [0, -1], 7])
def test_npz_with_odd_places_of_rows(tmp_path: Path, indptr: Any) -> None:
    parts = {
        "indptr": array(indptr),
        "indices": header("(134217728,)", "'|u1'"),
        "data": header("(134217728,)"),
    }
    kind, message = read(npz(tmp_path / "a.npz", **parts))
    assert kind == "refused"
    assert "a.npz: " in message


def test_npz_with_another_compression(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("X.npy", array(np.ones((2, 2))))
    assert "expected no compression" in read(path)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        '{"label": 1, "a": [' + "1," * 4_000_000 + "1]}",
        '{"label": 1, "a": [' + '"b",' * 2_000_000 + '"b"]}',
        "{" + ", ".join(f'"{k}":1' for k in range(700_000)) + "}",
        '{"label": 1, "a": [' + "{}," * 2_500_000 + "1]}",
        '{"label": 1, "a": "' + "x" * 8_000_000 + '"}',
        "[" * 8_000_000,
        '{"a":' * 1_500_000,
    ],
    ids=["numbers", "texts", "keys", "objects", "text", "lists", "nested"],
)
def test_a_long_line_of_json(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    assert path.stat().st_size < 8 << 20
    kind, message = read(path)
    assert kind == ("rows" if '"xx' in line else "refused")
    assert kind == "rows" or message.startswith(f"{path}:1:")


def test_commas_within_texts_are_no_values(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"label": 1, "text": 'a,\\",' * 200_000}) + "\n")
    assert read(path) == ("rows", "1")
