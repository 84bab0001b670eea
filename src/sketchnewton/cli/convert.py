"""`skn convert`: the rows of one format in another."""

from __future__ import annotations

import argparse
import contextlib
import time

from sketchnewton.cli.console import Console, counted
from sketchnewton.cli.errors import usage_error
from sketchnewton.cli.files import check_distinct, check_writable
from sketchnewton.cli.input import Data
from sketchnewton.cli.signals import GracefulStop, Stopped
from sketchnewton.streams import format_of_name, open_writer

__all__ = ["run"]

_NEEDS_WIDTH = ("csv", "tsv")  # their first line has all columns


def run(args: argparse.Namespace) -> int:
    """Convert as `args` say. A run that is stopped or fails leaves no output file."""
    to = args.to or format_of_name(args.output)
    if to is None:
        raise usage_error(f"{args.output}: the name does not tell the format to write: give --to")
    data = Data(args.data, args)
    data.check()
    check_distinct({"OUT": args.output}, {f"DATA {path}": path for path in data.paths})
    check_writable(args.output)
    console = Console(args.quiet)
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped):
        width = None
        if to in _NEEDS_WIDTH:
            if data.identity() is None:
                raise usage_error(f"{to} needs all columns in its first line, so DATA must be files, not a pipe")
            width = max((batch.shape[1] for batch in data.read(console, stop)), default=0)
        with open_writer(args.output, format=to, columns=width, names=data.names) as writer:
            for batch in data.read(console, stop):
                writer.write(batch)
                rows += len(batch)
            if stop.signal is not None:
                raise Stopped  # through the block that would put the file in place
    data.report_skipped(console)
    if stop.signal is None:
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'row')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code
