"""`skn convert`: the rows of one format in another."""

from __future__ import annotations

import argparse
import contextlib
import time

from sketchnewton.cli.console import Console, counted
from sketchnewton.cli.errors import CommandError, usage_error
from sketchnewton.cli.files import check_distinct, check_writable
from sketchnewton.cli.input import Data
from sketchnewton.cli.signals import GracefulStop, Stopped
from sketchnewton.streams import Names, format_of_name, open_writer

__all__ = ["run"]

_DENSE = ("csv", "tsv")  # their first line has all columns
_NAMED = ("vw", "jsonl", *_DENSE)  # they have names for features
_NUMBERED = ("svmlight", "npz")  # they have none to give


def run(args: argparse.Namespace) -> int:
    """Convert as `args` say. A run that is stopped or fails leaves no output file."""
    to = args.to or format_of_name(args.output)
    if to is None:
        raise usage_error(f"{args.output}: the name does not tell the format to write: give --to")
    data = Data(args.data, args)
    data.check()
    check_distinct({"OUT": args.output}, {f"DATA {path}": path for path in data.paths})
    check_writable(args.output)
    if to in _NAMED and data.names is None and not _numbered(data):
        data.names = Names(exact=True)
    console = Console(args.quiet)
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped):
        width = _width(data, to, console, stop) if to in _DENSE else None
        try:
            names = data.names if to in _NAMED else None
            with open_writer(args.output, format=to, columns=width, names=names) as writer:
                for batch in data.read(console, stop):
                    writer.write(batch)
                    rows += len(batch)
                if stop.signal is not None:
                    raise Stopped  # through the block that would put the file in place
        except ModuleNotFoundError as error:  # of an extra, which it names
            raise CommandError(str(error)) from None
    data.report_skipped(console)
    if stop.signal is None:
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'row')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code


def _numbered(data: Data) -> bool:
    """Whether all features are numbers already."""
    formats = {data.format or format_of_name(path) for path in data.paths}
    return formats <= set(_NUMBERED) and not data.features.expands


def _width(data: Data, to: str, console: Console, stop: GracefulStop) -> int:
    """How many columns there are, which takes a pass of its own; names are known after it as well."""
    if data.identity() is None:
        raise usage_error(f"{to} needs all columns in its first line, so DATA must be files, not a pipe")
    width = max((batch.shape[1] for batch in data.read(console, stop)), default=0)
    if stop.signal is not None:
        raise Stopped
    return width
