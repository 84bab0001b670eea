"""`skn inspect`: what a model is and what it has learned."""

from __future__ import annotations

import argparse
import math
import sys

from sketchnewton.cli.io.console import amount, number, print_page, printable
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_zero
from sketchnewton.core.types import Header, np

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn inspect MODEL [--top N] [--json]"
SUMMARY = "Show what a model is: parameters, rows seen, sketch spectrum, largest weights."
EXAMPLES = """\
examples:
  skn inspect clicks.skn
  skn inspect clicks.skn --json | jq .spectrum
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("model", metavar="MODEL", help="Model file written by skn train --model.")
    parser.add_argument(
        "--top", type=at_least_zero, default=10, metavar="N", help="Show the N largest weights (default 10)."
    )
    parser.add_argument("--json", action="store_true", help="Print machine-readable output on stdout.")


_SPECTRUM = 20  # eigenvalues shown
_BAR = 30  # cells of the longest bar


def run(args: argparse.Namespace) -> int:
    """Print the model at `args.model`."""
    import json

    from sketchnewton.cli.io.files import check_readable
    from sketchnewton.cli.pictures.spectrum import show
    from sketchnewton.core.persistence import load
    from sketchnewton.model import open_model
    from sketchnewton.sketches import Sketch

    check_readable(args.model)
    found = load(args.model)
    if isinstance(found, Sketch):
        show(args.model, found, args.json)
        return 0
    facts = open_model(args.model).facts(args.top)
    print_page([json.dumps(facts)] if args.json else _page(args.model, facts))
    return 0


def _page(path: str, facts: Header) -> list[str]:
    from sketchnewton.features.columns import described_kinds

    lines = [
        f"{path}: {facts['class']}",
        f"  learned        {facts['labels']}",
        f"  rows seen      {amount(facts['rows_seen'])}{facts['unfinished'] or ''}",
        f"  features seen  {_features(facts)}",
        f"  intercept      {' '.join(number(value) for value in np.atleast_1d(facts['intercept']).tolist())}",
    ]
    if facts["kinds"]:
        lines.append(f"  columns        {printable(described_kinds(facts['kinds']))}")
    titles = {"columns": "options"}
    lines += [f"  {titles.get(name, name):<13}  {value}" for name, value in facts["data"].items()]
    parameters = facts["parameters"]
    if "make" in parameters:  # those of each class's learner
        parameters = {"learner": parameters["make"], **parameters["parameters"]}
    lines += ["", "parameters"]
    width = max((len(name) for name in parameters), default=0)
    for name, value in parameters.items():
        lines.append(f"  {name:<{width}}  {_absent(name, facts) if value is None else value}")
    if facts["experts"]:
        lines += ["", "expert weights"]
        lines += _bars(list(facts["experts"].items()))
    if facts["scales"]:
        lines += ["", "scales of features (what each is divided by)", *_scale_lines(facts["scales"])]
    if facts["spectrum"]:
        lines += ["", "curvature spectrum (eigenvalues, one per direction)"]
        lines += _bars([(str(i), value) for i, value in enumerate(facts["spectrum"][:_SPECTRUM], 1)])
        if len(facts["spectrum"]) > _SPECTRUM:
            lines.append(f"  and {amount(len(facts['spectrum']) - _SPECTRUM)} smaller ones")
    if facts["largest_weights"]:
        of = "" if facts["classes"] is None else ", each in the class where it is largest"
        lines += ["", f"largest weights, by feature{of}"]
        lines += _bars([(str(item["feature"]), item["weight"]) for item in facts["largest_weights"]])
    return lines


def _scale_lines(scales: Header) -> list[str]:
    quantiles = scales["quantiles"]
    lines = [
        "  " + "".join(f"{name:>12}" for name in quantiles),
        "  " + "".join(f"{number(value):>12}" for value in quantiles.values()),
    ]
    for end in ("smallest", "largest"):
        features = ", ".join(f"{item['feature']} {number(item['scale'])}" for item in scales[end])
        lines.append(f"  {end:<8}  {features}")
    return lines


def _features(facts: Header) -> str:
    if facts["largest_index"] is None:
        return "0"
    used = amount(facts["nonzero_weights"])
    return f"{amount(facts['features'])}, {used} with a weight, largest index {facts['largest_index']}"


def _absent(name: str, facts: Header) -> str:
    """What a parameter that was not given means."""
    if name == "clip":
        return "none"
    if name == "alpha":
        from sketchnewton.cli.train.learner import automatic_alpha

        return automatic_alpha(facts["alpha"], facts["parameters"])
    return "decided by the loss and the sketch"


def _bars(rows: list[tuple[str, float]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    largest = max((abs(value) for _, value in rows if math.isfinite(value)), default=0.0) or 1.0
    full = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    return [
        f"  {name:>{width}}  {number(value):>12}  {full * math.ceil(_BAR * abs(value) / largest)}".rstrip()
        for name, value in rows
    ]
