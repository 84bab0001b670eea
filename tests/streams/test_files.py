"""Inputs: compressions by their content, pipes, progress, and one clear error for each kind of damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.streams import ParseError, open_source, read_svmlight
from sketchnewton.streams.source import Cancelled

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
}
every_compression = pytest.mark.parametrize("kind", COMPRESS)

# Hardly compressible, so that a cut in the middle of the file is a cut in the middle of the rows.
TEXT = b"".join(b"%d %d:0.%d\n" % (i % 2, i * i % 9973, i**5 % 999983) for i in range(20_000))


def read_all(path: Path | str, piece: int = 1 << 16) -> bytes:
    buffer = bytearray(piece)
    result = b""
    with open_source(path) as source:
        while count := source.readinto(memoryview(buffer)):
            result += buffer[:count]
    return result


@pytest.mark.parametrize("piece", [1, 1000, 1 << 20])
@every_compression
def test_decompresses_by_content(kind: str, piece: int, tmp_path: Path) -> None:
    text = TEXT[:5000] if piece == 1 else TEXT
    path = tmp_path / "misleading.txt"
    path.write_bytes(COMPRESS[kind](text))
    assert read_all(path, piece) == text


@every_compression
def test_streams_that_follow_one_another(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "parts"
    compress = COMPRESS[kind]
    path.write_bytes(compress(b"1 1:1\n") + compress(b"") + compress(TEXT) + compress(b"2 2:2\n"))
    assert read_all(path) == b"1 1:1\n" + TEXT + b"2 2:2\n"


def test_plain_text_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "lying.gz"
    path.write_bytes(TEXT)
    assert read_all(path) == TEXT


@pytest.mark.parametrize("text", [b"", b"1", b"\x1f", b"BZ"])
def test_shorter_than_any_magic_number(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(text)
    assert read_all(path) == text


def test_padding_after_gzip(tmp_path: Path) -> None:
    path = tmp_path / "padded.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n") + bytes(512) + gzip.compress(b"2 2:2\n") + bytes(100_000))
    assert read_all(path) == b"1 1:1\n2 2:2\n"


@pytest.mark.parametrize("kind", [0x50, 0x57, 0x5F])
def test_skippable_frames_of_zstd(kind: int, tmp_path: Path) -> None:
    """RFC 8878: a magic number of 0x184D2A50 to 0x184D2A5F, a length, as many bytes of no meaning; anywhere."""
    frame = bytes([kind]) + b"\x2a\x4d\x18" + (300).to_bytes(4, "little") + b"1 7:7\n" * 50
    path = tmp_path / "parallel.zst"
    text, more = zstd.compress(b"1 1:1\n"), zstd.compress(b"2 2:2\n")
    path.write_bytes(frame + text + frame + frame + more + frame)
    assert read_all(path) == b"1 1:1\n2 2:2\n"
    path.write_bytes(frame[:-1])
    with pytest.raises(ParseError, match="damaged zstd data: the file ends too early"):
        read_all(path)


@every_compression
def test_progress_counts_compressed_bytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(COMPRESS[kind](TEXT))
    with open_source(path) as source:
        assert source.size == path.stat().st_size
        assert source.position == 0
        buffer = memoryview(bytearray(1000))
        while source.readinto(buffer):
            assert 0 < source.position <= source.size
        assert source.position == source.size


# --- damage


def rows_and_error(path: Path) -> tuple[int, ParseError]:
    reader = read_svmlight(path, batch_bytes=4096)
    rows = 0
    try:
        for batch in reader:
            rows += len(batch)
    except ParseError as error:
        return rows, error
    raise AssertionError("the damage was not noticed")


@pytest.mark.parametrize("missing", [1, 5, 1000])
@every_compression
def test_truncated(kind: str, missing: int, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(COMPRESS[kind](TEXT)[:-missing])
    rows, error = rows_and_error(path)
    assert error.message == f"damaged {kind} data: the file ends too early"
    # The place is where the bytes end: the line after the last delivered row.
    assert error.line == rows + 1
    assert error.column is not None
    lines = TEXT.split(b"\n")
    assert 1 <= error.column <= len(lines[rows]) + 1
    assert str(error).startswith(f"{path}:{error.line}:{error.column}: damaged")


def test_truncated_gzip_delivers_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(TEXT)[:-9])
    assert rows_and_error(path)[0] >= 19_900


@every_compression
def test_only_the_magic_number(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "stub"
    path.write_bytes(COMPRESS[kind](TEXT)[:6])
    rows, error = rows_and_error(path)
    assert (rows, error.line, error.column) == (0, 1, 1)
    assert error.message.startswith(f"damaged {kind} data: ")


@every_compression
def test_garbage_after_the_data(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(COMPRESS[kind](TEXT) + b"garbage that is no stream")
    rows, error = rows_and_error(path)
    assert (rows, error.line, error.column) == (20_000, 20_001, 1)
    assert error.message.startswith(f"damaged {kind} data: ")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["gzip", "bzip2", "xz"]), st.data())
def test_flipped_bits_never_change_the_text_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    stored = bytearray(COMPRESS[kind](TEXT[:30_000]))
    stored[data.draw(st.integers(6, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.write_bytes(stored)
    try:
        text = read_all(path)
    except ParseError:
        return
    assert text == TEXT[:30_000], "only time stamps and padding may differ unnoticed"


# --- what cannot be opened


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory") as caught:
        read_svmlight(tmp_path / "absent.svm")
    assert caught.value.filename == str(tmp_path / "absent.svm")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="Is a directory") as caught:
        read_svmlight(tmp_path)
    assert caught.value.filename == str(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"1 1:1\n")
    path.chmod(0)
    with pytest.raises(PermissionError, match="Permission denied"):
        read_svmlight(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_read_that_fails_names_the_file() -> None:
    # The memory of a process cannot be read from address 0 on.
    with open_source("/proc/self/mem") as source, pytest.raises(OSError, match="/proc/self/mem"):
        source.readinto(memoryview(bytearray(10)))


# --- pipes and standard input

READ_STDIN = """
from sketchnewton.streams import read_svmlight
reader = read_svmlight("-", batch_bytes=50_000)
print(reader.size, sum(len(batch) for batch in reader), reader.path)
"""


@pytest.mark.parametrize("kind", ["plain", *COMPRESS])
def test_standard_input_as_a_pipe(kind: str) -> None:
    data = COMPRESS[kind](TEXT) if kind in COMPRESS else TEXT
    done = subprocess.run(
        [sys.executable, "-c", READ_STDIN], input=data, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"None 20000 <stdin>\n"


def test_standard_input_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(TEXT))
    with path.open("rb") as file:
        done = subprocess.run([sys.executable, "-c", READ_STDIN], stdin=file, capture_output=True, check=True)
    assert done.stdout == f"{path.stat().st_size} 20000 <stdin>\n".encode()


def test_standard_input_closed() -> None:
    command = [sys.executable, "-c", READ_STDIN]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"standard input is closed: '<stdin>'" in done.stderr


def test_standard_input_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = io.TextIOWrapper(io.BytesIO(TEXT))
    monkeypatch.setattr(sys, "stdin", replaced)
    assert read_all("-") == TEXT
    assert not replaced.buffer.closed


def test_pieces_of_a_pipe_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    data = gzip.compress(b"1 1:1\n2 2:2\n")

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for i in range(len(data)):
                pipe.write(data[i : i + 1])

    writer = threading.Thread(target=write)
    writer.start()
    assert read_all(path) == b"1 1:1\n2 2:2\n"
    writer.join()


def test_cancel_ends_a_waiting_read(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    silent = os.open(path, os.O_RDWR)
    try:
        with open_source(path) as source:
            timer = threading.Timer(0.1, source.cancel)
            timer.start()
            with pytest.raises(Cancelled):
                source.readinto(memoryview(bytearray(10)))
            timer.join()
        source.cancel()  # after closing: harmless
    finally:
        os.close(silent)
