"""One module per format, with its reader and its writer; ``core/formats.py`` is the table of them.

A module has ``PARSERS`` and, if it can be written, ``WRITERS``, by the name of the format: the first make a
``Parse`` of ``ReadOptions``, the others a ``BatchWriter`` of a path, a number of columns and names.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from sketchnewton.core.formats import BY_NAME
from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchnewton.features.names import Names
    from sketchnewton.streams.reader import Parse, ReadOptions
    from sketchnewton.streams.writer import BatchWriter


def make_parser(format: str, options: ReadOptions) -> Parse:
    """What reads the format; its module is imported when it is first needed."""
    make: Callable[[ReadOptions], Parse] = _module(format).PARSERS[format]
    return make(options)


def make_writer(format: str, path: str, columns: int | None, names: Names | None) -> BatchWriter:
    """What writes the format."""
    make: Callable[[str, int | None, Names | None], BatchWriter] = _module(format).WRITERS[format]
    return make(path, columns, names)


def _module(format: str) -> ModuleType:
    return import_module(f"{__name__}.{BY_NAME[format].module}")
