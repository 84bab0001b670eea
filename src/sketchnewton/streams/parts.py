"""Files in parts that can be read apart: ranges of bytes that begin and end with a line, or whole files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import TYPE_CHECKING, Any, NamedTuple
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.opening import _Opener, _options, format_of_file
from sketchnewton.streams.source import Source, _Raw, open_source

if TYPE_CHECKING:
    from io import FileIO

__all__ = ["Part", "cut", "read_parts"]

_IN_LINES = frozenset({"svmlight", "vw"})  # formats whose every line stands for itself


class Part(NamedTuple):
    """The lines of a file that begin in this range of its bytes; all of the file if there is no end."""

    path: str
    begin: int = 0
    end: int | None = None

    @property
    def size(self) -> int:
        """In bytes as they are stored."""
        return (os.path.getsize(self.path) if self.end is None else self.end) - self.begin


def cut(paths: Sequence[str], count: int, format: str | None = None) -> list[Part]:
    """All files in order, in about `count` parts of equal size.

    Uncompressed svmlight and VW text is cut between lines; other files stay whole.
    """
    sizes = [_regular_size(path) for path in paths]
    piece = max(1, sum(sizes) // count)
    parts: list[Part] = []
    for path, size in zip(paths, sizes, strict=True):
        if (format or format_of_file(path)) in _IN_LINES and _is_plain(path):
            pieces = max(1, round(size / piece))
            edges = _line_starts(path, [size * at // pieces for at in range(1, pieces)], size)
            parts += [Part(path, a, b) for a, b in zip([0, *edges], [*edges, size], strict=True) if a < b]
        else:
            parts.append(Part(path))
    return parts


def read_parts(
    parts: Iterable[Part], policy: ErrorPolicy, format: str | None, **options: Any
) -> Iterator[Batch]:
    """The batches of these parts, one after the other; `options` are those of `ReadOptions`."""
    read = _options(options.pop("features"), options.pop("columns"), options.pop("names"))
    opener = _Opener(format, read._replace(**options))
    for part in parts:
        with _opened(part) as source:
            yield from opener.parse(source, policy if part.begin == 0 else _Behind(policy, part))


class _Behind(ErrorPolicy):
    """Reports errors of a part with the numbers that lines have in the whole file."""

    def __init__(self, policy: ErrorPolicy, part: Part) -> None:
        super().__init__("skip" if policy.skips else "stop")
        self._policy, self._part = policy, part

    def report(self, error: ParseError, *, can_go_on: bool = True) -> None:
        """As the policy has it."""
        line = None if error.line is None else error.line + _lines_before(self._part)
        self._policy.report(ParseError(error.path, line, error.column, error.message), can_go_on=can_go_on)


class _Range:
    """Some bytes of a file that is open for reading."""

    def __init__(self, file: FileIO, part: Part) -> None:
        self._file, self._left = file, part.size
        file.seek(part.begin)

    def readinto(self, buffer: memoryview) -> int:
        with buffer[: self._left] as room:
            count = self._file.readinto(room) if self._left else 0
        self._left -= count
        return count

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def _opened(part: Part) -> Source:
    if part.end is None:
        return open_source(part.path)
    file = _Range(open(part.path, "rb", buffering=0), part)  # noqa: SIM115 - the source closes it
    raw = _Raw(part.path, file, waits=False)  # type: ignore[arg-type]
    source = Source(raw, part.size)
    source._bytes = raw  # whatever a line begins with, it is not compressed
    return source


def _is_plain(path: str) -> bool:
    with open_source(path) as source:
        return source.plain_file is not None


def _regular_size(path: str) -> int:
    if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} cannot be read in parts: give regular files")
    return os.path.getsize(path)


def _line_starts(path: str, places: list[int], size: int) -> list[int]:
    """The first start of a line at or behind each place."""
    starts = []
    with open(path, "rb") as file:
        for place in places:
            file.seek(place - 1)
            file.readline()
            starts.append(min(file.tell(), size))
    return starts


def _lines_before(part: Part) -> int:
    lines, left = 0, part.begin
    with open(part.path, "rb") as file:
        while left and (text := file.read(min(left, 1 << 20))):
            lines += text.count(b"\n")
            left -= len(text)
    return lines
