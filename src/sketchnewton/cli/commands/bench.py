"""`skn bench`: learners compared on the user's data, each with the best value of a small grid, in one pass."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from sketchnewton.cli.io.console import Console, amount, counted, number, percent, print_page
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.options.data import DATA_HELP, add_data_options, add_feature_options
from sketchnewton.cli.options.learner import add_learner_options
from sketchnewton.cli.options.parser import Parser, nearest
from sketchnewton.cli.options.types import at_least_one, label, names
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.names import DEFAULT_LOSS
from sketchnewton.core.types import Floats, Header

if TYPE_CHECKING:
    from sketchnewton.cli.io.data_source import DataSource
    from sketchnewton.cli.train.passes import Passes
    from sketchnewton.evaluation import ProgressiveScore
    from sketchnewton.learners import Learner
    from sketchnewton.losses import Loss
    from sketchnewton.model import Target
    from sketchnewton.streams import Batch

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "Contender", "add_options", "run"]

USAGE = "skn bench DATA ... [--learners LIST] [--rows N] [--output FILE] [options]"
SUMMARY = "Compare learners on your data: one pass each, the best of a small grid."
EXAMPLES = """\
examples:
  skn bench clicks.vw                                  every learner, a small grid each, one pass
  skn bench clicks.vw --rows 20000 --output bench.png  on the first rows only, with a picture

Each learner is run with each value of its grid; the best progressive loss is shown, with the time of one run.
The picture needs matplotlib: pip install 'sketchnewton[plot]'
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--learners",
        type=names,
        metavar="LIST",
        help="Compare only these, separated by commas: newton-oja,adagrad.",
    )
    parser.add_argument("--rows", type=at_least_one, metavar="N", help="Use only the first N rows.")
    parser.add_argument(
        "--positive", type=label, metavar="LABEL", help="Learn LABEL as +1 and every other label as -1."
    )
    add_learner_options(parser, ("loss", "clip", "sketch_size", "seed"))
    add_data_options(parser)
    add_feature_options(parser)
    parser.add_argument("--output", metavar="FILE", help="Picture to write: .png, .svg or .pdf.")
    parser.add_argument("--json", action="store_true", help="Print machine-readable results on stdout.")
    parser.add_argument("--quiet", action="store_true", help="Print no progress on stderr.")


_ALPHAS = (None, 0.1, 1.0, 10.0, 100.0)
_ETAS = (0.01, 0.03, 0.1, 0.3, 1.0)
_PICTURES = (".png", ".svg", ".pdf")
_WIDEST_FULL = 2_000  # features, beyond which a full matrix takes too long


class Contender:
    """A learner and the values to try for one of its options; None is the learner's default."""

    def __init__(
        self,
        name: str,
        kind: str,
        options: Mapping[str, str | float],
        tried: str | None = None,
        grid: tuple[float | None, ...] = (None,),
    ) -> None:
        self.name = name
        self.kind = kind
        self.options = dict(options)
        self.tried = tried
        self.grid = grid
        self.scores: dict[float | None, ProgressiveScore] = {}
        self.seconds: dict[float | None, float] = {}
        self.skipped: str | None = None  # why it was not run

    @property
    def best(self) -> float | None:
        """The value with the smallest loss."""
        return min(self.scores, key=lambda value: _finite_loss(self.scores[value]))

    @property
    def takes_size(self) -> bool:
        """Whether `--sketch-size` applies to it."""
        return bool(self.options.get("sketch", "none") != "none")

    def setting(self, value: float | None) -> str:
        """A value of the grid, as it would be typed."""
        return "" if value is None else f"--{self.tried} {value:g}"


# One line per contender.
_CONTENDERS: tuple[tuple[str, str, dict[str, str | float], str | None, tuple[float | None, ...]], ...] = (
    ("bank", "bank", {}, None, (None,)),
    ("newton-oja", "newton", {"sketch": "oja"}, "alpha", _ALPHAS),
    ("newton-rfd", "newton", {"sketch": "rfd"}, "alpha", _ALPHAS),
    ("newton-fd", "newton", {"sketch": "fd"}, "alpha", _ALPHAS),
    ("newton-rp", "newton", {"sketch": "rp"}, "alpha", _ALPHAS),
    ("gradient", "newton", {"sketch": "none"}, "alpha", _ALPHAS),
    ("adagrad", "adagrad", {}, "eta", _ETAS),
    ("ada-rp", "sketched-adagrad", {"sketch": "rp"}, "eta", _ETAS),
    ("ada-fd", "sketched-adagrad", {"sketch": "fd"}, "eta", _ETAS),
    ("full", "full", {}, "alpha", (0.1, 1.0, 10.0, 100.0)),
)


def run(args: argparse.Namespace) -> int:
    """Compare, print, draw."""
    from sketchnewton.cli.io.data_source import DataSource
    from sketchnewton.cli.io.files import check_writable

    if args.output is not None:
        check_writable(args.output)
        if not args.output.endswith(_PICTURES):
            raise usage_error(f"--output {args.output}: the picture can be one of {' '.join(_PICTURES)}")
        draw = _drawing()
    contenders = _chosen(args.learners)
    given = {
        name: getattr(args, name) for name in ("loss", "clip", "sketch_size", "seed") if hasattr(args, name)
    }
    _check(contenders, given, all_asked_for=args.learners is not None)
    data = DataSource(args.data, args)
    data.check()
    console = Console(args.quiet)
    with GracefulStop() as stop:
        rows, hint = _compare(args, data, contenders, given, console, stop)
        if stop.signal is not None:
            return stop.exit_code
    data.report_skipped(console)
    if hint is not None:
        console.line(hint)
    if args.json:
        import json

        print(json.dumps({"data": args.data, "rows": rows, "learners": [_facts(c) for c in contenders]}))
    else:
        print_page(_page(args, rows, contenders))
    if args.output is not None:
        draw(args.output, data.name, rows, contenders)
        console.line(f"picture in {args.output}")
    return 0


def _check(contenders: list[Contender], given: Mapping[str, object], *, all_asked_for: bool) -> None:
    """Refuse wrong options before any work is done; a learner that was not asked for is skipped instead."""
    errors = []
    for contender in contenders:
        try:
            for value in contender.grid:
                _learner(contender, value, given)
        except CommandError as error:
            contender.skipped = str(error)
            errors.append(error)
    if errors and (all_asked_for or len(errors) == len(contenders)):
        raise errors[0]


def _drawing() -> Callable[[str, str, int, list[Contender]], None]:
    try:
        from sketchnewton.cli.pictures.bench import draw  # matplotlib is optional
    except ImportError as error:
        raise CommandError(
            f"the picture needs matplotlib, which is missing ({error}): pip install 'sketchnewton[plot]'"
        ) from None
    return draw


def _chosen(names: list[str] | None) -> list[Contender]:
    known = {line[0]: Contender(*line) for line in _CONTENDERS}
    for name in names or ():
        if name not in known:
            hint = nearest(name, known) or f": choose from {', '.join(known)}"
            raise usage_error(f"--learners: unknown value {name!r}{hint}")
    return [known[name] for name in names or known]


def _learner(contender: Contender, value: float | None, given: Mapping[str, object]) -> Learner:
    from sketchnewton.cli.train.learner import build

    options: Header = {**contender.options, **given}
    if not contender.takes_size:
        options.pop("sketch_size", None)
    if value is not None and contender.tried is not None:
        options[contender.tried] = value
    return build(contender.kind, options)


def _compare(
    args: argparse.Namespace,
    data: DataSource,
    contenders: list[Contender],
    given: Mapping[str, Any],
    console: Console,
    stop: GracefulStop,
) -> tuple[int, str | None]:
    """Run all contenders over rows that are parsed once. Returns the number of rows, and a hint."""
    import tempfile

    from sketchnewton.cli.train.passes import Passes
    from sketchnewton.core.checks import DivergedError
    from sketchnewton.evaluation import ProgressiveScore
    from sketchnewton.losses import get_loss
    from sketchnewton.model import LabelWatch

    watch, widest, rows = LabelWatch(), 0, 0
    loss = get_loss(given.get("loss", DEFAULT_LOSS))
    target = _target(args, data, loss)
    with tempfile.TemporaryDirectory() as folder:
        passes = Passes(data, os.path.join(folder, "rows.skn-cache"), console, stop)
        if "clip" not in given and not loss.sign_labels and target.kind == "numbers":
            _bound_by_targets(contenders, loss, (b.labels for b in _rows(passes, data, target, args.rows)))
        for at, contender in enumerate(contenders):
            if contender.skipped is not None:
                continue
            if contender.kind == "full" and not widest:  # the first to run: the width of the rows is unknown
                widest = max((batch.shape[1] for batch in _rows(passes, data, target, args.rows)), default=0)
            if contender.kind == "full" and widest > _WIDEST_FULL:
                contender.skipped = f"{amount(widest)} features are too many"
                continue
            console.line(f"{contender.name} ({at + 1} of {len(contenders)})")
            learners = {value: _learner(contender, value, given) for value in contender.grid}
            contender.scores = {value: ProgressiveScore(loss) for value in learners}
            contender.seconds = dict.fromkeys(learners, 0.0)
            rows = 0
            for batch in _rows(passes, data, target, args.rows):
                widest = max(widest, batch.shape[1])
                rows += len(batch)
                watch.see(batch.labels)
                for value, learner in list(learners.items()):
                    start = time.perf_counter()
                    try:
                        predictions = learner.learn_batch(batch)
                    except DivergedError:  # steps of this length are too long; others may do
                        del learners[value]
                        contender.scores[value] = ProgressiveScore(loss)  # of no rows: its loss is NaN
                        contender.seconds[value] = 0.0
                        continue
                    contender.seconds[value] += time.perf_counter() - start
                    contender.scores[value].update(predictions, batch.labels, batch.weights)
            if stop.signal is not None:
                break
    return rows, target.hint(watch)


def _target(args: argparse.Namespace, data: DataSource, loss: Loss) -> Target:
    """What labels mean: numbers, two classes, or one label against all others."""
    from sketchnewton.model import Numbers, Signs

    target: Target = Numbers(loss) if args.positive is None else Signs(args.positive)
    if data.without_columns:
        if isinstance(args.positive, str):
            raise usage_error(
                f"--positive {args.positive} does not apply to {data.name}, whose labels are numbers"
            )
    elif args.positive is None and data.identity() is not None:
        from sketchnewton.cli.train.labels import surveyed

        names = surveyed(data, everything=False)
        if names is not None and len(names) != 2:
            raise usage_error(
                f"{data.name} has {len(names)} different labels, but learners are compared on two classes: "
                "--positive LABEL takes one against all others"
            )
        if names is not None:
            target = Signs(names=names)
    data.label_codes = target.label_codes
    return target


def _bound_by_targets(contenders: list[Contender], loss: Loss, labels: Iterable[Floats]) -> None:
    """In a regression all predict within the range of the targets, which most learn as they go."""
    bounds = [
        (float(loss.needed_bound(part).max()), bool((abs(part) == 1).all())) for part in labels if len(part)
    ]
    if all(signs for _, signs in bounds):
        return
    for contender in contenders:
        if contender.kind == "full":  # the one that is told
            contender.options["clip"] = max(bound for bound, _ in bounds)
        elif contender.kind != "bank":
            contender.options["clip"] = "auto"


def _rows(passes: Passes, data: DataSource, target: Target, most: int | None) -> Iterator[Batch]:
    seen = 0
    for batch in data.fitted(passes.batches(), target):
        if most is not None and seen + len(batch) > most:
            if most > seen:
                yield batch[: most - seen]
            seen = most
            continue  # to the end, so that the cache becomes complete
        seen += len(batch)
        yield batch


def _finite_loss(score: ProgressiveScore) -> float:
    return score.mean_loss if math.isfinite(score.mean_loss) else math.inf


def _facts(contender: Contender) -> Header:
    if contender.skipped is not None:
        return {"learner": contender.name, "skipped": contender.skipped}
    best = contender.best
    score = contender.scores[best]
    return {
        "learner": contender.name,
        "options": contender.options,
        "best": None if best is None else {contender.tried: best},
        "loss": score.mean_loss if math.isfinite(score.mean_loss) else None,
        "error_rate": score.error_rate,
        "seconds": contender.seconds[best],
        "rows_per_second": score.rows / contender.seconds[best] if contender.seconds[best] else None,
        "grid": [
            {
                "value": value,
                "loss": s.mean_loss if math.isfinite(s.mean_loss) else None,
                "error_rate": s.error_rate,
            }
            for value, s in contender.scores.items()
        ],
    }


def _page(args: argparse.Namespace, rows: int, contenders: list[Contender]) -> list[str]:
    from sketchnewton.cli.io.data_source import shown_paths

    ran = sorted((c for c in contenders if c.skipped is None), key=lambda c: _finite_loss(c.scores[c.best]))
    lines = [
        f"{shown_paths(args.data)}: one pass over {counted(rows, 'row')}, progressive loss, "
        "best of each learner's grid",
        "",
    ]
    lines.append(
        f"{'learner':<14}{'best setting':<16}{'loss':>10}{'error':>9}{'rows/s':>12}{'worst of grid':>15}"
    )
    for contender in ran:
        best = contender.best
        score, seconds = contender.scores[best], contender.seconds[best]
        worst = max(_finite_loss(s) for s in contender.scores.values())
        shown = "diverged" if not math.isfinite(worst) else number(worst)
        loss = "diverged" if not math.isfinite(_finite_loss(score)) else number(score.mean_loss)
        lines.append(
            f"{contender.name:<14}{contender.setting(best):<16}{loss:>10}{percent(score.error_rate):>9}"
            f"{amount(score.rows / seconds) if seconds else '-':>12}"
            f"{shown if len(contender.scores) > 1 else '-':>15}"
        )
    lines += [f"{c.name:<14}not run: {c.skipped}" for c in contenders if c.skipped is not None]
    if ran:
        lines += ["", f"best here: skn train {shlex.join(args.data)} {_options(args, ran[0])}"]
    return lines


def _options(args: argparse.Namespace, best: Contender) -> str:
    """The options with which `skn train` learns as the best contender did."""
    here = {"help", "learners", "rows", "output", "json", "quiet", "threads"}
    if not best.takes_size:
        here.add("sketch_size")
    parser = Parser()
    add_options(parser)
    words = ["--learner", best.kind]
    for key, value in best.options.items():
        words += [f"--{key}", f"{value:.17g}" if isinstance(value, float) else value]
    words += best.setting(best.best).split()
    for action in parser._actions:
        value = getattr(args, action.dest, action.default)
        if not action.option_strings or action.dest in here or value == action.default:
            continue
        option = action.option_strings[0]
        if action.nargs == 0:
            words.append(option)
            continue
        several = isinstance(value, list) and not isinstance(action, argparse._AppendAction)
        for item in [",".join(value)] if several else value if isinstance(value, list) else [value]:
            words += [option, f"{item:.12g}" if isinstance(item, float) else str(item or "none")]
    return shlex.join(words)
