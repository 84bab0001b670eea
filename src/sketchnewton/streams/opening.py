"""One door for all inputs: files, globs, directories, standard input, in any format."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence

from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.error_policy import Problems
from sketchnewton.streams.formats.lines import BATCH_BYTES, MAX_LINE_BYTES
from sketchnewton.streams.formats.svmlight import svmlight_parser
from sketchnewton.streams.formats.vw import vw_parser
from sketchnewton.streams.reader import BatchReader, Parse
from sketchnewton.streams.source import Source, open_source

FORMATS = ("svmlight", "vw", "csv", "tsv", "parquet", "arrow", "jsonl", "npz")
WITHOUT_COLUMNS = frozenset(("svmlight", "vw", "npz"))
"""Formats to which ``Columns`` say nothing."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
_BY_NAME = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".npz": "npz",
}
_BY_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"PK\x03\x04": "npz"}
_SVMLIGHT = re.compile(rb"\s*[-+.0-9][^\s|,]*(\s+qid:\S*)?(\s+\d+:\S*)*\s*(#.*)?")
_VW_START = re.compile(rb"[-+.0-9']")  # a label or a tag; a table may have columns named space|name
_LOOK = 1 << 16  # bytes in which a first line must end to be recognised


def open_stream(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    features: Features | None = None,
    columns: Columns | None = None,
    names: Names | None = None,
    on_error: str = "stop",
    batch_bytes: int = BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    prefetch: bool = True,
) -> BatchReader:
    """Read files, one after the other, as one stream of batches.

    ``paths`` are files, patterns (``logs/*.vw.gz``), directories (all files in them, in order of their names)
    and ``-`` for standard input. Each is read in ``format``, or in that which its name says, or else its first
    bytes. ``columns`` says what is what in CSV, Parquet and JSON; ``names`` collects the names of features.
    With ``on_error="skip"`` bad rows are counted, not raised.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.vw").write_text("1 |user age:3 |item price:2\\n")
    >>> _ = (folder / "b.svm").write_text("-1 7:1 9:1\\n")
    >>> for batch in open_stream(folder, features=Features(interactions=("ui",))):
    ...     print(batch.labels, batch.data)
    [1.] [3. 2. 6.]
    [-1.] [1. 1.]
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} is invalid: must be one of {', '.join(FORMATS)}")
    for name, value in (("batch_bytes", batch_bytes), ("max_line_bytes", max_line_bytes)):
        if value < 1:
            raise ValueError(f"{name}={value} is invalid: must be >= 1")
    if names is not None:
        names.join((features or Features()).joins)
    opener = _Opener(format, features or Features(), columns or Columns(), names, batch_bytes, max_line_bytes)
    return BatchReader(
        expand_paths(paths),
        opener.parse,
        on_error=on_error,
        prefetch=prefetch,
        types=opener.types,
        formats=opener.parsers.keys(),
    )


def expand_paths(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that paths, patterns and directories mean, in order; ``-`` stays.

    Hidden files, and those whose names begin with an underscore, are left out of directories.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("no input: name a file, or - for standard input")
    from glob import glob, has_magic  # slow to import, as all that is imported below

    found: list[str] = []
    for item in given:
        path = os.fspath(item)
        if os.path.isdir(path):
            files = _files_in(path)
            if not files:
                raise FileNotFoundError(errno.ENOENT, "no file in the directory", path)
        elif path == "-" or os.path.lexists(path) or not has_magic(path):
            files = [path]
        else:
            files = sorted(file for file in glob(path, recursive=True) if not os.path.isdir(file))
            if not files:
                raise FileNotFoundError(errno.ENOENT, "no file has such a name", path)
        found += files
    return found


def format_of_name(path: str) -> str | None:
    """The format that a file's name says, compressed or not; None when it says none.

    >>> format_of_name("clicks.vw.gz"), format_of_name("clicks.parquet"), format_of_name("clicks")
    ('vw', 'parquet', None)
    """
    root, ending = os.path.splitext(path.lower())
    if ending in _COMPRESSED:
        ending = os.path.splitext(root)[1]
    return _BY_NAME.get(ending)


def format_of_file(path: str) -> str | None:
    """The format that a file's name says, or else its first bytes; None for a pipe, which is read only once."""
    named = format_of_name(path)
    if named is not None or not os.path.isfile(path):
        return named
    with open_source(path) as source:
        return format_of_content(source.first_line(_LOOK))


def format_of_content(start: bytes) -> str:
    """The format that a file's first bytes look like; svmlight when they look like none."""
    for magic, name in _BY_MAGIC.items():
        if start.startswith(magic):
            return name
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    line = text.split(b"\n", 1)[0].strip()
    if line.startswith(b"{"):
        return "jsonl"
    if line.startswith(b"#") or _SVMLIGHT.fullmatch(line):
        return "svmlight"
    before, bar, _ = line.partition(b"|")
    if bar and b"\t" not in before and (b"," not in before or _VW_START.match(before)):
        return "vw"
    return next((name for mark, name in ((b"\t", "tsv"), (b",", "csv")) if mark in line), "svmlight")


def _files_in(folder: str) -> list[str]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [os.path.join(place, name) for name in sorted(files) if name[0] not in "._"]
    return found


class _Opener:
    """Knows how each input is to be read; parsers are made once, so that they agree on what they learned.

    `types` are those of the columns of tables, and `parsers` those of formats, as they are found out.
    """

    def __init__(
        self,
        format: str | None,
        features: Features,
        columns: Columns,
        names: Names | None,
        batch_bytes: int,
        max_line_bytes: int,
    ) -> None:
        self.format = format
        self.features = features
        self.columns = columns
        self.names = names
        self.batch_bytes = batch_bytes
        self.max_line_bytes = max_line_bytes
        self.types: dict[str, str] = {}
        self.parsers: dict[str, Parse] = {}

    def parse(self, source: Source, problems: Problems) -> Iterator[Batch]:
        """The batches of one input."""
        format = self.format or format_of_name(source.name) or format_of_content(source.first_line(_LOOK))
        if format not in self.parsers:
            self.parsers[format] = self._make(format)
        return self.parsers[format](source, problems)

    def _make(self, format: str) -> Parse:
        if format in ("svmlight", "vw"):
            make: Callable[..., Parse] = svmlight_parser if format == "svmlight" else vw_parser
            return make(self.batch_bytes, self.max_line_bytes, self.features, self.names)
        # Imported where they are used: most inputs are text, and starting must be quick.
        if format == "jsonl":
            from sketchnewton.streams.formats.jsonl import jsonl_parser

            return jsonl_parser(
                self.columns, self.features, self.names, self.batch_bytes, self.max_line_bytes
            )
        if format == "npz":
            from sketchnewton.streams.formats.npz import npz_parser

            return npz_parser(self.features, self.names)
        from sketchnewton.features import table_rows
        from sketchnewton.streams.formats import arrow, csv

        maker = table_rows.RowMaker(self.features, self.names, self.types)
        if format in ("csv", "tsv"):
            delimiter = "," if format == "csv" else "\t"
            return csv.csv_parser(delimiter, self.columns, maker, self.batch_bytes, self.max_line_bytes)
        return (arrow.parquet_parser if format == "parquet" else arrow.arrow_parser)(self.columns, maker)
