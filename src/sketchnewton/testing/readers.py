"""What every reader of a format promises, and a check for formats that are written elsewhere."""

from __future__ import annotations

import gzip
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.streams import BatchReader
from sketchnewton.testing.promises import by_title, check, require

__all__ = ["READER_PROMISES", "Row", "check_reader", "drain", "piped", "rows_of"]

Row = tuple[str, float, float, bytes, dict[int, float]]
"""Label, as text so that NaN equals NaN; weight; base; tag; features."""
_OPEN_FILES = "/proc/self/fd"


def rows_of(batches: Iterable[Batch]) -> list[Row]:
    """All rows, exactly; features of one index are added up."""
    rows: list[Row] = []
    for batch in batches:
        indices, values, bounds = batch.indices.tolist(), batch.data.tolist(), batch.indptr.tolist()
        for i, label in enumerate(batch.labels.tolist()):
            features: dict[int, float] = {}
            for k in range(bounds[i], bounds[i + 1]):
                features[indices[k]] = features.get(indices[k], 0.0) + values[k]
            weight = 1.0 if batch.weights is None else float(batch.weights[i])
            base = 0.0 if batch.base is None else float(batch.base[i])
            rows.append((repr(label), weight, base, b"" if batch.tags is None else batch.tags[i], features))
    return rows


def drain(reader: Iterable[Batch]) -> tuple[list[Row], str]:
    """All rows that arrive, and the message of the ParseError at the end; empty if there is none."""
    batches = []
    try:
        for batch in reader:
            batches.append(batch)
    except ParseError as error:
        return rows_of(batches), str(error)
    return rows_of(batches), ""


@dataclass(frozen=True)
class Sample:
    """How to read a file, the content of one, and what is known of it."""

    read: Callable[..., BatchReader]
    content: bytes
    expected: Sequence[Row] | None
    bad: bytes | None
    lines: bool
    ending: str

    @contextmanager
    def file(self, content: bytes | None = None) -> Iterator[str]:
        """A file of this content, or of the sample's."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sample" + self.ending)
            with open(path, "wb") as file:
                file.write(self.content if content is None else content)
            yield path

    def require_orderly(self, path: str, what: str) -> tuple[list[Row], str]:
        """Rows or one line that names the file: anything else is a crash."""
        rows, error = drain(self.read(path))
        named = not error or (error.startswith(f"{path}:") and "\n" not in error)
        require(named, f"{what}: the error is not one line that begins with the file's name: {error!r}")
        return rows, error


def batches_hold_the_expected_rows(sample: Sample) -> None:
    """Labels, weights, bases, tags and features, without an error."""
    with sample.file() as path:
        rows, error = drain(sample.read(path))
        require(not error, f"the sample cannot be read: {error}")
        require(rows, "the sample has no rows")
        if sample.expected is None:
            return
        require(len(rows) == len(sample.expected), f"{len(rows)} rows, not {len(sample.expected)}")
        for at, (row, expected) in enumerate(zip(rows, sample.expected, strict=True)):
            require(row == expected, f"row {at} is {row}, not {expected}")


def chunk_sizes_do_not_matter(sample: Sample) -> None:
    """However few bytes are read at a time, in a thread or not."""
    with sample.file() as path:
        expected = drain(sample.read(path, prefetch=False))
        require(drain(sample.read(path)) == expected, "rows that a thread reads ahead differ")
        for size in (*range(1, 20), 31, 60, 1000):
            require(drain(sample.read(path, batch_bytes=size)) == expected, f"rows in chunks of {size} bytes")


def pieces_of_a_pipe_do_not_matter(sample: Sample) -> None:
    """Nor whether they are compressed."""
    with sample.file() as path:
        expected = drain(sample.read(path))
        for size in (1, 3, 7, 30, 1000):
            for content in (sample.content, gzip.compress(sample.content)):
                with piped(content, [size]) as pipe:
                    found = drain(sample.read(pipe))
                require(found == expected, f"rows of a pipe in pieces of {size} bytes")


@contextmanager
def piped(content: bytes, sizes: Sequence[int]) -> Iterator[str]:
    """The path of a pipe into which the content is written, so many bytes at a time, over and over."""
    source, target = os.pipe()

    def write() -> None:
        with open(target, "wb", buffering=0) as pipe:
            at, pieces = 0, itertools.cycle(sizes)
            while at < len(content):
                at += pipe.write(content[at : at + next(pieces)]) or 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield f"/dev/fd/{source}"
    finally:
        writer.join()
        os.close(source)


def compressed_input_is_recognised(sample: Sample) -> None:
    """By its content, whatever the file is called."""
    with sample.file() as plain, sample.file(gzip.compress(sample.content)) as packed:
        require(
            drain(sample.read(packed)) == drain(sample.read(plain)), "rows of the compressed sample differ"
        )


def truncated_input_is_an_error_not_a_crash(sample: Sample) -> None:
    """Lines before the cut are rows as they were; an archive without its end is refused."""
    with sample.file() as path:
        whole, _ = drain(sample.read(path))
    size = len(sample.content)
    for end in range(0, size, max(1, size // 100)):
        with sample.file(sample.content[:end]) as path:
            rows, error = sample.require_orderly(path, f"{end} of {size} bytes")
            require(len(rows) <= len(whole), f"{end} of {size} bytes have more rows than all")
            require(rows or error, f"{end} of {size} bytes: neither rows nor an error")
            require(sample.lines or error, f"{end} of {size} bytes of an archive were read without an error")


def damaged_input_is_an_error_not_a_crash(sample: Sample) -> None:
    """No change of bytes may do more than to give other rows, or an error."""
    random = np.random.default_rng(0)
    for _ in range(100):
        damaged = bytearray(sample.content)
        for at in random.integers(0, len(damaged), int(random.integers(1, 4))):
            damaged[at] ^= int(random.integers(1, 256))
        with sample.file(bytes(damaged)) as path:
            sample.require_orderly(path, f"damaged input {bytes(damaged)!r}")


def empty_input_is_an_error(sample: Sample) -> None:
    """So that a file that was never written is not taken for data."""
    with sample.file(b"") as path:
        rows, error = sample.require_orderly(path, "an empty file")
        require(error and not rows, "an empty file was read without an error")


def skipped_rows_are_counted(sample: Sample) -> None:
    """With `on_error="skip"` a bad row is left out, counted, and the first reported; else it ends the stream."""
    if sample.bad is None:
        return
    with sample.file() as path:
        good, _ = drain(sample.read(path))
    for bad in (1, 2):
        with sample.file(sample.content + bad * sample.bad) as path:
            rows, error = sample.require_orderly(path, "a bad row")
            require(error, "a bad row was read without an error")
            require(rows == good, "the rows before a bad one were not all delivered")
            reader = sample.read(path, on_error="skip")
            require(drain(reader) == (good, ""), "skipping a bad row changes others")
            found = (reader.skipped, reader.first_error)
            require(found == (bad, error), f"skipped and first_error are {found}, not {(bad, error)}")


def progress_is_counted(sample: Sample) -> None:
    """Rows that were delivered, and the bytes that they needed: of lines, in the end, all."""
    with sample.file() as path:
        reader = sample.read(path)
        rows = sum(map(len, reader))
        require(reader.rows == rows, f"{reader.rows} rows counted of {rows}")
        size = len(sample.content)
        require(reader.size == size, f"size is {reader.size}, not {size}")
        least = size if sample.lines else 0
        require(least <= reader.position <= size, f"position is {reader.position} of {size} at the end")


def closing_ends_the_stream(sample: Sample) -> None:
    """At any time, repeatedly, by `with` as well; no thread is left, and the file is not open."""
    with sample.file() as path:
        for prefetch in (True, False):
            threads = threading.active_count()
            reader = sample.read(path, batch_bytes=1, prefetch=prefetch)
            next(reader)
            reader.close()
            reader.close()
            require(next(reader, None) is None, "a closed reader has another batch")
            with sample.read(path, prefetch=prefetch) as entered:
                next(entered)
            require(next(entered, None) is None, "a reader that was left has another batch")
            require(threading.active_count() <= threads, "a thread is left")
            require(not _is_open(path), f"the file is still open (prefetch={prefetch})")


def _is_open(path: str) -> bool:
    """Has this process the file open? Where the system does not tell, it is taken for closed."""
    for entry in os.listdir(_OPEN_FILES) if os.path.isdir(_OPEN_FILES) else ():
        with suppress(OSError):  # closed meanwhile
            if os.path.samefile(os.path.join(_OPEN_FILES, entry), path):
                return True
    return False


READER_PROMISES = by_title(
    batches_hold_the_expected_rows,
    chunk_sizes_do_not_matter,
    pieces_of_a_pipe_do_not_matter,
    compressed_input_is_recognised,
    truncated_input_is_an_error_not_a_crash,
    damaged_input_is_an_error_not_a_crash,
    empty_input_is_an_error,
    skipped_rows_are_counted,
    progress_is_counted,
    closing_ends_the_stream,
)
"""What every reader promises, in words, and the check of each."""


def check_reader(
    read: Callable[..., BatchReader],
    content: bytes,
    *,
    expected: Iterable[Batch] | None = None,
    bad: bytes | None = None,
    lines: bool = True,
    ending: str = "",
    only: Iterable[str] | None = None,
) -> None:
    """Check that a reader keeps what every reader promises, on a file of this `content`.

    `read` opens a stream, called as `read(path, *, batch_bytes, prefetch, on_error)`; the options have the
    defaults and meaning of `streams.open_stream`. `expected` are the rows of the content, in any batches; `bad` is
    a line that, added to it, is an error; without them these two promises are not checked. `lines` is False for
    archives, of which every part is needed. `ending` is the extension of the file name. Raises AssertionError that
    names the first promise that is broken; `only` names some of the `READER_PROMISES`.

    >>> from functools import partial
    >>> import numpy as np
    >>> from sketchnewton.streams import Batch, open_stream
    >>> rows = Batch(np.array([0, 1, 1]), np.array([3]), np.array([0.5]), np.array([1.0, -1.0]))
    >>> read = partial(open_stream, format="svmlight")
    >>> check_reader(read, b"1 3:0.5\\n-1\\n", expected=[rows], bad=b"1 x:1\\n")
    """
    rows = None if expected is None else rows_of(expected)
    check(READER_PROMISES, Sample(read, content, rows, bad, lines, ending), only)
