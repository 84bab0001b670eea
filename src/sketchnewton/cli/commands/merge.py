"""`skn merge`: one sketch or model out of several."""

from __future__ import annotations

import argparse

from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.output import add_sketch_output_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchnewton.model import Model
    from sketchnewton.sketches import Sketch

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn merge FILE FILE ... -o OUT [--base MODEL] [--plot FILE] [--json] [--quiet]"
SUMMARY = "Merge sketches or models of the same kind into one of all their rows."
EXAMPLES = """\
examples:
  skn merge monday.skn tuesday.skn -o both.skn
  skn merge shard1.skn shard2.skn --base sunday.skn -o all.skn   both continued from sunday.skn

Merging sketches gives a sketch of all their rows, with a certified error as good as that of a single sketch.
Merging models that were trained on different rows with the same options gives one model, whose weights are the
mean, weighted by how much each model learned about each feature or direction.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument(
        "sketches", metavar="FILE", nargs="+", help="File written by skn sketch -o or skn train --model."
    )
    parser.add_argument(
        "--base",
        metavar="MODEL",
        help="Model that all of them continued from (skn train --resume); its rows are counted once.",
    )
    add_sketch_output_options(parser, required=True)


def run(args: argparse.Namespace) -> int:
    """Merge the files that `args` name, in their order."""
    from sketchnewton.cli.io.files import check_model_place, check_readable
    from sketchnewton.cli.pictures.spectrum import check_plot, deliver
    from sketchnewton.sketches import Sketch

    args.base_files = [] if args.base is None else [args.base]
    for path in [*args.sketches, *args.base_files]:
        check_readable(path)
    check_model_place(args.output)
    check_plot(args.plot)
    merged = _load(args.sketches[0])
    others = [_load(path) for path in [*args.sketches[1:], *args.base_files]]
    if isinstance(merged, Sketch):
        if args.base is not None:
            raise usage_error("--base is for models: sketches of all rows begin with nothing")
        _merge_sketches(merged, args.sketches[1:], others)
    else:
        _merge_models(merged, args, others)
    if isinstance(merged, Sketch):
        deliver(args, args.output, merged, Console(args.quiet))
    else:
        _deliver(args, merged)
    return 0


def _merge_sketches(merged: Sketch, paths: list[str], others: list[Model | Sketch]) -> None:
    from sketchnewton.sketches import Sketch

    for path, other in zip(paths, others, strict=True):
        try:
            if not isinstance(other, Sketch):
                raise ValueError(f"cannot merge a {_kind(other)} into a {_kind(merged)}")
            width = max(merged.n_features, other.n_features)
            merged.widen(width)
            other.widen(width)
            merged.merge(other)
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None


def _merge_models(merged: Model, args: argparse.Namespace, others: list[Model | Sketch]) -> None:
    from sketchnewton.model import Model

    models: list[Model] = []
    for path, other in zip([*args.sketches[1:], *args.base_files], others, strict=True):
        try:
            if not isinstance(other, Model):
                raise ValueError(f"cannot merge a {_kind(other)} into a {_kind(merged)}")
            if other.learner.rows_seen and merged.learner.rows_seen:
                merged.check_mergeable(other)
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
        models.append(other)
    base = models.pop() if args.base_files else None
    try:
        merged.merge(*models, base=base)
    except ValueError as error:
        raise CommandError(f"{args.sketches[0]}: {error}") from None


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
