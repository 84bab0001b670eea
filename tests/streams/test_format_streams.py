"""The same rows however they arrive: cut anywhere, through a pipe, from several files, packed, of any length."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.streams import (
    WRITABLE,
    Columns,
    Features,
    Names,
    expand_paths,
    open_stream,
    open_writer,
)
from sketchnewton.testing.readers import piped
from tests.streams.format_support import CSV, drain, make_rows

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
    with piped(text, pieces) as pipe:
        assert drain(pipe, format=format) == drain(path)


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
