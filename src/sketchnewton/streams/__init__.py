"""Streams: bytes in, batches of rows out.

>>> import pathlib, tempfile
>>> from sketchnewton.streams import read_svmlight
>>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.svm"
>>> _ = path.write_text("1 3:0.5 7:1\\n-1 0:2 # a comment\\n")
>>> for batch in read_svmlight(path):
...     print(batch.shape, batch.labels, batch.indices)
(2, 8) [ 1. -1.] [3 7 0]
"""

from sketchnewton.streams.batch import Batch, ParseError
from sketchnewton.streams.features import Features
from sketchnewton.streams.files import Source, open_source
from sketchnewton.streams.hashing import Names, hash_feature, hash_namespace
from sketchnewton.streams.reader import BatchReader
from sketchnewton.streams.svmlight import read_svmlight
from sketchnewton.streams.vw import read_vw

__all__ = [
    "Batch",
    "BatchReader",
    "Features",
    "Names",
    "ParseError",
    "Source",
    "hash_feature",
    "hash_namespace",
    "open_source",
    "read_svmlight",
    "read_vw",
]
