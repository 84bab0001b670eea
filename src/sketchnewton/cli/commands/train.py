"""`skn train`: learn from a stream, score every prediction first, save the model."""

from __future__ import annotations

import argparse

from sketchnewton.cli.options.data import DATA_HELP, add_data_options, add_feature_options
from sketchnewton.cli.options.learner import add_learner_options
from sketchnewton.cli.options.output import add_scale_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_one, at_least_two, label, names
from sketchnewton.core.names import METRICS

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn train DATA ... [--model OUT] [options]"
SUMMARY = "Learn from a stream of labelled rows, scoring each prediction before its row is learned."
EXAMPLES = """\
examples:
  skn train clicks.vw.gz --model clicks.skn             learn, watch the progressive loss, keep the model
  skn train day1.vw --test day2.vw --loss logistic      then score another file without learning from it
  skn train - --resume clicks.skn --model clicks.skn    continue exactly where the model stopped
  skn train big.vw --model m.skn --checkpoint-every 1000000     a crash costs a million rows at most:
  skn train big.vw --model m.skn --resume m.skn                 finishes the run, bit for bit the same
  skn train clicks.vw --passes 5 --holdout 10           five passes, the later ones from a cache
  skn train clicks.vw --shards 2 --model m.skn          two processes, merged sixteen times
  skn train digits.svm --multiclass 10                  one of ten classes
  skn train digits.svm --positive 7                     class 7 against all others
  skn train prices.csv --label price --loss huber:1000  regression; labels may have any range and outliers

The progressive loss scores each prediction before its row is learned: an honest estimate from one pass.
Ctrl-C saves the model learned so far; the same command with --resume MODEL finishes the run, bit for bit.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    files = parser.add_argument_group("files")
    files.add_argument("--model", metavar="OUT", help="Save the model here.")
    files.add_argument(
        "--resume",
        metavar="MODEL",
        help="Continue from MODEL. If the run that saved it over the same DATA was interrupted, finish that run; "
        "new DATA just continues.",
    )
    files.add_argument(
        "--checkpoint-every", type=at_least_one, metavar="N", help="Also save the model every N rows."
    )
    files.add_argument(
        "--test", metavar="FILE", help="Score this file after training, without learning from it."
    )
    files.add_argument(
        "--predictions",
        metavar="FILE",
        help="Write the prediction made before each row of DATA was learned, one per line (first pass only; - is "
        "stdout). With --resume an interrupted run continues its file. For the rows of --test, use skn predict.",
    )
    add_scale_options(files)
    files.add_argument("--readable", metavar="FILE", help="Write features, names and weights here as text.")
    files.add_argument(
        "--cache", metavar="FILE", help="Keep parsed rows for later passes here (default DATA.skn-cache)."
    )
    files.add_argument("--no-cache", action="store_true", help="Parse DATA again in every pass.")
    files.add_argument(
        "--config", metavar="FILE", help="Read options from a TOML file; those on the command line win."
    )
    rows = parser.add_argument_group("rows")
    rows.add_argument("--passes", type=at_least_one, metavar="N", help="Read DATA N times (default 1).")
    rows.add_argument(
        "--shuffle",
        action="store_true",
        help="Learn rows in random order, always the same one: for files sorted by label. All rows are kept in "
        "memory.",
    )
    rows.add_argument(
        "--holdout",
        type=at_least_two,
        metavar="N",
        help="Hold out every Nth row: score it without learning it. With --passes, keep the best pass and stop "
        "when the held-out loss stops improving.",
    )
    rows.add_argument(
        "--shards",
        type=at_least_one,
        metavar="N",
        help="Learn in N processes, each on its files or its part of a text file, and merge them. The same N "
        "gives the same model.",
    )
    rows.add_argument(
        "--rounds",
        type=at_least_one,
        metavar="N",
        help="With --shards: merge N times, each shard continuing from the merged model (default 16). If N is 8 "
        "or more and the model is new, one process learns 500 rows first, and all shards begin with that.",
    )
    rows.add_argument(
        "--positive",
        type=label,
        metavar="LABEL",
        help="Learn LABEL as +1 and every other label as -1; the model remembers it.",
    )
    rows.add_argument(
        "--classes",
        type=names,
        metavar="LABELS",
        help="Labels are these classes: cat,dog,bird (--classes=-1,1 if the first is negative); all: every label "
        "that DATA has. In tables, labels that are texts or true/false are classes by themselves.",
    )
    rows.add_argument(
        "--regression", action="store_true", help="Labels are numbers, even if there are only two."
    )
    rows.add_argument(
        "--multiclass",
        type=at_least_two,
        metavar="K",
        help="Labels are classes 1..K or 0..K-1; one learner per class, against all others.",
    )
    add_learner_options(parser.add_argument_group("learner (all have defaults)"))
    add_data_options(parser)
    add_feature_options(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")
    output.add_argument(
        "--metric",
        choices=tuple(METRICS),
        help="Show this metric of skn test in the table of progress, too: of all predictions made before their "
        "rows were learned, which are kept for it (24 bytes per row).",
    )
    output.add_argument("--quiet", action="store_true", help="Print only errors.")
    output.add_argument("--json", action="store_true", help="Print a machine-readable summary on stdout.")


def run(args: argparse.Namespace) -> int:
    """Train as `args` say; the exit code is 0, or 130 or 143 when a signal ended the run."""
    from sketchnewton.cli.train.prefetch import begin

    args.ahead = None if args.shards else begin(args)  # data is read while what learns from it is imported
    from sketchnewton.cli.train import training

    return training.run(args)
