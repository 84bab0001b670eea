"""Records that are in memory already, as batches: by the same code as files of the same kind.

>>> records = [{"city": "Rome", "age": 33}, {"city": "Oslo", "age": 0}]
>>> for batch in read_records(records, labels=[1, -1]):
...     print(batch.labels, batch.data, batch.indptr)
[ 1. -1.] [ 1. 33.  1.] [0 2 3]
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import ModuleType, UnionType

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.types import Array, ArrayLike, Integers, np
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.answers import Answers
from sketchnewton.streams.encoded import Encoded
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.opening import open_stream
from sketchnewton.streams.reader import ReadOptions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from scipy.sparse import csr_array

    from sketchnewton.streams.reader import BatchReader

__all__ = ["names_files", "read_records"]

ROWS = 4096
"""Records of a batch, at most."""

_KINDS = (
    "a dict, a table of pandas, polars or pyarrow, a two-dimensional array, a sparse matrix, VW text, a path, "
    "a batch, or an iterable of dicts, lines, paths or batches"
)


def read_records(
    records: object,
    *,
    columns: Columns | None = None,
    features: Features | None = None,
    names: Names | None = None,
    kinds: dict[str, str] | None = None,
    labels: ArrayLike | Sequence[object] | None = None,
    weights: ArrayLike | None = None,
    label_codes: Mapping[bytes, float] | None = None,
    ignore_labels: bool = False,
    absent: dict[str, None] | None = None,
) -> Iterator[Batch]:
    """Turn ``records`` in memory into the batches that ``open_stream`` makes of files.

    * A dict, or an iterable of dicts: as JSON lines. A name is a text or a whole number.
    * A data frame of pandas or polars, a table or record batches of pyarrow, anything else that exports Arrow's
      stream: as Parquet. pandas' NaN is a missing value, its index is no column.
    * A two-dimensional array of numbers, a sparse matrix: numbered features, as svmlight.
    * A text with a ``|`` or a line end, or bytes, or an iterable of such texts, one line each: VW text.
    * A path (``pathlib.Path``, or a text with neither), or an iterable of them: whatever ``open_stream`` reads.
    * ``Encoded``: bytes in a format that files have, as that file.
    * A batch, or an iterable of them: as they are, since their features have been made.

    ``labels`` and ``weights``, one per record, take the place of those that the records have. Labels that are not
    numbers are left to the caller: then the batches' own are NaN. ``kinds`` learns the kinds of a table's columns,
    for ``Columns.with_kinds``; ``label_codes``, ``ignore_labels`` and ``absent`` are those of ``open_stream``.
    What is wrong with a record is a ``ParseError`` that gives its number and the key, after the batches before it:
    ``record 3: expected a finite number for 'price', got 'inf'``.

    ``columns`` says what is what in a table, ``features`` how names become indices; ``names`` collects them.
    """
    options = ReadOptions(
        Features() if features is None else features,
        Columns() if columns is None else columns,
        names,
        {} if kinds is None else kinds,
        label_codes=label_codes,
        ignore_labels=ignore_labels,
        absent=absent,
    )
    if names is not None:
        names.join(options.features.joins)
    answers = Answers.of(labels, weights)
    return answers.given_to(_batches(records, options, answers))


# --- records of each kind


def _batches(records: object, options: ReadOptions, answers: Answers) -> Iterator[Batch]:
    """Batches of whatever the records are; what cannot be any is refused at once."""
    if isinstance(records, Encoded):
        return records.batches(options)
    if isinstance(records, str | bytes | os.PathLike | Batch | Mapping):
        return _items(iter([records]), options, answers, alone=True)
    pieces = _tables(records)
    if pieces is not None:
        return _table_batches(pieces, options, answers)
    if isinstance(records, np.ndarray) or hasattr(records, "tocsr"):
        return _array_batches(records, options)
    if isinstance(records, Iterable):
        return _items(iter(records), options, answers)
    raise _unknown(records)


def _unknown(records: object) -> TypeError:
    return TypeError(f"expected records as {_KINDS}; got {type(records).__name__}")


def _items(
    items: Iterator[object], options: ReadOptions, answers: Answers, *, alone: bool = False
) -> Iterator[Batch]:
    """Batches of items that are all of the kind of the first."""
    try:
        first = next(items)
    except StopIteration:
        return iter(())
    items = itertools.chain([first], items)
    if isinstance(first, Batch):
        return _only(items, Batch, "a batch")
    if isinstance(first, Mapping):
        return _object_batches(_only(items, Mapping, "a dict"), options, answers)
    if isinstance(first, bytes) or (isinstance(first, str) and _is_text(first)):
        lines = _only(items, str | bytes, "a line of VW text")
        return _line_batches(
            _lines_of(first) if alone else map(_one_line, lines, itertools.count(1)), options
        )
    if isinstance(first, str | os.PathLike):
        return _path_batches(list(_only(items, str | os.PathLike, "a path")), options)
    kind = type(first).__name__
    raise TypeError(f"record 1: expected a dict, a line of VW text, a path or a batch, got {kind}")


def _only(items: Iterator[object], kind: type | UnionType, expected: str) -> Iterator[Any]:
    for number, item in enumerate(items, 1):
        if not isinstance(item, kind):
            raise TypeError(f"record {number}: expected {expected} like the first, got {type(item).__name__}")
        yield item


def _is_text(text: str) -> bool:
    return "|" in text or "\n" in text


def names_files(records: object) -> bool:
    """Are these records the names of files, which may be larger than memory?"""
    if isinstance(records, list | tuple):
        return bool(records) and all(names_files(record) for record in records)
    return isinstance(records, os.PathLike) or (isinstance(records, str) and not _is_text(records))


def _path_batches(paths: list[str | os.PathLike[str]], options: ReadOptions) -> Iterator[Batch]:
    for path in paths:
        if isinstance(path, str) and _is_text(path):
            raise ValueError(
                f"expected a path like the first, got {path!r}: a path with | must be a pathlib.Path"
            )
    reader = open_stream(
        paths,
        features=options.features,
        columns=options.columns,
        names=options.names,
        label_codes=options.label_codes,
        ignore_labels=options.ignore_labels,
        absent=options.absent,
    )
    return _read(reader, options)


def _read(reader: BatchReader, options: ReadOptions) -> Iterator[Batch]:
    with reader:
        for batch in reader:
            options.kinds.update(reader.kinds)
            yield batch


# --- lines of VW text


def _lines_of(text: str | bytes) -> Iterator[bytes]:
    """The lines of a text, where a blank one is no record."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return iter(raw.removesuffix(b"\n").split(b"\n"))


def _one_line(text: str | bytes, number: int) -> bytes:
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    line = raw.removesuffix(b"\n")
    if b"\n" in line or not line.strip():
        got = "a line end within it" if line.strip() else "a blank one"
        raise ParseError(f"record {number}", None, None, f"expected a line of VW text, got {got}")
    return line


def _line_batches(lines: Iterator[bytes], options: ReadOptions) -> Iterator[Batch]:
    from sketchnewton.streams.formats.vw import vw_lines
    from sketchnewton.streams.lines import explain

    parse = vw_lines(options)
    number = 1
    failure: ParseError | None = None
    while failure is None:
        part: list[bytes] = []
        try:
            part.extend(itertools.islice(lines, ROWS))
        except ParseError as bad:
            failure = bad
        if not part:
            break
        batch, good, error = parse(memoryview(b"\n".join(part) + b"\n"), number)
        if len(batch):
            yield batch
        if error is not None:
            column, message, token, _ = error
            message = explain(message, token, options.max_line_bytes)
            raise ParseError(f"record {number + good}", None, column, message)
        number += len(part)
    if failure is not None:
        raise failure


# --- dicts


def _object_batches(
    records: Iterator[Mapping[object, object]], options: ReadOptions, answers: Answers
) -> Iterator[Batch]:
    from sketchnewton.streams.lines import explain
    from sketchnewton.streams.object_rows import BadValue, ObjectRows

    if answers.labels is not None:
        options = options._replace(columns=_without(options.columns, options.columns.label))
    if answers.weights is not None:
        options = options._replace(columns=_without(options.columns, options.columns.weight))
    rows = ObjectRows.of(options)
    rows.in_memory = True
    failure: ParseError | None = None
    for number, record in enumerate(records, 1):
        try:
            pairs = [(_key(key), plain_value(value)) for key, value in record.items()]
            rows.add_object(_answered(pairs, options.columns, answers), first=number == 1)
        except BadValue as bad:
            failure = ParseError(f"record {number}", None, None, explain(bad.message, bad.token) + bad.advice)
            break
        if len(rows) == ROWS:
            yield rows.batch(None)
            rows = ObjectRows.of(options)
            rows.in_memory = True
    if len(rows):
        yield rows.batch(None)
    if failure is not None:
        raise failure


def _without(columns: Columns, name: str | None) -> Columns:
    """The same, where a column whose values are given elsewhere need not be there."""
    return columns if name is None else columns._replace(optional=(*columns.optional, name))


def _answered(
    pairs: list[tuple[str, object]], columns: Columns, answers: Answers
) -> list[tuple[str, object]]:
    """The pairs without the values of what is given beside them."""
    keys = {key for key, _ in pairs}
    label = None if answers.labels is None else columns.label_among(keys)
    weight = None if answers.weights is None else columns.weight_among(keys)
    if label is None and weight is None:
        return pairs
    others = {label: None, weight: 1.0}
    return [(key, others.get(key, value)) for key, value in pairs]


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    from sketchnewton.streams.object_rows import BadValue

    raise BadValue("expected a text or a whole number as a name", "", key)


def plain_value(value: object) -> object:
    """The value as a decoder of JSON gives it: an object as pairs, NumPy's numbers and arrays as Python's.

    Bytes are a text, as in Arrow's columns of them; they need not be UTF-8.
    """
    if isinstance(value, Mapping):
        return [(_key(key), plain_value(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple | range):
        return [plain_value(item) for item in value]
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, np.datetime64):
        return plain_value(value.tolist())
    return _plain_scalar(value)


def _plain_scalar(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Decimal):
        return float(value)
    if type(value).__name__ in {"NaTType", "NAType"}:  # pandas', which need not be there
        return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value  # of a date or a time


# --- tables


def _tables(records: object) -> Iterator[pa.RecordBatch] | None:
    """Record batches of pyarrow, if the records are a table."""
    if type(records).__module__.partition(".")[0] == "pandas" and hasattr(records, "columns"):
        return _pandas_pieces(records)
    if hasattr(records, "__arrow_c_stream__"):
        return _exported_pieces(records)
    if hasattr(records, "__arrow_c_array__"):
        return iter([_pyarrow().record_batch(records)])
    return None


def _pyarrow() -> ModuleType:
    from sketchnewton.streams.arrow_texts import import_arrow

    return import_arrow()


def _exported_pieces(records: object) -> Iterator[pa.RecordBatch]:
    arrow = _pyarrow()
    try:
        return iter(arrow.RecordBatchReader.from_stream(records))
    except arrow.ArrowException:  # a single column exports one, too
        raise _unknown(records) from None


def _pandas_pieces(frame: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    arrow = _pyarrow()
    try:
        table = arrow.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    except (arrow.ArrowException, TypeError) as error:
        reason = " ".join(str(part) for part in error.args)
        raise ValueError(f"expected columns of numbers or of texts: {reason}") from None
    return iter(table.to_batches())


def _table_batches(
    pieces: Iterator[pa.RecordBatch], options: ReadOptions, answers: Answers
) -> Iterator[Batch]:
    from sketchnewton.streams.formats.arrow import Frame

    try:
        first = next(pieces)
    except StopIteration:
        return
    arrow = _pyarrow()
    columns, known = options.columns, first.schema.names
    replaced: dict[str | None, Callable[[int], pa.Array]] = {}
    if answers.labels is not None:
        columns = _without(columns, columns.label)
        replaced[columns.label_among(known)] = arrow.nulls
    if answers.weights is not None:
        columns = _without(columns, columns.weight)
        replaced[columns.weight_among(known)] = lambda rows: arrow.array(np.ones(rows))

    def answered(piece: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            replaced[name](piece.num_rows) if name in replaced else array
            for name, array in zip(known, piece.columns, strict=True)
        ]
        return arrow.RecordBatch.from_arrays(arrays, names=known) if replaced else piece

    frame = Frame(None, answered(first).schema, options._replace(columns=columns), ErrorPolicy())
    yield from frame.batches(map(answered, itertools.chain([first], pieces)))


# --- arrays


def _array_batches(X: Array | csr_array, options: ReadOptions) -> Iterator[Batch]:
    """Numbered features, as a NumPy archive has them."""
    if X.ndim != 2:
        raise ValueError(f"expected an array of two dimensions, one row per record, got the shape {X.shape}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"expected an array of numbers, got {X.dtype}")
    if isinstance(X, np.ndarray):
        options.check_numbered(X.shape[1])
    return _numbered(X, options)


def _numbered(X: object, options: ReadOptions) -> Iterator[Batch]:
    done = 0
    for batch in _csr_batches(X):
        wrong = np.flatnonzero(~np.isfinite(batch.data))
        if len(wrong):
            at = int(wrong[0])
            row = int(np.searchsorted(batch.indptr, at, side="right")) - 1
            if row:
                yield options.features.indexed(batch[:row], options.names)
            message = f"expected a finite number for feature {batch.indices[at]}, got '{batch.data[at]:g}'"
            raise ParseError(f"record {done + row + 1}", None, None, message)
        yield options.features.indexed(batch, options.names)
        done += len(batch)


def _csr_batches(X: csr_array) -> Iterator[Batch]:
    from sketchnewton.streams.formats.npz import rows_at_a_time, sparse_rows

    rows = X.shape[0]
    if not isinstance(X, np.ndarray):
        X = X.tocsr()
        indices: Integers = X.indices.astype(np.int64)
        whole = Batch(X.indptr.astype(np.int64), indices, X.data.astype(np.float64), np.full(rows, np.nan))
        for start in range(0, rows, ROWS):
            yield whole[start : start + ROWS]
        return
    step = rows_at_a_time(X.shape[1])
    for start in range(0, rows, step):
        block = np.ascontiguousarray(X[start : start + step], np.float64)
        indptr, numbers, data = sparse_rows(block)
        yield Batch(indptr, numbers, data, np.full(len(block), np.nan))
