"""`skn predict`: the predictions of a trained model, one per line."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from sketchnewton.cli.io.console import Console, counted
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.options.data import DATA_HELP, add_data_options
from sketchnewton.cli.options.output import add_scale_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import share

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = """\
skn predict MODEL DATA ... [--output FILE|csv|jsonl] [--probabilities] [--link] [--raw] [--interval COVERAGE]
                   [--quiet]"""
SUMMARY = "Write the predictions of a trained model, one per line."
EXAMPLES = """\
examples:
  skn predict clicks.skn today.svm > scores.txt
  skn predict chance.skn today.svm.gz --link --output probabilities.txt      with a model of --loss logistic
  skn predict spam.skn mails.csv --tag id --probabilities --output csv     a table: tag, prediction, ham, spam
  skn predict prices.skn homes.csv --interval 0.9 --output csv             prediction, lower, upper
  skn predict spam.skn mails.csv --output scores.jsonl                     an object per row

Labels in DATA are ignored.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("model", metavar="MODEL", help="Model file written by skn train --model.")
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        help="Write to FILE instead of stdout; FILE.csv and FILE.jsonl get a table with tags. csv or jsonl: "
        "write that table to stdout.",
    )
    add_scale_options(parser)
    parser.add_argument(
        "--interval",
        metavar="COVERAGE",
        type=share,
        help="Write a lower and an upper bound after each prediction, on the scale of the labels, between which "
        "this share of labels lies: 0.9 for 90%%. For models of numbers by the default learner.",
    )
    add_data_options(parser)
    parser.add_argument("--quiet", action="store_true", help="Print only errors and predictions.")


def run(args: argparse.Namespace) -> int:
    """Predict as `args` say. A run that is stopped or fails leaves no output file."""
    from sketchnewton.cli.io.data_source import DataSource, check_order
    from sketchnewton.cli.io.files import check_distinct, check_readable, check_writable, open_output
    from sketchnewton.cli.io.predictions import TABLES, PredictionFormat, PredictionTable, table_format
    from sketchnewton.model import open_model

    table = table_format(args.output)
    if args.output in TABLES:
        args.output = "-"
    check_readable(args.model)
    check_order(args)
    check_distinct(
        {"--output": args.output}, {"MODEL": args.model, **{f"DATA {path}": path for path in args.data}}
    )
    check_writable(args.output)
    model = open_model(args.model)
    model.learner.threads = max(1, args.threads - 1)
    form: PredictionFormat | PredictionTable = PredictionFormat(model, args)
    data = DataSource(args.data, args, model, predicting=True)
    if table is not None and isinstance(form, PredictionFormat):
        form = PredictionTable(model, form, table, tagged=hasattr(args, "tag"))
    data.check()
    if args.threads > 1 and (scorer := model.scorer()) is not None:
        data.prepare = scorer  # who parses a batch predicts it
    console = Console(args.quiet, bar=args.output != "-" or not sys.stdout.isatty())
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped), open_output(args.output) as file:
        for batch in data.fitted(data.read(console, stop), None):
            scores = batch.prepared
            form.write(file, model.native_scores(batch) if scores is None else scores, batch)
            rows += len(batch)
        if stop.signal is not None:
            raise Stopped  # through the block that would put the file in place
    data.report_skipped(console)
    if stop.signal is None and args.output != "-":
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'prediction')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code
