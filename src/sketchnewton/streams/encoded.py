"""Records that are bytes in a format of files, such as the body of a request."""

from __future__ import annotations

from collections.abc import Iterator

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.formats import make_parser
from sketchnewton.streams.reader import ReadOptions
from sketchnewton.streams.source import source_of_bytes

__all__ = ["Encoded"]


class Encoded:
    """Bytes that are read as a file of that format is. They are not decompressed.

    >>> from sketchnewton import Model
    >>> len(Model().predict(Encoded(b"city,price\\nRome,2.5\\nOslo,1\\n", "csv")))
    2
    """

    __slots__ = ("data", "format", "name")

    def __init__(self, data: bytes, format: str, name: str = "data") -> None:
        self.data = data
        self.format = format
        self.name = name  # in errors: `data:3:7: expected …`

    def batches(self, options: ReadOptions) -> Iterator[Batch]:
        """Their rows."""
        with source_of_bytes(self.data, self.name) as source:
            try:
                yield from make_parser(self.format, options)(source, ErrorPolicy())
            except ParseError as error:
                if error.path:
                    raise
                raise ParseError(self.name, error.line, error.column, error.message) from None
