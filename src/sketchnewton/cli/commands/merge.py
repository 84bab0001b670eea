"""`skn merge`: one sketch or model out of several."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.output import add_sketch_output_options
from sketchnewton.cli.options.parser import Parser

if TYPE_CHECKING:
    from sketchnewton.model import Model
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
    from sketchnewton.model import Model
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
            if isinstance(merged, Sketch) and isinstance(other, Sketch):
                width = max(merged.n_features, other.n_features)
                merged.widen(width)
                other.widen(width)
                merged.merge(other)
            elif isinstance(merged, Model) and isinstance(other, Model):
                merged.merge(other)
            else:
                raise ValueError(f"cannot merge a {_kind(other)} into a {_kind(merged)}")
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
    if isinstance(merged, Sketch):
        deliver(args, args.output, merged, Console(args.quiet))
    else:
        _deliver(args, merged)
    return 0


def _kind(thing: Model | Sketch) -> str:
    """What users know it as: a model by its learner."""
    from sketchnewton.model import Model

    return type(thing.learner if isinstance(thing, Model) else thing).__name__


def _load(path: str) -> Model | Sketch:
    """The sketch or the model at `path`."""
    from sketchnewton.core.persistence import load
    from sketchnewton.model import open_model
    from sketchnewton.sketches import Sketch

    found = load(path)
    return found if isinstance(found, Sketch) else open_model(path)


def _deliver(args: argparse.Namespace, model: Model) -> None:
    import json

    from sketchnewton.cli.train.learner import describe

    if args.plot is not None:
        raise usage_error("--plot draws sketches, not models")
    model.save(args.output)
    learner, console = model.learner, Console(args.quiet)
    console.line(describe(model))
    console.line(f"{amount(learner.rows_seen)} rows, {amount(learner.features_seen)} features")
    console.line(f"model saved to {args.output}")
    if args.json:
        facts = {"model": args.output, "rows_seen": learner.rows_seen, "features": learner.features_seen}
        print(json.dumps(facts))
