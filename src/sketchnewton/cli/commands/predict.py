"""`skn predict`: the predictions of a trained model, one per line."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from sketchnewton import model_file
from sketchnewton.cli.io.console import Console, counted
from sketchnewton.cli.io.data_source import Data, fit
from sketchnewton.cli.io.files import check_distinct, check_readable, check_writable, open_output
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.train.learner import labels_of
from sketchnewton.learners import OneVsAll

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Predict as `args` say. A run that is stopped or fails leaves no output file."""
    check_readable(args.model)
    check_distinct(
        {"--output": args.output}, {"MODEL": args.model, **{f"DATA {path}": path for path in args.data}}
    )
    check_writable(args.output)
    learner = model_file.load_learner(args.model)
    if isinstance(learner, OneVsAll):
        learner.threads = max(1, args.threads - 1)
    form = PredictionFormat(learner, labels_of(learner), link=args.link, raw=args.raw)
    data = Data(args.data, args, learner, predicting=True)
    data.check()
    console = Console(args.quiet, bar=args.output != "-" or not sys.stdout.isatty())
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped), open_output(args.output) as file:
        for batch in fit(data.read(console, stop), data, None):
            form.write(file, learner.predict(batch), batch)
            rows += len(batch)
        if stop.signal is not None:
            raise Stopped  # through the block that would put the file in place
    data.report_skipped(console)
    if stop.signal is None and args.output != "-":
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'prediction')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code
