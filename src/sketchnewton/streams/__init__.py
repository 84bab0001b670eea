"""Streams: bytes in, batches of rows out.

>>> import pathlib, tempfile
>>> from sketchnewton.streams import read_svmlight
>>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.svm"
>>> _ = path.write_text("1 3:0.5 7:1\\n-1 0:2 # a comment\\n")
>>> for batch in read_svmlight(path):
...     print(batch.shape, batch.labels, batch.indices)
(2, 8) [ 1. -1.] [3 7 0]
"""

from __future__ import annotations

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.formats import FORMATS, WRITABLE
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names, hash_feature, hash_namespace
from sketchnewton.features.options import Features
from sketchnewton.streams.opening import (
    expand_paths,
    format_of_name,
    open_stream,
    read_svmlight,
    read_vw,
)
from sketchnewton.streams.reader import BatchReader
from sketchnewton.streams.source import Source, open_source

if TYPE_CHECKING:
    from sketchnewton.streams.records import read_records
    from sketchnewton.streams.writer import BatchWriter, open_writer

__all__ = [
    "FORMATS",
    "WRITABLE",
    "Batch",
    "BatchReader",
    "BatchWriter",
    "Columns",
    "Features",
    "Names",
    "ParseError",
    "Source",
    "expand_paths",
    "format_of_name",
    "hash_feature",
    "hash_namespace",
    "open_source",
    "open_stream",
    "open_writer",
    "read_records",
    "read_svmlight",
    "read_vw",
]

# Imported when they are asked for: a plain `skn train` neither writes rows nor has records in memory.
_HOME = {"BatchWriter": "writer", "open_writer": "writer", "read_records": "records"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sketchnewton.streams' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"sketchnewton.streams.{_HOME[name]}"), name)
