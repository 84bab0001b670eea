"""One door for all inputs: files, globs, directories, standard input, in any format."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sketchnewton.core.batch import Batch
from sketchnewton.core.formats import COMPRESSED, FORMATS, TABLE
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.formats import make_parser
from sketchnewton.streams.reader import BATCH_BYTES, MAX_LINE_BYTES, BatchReader, Parse, ReadOptions
from sketchnewton.streams.source import Source, open_source

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
    label_codes: Mapping[bytes, float] | None = None,
    ignore_labels: bool = False,
    only_labels: bool = False,
    delimiter: str | None = None,
    header: bool = True,
    threads: int = 1,
    prepare: Callable[[Batch], object] | None = None,
    absent: dict[str, None] | None = None,
) -> BatchReader:
    """Read files, one after the other, as one stream of batches.

    ``paths`` are files, patterns (``logs/*.vw.gz``), directories (all files in them, in order of their names)
    and ``-`` for standard input. The format is ``format``, else that of the file's name, else detected from its
    first bytes. ``columns`` says what is what in CSV, Parquet and JSON, ``features`` how names become indices;
    ``names`` collects the names of features. With ``on_error="skip"`` bad rows are counted, not raised; cells that
    do not fit their column's kind are counted and treated as missing. Labels of tables are numbers, or have a
    number in ``label_codes``; with ``ignore_labels`` they are NaN, with ``only_labels`` nothing else is read.
    ``delimiter`` is that of CSV and TSV, by default detected in the first line; without a ``header`` columns are
    named 1, 2, 3, ….

    ``batch_bytes``, ``max_line_bytes`` and ``prefetch`` are as for ``read_svmlight``. With ``threads`` > 1 so many
    parse svmlight and VW text at the same time, unless ``names`` are collected; the batches are the same. Each of
    these threads calls ``prepare``, if there is one, and keeps what it returns as the batch's ``prepared``.

    ``absent`` is for predictions: it learns which of the columns whose kinds ``columns`` knows a CSV, Parquet or
    Arrow table does not have, and a table that has none of them is refused. Keys of JSON objects may be absent.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.vw").write_text("1 |user age:3 |item price:2\\n")
    >>> _ = (folder / "b.svm").write_text("-1 7:1 9:1\\n")
    >>> for batch in open_stream(folder, features=Features(interactions=("ui",))):
    ...     print(batch.labels, batch.data)
    [1.] [3. 2. 6.]
    [-1.] [1. 1.]
    """
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise ValueError(f"delimiter={delimiter!r} is invalid: must be one ASCII character")
    if threads < 1:
        raise ValueError(f"threads={threads} is invalid: must be >= 1")
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} is invalid: must be one of {', '.join(FORMATS)}")
    options = _options(features, columns, names, batch_bytes, max_line_bytes)
    options = options._replace(
        label_codes=label_codes,
        ignore_labels=ignore_labels,
        only_labels=only_labels,
        delimiter=delimiter,
        header=header,
        threads=threads,
        prepare=prepare,
        absent=absent,
    )
    opener = _Opener(format, options)
    return BatchReader(
        expand_paths(paths),
        opener.parse,
        on_error=on_error,
        prefetch=prefetch,
        kinds=options.kinds,
        formats=opener.parsers.keys(),
    )


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    batch_bytes: int = BATCH_BYTES,
    prefetch: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> BatchReader:
    """Read ``label [qid:N] index:value index:value … [# comment]`` lines; ``-`` is standard input.

    Indices are kept as written, be they counted from 0 or from 1; query numbers are ignored. Compressed
    input is recognised by its content. Memory is bounded by ``batch_bytes`` and the longest line, which may
    have ``max_line_bytes``. With ``prefetch`` a thread parses ahead while the caller learns.

    A producer that is slower than the reader, at the other end of a pipe, need not fill a batch: the lines
    that are there are delivered.

    Bad input raises ``ParseError`` after all rows before it were delivered.

    ``path`` is a file or ``-``.
    """
    options = _options(batch_bytes=batch_bytes, max_line_bytes=max_line_bytes)
    return BatchReader([os.fspath(path)], make_parser("svmlight", options), prefetch=prefetch)


def read_vw(
    path: str | os.PathLike[str],
    *,
    features: Features | None = None,
    names: Names | None = None,
    batch_bytes: int = BATCH_BYTES,
    prefetch: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> BatchReader:
    """Read ``[label [importance [base]]] ['tag]|[namespace[:weight]] name[:value] … |…`` lines.

    Names become indices as in Vowpal Wabbit. A row without a label has the label NaN. ``path`` and all else is as
    for ``read_svmlight``.

    ``features`` says how names become indices, ``names`` collects them; ``batch_bytes``, ``max_line_bytes`` and
    ``prefetch`` are as for ``read_svmlight``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.vw"
    >>> _ = path.write_text("1 2.0 'second_house | price:0.25 sqft:.5 17\\n")
    >>> (batch,) = read_vw(path)
    >>> batch.labels, batch.weights, batch.tags, batch.indices.tolist()
    (array([1.]), array([2.]), [b'second_house'], [229902, 162853, 17])
    """
    options = _options(features, None, names, batch_bytes, max_line_bytes)
    return BatchReader([os.fspath(path)], make_parser("vw", options), prefetch=prefetch)


def _options(
    features: Features | None = None,
    columns: Columns | None = None,
    names: Names | None = None,
    batch_bytes: int = BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> ReadOptions:
    """How inputs are read; what makes no sense is refused."""
    for name, value in (("batch_bytes", batch_bytes), ("max_line_bytes", max_line_bytes)):
        if value < 1:
            raise ValueError(f"{name}={value} is invalid: must be >= 1")
    features = Features() if features is None else features
    if names is not None:
        names.join(features.joins)
    return ReadOptions(features, columns or Columns(), names, {}, batch_bytes, max_line_bytes)


def expand_paths(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that ``paths`` stand for, with globs and directories expanded, in order; ``-`` stays.

    Hidden files, and those whose names begin with an underscore, are left out of directories.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("no input: name a file, or - for standard input")
    found: list[str] = []
    for item in given:
        path = os.fspath(item)
        if os.path.isdir(path):
            files = _files_in(path)
            if not files:
                raise FileNotFoundError(errno.ENOENT, "no file in the directory", path)
        elif path == "-" or os.path.lexists(path) or not any(letter in path for letter in "*?["):
            files = [path]
        else:
            from glob import glob  # slow to import, as all that is imported below

            files = sorted(file for file in glob(path, recursive=True) if not os.path.isdir(file))
            if not files:
                raise FileNotFoundError(errno.ENOENT, "no file has such a name", path)
        found += files
    return found


def format_of_name(path: str) -> str | None:
    """The format that a file's name says, compressed or not; None when it says none.

    ``path`` need not exist: its name alone is looked at.

    >>> format_of_name("clicks.vw.gz"), format_of_name("clicks.parquet"), format_of_name("clicks")
    ('vw', 'parquet', None)
    """
    root, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(root)[1]
    return next((format.name for format in TABLE if ending in format.endings), None)


def format_of_file(path: str) -> str | None:
    """The format that a file's name says, or else its first bytes; None for a pipe, which is read only once."""
    named = format_of_name(path)
    if named is not None or not os.path.isfile(path):
        return named
    with open_source(path) as source:
        return format_of_content(source.first_line(_LOOK))


def format_of_content(start: bytes) -> str:
    """The format that a file's first bytes look like; svmlight when they look like none."""
    for format in TABLE:
        if start.startswith(format.magic):
            return format.name
    line = start.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].strip()
    for format in TABLE:
        if format.first_line is not None and re.fullmatch(format.first_line, line):
            return format.name
    return "svmlight"


def _files_in(folder: str) -> list[str]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [os.path.join(place, name) for name in sorted(files) if name[0] not in "._"]
    return found


class _Opener:
    """Knows how each input is to be read; parsers are made once, so that they agree on what they learned.

    `parsers` are those of the formats that were met so far.
    """

    def __init__(self, format: str | None, options: ReadOptions) -> None:
        self.parsers: dict[str, Parse] = {}
        self._format = format
        self._options = options

    def parse(self, source: Source, policy: ErrorPolicy) -> Iterator[Batch]:
        """The batches of one input."""
        format = self._format or format_of_name(source.name) or format_of_content(source.first_line(_LOOK))
        if format not in self.parsers:
            self.parsers[format] = make_parser(format, self._options)
        return self.parsers[format](source, policy)
