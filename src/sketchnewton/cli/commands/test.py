"""`skn test`: how good a trained model is on labelled rows, without learning from them."""

from __future__ import annotations

import argparse

from sketchnewton.cli.io.console import Console, amount, counted, number, percent, print_page, printable
from sketchnewton.cli.options.data import DATA_HELP, add_data_options
from sketchnewton.cli.options.parser import Parser
from sketchnewton.core.types import Floats, Header, np

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn test MODEL DATA ... [--by COLUMN] [--picture FILE] [--json]"
SUMMARY = "Score a trained model on labelled rows, without learning from them."
EXAMPLES = """\
examples:
  skn test clicks.skn tuesday.vw                    loss, error, AUC, log loss, confusion matrix, calibration
  skn test prices.skn new.csv --by city             regression: MAE, RMSE, R2, for each city too
  skn test clicks.skn tuesday.vw --picture c.png    draw the calibration
  skn test clicks.skn tuesday.vw --json | jq .auc
"""

_BIN = ("predicted", "observed", "weight")
_SHARES = ("error",)  # metrics shown as percentages
_MOST_CLASSES = 20  # of a confusion matrix that fits a page
_MOST_SEGMENTS = 50


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("model", metavar="MODEL", help="Model file written by skn train --model.")
    parser.add_argument("data", metavar="DATA", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="Also score each value of COLUMN separately; VW text has no columns, but --by tag works. Reads DATA "
        "twice.",
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="Draw the calibration, or predictions against labels (.png, .svg, .pdf).",
    )
    add_data_options(parser)
    parser.add_argument("--json", action="store_true", help="Print machine-readable output on stdout.")
    parser.add_argument("--quiet", action="store_true", help="Show no progress.")


def run(args: argparse.Namespace) -> int:
    """Score the model at `args.model` on `args.data`."""
    import json

    from sketchnewton.cli.io.data_source import DataSource, check_order
    from sketchnewton.cli.io.errors import CommandError
    from sketchnewton.cli.io.files import check_distinct, check_readable
    from sketchnewton.cli.io.segments import Segments
    from sketchnewton.cli.io.signals import GracefulStop
    from sketchnewton.cli.pictures.saving import check_picture
    from sketchnewton.core.batch import ParseError
    from sketchnewton.evaluation.metrics import calibration, confusion, measure
    from sketchnewton.model import open_model

    check_readable(args.model)
    check_order(args)
    inputs = {"MODEL": args.model, **{f"DATA {path}": path for path in args.data}}
    check_distinct({"--picture": args.picture}, inputs)
    check_picture("--picture", args.picture)
    model = open_model(args.model)
    model.learner.threads = max(1, args.threads - 1)
    data = DataSource(args.data, args, model, testing=True)
    data.check()
    console = Console(args.quiet)
    with GracefulStop() as stop:
        segments = None if args.by is None else Segments(args.by, data, args, model, console, stop)
        try:
            score, answers = model.tested(data.fitted(data.read(console, stop), model.target.copy()))
        except ValueError as error:
            if data.skipped + data.unlearnable:
                raise CommandError(f"{data.name}: no row can be scored: {data.first_error}") from None
            if isinstance(error, ParseError):  # which says where it is
                raise
            raise CommandError(f"{data.name}: {error}") from None
        if stop.signal is not None:
            return stop.exit_code
    data.report_skipped(console)
    table = confusion(answers)
    facts: Header = {
        "model": args.model,
        "data": args.data[0] if len(args.data) == 1 else args.data,
        "rows": score.rows,
        "skipped": data.skipped + data.unlearnable,
        "loss": score.mean_loss,
        **measure(answers),
        "classes": _classes(model.classes, table),
        "confusion": None
        if table is None
        else model.target.ordered(model.target.ordered(table).T).T.tolist(),
        "calibration": [dict(zip(_BIN, row, strict=True)) for row in calibration(answers)],
        "by": None if segments is None else segments.measured(answers),
    }
    if args.picture is not None:
        from sketchnewton.cli.pictures.test import draw

        draw(args.picture, data.name, facts, answers)
    print_page([json.dumps(_finite(facts))] if args.json else _page(facts, args.by, model.learner.loss.name))
    return 0


def _classes(known: list[object] | None, table: Floats | None) -> list[object] | None:
    """The labels of the confusion matrix."""
    return known if known is not None or table is None else [-1, 1]


def _page(facts: Header, by: str | None, loss: str) -> list[str]:
    from sketchnewton.evaluation.metrics import METRICS

    lines = [counted(facts["rows"], "row"), f"  {loss + ' loss':<14} {number(facts['loss'])}"]
    for name in METRICS:
        if name in facts:
            lines.append(f"  {_title(name):<14} {_value(name, facts[name])}")
    if facts["confusion"] is not None and len(facts["confusion"]) <= _MOST_CLASSES:
        lines += ["", "confusion matrix (rows: label, columns: prediction)", *_matrix(facts)]
    if facts["calibration"]:
        lines += ["", "calibration", f"  {'predicted':>10} {'observed':>10} {'rows':>12}"]
        lines += [
            f"  {percent(row['predicted']):>10} {percent(row['observed']):>10} {amount(row['weight']):>12}"
            for row in facts["calibration"]
        ]
    if facts["by"] is not None:
        lines += ["", *_segment_lines(by or "", facts["by"])]
    return lines


def _matrix(facts: Header) -> list[str]:
    names = [printable(str(name)) for name in facts["classes"]]
    cells = [[amount(value) for value in row] for row in facts["confusion"]]
    width = max(len(text) for row in [names, *cells] for text in row)
    rows = [["", *names], *([name, *row] for name, row in zip(names, cells, strict=True))]
    return ["  " + " ".join(f"{text:>{width}}" for text in row) for row in rows]


def _segment_lines(by: str, segments: list[Header]) -> list[str]:
    metrics = [name for name in segments[0] if name not in ("value", "rows")]
    width = max(len(by), *(len(_shown(segment["value"])) for segment in segments[:_MOST_SEGMENTS]))
    lines = [
        f"  {printable(by):<{width}} {'rows':>10} " + " ".join(f"{_title(name):>10}" for name in metrics)
    ]
    for segment in segments[:_MOST_SEGMENTS]:
        values = " ".join(f"{_value(name, segment[name]):>10}" for name in metrics)
        lines.append(f"  {_shown(segment['value']):<{width}} {amount(segment['rows']):>10} {values}")
    if len(segments) > _MOST_SEGMENTS:
        lines.append(
            f"  and {amount(len(segments) - _MOST_SEGMENTS)} more, with fewer rows (all with --json)"
        )
    return lines


def _shown(value: str | None) -> str:
    return "(none)" if value is None else printable(value)


def _title(name: str) -> str:
    return {"auc": "AUC", "f1": "F1", "mae": "MAE", "rmse": "RMSE", "r2": "R²"}.get(
        name, name.replace("_", " ")
    )


def _value(name: str, value: float) -> str:
    return percent(value) if name in _SHARES and np.isfinite(value) else number(value)


def _finite(value: object) -> object:
    """The same with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
