"""`skn predict`: the predictions of a trained model, one per line."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from sketchnewton import model_file
from sketchnewton.cli.console import Console, counted
from sketchnewton.cli.files import check_distinct, check_readable, check_writable, open_output, write_numbers
from sketchnewton.cli.input import read
from sketchnewton.cli.signals import GracefulStop, Stopped

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Predict as `args` say. A run that is stopped or fails leaves no output file."""
    for path in (args.model, args.data):
        check_readable(path)
    check_distinct({"--output": args.output}, {"MODEL": args.model, "DATA": args.data})
    check_writable(args.output)
    learner = model_file.load_learner(args.model)
    console = Console(args.quiet, bar=args.output != "-" or not sys.stdout.isatty())
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped), open_output(args.output) as file:
        for batch in read(args.data, console, stop):
            predictions = learner.predict(batch)
            write_numbers(file, learner.loss.link(predictions) if args.link else predictions)
            rows += len(batch)
        if stop.signal is not None:
            raise Stopped  # through the block that would put the file in place
    if stop.signal is None and args.output != "-":
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'prediction')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code
