"""svmlight text: what is accepted, to the bit; what is refused, to the column; and threads that end."""

from __future__ import annotations

import gc
import io
import itertools
import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sketchnewton._native import parse_svmlight
from sketchnewton.streams import Batch, ParseError, read_svmlight

LIMIT = 1 << 20


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


def parse(text: bytes) -> tuple[list[float], list[list[tuple[int, float]]]]:
    indptr, indices, data, labels, columns, _, error = parse_svmlight(text, LIMIT)
    assert error is None
    assert columns == max(indices, default=-1) + 1
    pairs = list(zip(indices.tolist(), data.tolist(), strict=True))
    return labels.tolist(), [pairs[a:b] for a, b in itertools.pairwise(indptr)]


def drain(path: Path | str, **options: int) -> tuple[list[tuple[float, tuple[int, ...], bytes]], str]:
    """All rows that arrive, exactly, and the error at the end."""
    rows: list[tuple[float, tuple[int, ...], bytes]] = []
    try:
        for batch in read_svmlight(path, **options):
            for i, label in enumerate(batch.labels.tolist()):
                part = slice(batch.indptr[i], batch.indptr[i + 1])
                rows.append((label, tuple(batch.indices[part].tolist()), batch.data[part].tobytes()))
    except ParseError as error:
        return rows, str(error)
    return rows, ""


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "skn-reader"]


def no_reader_left(seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while readers() and time.monotonic() < end:
        time.sleep(0.005)
    return not readers()


@pytest.fixture
def many_rows(tmp_path: Path) -> Path:
    path = tmp_path / "many.svm"
    path.write_bytes(b"".join(b"%d %d:0.5 %d:1\n" % (i % 2, i, i + 1) for i in range(50_000)))
    return path


# --- what is accepted


@pytest.mark.parametrize(
    ("text", "labels", "rows"),
    [
        (b"1 1:2 3:4\n", [1], [[(1, 2), (3, 4)]]),
        (b"1 0:2\n", [1], [[(0, 2)]]),
        (b"+1 1:+2\n", [1], [[(1, 2)]]),
        (b"-1.5e-1 +7:-2E+3\n", [-0.15], [[(7, -2000)]]),
        (b"1 9:1 3:2 3:5\n", [1], [[(9, 1), (3, 2), (3, 5)]]),
        (b"1 4:0\n", [1], [[(4, 0)]]),
        (b"1 1:.5 2:5.\n", [1], [[(1, 0.5), (2, 5)]]),
        (b"1 qid:3 1:2\n", [1], [[(1, 2)]]),
        (b"1 qid:99999999999999999999999 1:2\n", [1], [[(1, 2)]]),
        (b"1 qid:7\n2 qid:8 # x\n", [1, 2], [[], []]),
        (b"1 1:2 # 5:6\n2 1:3#4\n3#\n", [1, 2, 3], [[(1, 2)], [(1, 3)], []]),
        (b"# \xff\x00 binary is fine in a comment\n\n \t\n1 1:2\n", [1], [[(1, 2)]]),
        (b"1 1:2\r\n\r\n# c\r\n2 1:3 \r\n", [1, 2], [[(1, 2)], [(1, 3)]]),
        (b"  1\t1:2  \t 2:3 \t\n", [1], [[(1, 2), (2, 3)]]),
        (b"1 1:2\n2 2:3", [1, 2], [[(1, 2)], [(2, 3)]]),
        (b"1 1:2\r", [1], [[(1, 2)]]),
        (b"1\n2", [1, 2], [[], []]),
        (b"1 4611686018427387904:1\n", [1], [[(2**62, 1)]]),
        (b"1 000000000000000000000000000012:1\n", [1], [[(12, 1)]]),
        (b"1 1:1e-400 2:0e99999999999999999999\n", [1], [[(1, 0), (2, 0)]]),
        (b"", [], []),
        (b"\n\n# nothing\n", [], []),
    ],
)
def test_accepted(text: bytes, labels: list[float], rows: list[list[tuple[int, float]]]) -> None:
    assert parse(text) == (labels, rows)


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: f"{x:.6f}"),
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,3}\.[0-9]{0,60}e-3[0-3][0-9]", fullmatch=True),
    st.from_regex(r"0{0,40}\.0{0,400}[0-9]{1,30}e[+]?[0-9]{1,3}", fullmatch=True),
)


@settings(max_examples=1000, deadline=None)
@given(decimals)
@example("9007199254740993")
@example("9007199254740992e22")
@example("9007199254740992e23")
@example("18446744073709551617")
@example("2.2250738585072011e-308")
@example("4.9406564584124654e-324")
@example("2.4703282292062327e-324")
@example("1.7976931348623158e308")
@example("1.7976931348623159e308")
@example("8.5e-1")
@example("0.1e-5")
@example("-0")
@example("-0.0e0")
@example("1" + "0" * 400)
@example("0." + "0" * 400 + "1e401")
@example("1" + "0" * 400 + "e-400")
@example("0." + "0" * 800 + "1")
def test_numbers_are_rounded_as_by_python(text: str) -> None:
    _, _, data, labels, _, _, error = parse_svmlight(f"{text} 7:{text} 8:{text}".encode(), LIMIT)
    if np.isinf(float(text)):
        assert error is not None
        assert error[:3] == (1, "number out of range", text[:80].encode())
    else:
        assert error is None
        assert [bits(x) for x in (*labels, *data)] == [bits(float(text))] * 3


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_agrees_with_scikit_learn(seed: int, zero_based: bool) -> None:
    random = np.random.default_rng(seed)
    n, d = random.integers(1, 20), random.integers(1, 30)
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-300, 300, size=(n, d))
    X[random.random(X.shape) < 0.6] = 0
    file = io.BytesIO()
    dump_svmlight_file(X, random.normal(size=n), file, zero_based=zero_based, comment="made by a test")
    expected, labels = load_svmlight_file(io.BytesIO(file.getvalue()), n_features=d + 1, zero_based=True)
    indptr, indices, data, ours, _, _, error = parse_svmlight(file.getvalue(), LIMIT)
    assert error is None
    np.testing.assert_array_equal(indptr, expected.indptr)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(data, expected.data)
    np.testing.assert_array_equal(ours, labels)


# --- what is refused

MALFORMED = {
    "label: letters": (b"abc 1:2", 1, "expected a number as the label, got 'abc'"),
    "label: missing": (b"1:2 3:4", 1, "expected a label before the first index:value, got '1:2'"),
    "label: empty": (b" :2", 2, "expected a label before the first index:value, got ':2'"),
    "label: only a sign": (b"- 1:2", 1, "expected a number as the label, got '-'"),
    "label: several": (b"1,2 1:1", 1, "expected a number as the label, got '1,2'"),
    "label: nan": (b"nan 1:1", 1, "expected a finite number as the label, got 'nan'"),
    "label: infinite": (b"-Infinity 1:1", 1, "expected a finite number as the label, got '-Infinity'"),
    "label: overflow": (b"1e309 1:1", 1, "number out of range, got '1e309'"),
    "qid: letters": (b"1 qid:x 1:1", 7, "expected a non-negative integer after 'qid:', got 'x'"),
    "qid: negative": (b"1 qid:-1 1:1", 7, "expected a non-negative integer after 'qid:', got '-1'"),
    "qid: fraction": (b"1 qid:1.5 1:1", 7, "expected a non-negative integer after 'qid:', got '1.5'"),
    "qid: empty": (b"1 qid: 1:1", 7, "expected a non-negative integer after 'qid:', got nothing"),
    "qid: late": (b"1 1:1 qid:1", 7, "expected an integer index before ':', got 'qid'"),
    "index: letters": (b"1 1:1 abc:2", 7, "expected an integer index before ':', got 'abc'"),
    "index: negative": (b"1 -3:2", 3, "expected a non-negative index before ':', got '-3'"),
    "index: fraction": (b"1 1.5:2", 3, "expected an integer index before ':', got '1.5'"),
    "index: empty": (b"1 :2", 3, "expected an integer index before ':', got nothing"),
    "index: 2^62 + 1": (b"1 4611686018427387905:1", 3, "index too large: must be at most 2^62, got '46"),
    "index: 2^64 + 1": (b"1 18446744073709551617:1", 3, "index too large"),
    "colon: missing": (b"1 1:2 12", 7, "expected index:value, got '12'"),
    "colon: missing, letters": (b"1 abc 1:2", 3, "expected index:value, got 'abc'"),
    "value: letters": (b"1 1:2 3:abc", 9, "expected a number after ':', got 'abc'"),
    "value: trailing letters": (b"1 1:2x", 5, "expected a number after ':', got '2x'"),
    "value: missing": (b"1 1:", 5, "expected a number after ':', got nothing"),
    "value: missing before a blank": (b"1 1: 2", 5, "expected a number after ':', got nothing"),
    "value: missing before a comment": (b"1 1:#2", 5, "expected a number after ':', got nothing"),
    "value: two colons": (b"1 1:2:3", 5, "expected a number after ':', got '2:3'"),
    "value: no digits": (b"1 1:.e5", 5, "expected a number after ':', got '.e5'"),
    "value: two signs": (b"1 1:+-5", 5, "expected a number after ':', got '+-5'"),
    "value: empty exponent": (b"1 1:1e+", 5, "expected a number after ':', got '1e+'"),
    "value: hexadecimal": (b"1 1:0x1p3", 5, "expected a number after ':', got '0x1p3'"),
    "value: underscore": (b"1 1:1_0", 5, "expected a number after ':', got '1_0'"),
    "value: nan": (b"1 1:NaN", 5, "expected a finite number after ':', got 'NaN'"),
    "value: infinite": (b"1 1:-inf", 5, "expected a finite number after ':', got '-inf'"),
    "value: overflow": (b"1 1:-1e999", 5, "number out of range, got '-1e999'"),
    "junk: NUL": (b"1 1:2\x00 3:4", 5, r"expected a number after ':', got '2\x00'"),
    "junk: binary": (b"\x80\x04\x95 1", 1, r"expected a number as the label, got '\x80\x04\x95'"),
    "junk: lone carriage return": (b"1 1:2\r3:4", 6, r"expected index:value, got '\r3:4'"),
    "junk: vertical tab": (b"1 1:2\x0b3:4", 5, r"expected a number after ':', got '2\x0b3:4'"),
    "long token": (b"1 1:" + b"x" * 500, 5, "expected a number after ':', got 'xxxxxxxxxxxxxxxxxxx…'"),
    "letters of the world": ("1 1:größe".encode(), 5, "expected a number after ':', got 'größe'"),
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""])
def test_malformed(kind: str, newline: bytes, tmp_path: Path) -> None:
    line, column, message = MALFORMED[kind]
    path = tmp_path / "clicks.svm"
    path.write_bytes(b"1 1:1\n# comment\n2 2:2\n" + line + newline)
    reader = read_svmlight(path)
    assert next(reader).labels.tolist() == [1, 2], "the rows before the bad line are delivered"
    with pytest.raises(ParseError) as caught:
        next(reader)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(path), 4, column)
    assert str(error).startswith(f"{path}:4:{column}: {message}")
    assert pickle.loads(pickle.dumps(error)).args == error.args


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n\n  \n", b"\r\n"])
def test_no_examples(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty.svm"
    path.write_bytes(text)
    assert drain(path) == ([], f"{path}:1:1: no examples")


@pytest.mark.parametrize("bad", [b"", b" 1:x"])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\n3 3:3\n"])
@pytest.mark.parametrize("batch_bytes", [1, 7, 64, 1 << 20])
def test_line_length_limit(tmp_path: Path, batch_bytes: int, tail: bytes, bad: bytes) -> None:
    path = tmp_path / "long.svm"
    line = b"2" + bad
    line += b" " * (100 - len(line))
    good = [(1.0, (1,), np.float64(1).tobytes())]
    path.write_bytes(b"1 1:1\n" + line + b" " + tail)
    rows, error = drain(path, batch_bytes=batch_bytes, max_line_bytes=100)
    assert (rows, error) == (good, f"{path}:2:1: line too long: must have at most 100 bytes")
    path.write_bytes(b"1 1:1\n" + line + tail)
    rows, error = drain(path, batch_bytes=batch_bytes, max_line_bytes=100)
    assert "line too long" not in error
    assert len(rows) == (1 if bad else 3 if len(tail) > 1 else 2)


def test_a_file_without_lines_is_not_read_whole() -> None:
    with read_svmlight("/dev/zero", max_line_bytes=1 << 16, batch_bytes=1 << 12) as reader:
        with pytest.raises(ParseError, match=r"/dev/zero:1:1: line too long"):
            next(reader)
        assert reader.size is None


@pytest.mark.parametrize("option", ["batch_bytes", "max_line_bytes"])
def test_options_are_checked(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}=0 is invalid: must be >= 1"):
        read_svmlight("unused", **{option: 0})


# --- cutting into chunks changes nothing

good_lines = st.lists(
    st.sampled_from(
        [b"1 1:2 3:4.5", b"-1 0:1e-3", b"", b"# c", b"2\r", b"3 qid:1 5:1 # x", b"4 123456789:7 "]
    )
)
bad_ends = st.sampled_from([b"", b"5 5:5", b"1 1:x\n9 9:9\n", b"abc", b"1 1:2 :\n"])


@settings(max_examples=150, deadline=None)
@given(good_lines, bad_ends, st.integers(1, 60), st.booleans())
def test_batch_size_changes_no_row(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bytes, size: int, prefetch: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.svm"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + end)
    assert drain(path, batch_bytes=size, prefetch=prefetch) == drain(path)


def test_batches_are_whole_rows_of_about_the_size_asked_for(many_rows: Path) -> None:
    with read_svmlight(many_rows, batch_bytes=10_000) as reader:
        batches = list(reader)
    size = many_rows.stat().st_size
    assert size / 10_000 <= len(batches) <= 1.01 * size / 10_000 + 1
    assert sum(map(len, batches)) == reader.rows == 50_000
    lines = [batch.first_line for batch in batches]
    assert lines == [1 + sum(map(len, batches[:i])) for i in range(len(batches))]


def test_progress_reaches_the_size(many_rows: Path) -> None:
    with read_svmlight(many_rows, batch_bytes=10_000) as reader:
        assert reader.size == many_rows.stat().st_size
        assert reader.position == 0
        positions = [reader.position for _ in reader]
    assert positions == sorted(positions)
    assert 10_000 <= positions[0] <= 20_000
    assert positions[-1] == reader.size


def test_parses_ahead_but_not_far(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    size = 1 << 17
    accepted = 0
    try:
        with read_svmlight(path, batch_bytes=size):
            patience = time.monotonic() + 1.0
            while time.monotonic() < patience and accepted < 100 * size:
                try:
                    accepted += os.write(writer, b"1 1:0.25\n" * 400)
                    patience = time.monotonic() + 1.0
                except BlockingIOError:
                    time.sleep(0.01)
    finally:
        os.close(writer)
    # Nobody asked for a batch: this much was taken by the thread, apart from what the pipe holds.
    # A writer that pauses gets smaller batches, so there is no least amount.
    assert 0 < accepted <= 6 * size


# --- batches


def test_batch_is_a_csr_matrix_by_its_looks() -> None:
    batch = Batch(np.array([0, 2, 2]), np.array([5, 1]), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    assert (len(batch), batch.shape, batch.format, batch.weights) == (2, (2, 6), "csr", None)
    with pytest.raises(AttributeError):
        batch.labels = batch.data  # type: ignore[misc]
    nothing = Batch(np.array([0]), np.array([], dtype=np.int64), np.array([]), np.array([]))
    assert nothing.shape == (0, 0)


# --- the thread ends


def test_thread_ends_with_the_input(many_rows: Path) -> None:
    list(read_svmlight(many_rows, batch_bytes=1000))
    assert no_reader_left()


def test_thread_ends_when_closed_early(many_rows: Path) -> None:
    reader = read_svmlight(many_rows, batch_bytes=100)
    next(reader)
    assert [thread.daemon for thread in readers()] == [True]
    reader.close()
    assert not readers()
    reader.close()
    with pytest.raises(StopIteration):
        next(reader)


def test_thread_ends_when_the_reader_is_dropped(many_rows: Path) -> None:
    for _ in read_svmlight(many_rows, batch_bytes=100):
        break
    gc.collect()
    assert not readers()


def test_thread_ends_when_the_consumer_fails(many_rows: Path) -> None:
    def fail(batch: Batch) -> None:
        raise ZeroDivisionError

    def learn() -> None:
        with read_svmlight(many_rows, batch_bytes=100) as reader:
            for batch in reader:
                fail(batch)

    with pytest.raises(ZeroDivisionError):
        learn()
    assert not readers()


def test_thread_ends_after_an_error_in_the_input(tmp_path: Path) -> None:
    path = tmp_path / "bad.svm"
    path.write_bytes(b"1 1:1\n1 1:x\n")
    reader = read_svmlight(path)
    assert len(next(reader)) == 1
    with pytest.raises(ParseError):
        next(reader)
    assert not readers()
    with pytest.raises(StopIteration):
        next(reader)


def test_closing_does_not_wait_for_a_silent_pipe(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        os.write(writer, b"1 1:1\n")
        reader = read_svmlight(path)
        start = time.monotonic()
        reader.close()
        assert time.monotonic() - start < 4.0
        assert not readers()
    finally:
        os.close(writer)


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_slow_pipe_is_answered_line_by_line(compressed: bool, prefetch: bool) -> None:
    """Each line is written only when the row before it has come out."""
    gzip = zlib.compressobj(wbits=31)
    source, writer = os.pipe()
    reader = None

    def send(text: bytes) -> None:
        if compressed:
            text = gzip.compress(text) + gzip.flush(zlib.Z_SYNC_FLUSH)
        os.write(writer, text)

    try:
        send(b"0\n")
        reader = read_svmlight(f"/dev/fd/{source}", prefetch=prefetch)
        assert next(reader).labels.tolist() == [0.0]
        send(b"1 1:1\n2 2:")  # the second line is still to be finished
        batch = next(reader)
        assert (batch.labels.tolist(), batch.first_line) == ([1.0], 2)
        send(b"0.25\n# a comment\n3 1:1\n")
        batch = next(reader)
        assert (batch.labels.tolist(), batch.data.tolist(), batch.first_line) == ([2.0, 3.0], [0.25, 1.0], 3)
        send(b"4 x\n")
        with pytest.raises(ParseError, match=r":6:3: ") as error:
            next(reader)
        assert error.value.line == 6
    finally:
        if reader is not None:
            reader.close()
        os.close(source)
        os.close(writer)


def test_an_unfinished_line_at_the_end_of_a_slow_pipe() -> None:
    source, writer = os.pipe()
    try:
        with read_svmlight(f"/dev/fd/{source}") as reader:
            os.write(writer, b"1 1:1\n2 2")
            assert next(reader).labels.tolist() == [1.0]
            os.write(writer, b":7")
            os.close(writer)
            batch = next(reader)
            assert (batch.labels.tolist(), batch.indices.tolist(), batch.first_line) == ([2.0], [2], 2)
            with pytest.raises(StopIteration):
                next(reader)
    finally:
        os.close(source)


def test_a_pipe_delivers_the_rows_of_the_file(many_rows: Path) -> None:
    source, writer = os.pipe()
    copier = subprocess.Popen(["cat", str(many_rows)], stdout=writer)
    os.close(writer)
    try:
        with copier, read_svmlight(f"/dev/fd/{source}", batch_bytes=10_000) as reader:
            rows = sum(map(len, reader))
    finally:
        os.close(source)
    assert rows == sum(map(len, read_svmlight(many_rows)))


@pytest.mark.parametrize("close", ["reader.close()", "pass"])
def test_interrupt_while_waiting_for_standard_input(close: str) -> None:
    program = textwrap.dedent(f"""
        from sketchnewton.streams import read_svmlight
        reader = read_svmlight("-")
        try:
            print("waiting", flush=True)
            next(reader)
        except KeyboardInterrupt:
            {close}
            print("interrupted", flush=True)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        # Standard input stays open: only the signal can have ended the wait.
        assert child.stdout.readline() == b"interrupted\n"
        assert child.wait(timeout=10) == 0
        assert child.stderr is not None
        assert child.stderr.read() == b""


def test_exit_while_the_thread_is_busy(many_rows: Path) -> None:
    program = textwrap.dedent(f"""
        from sketchnewton.streams import read_svmlight
        reader = read_svmlight({str(many_rows)!r}, batch_bytes=100)
        next(reader)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_streams_do_not_import_the_slow_packages() -> None:
    program = (
        "import sys, sketchnewton.streams; print({'scipy', 'sklearn', 'lzma', 'bz2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=True)
    assert done.stdout == b"set()\n"
