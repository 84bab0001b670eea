"""The table of formats: what they are called, how they are recognised, which module reads and writes them.

Nothing here imports what it names: choices on the command line, documentation and tests are made from it.
"""

from __future__ import annotations

from sketchnewton.core.hints import NamedTuple

__all__ = ["BY_NAME", "COMPRESSED", "FORMATS", "TABLE", "WITHOUT_COLUMNS", "WRITABLE", "Format"]


class Format(NamedTuple):
    """One format; its `module`, in `sketchnewton.streams.formats`, reads and writes it."""

    name: str
    module: str
    endings: tuple[str, ...]
    """Of the names of files, before that of their compression."""
    magic: tuple[bytes, ...] = ()
    """What a file begins with."""
    first_line: bytes | None = None
    """A pattern that the first line of a text matches from end to end, blanks around it left out."""
    has_columns: bool = True
    """Whether `Columns` mean anything to it."""
    writable: bool = True
    writes_names: bool = False
    """Whether its writer has a place for the names of features."""
    only_numbers: bool = False
    """Whether features have numbers and never names."""
    lists_columns: bool = False
    """Whether the first line has all columns, which its writer must then know."""
    only_labels: bool = False
    """Whether a row is its label and features alone: no weight, no tag, and the label is never missing."""


# Where a first line matches several patterns, the first of the formats is meant. A table may have columns named
# space|name, hence what a line of VW text may have before its first bar: a label or a tag, if there are commas.
TABLE = (
    Format(
        "svmlight",
        "svmlight",
        (".svm", ".svmlight", ".libsvm"),
        first_line=rb"#.*|[-+.0-9][^\s|,]*(\s+qid:\S*)?(\s+\d+:\S*)*\s*(#.*)?",
        has_columns=False,
        only_numbers=True,
        only_labels=True,
    ),
    Format(
        "vw",
        "vw",
        (".vw",),
        first_line=rb"(?!\{)([^|,\t]*|[-+.0-9'][^|\t]*)\|.*",
        has_columns=False,
        writes_names=True,
    ),
    Format(
        "csv", "csv", (".csv",), first_line=rb"(?!\{)[^\t]*[,;][^\t]*", writes_names=True, lists_columns=True
    ),
    Format(
        "tsv", "csv", (".tsv", ".tab"), first_line=rb"(?!\{).*\t.*", writes_names=True, lists_columns=True
    ),
    Format("parquet", "arrow", (".parquet", ".pq"), magic=(b"PAR1",)),
    Format(
        "arrow",
        "arrow",
        (".arrow", ".ipc", ".feather"),
        magic=(b"ARROW1", b"\xff\xff\xff\xff"),
        writable=False,
    ),
    Format("jsonl", "jsonl", (".jsonl", ".ndjson", ".json"), first_line=rb"\{.*", writes_names=True),
    Format("npz", "npz", (".npz",), magic=(b"PK\x03\x04",), has_columns=False, only_numbers=True),
)

BY_NAME = {format.name: format for format in TABLE}
FORMATS = tuple(BY_NAME)
WRITABLE = tuple(format.name for format in TABLE if format.writable)
WITHOUT_COLUMNS = frozenset(format.name for format in TABLE if not format.has_columns)

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
