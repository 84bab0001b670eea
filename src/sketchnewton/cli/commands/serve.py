"""`skn serve`: a model that answers and learns over HTTP."""

from __future__ import annotations

import argparse
import os
from importlib import import_module

from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.data import FEATURE_OPTIONS, add_feature_options
from sketchnewton.cli.options.learner import add_learner_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_one, at_least_two, at_least_zero, label, names, seconds
from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchnewton.model import Model
    from sketchnewton.serve.server import Settings
    from sketchnewton.serve.tls import Tls

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn serve [MODEL] [--port N] [--state DIR] [options]"
SUMMARY = "Answer and learn over HTTP. What is acknowledged survives a crash."
EXAMPLES = """\
examples:
  skn serve clicks.skn                                  predict and learn at http://127.0.0.1:8080/
  skn serve --classes ham,spam --state spam             begin with nothing and learn from what comes
  skn serve clicks.skn --feedback-ttl 3600 --assume-label 0       no click within an hour is a label, too
  skn serve clicks.skn --host 0.0.0.0 --token-file tokens --tls-cert c.pem --tls-key k.pem

  curl localhost:8080/v1/predict -H 'content-type: application/json' -d '{"user": "anna", "price": 3.5}'
  curl localhost:8080/v1/learn -H 'content-type: application/json' -d '{"user": "anna", "price": 3.5, "label": 1}'

DIR has the log of all that was learned and snapshots of the model. Started again, the server continues from them,
bit for bit as if it had never stopped; MODEL and the options of a new model matter for the first start alone.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="Model to begin with; default: a new one.")
    parser.add_argument("--host", default="127.0.0.1", help="Address to listen at (default 127.0.0.1).")
    parser.add_argument(
        "--port", type=at_least_zero, default=8080, help="Port to listen at (default 8080; 0: any)."
    )
    parser.add_argument(
        "--workers", type=at_least_zero, default=0, metavar="N",
        help="Processes that predict beside the one that learns, a moment behind it (default 0)."
    )  # fmt: skip
    parser.add_argument("--name", help="Name of the model in the Open Inference Protocol (default: model).")
    state = parser.add_argument_group("state")
    state.add_argument(
        "--state", metavar="DIR", help="Directory of the log and the snapshots (default MODEL.state)."
    )
    state.add_argument(
        "--recover",
        action="store_true",
        help="Start from the last good state if the log or a snapshot is damaged.",
    )
    state.add_argument(
        "--snapshot-events",
        type=at_least_one,
        default=10_000,
        metavar="N",
        help="Save the model every N events.",
    )
    state.add_argument(
        "--snapshot-seconds",
        type=seconds,
        default=300.0,
        metavar="S",
        help="And every S seconds (default 300).",
    )
    state.add_argument(
        "--keep-events",
        type=at_least_zero,
        default=1_000_000,
        metavar="N",
        help="Keep the last N events for skn replay (default 1000000); older ones go once a snapshot has them.",
    )
    labels = parser.add_argument_group("late labels")
    labels.add_argument(
        "--remember",
        action="store_true",
        help="Remember every record that is predicted until its label comes.",
    )
    labels.add_argument(
        "--feedback-ttl",
        type=seconds,
        default=86400.0,
        metavar="S",
        help="Wait S seconds for a label (default 86400).",
    )
    labels.add_argument(
        "--assume-label",
        type=label,
        metavar="LABEL",
        help="Learn LABEL for records whose label has not come then.",
    )
    access = parser.add_argument_group("access")
    access.add_argument(
        "--token-file", metavar="FILE", help="Bearer tokens that may do everything, one on each line. Needed for "
        "addresses other than this machine's own."
    )  # fmt: skip
    access.add_argument("--read-token-file", metavar="FILE", help="Bearer tokens that may read and predict.")
    access.add_argument("--tls-cert", metavar="FILE", help="Certificate, as PEM: serve HTTPS.")
    access.add_argument("--tls-key", metavar="FILE", help="Key of the certificate, as PEM.")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-body", type=at_least_one, default=16 << 20, metavar="BYTES", help="Of a request."
    )
    limits.add_argument(
        "--max-rows", type=at_least_one, default=10_000, metavar="N", help="Records of a request."
    )
    limits.add_argument(
        "--max-features", type=at_least_one, default=100_000, metavar="N", help="Features of a record."
    )
    limits.add_argument(
        "--queue", type=at_least_one, default=1000, metavar="N",
        help="Requests that may wait for the disk; more get 429."
    )  # fmt: skip
    limits.add_argument(
        "--header-seconds",
        type=seconds,
        default=10.0,
        metavar="S",
        help="For the headers of a request (default 10).",
    )
    limits.add_argument(
        "--body-seconds",
        type=seconds,
        default=60.0,
        metavar="S",
        help="For the body of a request (default 60).",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--log-requests", action="store_true", help="Write a line for each request to stderr."
    )
    output.add_argument(
        "--log-records", action="store_true", help="Lines and the page may quote what is wrong in a record."
    )
    output.add_argument("--quiet", action="store_true", help="Print only errors.")
    new = parser.add_argument_group("a new model")
    new.add_argument("--label", metavar="COLUMN", help="Column that holds the label (default: label).")
    new.add_argument(
        "--positive", type=label, metavar="LABEL", help="Learn LABEL as +1 and all others as -1."
    )
    new.add_argument(
        "--classes", type=names, metavar="LABELS", help="Labels are these classes: cat,dog,bird."
    )
    new.add_argument(
        "--multiclass", type=at_least_two, metavar="K", help="Labels are classes 1..K or 0..K-1."
    )
    add_learner_options(parser.add_argument_group("learner of a new model (all have defaults)"))
    add_feature_options(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    try:
        import_module("httptools")
    except ImportError:
        raise CommandError("skn serve needs the extra `serve`: pip install 'sketchnewton[serve]'") from None
    from sketchnewton.serve.server import serve, to_stderr

    settings = _settings(args)
    if args.model is not None and not os.path.exists(settings.state):
        _check_model(args.model)  # a mistyped name leaves no directory behind
    serve(settings, lambda: _fresh(args), (lambda _: None) if args.quiet else to_stderr)
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    from sketchnewton.serve.access import Access, read_tokens
    from sketchnewton.serve.door import ApiOptions
    from sketchnewton.serve.engine import EngineOptions
    from sketchnewton.serve.http import Limits
    from sketchnewton.serve.keeper import KeeperOptions
    from sketchnewton.serve.predictor import RowLimits
    from sketchnewton.serve.server import Settings, is_local

    access = Access(
        read_tokens(args.read_token_file) if args.read_token_file else (),
        read_tokens(args.token_file) if args.token_file else (),
    )
    if access.read and not access.write:
        raise usage_error("--read-token-file needs --token-file, for those who may write")
    if not is_local(args.host) and not access.write:
        raise usage_error(f"--host {args.host} is open to other machines: --token-file is needed")
    if args.port > 65535:
        raise usage_error(f"--port {args.port} is invalid: must be at most 65535")
    return Settings(
        state=args.state or (f"{args.model}.state" if args.model else "skn-state"),
        host=args.host,
        port=args.port,
        recover=args.recover,
        access=access,
        tls=_tls(args),
        limits=Limits(
            body_bytes=args.max_body, header_seconds=args.header_seconds, body_seconds=args.body_seconds
        ),
        engine=EngineOptions(
            feedback_ttl=args.feedback_ttl,
            assume_label=args.assume_label,
            queue=args.queue,
            limits=RowLimits(args.max_rows, args.max_features),
        ),
        keeper=KeeperOptions(args.snapshot_events, args.snapshot_seconds, args.keep_events),
        api=ApiOptions(
            name=_name(args.name or "model"),
            remember=args.remember,
            log_requests=args.log_requests,
            log_records=args.log_records,
        ),
        workers=args.workers,
    )


def _name(name: str) -> str:
    if not name.isascii() or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise usage_error(f"--name {name!r} is invalid: must be letters, digits, -, _ and .")
    return name


def _tls(args: argparse.Namespace) -> Tls | None:
    from sketchnewton.serve.tls import Tls

    if args.tls_cert is None and args.tls_key is None:
        return None
    if args.tls_cert is None or args.tls_key is None:
        raise usage_error("--tls-cert and --tls-key go together")
    made = Tls(args.tls_cert, args.tls_key)
    made.context()  # refuses what is none
    return made


def _check_model(path: str) -> None:
    if not os.path.exists(path):
        raise CommandError(f"{path}: there is no such model file")


def _fresh(args: argparse.Namespace) -> Model:
    """The model that a new directory begins with."""
    from sketchnewton.cli.train.labels import named_classes
    from sketchnewton.cli.train.learner import new_model
    from sketchnewton.cli.train.prefetch import given
    from sketchnewton.features.columns import Columns
    from sketchnewton.features.names import Names
    from sketchnewton.features.options import Features
    from sketchnewton.model import open_model

    if args.model is not None:
        _check_model(args.model)
        return open_model(args.model)
    model = new_model(args, named_classes(args) if args.classes is not None else None)
    try:
        model.features = Features.from_dict(given(args, FEATURE_OPTIONS))
    except ValueError as error:
        raise usage_error(str(error)) from None
    model.columns = Columns(label=args.label)
    if getattr(args, "exact_names", False):
        model.names = Names(exact=True)
    return model
