"""What can be typed: the options of every subcommand. Imports nothing heavy: help is instant."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

from sketchnewton import __version__
from sketchnewton.cli.parser import Parser

__all__ = ["LEARNER_OPTIONS", "parse"]

_HELP = """\
skn: second-order online learning at first-order cost.

A row comes in, a prediction goes out, the model learns from the answer.

commands:
  skn train DATA          learn from a file or stream, scoring every prediction first
  skn predict MODEL DATA  predictions of a trained model, one per line
  skn inspect MODEL       what a model is and what it has learned
  skn sketch DATA         the principal directions of the rows, in one pass, with a certified error
  skn merge FILE ...      one sketch, or one model, out of several
  skn demo                half a minute of ill-conditioned data: why curvature matters
  skn eigen COMPARISON    online learning of eigenvectors: methods compared, regret plotted
  skn COMMAND --help      all options of a command, with examples

examples:
  skn train clicks.svm.gz --model clicks.skn --test tomorrow.svm.gz
  zcat more.gz | skn train - --resume clicks.skn --model clicks.skn
  skn predict clicks.skn today.svm > scores.txt

DATA is svmlight text (LABEL INDEX:VALUE ...), plain or .gz .bz2 .xz .zst; - is stdin.
options: --version, -h, --help
"""

_TRAIN = """\
examples:
  skn train clicks.svm.gz --model clicks.skn            learn, watch the progressive loss, keep the model
  skn train day1.svm --test day2.svm --loss logistic    then score another file without learning from it
  skn train - --resume clicks.skn --model clicks.skn    go on exactly where the model stopped
  skn train digits.svm --positive 7                     class 7 against all others
  skn train prices.svm --clip 500                       regression with labels up to 500

The progressive loss scores each prediction before its row is learned: an honest estimate from one pass.
Ctrl-C ends the run cleanly, with the model of what was learned so far.
"""

_PREDICT = """\
examples:
  skn predict clicks.skn today.svm > scores.txt
  skn predict clicks.skn today.svm.gz --link --output probabilities.txt

The labels in DATA are read and ignored.
"""

_INSPECT = """\
examples:
  skn inspect clicks.skn
  skn inspect clicks.skn --json | jq .spectrum
"""

_SKETCH = """\
examples:
  skn sketch clicks.svm.gz --kind rfd --size 50 -o clicks.skn    sketch, save, print the spectrum
  skn sketch clicks.svm --target-error 0.01 -o clicks.skn        as large as a certified error of 1% needs
  skn sketch clicks.svm --plot spectrum.png                      and draw it

A sketch B of the rows A stands for the matrix A'A; the error bound is certified for ||A'A - (B'B + ridge I)||.
The labels in DATA are read and ignored. --plot needs matplotlib: pip install 'sketchnewton[plot]'
"""

_MERGE = """\
examples:
  skn merge monday.skn tuesday.skn -o both.skn

Sketches give a sketch of all rows, with a certified error that is as good as that of one sketch of them all.
Models trained on different rows with the same options give one model: its weights are the mean, weighted by
what each model knows in each direction.
"""

_DEMO = """\
examples:
  skn demo                              the full comparison, half a minute or so
  skn demo --quick --output small.png   smaller data, a few seconds

The picture needs matplotlib: pip install 'sketchnewton[plot]'
"""

_EIGEN = """\
examples:
  skn eigen alternating                          the sequence that defeats following the leader
  skn eigen stochastic --n 40 --rounds 4000      independent matrices, larger
  skn eigen table1 --output table1.png           growth of every method's regret, as table and picture

Regret is what the best fixed unit vector would have gained more. The picture needs matplotlib:
pip install 'sketchnewton[plot]'
"""

# Options that describe the learner. They have no default here: the learner has, or the resumed model.
LEARNER_OPTIONS = (
    "learner",
    "sketch",
    "sketch_size",
    "alpha",
    "eta",
    "loss",
    "clip",
    "diagonal",
    "intercept",
    "beta",
    "oja_rate",
    "block",
    "dtype",
    "seed",
)


class _Main(Parser):
    """The top parser, whose help is a page written by hand."""

    def format_help(self) -> str:
        return _HELP


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; `command` names the subcommand."""
    main = _Main(prog="skn")
    main.add_argument("--version", action="version", version=f"skn {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, define in _COMMANDS.items():
        parser = commands.add_parser(name)
        if name in argv:  # the others' options cost time
            define(parser)
    args, extras = main.parse_known_args(argv or ["--help"])
    if extras:
        chosen = commands.choices[args.command]
        chosen.reject(extras)
    return args


def _train(parser: Parser) -> None:
    parser.usage = "skn train DATA [--model OUT] [options]"
    parser.description = (
        "Learn from a stream of labelled rows, scoring each prediction before its row is learned."
    )
    parser.epilog = _TRAIN
    parser.add_argument("data", metavar="DATA", help="svmlight file, also .gz .bz2 .xz .zst, or - for stdin")
    files = parser.add_argument_group("files")
    files.add_argument("--model", metavar="OUT", help="save the model here when done")
    files.add_argument("--resume", metavar="MODEL", help="go on from this model instead of starting anew")
    files.add_argument(
        "--test", metavar="FILE", help="score this file after training, without learning from it"
    )
    files.add_argument(
        "--predictions",
        metavar="FILE",
        help="write the prediction made before each row of DATA was learned, one per line (of the first "
        "pass; - for stdout; for the rows of --test use skn predict)",
    )
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--passes", type=_at_least_one, default=1, metavar="N", help="read DATA N times (default 1)"
    )
    rows.add_argument(
        "--positive",
        type=_finite,
        metavar="LABEL",
        help="LABEL becomes +1, every other label -1; the model remembers it",
    )
    _learner_options(parser.add_argument_group("learner (all have defaults; --alpha is the first to try)"))
    output = parser.add_argument_group("output")
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    output.add_argument("--json", action="store_true", help="print a machine-readable summary on stdout")


def _learner_options(group: argparse._ArgumentGroup) -> None:
    def add(name: str, **settings: object) -> None:
        group.add_argument(name, default=argparse.SUPPRESS, **settings)  # type: ignore[arg-type]

    add(
        "--learner",
        choices=("newton", "adagrad", "full", "invariant"),
        help="sketched Newton (default), diagonal AdaGrad, Newton with the full matrix, or the same without "
        "--alpha, for which units and correlations of features do not matter",
    )
    add(
        "--sketch",
        choices=("oja", "fd", "rfd", "pfd", "rp", "none"),
        help="curvature sketch: oja (default), Frequent Directions fd, robust rfd (--alpha 0 by default), "
        "parameterised pfd, random projection rp; none is online gradient",
    )
    add("--sketch-size", type=_at_least_zero, metavar="M", help="directions kept by the sketch (default 10)")
    add("--alpha", type=_finite, metavar="A", help="initial curvature: larger means smaller steps")
    add(
        "--eta",
        type=_eta,
        metavar="E",
        help="weight of curvature beyond the loss's own: a number, or 1/t, 1/sqrt(t), sqrt(d/(C^2 L^2 t)), which "
        "fall with the row t; step size of AdaGrad: a number",
    )
    add(
        "--loss",
        metavar="LOSS",
        help="squared (default), logistic, hinge, squared_hinge, absolute, quantile[:TAU], huber[:DELTA] or "
        "poisson",
    )
    add(
        "--clip",
        type=_clip,
        metavar="C",
        help="predictions stay within -C..C, and so logistic probabilities within sigmoid(-C..C): "
        "0.27..0.73 for C=1, 0.02..0.98 for C=4; none for no bound (default 1, AdaGrad none)",
    )
    add("--diagonal", action=argparse.BooleanOptionalAction, help="rescale each feature by its own gradients")
    add("--intercept", action=argparse.BooleanOptionalAction, help="learn a constant term (default yes)")
    add("--beta", type=_finite, metavar="B", help="share of directions that pfd shrinks (default 0.2)")
    add(
        "--oja-rate",
        type=_oja_rate,
        metavar="R",
        help="adaptive (default), a number, or one per direction: 1,0.5",
    )
    add("--block", type=_at_least_one, metavar="K", help="update the Oja sketch every K rows (default 1)")
    add("--dtype", choices=("float32", "float64"), help="precision of the feature table (default float32)")
    add("--seed", type=_at_least_zero, metavar="S", help="seed of everything random (default 0)")


def _predict(parser: Parser) -> None:
    parser.usage = "skn predict MODEL DATA [--output FILE] [--link] [--quiet]"
    parser.description = "Write the predictions of a trained model, one per line."
    parser.epilog = _PREDICT
    parser.add_argument("model", metavar="MODEL", help="model file written by skn train --model")
    parser.add_argument("data", metavar="DATA", help="svmlight file, also .gz .bz2 .xz .zst, or - for stdin")
    parser.add_argument("--output", metavar="FILE", default="-", help="write here instead of stdout")
    parser.add_argument(
        "--link",
        action="store_true",
        help="on the scale of the answer: probabilities for logistic loss, which stay within sigmoid(-C..C) "
        "of skn train --clip C; counts for poisson",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and predictions")


def _inspect(parser: Parser) -> None:
    parser.usage = "skn inspect MODEL [--top N] [--json]"
    parser.description = "Show what a model is: parameters, rows seen, sketch spectrum, largest weights."
    parser.epilog = _INSPECT
    parser.add_argument("model", metavar="MODEL", help="model file written by skn train --model")
    parser.add_argument(
        "--top", type=_at_least_zero, default=10, metavar="N", help="show N weights (default 10)"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable, on stdout")


def _sketch(parser: Parser) -> None:
    parser.usage = "skn sketch DATA [--kind KIND] [--size M] [-o OUT] [options]"
    parser.description = "Sketch the rows of DATA in one pass and print the spectrum."
    parser.epilog = _SKETCH
    parser.add_argument("data", metavar="DATA", help="svmlight file, also .gz .bz2 .xz .zst, or - for stdin")
    parser.add_argument(
        "--kind",
        choices=("fd", "rfd", "pfd", "cfd", "greedy", "rp", "oja", "exact"),
        default="rfd",
        help="frequent directions: plain, robust (default), parameterized, compensative; truncated SVD; random "
        "projection; Oja; all of A'A",
    )

    def add(name: str, **settings: object) -> None:
        parser.add_argument(name, default=argparse.SUPPRESS, **settings)  # type: ignore[arg-type]

    add("--size", dest="sketch_size", type=_at_least_one, metavar="M", help="rows of the sketch (default 50)")
    add(
        "--target-error",
        type=_finite,
        metavar="E",
        help="instead of a size: error at most E times ||A||_F^2",
    )
    add("--beta", type=_finite, metavar="B", help="share of the rows that pfd shrinks (default 0.2)")
    add("--decay", type=_finite, metavar="G", help="every row multiplies the weight of all earlier ones by G")
    add("--window", type=_at_least_one, metavar="W", help="forget all but about the last W rows")
    add(
        "--buffer-size", type=_at_least_one, metavar="N", help="rows that wait for a shrink (default twice M)"
    )
    add("--seed", dest="random_state", type=_at_least_zero, metavar="S", help="seed of rp (default 0)")
    add("--dtype", choices=("float32", "float64"), help="precision (default float64)")
    _sketch_output(parser, required=False)


def _merge(parser: Parser) -> None:
    parser.usage = "skn merge FILE FILE ... -o OUT [--plot FILE] [--json] [--quiet]"
    parser.description = "Merge sketches or models of the same kind into one of all their rows."
    parser.epilog = _MERGE
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
    parser.epilog = _DEMO
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
    parser.epilog = _EIGEN
    parser.add_argument(
        "comparison",
        metavar="COMPARISON",
        choices=("stochastic", "alternating", "rotating", "table1"),
        help="stochastic, alternating or rotating sequence, or table1: growth in T and in n",
    )
    parser.add_argument(
        "--n", type=_at_least_one, metavar="N", help="dimension (default 10; table1: at most N, default 32)"
    )
    parser.add_argument(
        "--rounds",
        type=_at_least_one,
        metavar="T",
        help="rounds (default 1,000; table1: at most T, default 16,000)",
    )
    parser.add_argument(
        "--seeds", type=_at_least_one, metavar="S", help="games per method (default 3; table1: 10)"
    )
    parser.add_argument("--quick", action="store_true", help="table1 with small sizes, a few seconds")
    parser.add_argument("--output", metavar="FILE", help="picture to write, .png .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="machine-readable, on stdout")


_COMMANDS: dict[str, Callable[[Parser], None]] = {
    "train": _train,
    "predict": _predict,
    "inspect": _inspect,
    "sketch": _sketch,
    "merge": _merge,
    "demo": _demo,
    "eigen": _eigen,
}


def _number(kind: Callable[[str], float], rule: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is invalid: must be {rule}")
        return value

    return convert


_finite = _number(float, "a number", math.isfinite)
_at_least_one = _number(int, "a whole number >= 1", lambda value: value >= 1)
_at_least_zero = _number(int, "a whole number >= 0", lambda value: value >= 0)


def _clip(text: str) -> float | None:
    return None if text == "none" else _finite(text)


def _eta(text: str) -> str | float:
    if text.replace(" ", "") in ("1/t", "1/sqrt(t)", "sqrt(d/(C^2L^2t))"):
        return text
    return _number(float, "a number, 1/t, 1/sqrt(t) or sqrt(d/(C^2 L^2 t))", math.isfinite)(text)


def _oja_rate(text: str) -> str | float | list[float]:
    if text == "adaptive":
        return text
    rates = [_finite(part) for part in text.split(",")]
    return rates[0] if len(rates) == 1 else rates
