"""What can be typed: the options of every subcommand. Imports nothing heavy: help is instant."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from sketchnewton import __version__
from sketchnewton.cli.options import help_pages
from sketchnewton.cli.options.data import DATA_HELP, WRITABLE, add_data_options, add_feature_options
from sketchnewton.cli.options.learner import add_learner_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_one, at_least_two, at_least_zero, finite, names

__all__ = ["parse", "parsers"]


class _Main(Parser):
    """The top parser, whose help is a page written by hand."""

    def format_help(self) -> str:
        return help_pages.HELP


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; `command` names the subcommand, `spelled` the options not from a file."""
    spelled = {text.partition("=")[0] for text in argv}
    main = _Main(prog="skn")
    main.add_argument("--version", action="version", version=f"skn {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    typed = argv[0] if argv and argv[0] in _COMMANDS else None
    for name, define in _COMMANDS.items():
        if typed in (name, None):  # the others cost time
            define(commands.add_parser(name))
    if "--config" in argv or any(text.startswith("--config=") for text in argv):
        from sketchnewton.cli.options.config import with_config  # seldom asked for

        argv = with_config(argv, commands.choices)
    args, extras = main.parse_known_args(argv or ["--help"])
    if extras:
        chosen = commands.choices[args.command]
        chosen.reject(extras)
    args.spelled = spelled
    return args


def parsers() -> dict[str, Parser]:
    """The parser of every command, with all its options."""
    defined = {}
    for name, define in _COMMANDS.items():
        defined[name] = Parser(prog=f"skn {name}")
        define(defined[name])
    return defined


def _train(parser: Parser) -> None:
    parser.usage = "skn train DATA ... [--model OUT] [options]"
    parser.description = (
        "Learn from a stream of labelled rows, scoring each prediction before its row is learned."
    )
    parser.epilog = help_pages.TRAIN
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    files = parser.add_argument_group("files")
    files.add_argument("--model", metavar="OUT", help="save the model here when done")
    files.add_argument(
        "--resume",
        metavar="MODEL",
        help="go on from this model instead of starting anew; an interrupted run over the same DATA is finished",
    )
    files.add_argument(
        "--checkpoint-every", type=at_least_one, metavar="N", help="also save the model every N rows"
    )
    files.add_argument(
        "--test", metavar="FILE", help="score this file after training, without learning from it"
    )
    files.add_argument(
        "--predictions",
        metavar="FILE",
        help="write the prediction made before each row of DATA was learned, one per line (of the first "
        "pass; - for stdout; for the rows of --test use skn predict)",
    )
    _scale_options(files)
    files.add_argument("--readable", metavar="FILE", help="write features, names and weights here, as text")
    files.add_argument(
        "--cache", metavar="FILE", help="parsed rows for later passes (default DATA.skn-cache)"
    )
    files.add_argument("--no-cache", action="store_true", help="parse DATA again in every pass")
    files.add_argument("--config", metavar="FILE", help="options from a TOML file; those typed here win")
    rows = parser.add_argument_group("rows")
    rows.add_argument("--passes", type=at_least_one, metavar="N", help="read DATA N times (default 1)")
    rows.add_argument(
        "--holdout",
        type=at_least_two,
        metavar="N",
        help="do not learn every Nth row, but score it; with --passes the best pass is kept, and one that is no "
        "better than the one before it is the last",
    )
    rows.add_argument(
        "--positive",
        type=finite,
        metavar="LABEL",
        help="LABEL becomes +1, every other label -1; the model remembers it",
    )
    rows.add_argument(
        "--multiclass",
        type=at_least_two,
        metavar="K",
        help="labels are classes 1..K or 0..K-1; one learner for each, against all others",
    )
    add_learner_options(parser.add_argument_group("learner (all have defaults)"))
    add_data_options(parser)
    add_feature_options(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    output.add_argument("--json", action="store_true", help="print a machine-readable summary on stdout")


def _scale_options(group: argparse._ArgumentGroup | Parser) -> None:
    group.add_argument(
        "--link",
        action="store_true",
        help="predictions on the scale of the answer: probabilities for logistic loss, which stay within "
        "sigmoid(-C..C) of --clip C; counts for poisson",
    )
    group.add_argument(
        "--raw",
        action="store_true",
        help="predictions as scores; of --multiclass, all K instead of the class",
    )


def _predict(parser: Parser) -> None:
    parser.usage = "skn predict MODEL DATA ... [--output FILE] [--link] [--raw] [--quiet]"
    parser.description = "Write the predictions of a trained model, one per line."
    parser.epilog = help_pages.PREDICT
    parser.add_argument("model", metavar="MODEL", help="model file written by skn train --model")
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument("--output", metavar="FILE", default="-", help="write here instead of stdout")
    _scale_options(parser)
    add_data_options(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and predictions")


def _convert(parser: Parser) -> None:
    parser.usage = "skn convert DATA ... OUT [--to FORMAT] [options]"
    parser.description = "Write the rows of DATA in another format."
    parser.epilog = help_pages.CONVERT
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument("output", metavar="OUT", help="file to write; - is stdout")
    parser.add_argument(
        "--to", choices=WRITABLE, help="format of OUT, if its name does not tell: " + ", ".join(WRITABLE)
    )
    add_data_options(parser)
    add_feature_options(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _bench(parser: Parser) -> None:
    parser.usage = "skn bench DATA ... [--learners LIST] [--rows N] [--output FILE] [options]"
    parser.description = "Compare learners on your data: one pass each, the best of a small grid."
    parser.epilog = help_pages.BENCH
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--learners", type=names, metavar="LIST", help="only these, between commas: newton-oja,adagrad"
    )
    parser.add_argument("--rows", type=at_least_one, metavar="N", help="the first N rows alone")
    parser.add_argument(
        "--positive", type=finite, metavar="LABEL", help="LABEL becomes +1, every other label -1"
    )
    add_learner_options(parser, ("loss", "clip", "sketch_size", "seed"))
    add_data_options(parser)
    add_feature_options(parser)
    parser.add_argument("--output", metavar="FILE", help="picture to write, .png .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="machine-readable, on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _completion(parser: Parser) -> None:
    parser.usage = "skn completion bash|zsh|fish"
    parser.description = "Print a script that completes commands and options in your shell."
    parser.epilog = help_pages.COMPLETION
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")


def _inspect(parser: Parser) -> None:
    parser.usage = "skn inspect MODEL [--top N] [--json]"
    parser.description = "Show what a model is: parameters, rows seen, sketch spectrum, largest weights."
    parser.epilog = help_pages.INSPECT
    parser.add_argument("model", metavar="MODEL", help="model file written by skn train --model")
    parser.add_argument(
        "--top", type=at_least_zero, default=10, metavar="N", help="show N weights (default 10)"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable, on stdout")


def _sketch(parser: Parser) -> None:
    parser.usage = "skn sketch DATA [--kind KIND] [--size M] [-o OUT] [options]"
    parser.description = "Sketch the rows of DATA in one pass and print the spectrum."
    parser.epilog = help_pages.SKETCH
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--kind",
        choices=("fd", "rfd", "pfd", "cfd", "greedy", "rp", "oja", "exact"),
        default="rfd",
        help="frequent directions: plain, robust (default), parameterized, compensative; truncated SVD; random "
        "projection; Oja; all of A'A",
    )

    def add(name: str, **settings: object) -> None:
        parser.add_argument(name, default=argparse.SUPPRESS, **settings)  # type: ignore[arg-type]

    add("--size", dest="sketch_size", type=at_least_one, metavar="M", help="rows of the sketch (default 50)")
    add(
        "--target-error",
        type=finite,
        metavar="E",
        help="instead of a size: error at most E times ||A||_F^2",
    )
    add("--beta", type=finite, metavar="B", help="share of the rows that pfd shrinks (default 0.2)")
    add("--decay", type=finite, metavar="G", help="every row multiplies the weight of all earlier ones by G")
    add("--window", type=at_least_one, metavar="W", help="forget all but about the last W rows")
    add("--buffer-size", type=at_least_one, metavar="N", help="rows that wait for a shrink (default 3M)")
    add("--seed", dest="random_state", type=at_least_zero, metavar="S", help="seed of rp (default 0)")
    add("--dtype", choices=("float32", "float64"), help="precision (default float64)")
    add_data_options(parser)
    add_feature_options(parser)
    _sketch_output(parser, required=False)


def _merge(parser: Parser) -> None:
    parser.usage = "skn merge FILE FILE ... -o OUT [--plot FILE] [--json] [--quiet]"
    parser.description = "Merge sketches or models of the same kind into one of all their rows."
    parser.epilog = help_pages.MERGE
    parser.add_argument(
        "sketches", metavar="FILE", nargs="+", help="file written by skn sketch -o or skn train --model"
    )
    _sketch_output(parser, required=True)


def _sketch_output(parser: Parser, *, required: bool) -> None:
    parser.add_argument("-o", "--output", metavar="OUT", required=required, help="save the sketch here")
    parser.add_argument("--plot", metavar="FILE", help="draw the spectrum: .png .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="machine-readable summary on stdout")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _demo(parser: Parser) -> None:
    parser.usage = "skn demo [--output demo.png] [--quick]"
    parser.description = (
        "Compare online gradient, AdaGrad, sketched and full Newton on data of growing condition number\n"
        "and on a real data set, and draw the result."
    )
    parser.epilog = help_pages.DEMO
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="demo.png",
        help="picture to write, .png .svg or .pdf (default demo.png)",
    )
    parser.add_argument("--quick", action="store_true", help="smaller data, a few seconds")


def _eigen(parser: Parser) -> None:
    parser.usage = "skn eigen COMPARISON [--n N] [--rounds T] [--seeds S] [--output FILE] [--json]"
    parser.description = (
        "Play unit vectors against symmetric matrices with every method of online learning of eigenvectors."
    )
    parser.epilog = help_pages.EIGEN
    parser.add_argument(
        "comparison",
        metavar="COMPARISON",
        choices=("stochastic", "alternating", "rotating", "fixed", "axes", "table1"),
        help="stochastic, alternating, rotating or fixed direction, random axes, or table1: growth in T and in n",
    )
    parser.add_argument(
        "--n", type=at_least_one, metavar="N", help="dimension (default 10; table1: at most N, default 32)"
    )
    parser.add_argument(
        "--rounds",
        type=at_least_one,
        metavar="T",
        help="rounds (default 1,000; table1: at most T, default 16,000)",
    )
    parser.add_argument(
        "--seeds", type=at_least_one, metavar="S", help="games per method (default 3; table1: 10)"
    )
    parser.add_argument("--quick", action="store_true", help="table1 with small sizes, a few seconds")
    parser.add_argument("--output", metavar="FILE", help="picture to write, .png .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="machine-readable, on stdout")


def _reproduce(parser: Parser) -> None:
    parser.usage = "skn reproduce NAME ... | --all [--quick] [--data DIR] [--output DIR] [--workers N]"
    parser.description = (
        "Recompute tables and figures of the papers, in a source checkout, and write a report."
    )
    parser.epilog = help_pages.REPRODUCE
    parser.add_argument("names", metavar="NAME", nargs="*", help="experiment; none: list them")
    parser.add_argument("--all", action="store_true", help="every experiment")
    parser.add_argument("--list", action="store_true", help="list the experiments and stop")
    parser.add_argument("--quick", action="store_true", help="fewer rows, seeds and parameters: minutes")
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default ../shared/data)")
    parser.add_argument(
        "--output", metavar="DIR", default="report", help="where the report goes (default report)"
    )
    parser.add_argument("--workers", type=at_least_one, metavar="N", help="processes (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


_COMMANDS: dict[str, Callable[[Parser], None]] = {
    "train": _train,
    "predict": _predict,
    "inspect": _inspect,
    "convert": _convert,
    "bench": _bench,
    "sketch": _sketch,
    "merge": _merge,
    "demo": _demo,
    "eigen": _eigen,
    "reproduce": _reproduce,
    "completion": _completion,
}
