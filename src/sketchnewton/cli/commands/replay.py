"""`skn replay`: what a server has learned, learned again."""

from __future__ import annotations

import argparse
import time

from sketchnewton.cli.io.console import Console, counted
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.options.learner import LEARNER_OPTIONS, add_learner_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchnewton.model import Model

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn replay LOG [--model OUT] [--learner NAME ...] [--json]"
SUMMARY = "Retrain on the log of a server, with its own learner or with another."
EXAMPLES = """\
examples:
  skn replay clicks.skn.state                              the progressive loss of the server
  skn replay clicks.skn.state --model again.skn            the server's model, byte for byte
  skn replay clicks.skn.state --learner adagrad            the loss of another learner on the same rows
  skn convert clicks.skn.state seen.jsonl                  the records themselves

LOG is the directory of a server, or the log in it; the server may keep running. Another learner starts
untrained; features, columns and labels are those of the server's model.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("log", metavar="LOG", help="Directory of a server (--state), or the log in it.")
    parser.add_argument("--model", metavar="OUT", help="Save the model here.")
    parser.add_argument("--json", action="store_true", help="Print a machine-readable summary on stdout.")
    parser.add_argument("--quiet", action="store_true", help="Print only errors.")
    add_learner_options(parser.add_argument_group("another learner (all have defaults)"))


def run(args: argparse.Namespace) -> int:
    """Replay as `args` say."""
    from sketchnewton.cli.io.files import check_model_place
    from sketchnewton.serve.log import LOAD, LogError
    from sketchnewton.serve.past import Past
    from sketchnewton.serve.replaying import Standing

    if args.model is not None:
        check_model_place(args.model)
    other = any(hasattr(args, name) for name in LEARNER_OPTIONS)
    start = time.perf_counter()
    console = Console(args.quiet)
    try:
        past = Past(args.log)
        model, seq = past.begin()
        if other:
            model, seq = _other(model, args), past.first()
        standing = Standing(model, model.new_score(), seq)
        for event in past.events(seq):
            if other and event.kind == LOAD:  # of another model, which this one does not follow
                continue
            standing.learn(event)
            if standing.replayed % 1000 == 0:
                console.progress(None, counted(standing.replayed, "event"))
    except LogError as error:
        raise CommandError(str(error)) from None
    finally:
        console.clear()
    if args.model is not None:
        standing.model.save(args.model)
    score, seconds = standing.score, time.perf_counter() - start
    summary = {
        "events": standing.replayed,
        "rows": score.rows,
        "after_event": seq,
        "loss": score.mean_loss if score.rows else None,
        "error": score.error_rate,
        "learner": type(standing.model.learner).__name__,
        "model": args.model,
    }
    if args.json:
        import json

        print(json.dumps(summary))
        return 0
    wrong = "" if score.error_rate is None else f", error {score.error_rate:.6g}"
    console.line(f"{counted(standing.replayed, 'event')}, {counted(score.rows, 'row')} in {seconds:.2f} s")
    if score.rows:
        console.line(f"{summary['learner']}: progressive loss {score.mean_loss:.6g}{wrong}")
    return 0


def _other(model: Model, args: argparse.Namespace) -> Model:
    """A model that has learned nothing, with the learner that the options describe instead of this one's."""
    from sketchnewton.cli.train.learner import build
    from sketchnewton.model import Model

    given = {name: getattr(args, name) for name in LEARNER_OPTIONS if hasattr(args, name)}
    kind = given.pop("learner", None)
    given.setdefault("loss", model.learner.loss.spec)
    learner = build(kind, given, model.learner.classes)
    return Model(
        learner,
        target=model.target.copy(),
        features=model.features,
        columns=model.columns,
        exact_names=model.names is not None,
    )
