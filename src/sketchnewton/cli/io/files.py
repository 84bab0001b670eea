"""Output files that are complete or absent, and checks before hours of work rather than after."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping

from sketchnewton import _native
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.core import archive
from sketchnewton.core.batch import View, contiguous
from sketchnewton.core.hints import TextIO
from sketchnewton.core.types import Floats, np

__all__ = [
    "check_distinct",
    "check_model_place",
    "check_readable",
    "check_writable",
    "open_output",
    "write_numbers",
]


def check_readable(path: str) -> None:
    """Raise at once if the input file at `path` cannot be read. `-` is stdin."""
    if path == "-":
        return
    if not os.path.exists(path):
        raise CommandError(f"{path}: no such file")
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a directory, not a file")
    if not os.access(path, os.R_OK):
        raise CommandError(f"{path}: permission denied")


def check_writable(path: str) -> None:
    """Raise at once if no file can be written at `path`. `-` is stdout."""
    if path == "-":
        return
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a directory, not a file")
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: there is no directory {os.path.dirname(path)}")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise CommandError(f"{path}: the file is write-protected")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{path}: cannot write into the directory {folder}")


def check_distinct(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Raise at once if an output would replace an input or another output. Both map names to paths."""
    others = dict(inputs)
    for name, path in outputs.items():
        if path is None or path == "-":
            continue
        for other, taken in others.items():
            if taken is not None and taken != "-" and os.path.realpath(taken) == os.path.realpath(path):
                raise CommandError(f"{path}: {name} would overwrite {other}")
        others[name] = path


def check_model_place(path: str) -> None:
    """Raise at once if no model can be saved at `path`."""
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        raise CommandError(f"{path}: is not a regular file, so it cannot hold a model")
    check_writable(path if path != "-" else "./-")


@contextlib.contextmanager
def open_output(path: str) -> Iterator[TextIO]:
    """A text file that appears at `path` when the block ends, and does not if it fails. `-` is stdout."""
    try:
        if path == "-":
            yield sys.stdout
            sys.stdout.flush()
        elif os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device cannot be replaced
            with open(path, "w", encoding="utf-8") as file:
                yield file
        else:
            with archive.replacement_of(os.path.realpath(path)) as binary:
                text = io.TextIOWrapper(binary, encoding="utf-8")
                yield text
                text.detach()  # written, but not closed
    except OSError as error:
        error.filename = error.filename or ("<stdout>" if path == "-" else path)
        raise


def write_numbers(file: TextIO, numbers: Floats | View) -> None:
    """One number per line, with the nine digits that distinguish all float32 values; flushed at once."""
    plain = numbers if isinstance(numbers, memoryview) else contiguous(numbers, np.float64)
    file.write(_native.write_lines(plain))
    file.flush()
