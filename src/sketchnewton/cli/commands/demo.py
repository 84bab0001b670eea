"""`skn demo`: the default learner, which has no parameter to tune, against tuned textbook learners."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import sketchnewton
from sketchnewton.cli.io.console import Console, print_page
from sketchnewton.cli.options.parser import Parser
from sketchnewton.core.types import Floats

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sketchnewton.cli.pictures.demo_data import Data
    from sketchnewton.learners import Learner

__all__ = [
    "DEFAULT",
    "EXAMPLES",
    "METHODS",
    "NEXT",
    "SUMMARY",
    "USAGE",
    "Best",
    "Method",
    "add_options",
    "compare",
    "run",
]

USAGE = "skn demo [--output demo.png] [--quick]"
SUMMARY = (
    "Compare the default learner, which needs no tuning, with online gradient descent, AdaGrad, sketched and\n"
    "full Newton, each with its best learning rate: on data of growing condition number and on real data."
)
EXAMPLES = """\
examples:
  skn demo                              the full comparison, about ten seconds
  skn demo --quick --output small.png   smaller data, a few seconds

The picture needs matplotlib: pip install 'sketchnewton[plot]'
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="demo.png",
        help="Picture to write: .png, .svg or .pdf (default demo.png).",
    )
    parser.add_argument("--quick", action="store_true", help="Use smaller data: a few seconds.")


Name = TypeVar("Name", bound=Hashable)


class Method(NamedTuple):
    """A learner of one parameter, and the values to try for it."""

    name: str
    make: Callable[[float, bool], Learner]
    """The learner for a value of the parameter, with or without an intercept."""
    grid: Sequence[float]


class Best(NamedTuple):
    """The smallest error over a grid, and the setting that gave it."""

    error: float
    setting: float


def _powers(first: int, last: int, step: int = 2) -> tuple[float, ...]:
    return tuple(2.0**exponent for exponent in range(first, last + 1, step))


DEFAULT = "sketchnewton"
"""What the demo calls the learner that `skn train` uses when no other is asked for."""

# The right α grows with the scale of the data, so the grids are wide: the best value should lie inside.
METHODS = (
    Method(DEFAULT, lambda _, b: sketchnewton.NewtonBank(intercept=b), (0.0,)),  # nothing to try
    Method(
        "online gradient", lambda a, b: sketchnewton.OnlineGradient(alpha=a, intercept=b), _powers(-2, 16)
    ),
    Method("AdaGrad", lambda e, b: sketchnewton.AdaGrad(eta=e, intercept=b), _powers(-10, 2)),
    Method(
        "sketched Newton",
        lambda a, b: sketchnewton.SketchedNewton(sketch="oja", sketch_size=10, alpha=a, intercept=b),
        _powers(-2, 16),
    ),
    Method(
        "full Newton",
        lambda a, b: sketchnewton.FullNewton(alpha=a, intercept=b),
        _powers(-4, 8, 4) + _powers(10, 16),
    ),
)


def compare(
    data: Mapping[Name, Data],
    methods: Sequence[Method] = METHODS,
    *,
    intercept: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Name, dict[str, Best]]:
    """The progressive error of one pass over each data set with each method's best parameter, by its name."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    results: dict[Name, dict[str, Best]] = {name: {} for name in data}
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        jobs: dict[Future[float], tuple[Name, str, float]] = {}
        for name, (rows, labels) in data.items():
            for method in methods:
                for setting in method.grid:
                    job = pool.submit(_error, method, setting, intercept, rows, labels)
                    jobs[job] = (name, method.name, setting)
        for done, job in enumerate(as_completed(jobs), 1):
            on_progress(done, len(jobs))
            name, method_name, setting = jobs[job]
            best = results[name].get(method_name)
            if best is None or (job.result(), setting) < (best.error, best.setting):
                results[name][method_name] = Best(job.result(), setting)
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def _error(method: Method, setting: float, intercept: bool, rows: Floats, labels: Floats) -> float:
    from sketchnewton.cli.pictures.demo_data import progressive_error

    return progressive_error(method.make(setting, intercept), rows, labels)


def run(args: argparse.Namespace) -> int:
    """Compare, print, draw, and say what to do next."""
    from sketchnewton.cli.pictures.demo_data import ill_conditioned, real_data
    from sketchnewton.cli.pictures.saving import check_picture

    check_picture("--output", args.output)
    from sketchnewton.cli.pictures.demo import draw  # matplotlib is optional

    console = Console()
    start = time.perf_counter()

    def progress(done: int, total: int) -> None:
        console.progress(done / total, "one pass for each method and learning rate")

    rows = 1_000 if args.quick else 10_000
    condition_numbers = (10, 200) if args.quick else (10, 50, 100, 150, 200)
    print(f"{DEFAULT} is the default, NewtonBank: nothing is tuned. The others use the best value of a grid.")
    print("Share of wrong predictions in one pass, each made before its row was learned.\n")
    print(
        f"{rows:,} rows of 100 features, stretched along ten directions; the labels stay the same.\n",
        flush=True,
    )
    synthetic = compare(ill_conditioned(condition_numbers, rows), on_progress=progress)
    console.clear()
    _print_synthetic(synthetic)

    real = compare(real_data(), intercept=True, on_progress=progress)
    console.clear()
    _print_real(real)
    draw(args.output, synthetic, real)
    seconds = time.perf_counter() - start
    print_page(["", f"picture in {args.output}, {seconds:.0f} s in all", "", *NEXT])
    return 0


NEXT = (
    "Now on your own data: CSV, JSON lines, svmlight, VW text; Parquet and Arrow with 'sketchnewton[arrow]':",
    "  skn train data.csv --label COLUMN --model m.skn    learn in one pass, and watch the error",
    "  skn test m.skn more.csv                            loss, error, AUC, calibration",
    "  skn predict m.skn new.csv                          one prediction per row",
    "  skn bench data.csv --label COLUMN                  this comparison, on your file",
)


def _print_synthetic(results: Mapping[float, Mapping[str, Best]]) -> None:
    numbers = sorted(results)
    print(f"{'condition number':<20}" + "".join(f"{number:>8g}" for number in numbers))
    for method in METHODS:
        errors = [results[number][method.name].error for number in numbers]
        print(f"{method.name:<20}" + "".join(f"{error:>8.3f}" for error in errors))


def _print_real(results: Mapping[str, Mapping[str, Best]]) -> None:
    print(
        "\nBreast cancer: 569 biopsies, 30 measurements in unlike units. Standardising them needs means and"
    )
    print("variances that a stream does not know in advance. Digits: 1,797 scans, even or odd.\n")
    print(f"{'':<20}" + "".join(f"{name:>28}" for name in results))
    for method in METHODS:
        print(
            f"{method.name:<20}" + "".join(f"{best[method.name].error:>28.3f}" for best in results.values())
        )
