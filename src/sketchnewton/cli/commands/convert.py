"""`skn convert`: the rows of one format in another."""

from __future__ import annotations

import argparse
import contextlib
import os
import time

from sketchnewton.cli.io.console import Console, counted, printable
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.options.data import DATA_HELP, add_data_options, add_feature_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import names
from sketchnewton.core.formats import BY_NAME, WRITABLE
from sketchnewton.core.hints import TYPE_CHECKING, NamedTuple
from sketchnewton.core.types import np

if TYPE_CHECKING:
    from sketchnewton.cli.io.data_source import DataSource
    from sketchnewton.streams import Batch

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn convert DATA ... OUT [--to FORMAT] [options]"
SUMMARY = "Write the rows of DATA in another format."
EXAMPLES = """\
examples:
  skn convert clicks.vw.gz clicks.svm          names become the indices that training would use
  skn convert table.csv --label y table.vw     labels that are texts become -1 and 1, or 1, 2, 3 ...
  skn convert day*.svm - --to jsonl | head
  skn convert clicks.skn.state seen.jsonl      the rows that skn serve learned from

The format of OUT follows from its name or --to. OUT appears only when it is complete.
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument("output", metavar="OUT", help="File to write; - is stdout.")
    parser.add_argument(
        "--to", choices=WRITABLE, help=f"Format of OUT, if its name does not show it: {', '.join(WRITABLE)}."
    )
    parser.add_argument(
        "--classes",
        type=names,
        metavar="LABELS",
        help="Labels are these texts. In alphabetical order they become -1 and 1 if there are two, else 1, 2, 3 "
        "and so on; yes and no, true and false alone become 1 and 0. Needed only where DATA is a pipe; in files "
        "they are found.",
    )
    add_data_options(parser)
    add_feature_options(parser)
    parser.add_argument("--quiet", action="store_true", help="Print only errors.")


def run(args: argparse.Namespace) -> int:
    """Convert as `args` say. A run that is stopped or fails leaves no output file."""
    from sketchnewton.cli.io.data_source import DataSource
    from sketchnewton.cli.io.files import check_distinct, check_writable
    from sketchnewton.streams import Names, format_of_name, open_writer

    to = args.to or format_of_name(args.output)
    if to is None:
        raise usage_error(f"{args.output}: the name does not show the format to write: give --to")
    if len(args.data) == 1 and _is_log(args.data[0]):
        return _export(args, to)
    data = DataSource(args.data, args)
    data.check()
    check_distinct({"OUT": args.output}, {f"DATA {path}": path for path in data.paths})
    check_writable(args.output)
    kind = BY_NAME[to]
    if kind.writes_names and data.names is None and not _numbered(data):
        data.names = Names(exact=True)
    console = Console(args.quiet)
    _number_labels(data, args, console)
    start = time.perf_counter()
    rows = 0
    with GracefulStop() as stop, contextlib.suppress(Stopped):
        table = _table(data, to, console, stop) if kind.lists_columns else _Table()
        try:
            written = data.names if kind.writes_names else None
            with open_writer(args.output, format=to, columns=table.width, names=written) as writer:
                for batch in data.read(console, stop):
                    writer.write(table.filled(batch))
                    rows += len(batch)
                if stop.signal is not None:
                    raise Stopped  # through the block that would put the file in place
        except ModuleNotFoundError as error:  # of an extra, which it names
            raise CommandError(str(error)) from None
    data.report_skipped(console)
    if stop.signal is None:
        seconds = time.perf_counter() - start
        console.line(f"{counted(rows, 'row')} in {seconds:.2f} s, in {args.output}")
    return stop.exit_code


def _number_labels(data: DataSource, args: argparse.Namespace, console: Console) -> None:
    """Labels become numbers: say which, for those that are yes and no, true and false, or any texts."""
    if data.without_columns:
        if args.classes is not None:
            raise usage_error(f"--classes does not apply to {data.name}, whose labels are numbers")
        return
    from sketchnewton.cli.train.labels import named_classes, surveyed
    from sketchnewton.features.kinds import Misfit, looks_like_number, parse_number
    from sketchnewton.model.class_names import label_text

    if args.classes is not None:
        texts = list(map(label_text, named_classes(args)))
    elif data.identity() is None:
        return  # what cannot be read twice must be named
    else:
        texts = list(map(label_text, surveyed(data, everything=False) or ()))
        if not texts:
            return  # they are numbers
    stray = [text for text in texts if not looks_like_number(text)]
    if stray and len(stray) < len(texts) and args.classes is None:
        raise CommandError(
            f"{data.name}: labels are numbers, but one is the text '{printable(stray[0].decode())}': correct it, "
            "or name all labels with --classes to number them in alphabetical order"
        )
    try:
        numbers = [parse_number(text) for text in texts]
    except Misfit:
        numbers = [-1.0, 1.0] if len(texts) == 2 else [float(number) for number in range(1, len(texts) + 1)]
        data.label_codes = dict(zip(texts, numbers, strict=True))
    shown = (f"{text.decode()} as {number:g}" for text, number in zip(texts, numbers, strict=True))
    console.line(f"labels: {', '.join(shown)}")


def _is_log(path: str) -> bool:
    if not os.path.exists(path):
        return False
    from sketchnewton.serve.past import is_log

    return is_log(path)


def _export(args: argparse.Namespace, to: str) -> int:
    """The records that a server has learned, as they came."""
    import json

    from sketchnewton.cli.io.files import check_writable, open_output
    from sketchnewton.serve.log import LogError
    from sketchnewton.serve.past import Past

    if to != "jsonl":
        raise usage_error(f"{args.output}: the log of a server is exported as jsonl, not {to}")
    check_writable(args.output)
    rows = 0
    try:
        with open_output(args.output) as file:
            for record in Past(args.data[0]).objects():
                file.write(json.dumps(record) + "\n")
                rows += 1
    except LogError as error:
        raise CommandError(str(error)) from None
    if args.output != "-":
        Console(args.quiet).line(f"{counted(rows, 'row')} in {args.output}")
    return 0


def _numbered(data: DataSource) -> bool:
    """Whether all features are numbers already."""
    from sketchnewton.streams import format_of_name

    formats = {data.format or format_of_name(path) for path in data.paths}
    return (
        all(name in BY_NAME and BY_NAME[name].only_numbers for name in formats) and not data.features.expands
    )


class _Table(NamedTuple):
    """What must be known before the first line of a format that lists all columns there."""

    width: int | None = None
    weighted: bool = False
    tagged: bool = False

    def filled(self, batch: Batch) -> Batch:
        """The batch with a weight and a tag for each row, if any row of the table has one."""
        if self.weighted and batch.weights is None:
            batch = batch.replace(weights=np.ones(len(batch)))
        if self.tagged and batch.tags is None:
            batch = batch.replace(tags=[b""] * len(batch))
        return batch


def _table(data: DataSource, to: str, console: Console, stop: GracefulStop) -> _Table:
    """Read all rows once, in a pass of its own; afterwards the names are known, too."""
    if data.identity() is None:
        raise usage_error(f"{to} needs all columns in its first line, so DATA must be files, not a pipe")
    width, weighted, tagged = 0, False, False
    for batch in data.read(console, stop):
        width = max(width, batch.shape[1])
        weighted |= batch.weights is not None
        tagged |= batch.tags is not None
    if stop.signal is not None:
        raise Stopped
    return _Table(width, weighted, tagged)
