"""Data that is read while the rest of the command is still being imported.

Importing takes as long as parsing tens of megabytes; a thread does that meanwhile. Nothing here may import NumPy.
"""

from __future__ import annotations

import argparse
import os

from sketchnewton.cli.options.data import CACHE_SUFFIX, COLUMN_OPTIONS, FEATURE_OPTIONS
from sketchnewton.core.hints import Any, NamedTuple
from sketchnewton.core.types import Header
from sketchnewton.streams import BatchReader, Columns, Features, format_of_name, open_stream

__all__ = ["Ahead", "Identity", "begin", "given", "identity_of"]

Identity = list[list[Any]]


class Ahead(NamedTuple):
    """A reader that has begun, and what it was told to read."""

    reader: BatchReader
    paths: list[str]
    features: Features
    columns: Columns
    identity: Identity | None

    def agrees(
        self, paths: list[str], features: Features, columns: Columns, identity: Identity | None
    ) -> bool:
        """Is this what is to be read? Another file may have taken the place of the one that was opened."""
        wanted = (paths, features, columns, identity)
        return (self.paths, self.features, self.columns, self.identity) == wanted


def begin(args: argparse.Namespace) -> Ahead | None:
    """Begin to read what `skn train` will read, where that is clear from the options alone.

    Whatever is wrong with the data will be said by who reads it, so nothing is raised here.
    """
    simple = (
        args.threads > 1
        and len(args.data) == 1
        and format_of_name(args.data[0]) in ("svmlight", "vw")
        and (args.resume, args.readable, args.cache) == (None, None, None)
        and not _cached(args)
        and (
            args.passes in (None, 1) or os.path.isfile(args.data[0])
        )  # else it is refused, before it is opened
        and not args.dry_run
        and not given(args, ("format", "exact_names"))
    )
    if not simple:
        return None
    try:
        features = Features.from_dict(given(args, FEATURE_OPTIONS))
        columns = Columns.from_dict(given(args, COLUMN_OPTIONS))
        identity = identity_of(args.data)
        reader = open_stream(
            args.data[0],
            features=features,
            columns=columns,
            on_error=args.on_error,
            threads=args.threads,
        )
    except (OSError, ValueError):
        return None
    return Ahead(reader, list(args.data), features, columns, identity)


def _cached(args: argparse.Namespace) -> bool:
    """Are there passes that begin with a cache, as far as can be seen?"""
    return (args.passes or 1) > 1 and not args.no_cache and os.path.exists(args.data[0] + CACHE_SUFFIX)


def identity_of(paths: list[str]) -> Identity | None:
    """Path, size and time of each file; None if one of them is a pipe, which has none."""
    found: Identity = []
    for path in paths:
        if path == "-" or not os.path.isfile(path):
            return None
        status = os.stat(path)
        found.append([os.path.realpath(path), status.st_size, status.st_mtime_ns])
    return found


def given(args: argparse.Namespace, names: tuple[str, ...]) -> Header:
    """Those options that were typed."""
    return {name: getattr(args, name) for name in names if hasattr(args, name)}
