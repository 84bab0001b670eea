"""`skn merge`: one sketch or model out of several."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.output import add_sketch_output_options
from sketchnewton.cli.options.parser import Parser

if TYPE_CHECKING:
    from sketchnewton.learners import Learner
    from sketchnewton.sketches import Sketch

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn merge FILE FILE ... -o OUT [--plot FILE] [--json] [--quiet]"
SUMMARY = "Merge sketches or models of the same kind into one of all their rows."
EXAMPLES = """\
examples:
  skn merge monday.skn tuesday.skn -o both.skn

Merging sketches gives a sketch of all their rows, with a certified error as good as that of a single sketch.
Merging models that were trained on different rows with the same options gives one model, whose weights are the
mean, weighted by what each model knows in each direction.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument(
        "sketches", metavar="FILE", nargs="+", help="File written by skn sketch -o or skn train --model."
    )
    add_sketch_output_options(parser, required=True)


def run(args: argparse.Namespace) -> int:
    """Merge the files that `args` name, in their order."""
    from sketchnewton.cli.io.files import check_model_place, check_readable
    from sketchnewton.cli.pictures.spectrum import check_plot, deliver
    from sketchnewton.sketches import Sketch

    for path in args.sketches:
        check_readable(path)
    check_model_place(args.output)
    check_plot(args.plot)
    first, *others = args.sketches
    merged = _load(first)
    for path in others:
        other = _load(path)
        try:
            _merge(merged, other)
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
    if isinstance(merged, Sketch):
        deliver(args, args.output, merged, Console(args.quiet))
    else:
        _deliver(args, merged)
    return 0


def _load(path: str) -> Sketch | Learner:
    from sketchnewton.core.persistence import load
    from sketchnewton.learners import Learner
    from sketchnewton.sketches import Sketch

    model = load(path)
    if not isinstance(model, Sketch | Learner):
        raise CommandError(f"{path}: holds a {type(model).__name__}, not a learner or a sketch")
    return model


def _merge(mine: Sketch | Learner, theirs: Sketch | Learner) -> None:
    from sketchnewton.learners import Learner
    from sketchnewton.sketches import Sketch

    if isinstance(mine, Sketch) and isinstance(theirs, Sketch):
        width = max(mine.n_features, theirs.n_features)
        mine.widen(width)
        theirs.widen(width)
        mine.merge(theirs)
    elif isinstance(mine, Learner) and isinstance(theirs, Learner):
        _check_labels(mine, theirs)
        mine.merge(theirs)
    else:
        raise ValueError(f"cannot merge a {type(theirs).__name__} into a {type(mine).__name__}")


def _check_labels(mine: Learner, theirs: Learner) -> None:
    from sketchnewton.cli.train.learner import labels_of

    codings = [labels_of(learner).description for learner in (mine, theirs)]
    if codings[0] != codings[1] and theirs.rows_seen:
        if mine.rows_seen:
            raise ValueError(f"cannot merge {codings[1]} into {codings[0]}")
        mine.notes = theirs.notes


def _deliver(args: argparse.Namespace, learner: Learner) -> None:
    if args.plot is not None:
        raise usage_error("--plot draws sketches, not models")
    from sketchnewton.cli.train.learner import describe

    learner.save(args.output)
    console = Console(args.quiet)
    console.line(describe(learner))
    console.line(f"{amount(learner.rows_seen)} rows, {amount(learner.features_seen)} features")
    console.line(f"model saved to {args.output}")
    if args.json:
        import json

        facts = {"model": args.output, "rows_seen": learner.rows_seen, "features": learner.features_seen}
        print(json.dumps(facts))
