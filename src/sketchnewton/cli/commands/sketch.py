"""`skn sketch`: the rows of a stream in a small matrix, with a certified error."""

from __future__ import annotations

import argparse
import functools
import time

import sketchnewton
from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.options.data import DATA_HELP, add_data_options, add_feature_options
from sketchnewton.cli.options.output import add_sketch_output_options
from sketchnewton.cli.options.parser import Parser, add_if_given
from sketchnewton.cli.options.types import at_least_one, at_least_zero, finite
from sketchnewton.core.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton.sketches import Sketch

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

# --kind: the names of the classes.
_KINDS = {
    "fd": "FrequentDirections",
    "rfd": "RobustFrequentDirections",
    "pfd": "ParameterizedFrequentDirections",
    "cfd": "CompensativeFrequentDirections",
    "greedy": "GreedyDirections",
    "rp": "RandomProjection",
    "oja": "OjaSketch",
    "exact": "ExactCovariance",
}

USAGE = "skn sketch DATA [--kind KIND] [--size M] [-o OUT] [options]"
SUMMARY = "Sketch the rows of DATA in one pass and print the spectrum."
EXAMPLES = """\
examples:
  skn sketch clicks.svm.gz --kind rfd --size 50 -o clicks.skn    sketch, save, print the spectrum
  skn sketch clicks.svm --target-error 0.01 -o clicks.skn        as large as needed for a certified error of 1%
  skn sketch clicks.svm --plot spectrum.png                      and draw it

A sketch B of the rows A stands for the matrix A'A; the error bound is certified for ||A'A - (B'B + ridge I)||.
Labels in DATA are read and ignored. --plot needs matplotlib: pip install 'sketchnewton[plot]'
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--kind",
        choices=tuple(_KINDS),
        default="rfd",
        help="Frequent Directions: plain fd, robust rfd (default), parameterised pfd, compensative cfd. Truncated "
        "SVD: greedy. Random projection: rp. Oja's sketch: oja. The full matrix A'A: exact.",
    )
    add = functools.partial(add_if_given, parser)
    add("--size", dest="sketch_size", type=at_least_one, metavar="M", help="Rows of the sketch (default 50).")
    add(
        "--target-error",
        type=finite,
        metavar="E",
        help="Instead of --size: an error of at most E times ||A||_F^2.",
    )
    add("--beta", type=finite, metavar="B", help="Share of the rows that pfd shrinks (default 0.2).")
    add("--decay", type=finite, metavar="G", help="Each row multiplies the weight of all earlier rows by G.")
    add("--window", type=at_least_one, metavar="W", help="Forget all but about the last W rows.")
    add("--buffer-size", type=at_least_one, metavar="N", help="Rows buffered before a shrink (default 3M).")
    add("--seed", dest="random_state", type=at_least_zero, metavar="S", help="Random seed of rp (default 0).")
    add("--dtype", choices=("float32", "float64"), help="Precision (default float64).")
    add_data_options(parser)
    add_feature_options(parser)
    add_sketch_output_options(parser, required=False)


_OPTIONS = {
    "sketch_size": "--size",
    "target_error": "--target-error",
    "beta": "--beta",
    "decay": "--decay",
    "window": "--window",
    "buffer_size": "--buffer-size",
    "random_state": "--seed",
    "dtype": "--dtype",
}


def run(args: argparse.Namespace) -> int:
    """Sketch as `args` say; a signal stops reading, and the rows read so far are sketched and saved."""
    from sketchnewton.cli.io.data_source import DataSource
    from sketchnewton.cli.io.files import check_model_place
    from sketchnewton.cli.pictures.spectrum import check_plot, deliver

    sketch = _make(args)
    data = DataSource(args.data, args)
    data.check()
    check_plot(args.plot)
    if args.output is not None:
        check_model_place(args.output)
    console = Console(args.quiet)
    start = time.perf_counter()
    with GracefulStop() as stop:
        for batch in data.read(console, stop):
            # Later batches may have features that no row had so far, or lack some.
            sketch.widen(max(sketch.n_features, batch.shape[1]))
            sketch.update(batch.replace(columns=sketch.n_features))
        seconds = time.perf_counter() - start
        stopped = "" if stop.signal is None else "stopped: "
        console.line(f"{stopped}{amount(sketch.rows_seen)} rows in {seconds:.2f} s")
        data.report_skipped(console)
        deliver(args, data.name, sketch, console)
    return stop.exit_code


def _make(args: argparse.Namespace) -> Sketch:
    import inspect

    kind: type[Sketch] = getattr(sketchnewton, _KINDS[args.kind])
    given: dict[str, Any] = {name: getattr(args, name) for name in _OPTIONS if hasattr(args, name)}
    known = {name for base in kind.__mro__[:-1] for name in inspect.signature(base).parameters}
    for name in given:
        if name not in known:
            raise usage_error(f"{_OPTIONS[name]} does not apply to --kind {args.kind}")
    if "sketch_size" in known and "sketch_size" not in given and "target_error" not in given:
        given["sketch_size"] = 50
    try:
        return kind(**given)
    except ValueError as error:
        raise usage_error(str(error)) from None
