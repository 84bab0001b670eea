"""Several threads that parse give the same batches, errors and counts as one."""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.streams import Features, Names, open_stream, parallel
from sketchnewton.streams.lines import chunks
from sketchnewton.streams.source import source_of_bytes

THREADS = (2, 3, 7)


@pytest.fixture(autouse=True, params=[2, 8])
def processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """On two processors nobody parses but the two threads that there are anyway."""
    monkeypatch.setattr(parallel, "_processors", lambda: request.param)
    return int(request.param)


def lines_of(format: str, count: int) -> list[str]:
    draw = random.Random(7)
    lines = []
    for row in range(count):
        pairs = " ".join(
            f"{draw.choice(['', 'f'] if format == 'vw' else [''])}{draw.randrange(10 ** draw.randint(1, 9))}"
            f":{draw.uniform(-1, 1):.{draw.randint(0, 17)}f}"
            for _ in range(draw.randrange(30))
        )
        lines.append(f"{row % 2} |u {pairs} |v x" if format == "vw" else f"{row % 2} {pairs}")
    return lines


def contents(batch: Batch) -> tuple[object, ...]:
    views = [None if view is None else bytes(view) for view in batch.views]
    return (*views, batch.columns, batch.first_line, batch.tags)


@pytest.mark.parametrize("format", ["svmlight", "vw"])
@pytest.mark.parametrize("prefetch", [False, True])
def test_batches_are_the_same(format: str, prefetch: bool, tmp_path: Path) -> None:
    text = "\n".join(lines_of(format, 3000)).encode()
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text))
    for name in ("plain", "packed"):

        def read(threads: int, path: Path = tmp_path / name) -> list[tuple[object, ...]]:
            batches = open_stream(path, format=format, batch_bytes=20_000, prefetch=prefetch, threads=threads)
            return [contents(batch) for batch in batches]

        expected = read(1)
        assert len(expected) > 20
        for threads in THREADS:
            assert read(threads) == expected


def test_chunks_have_memory_of_their_own_until_it_is_given_back() -> None:
    """A line longer than all others makes one buffer grow, which is then used for short ones again."""
    draw = random.Random(3)
    lines = [b"x" * (4000 if row == 50 else draw.randrange(80)) + b"\n" for row in range(200)]
    spare: list[bytearray] = []
    kept: list[tuple[memoryview, bytes]] = []  # two at a time
    buffers: set[int] = set()
    read = []
    for text in chunks(source_of_bytes(b"".join(lines), "lines"), 300, 5000, spare):
        assert isinstance(text.obj, bytearray)
        buffers.add(id(text.obj))
        read.append(bytes(text))
        kept.append((text, bytes(text)))
        if len(kept) > 2:
            done, before = kept.pop(0)
            assert bytes(done) == before
            assert isinstance(done.obj, bytearray)
            spare.append(done.obj)
            done.release()
    assert b"".join(read) == b"".join(lines)
    assert len(read) > 20
    assert len(buffers) <= 4


def test_rows_that_are_expanded(tmp_path: Path) -> None:
    path = tmp_path / "data.vw"
    path.write_text("\n".join(lines_of("vw", 500)))
    features = Features(interactions=("uv",), bits=20)
    found = []
    for threads in (1, *THREADS):
        batches = open_stream(path, features=features, batch_bytes=5_000, threads=threads)
        found.append([(b.indices.tolist(), b.data.tolist(), b.first_line) for b in batches])
    assert all(other == found[0] for other in found)


def test_exact_names_are_numbered_in_order(tmp_path: Path) -> None:
    path = tmp_path / "data.vw"
    path.write_text("\n".join(lines_of("vw", 500)))
    found = []
    for threads in (1, *THREADS):
        names = Names(exact=True)
        batches = open_stream(path, names=names, batch_bytes=5_000, threads=threads)
        found.append(([b.indices.tolist() for b in batches], names.table.keys(0)))
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("threads", [1, *THREADS])
def test_an_error_comes_after_the_rows_before_it_and_names_its_line(threads: int, tmp_path: Path) -> None:
    lines = lines_of("svmlight", 3000)
    lines[1234] = "1 5:x"
    lines[2345] = "1 y:5"
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines))
    reader = open_stream(path, batch_bytes=10_000, threads=threads)
    with pytest.raises(ParseError, match=r"data\.svm:1235:5: expected a number after ':', got 'x'"):
        for _ in reader:
            pass
    assert reader.rows == 1234
    with open_stream(path, batch_bytes=10_000, threads=threads, on_error="skip") as reader:
        rows = sum(len(batch) for batch in reader)
        assert (rows, reader.skipped) == (2998, 2)
        assert reader.first_error is not None
        assert reader.first_error.endswith(":1235:5: expected a number after ':', got 'x'")


@pytest.mark.parametrize("threads", THREADS)
def test_damaged_compression_comes_after_the_rows_before_it(threads: int, tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(lines_of("svmlight", 3000)).encode())
    path = tmp_path / "data.svm.gz"
    path.write_bytes(whole[: len(whole) // 2])

    def read(threads: int) -> tuple[int, str]:
        reader = open_stream(path, batch_bytes=10_000, threads=threads)
        with pytest.raises(ParseError) as error:
            for _ in reader:
                pass
        return reader.rows, str(error.value)

    assert read(threads) == read(1)
    assert read(1)[0] > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_line_of_a_slow_pipe_is_not_held_back(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = threading.Event()

    def produce() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"1 3:4\n")
            received.wait(60)

    producer = threading.Thread(target=produce)
    producer.start()
    with open_stream(path, format="svmlight", threads=3) as reader:
        assert next(reader).indices.tolist() == [3]  # though the pipe stays open
        received.set()
        assert next(reader, None) is None
    producer.join()


def parsers() -> int:
    return sum(thread.name == "skn-parser" for thread in threading.enumerate())


def test_a_reader_that_is_dropped_leaves_no_thread(processors: int, tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines_of("svmlight", 3000)))
    reader = open_stream(path, batch_bytes=10_000, threads=3)
    next(reader)
    assert parsers() == (2 if processors == 8 else 0)
    reader.close()
    assert parsers() == 0


@pytest.mark.parametrize("interrupted", [False, True])
def test_who_waits_for_rows_parses(interrupted: bool, processors: int, tmp_path: Path) -> None:
    """An interrupt that comes meanwhile is not lost, nor does anybody wait for that chunk for ever."""
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines_of("svmlight", 3000)))
    here = threading.current_thread()
    began, helped = threading.Semaphore(0), threading.Event()

    def prepare(_: Batch) -> bool:
        """Nobody else goes on before this thread has parsed something."""
        began.release()
        if threading.current_thread() is here:
            helped.set()
            if interrupted:
                raise KeyboardInterrupt
        return helped.wait(20)

    with open_stream(path, batch_bytes=10_000, threads=2, prepare=prepare) as reader:
        for _ in range(2 if processors == 8 else 1):  # all others are busy, so one chunk waits
            assert began.acquire(timeout=20)
        if interrupted:
            with pytest.raises(KeyboardInterrupt):
                list(reader)
        else:
            assert all(batch.prepared for batch in reader)
    assert helped.is_set()


def test_a_signal_while_parsing_stops_the_wait(processors: int, tmp_path: Path) -> None:
    """It comes while this thread helps: what `wait` is for must not go on as if nothing had happened."""
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines_of("svmlight", 3000)))
    here = threading.current_thread()
    began, helped = threading.Semaphore(0), threading.Event()

    def prepare(_: Batch) -> None:
        began.release()
        if threading.current_thread() is here and not helped.is_set():
            helped.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        helped.wait(20)

    with (
        GracefulStop() as stop,
        open_stream(path, batch_bytes=10_000, threads=2, prepare=prepare) as reader,
    ):
        for _ in range(2 if processors == 8 else 1):
            assert began.acquire(timeout=20)
        with pytest.raises(Stopped):
            stop.wait(next, reader)
    assert stop.signal == signal.SIGINT


def test_a_chunk_that_an_interrupt_has_lost_is_not_waited_for(
    processors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines_of("svmlight", 3000)))
    here = threading.current_thread()
    began, taken = threading.Semaphore(0), threading.Event()
    run = parallel._Task.run

    def lost(task: parallel._Task, *args: Any) -> None:
        if threading.current_thread() is here:
            taken.set()
            time.sleep(0.3)  # the other thread comes to wait for this chunk
            raise KeyboardInterrupt  # before it has begun
        began.release()
        taken.wait(20)
        run(task, *args)

    monkeypatch.setattr(parallel._Task, "run", lost)
    before = set(threading.enumerate())
    with open_stream(path, batch_bytes=10_000, threads=2) as reader:
        for _ in range(2 if processors == 8 else 1):  # all others are busy, so one chunk waits
            assert began.acquire(timeout=20)
        with pytest.raises(KeyboardInterrupt):
            list(reader)
    assert set(threading.enumerate()) <= before


def test_threads_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="threads=0 is invalid: must be >= 1"):
        open_stream(tmp_path / "data.svm", threads=0)


@pytest.mark.slow
def test_models_are_the_same_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "data.vw"
    path.write_text("\n".join(lines_of("vw", 60_000)))  # more than a chunk or two
    models = []
    for threads in (1, 2, 4):
        model = tmp_path / f"{threads}.skn"
        options = ["--sketch", "oja", "--threads", str(threads), "--model", str(model), "--quiet"]
        command = [sys.executable, "-m", "sketchnewton", "train", str(path), *options]
        subprocess.run(command, check=True)
        models.append(model.read_bytes())
    assert models[0] == models[1] == models[2]
