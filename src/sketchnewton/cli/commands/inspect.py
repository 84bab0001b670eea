"""`skn inspect`: what a model is and what it has learned."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, Any

from sketchnewton.cli.io.console import amount, number, print_page
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_zero
from sketchnewton.core.types import np

if TYPE_CHECKING:
    from sketchnewton.learners import Learner

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
_QUANTILES = {"least": 0.0, "1/4": 0.25, "median": 0.5, "3/4": 0.75, "most": 1.0}
_ENDS = 3  # features with the smallest and with the largest scales


def run(args: argparse.Namespace) -> int:
    """Print the model at `args.model`."""
    import json

    from sketchnewton import model_file
    from sketchnewton.cli.io.files import check_readable
    from sketchnewton.cli.pictures.spectrum import show
    from sketchnewton.cli.train.learner import labels_of
    from sketchnewton.sketches import Sketch

    check_readable(args.model)
    model = model_file.load(args.model)
    if isinstance(model, Sketch):
        show(args.model, model, args.json)
        return 0
    labels = labels_of(model).description  # refuses notes that make no sense
    facts = _facts(model, args.top)
    print_page([json.dumps(facts)] if args.json else _page(args.model, facts, labels))
    return 0


def _facts(learner: Learner, top: int) -> dict[str, Any]:
    from sketchnewton.cli.train.learner import (
        alpha_in_force,
        class_count,
        constants,
        positive_label,
    )

    features, weights = learner.largest_weights()
    if weights.ndim > 1:  # of each feature, the class in which it weighs most
        weights = np.take_along_axis(weights, np.abs(weights).argmax(axis=1)[:, None], axis=1)[:, 0]
    used = int(np.count_nonzero(weights))
    largest = zip(features[: min(top, used)].tolist(), weights.tolist(), strict=False)
    names = _names(learner)
    return {
        "class": type(learner).__name__,
        "classes": class_count(learner),
        "parameters": learner.params,
        "alpha": alpha_in_force(learner),
        "positive": positive_label(learner),
        "rows_seen": learner.rows_seen,
        "unfinished": _unfinished(learner),
        "features": learner.features_seen,
        "largest_index": learner.dimension - 1 if learner.dimension else None,
        "nonzero_weights": used,
        "intercept": learner.intercept_ if class_count(learner) is None else constants(learner).tolist(),
        # Where each class has a sketch of its own: all their eigenvalues together.
        "spectrum": np.sort(np.ravel(learner.spectrum))[::-1].tolist(),
        "experts": _experts(learner),
        "scales": _scales(learner, names),
        "largest_weights": [
            {"feature": names.get(feature, feature), "weight": weight} for feature, weight in largest
        ],
        "data": {name: learner.notes[name] for name in ("features", "columns") if name in learner.notes},
    }


def _experts(learner: Learner) -> dict[str, float]:
    """Of a bank: how much each expert has to say."""
    from sketchnewton.learners import NewtonBank

    if not isinstance(learner, NewtonBank):
        return {}
    return dict(zip(learner.expert_names, learner.expert_shares.tolist(), strict=True))


def _scales(learner: Learner, names: dict[int, str]) -> dict[str, Any]:
    """Of a bank: what features are divided by. Quantiles, and the features at either end."""
    from sketchnewton.learners import NewtonBank

    if not isinstance(learner, NewtonBank):
        return {}
    features, scales = learner.sorted_scales()
    if not len(features):
        return {}
    ordered = [
        {"feature": names.get(feature, feature), "scale": scale}
        for at in (slice(_ENDS), slice(-_ENDS, None))
        for feature, scale in zip(features[at].tolist(), scales[at].tolist(), strict=True)
    ]
    count = len(ordered) // 2
    levels = np.quantile(scales, list(_QUANTILES.values()))
    return {
        "quantiles": dict(zip(_QUANTILES, levels.tolist(), strict=True)),
        "smallest": ordered[:count],
        "largest": ordered[: -count - 1 : -1],
    }


def _unfinished(learner: Learner) -> str | None:
    """Of a checkpoint: where the run was."""
    run = learner.notes.get("run")
    if not isinstance(run, dict):
        return None
    where = f"row {run.get('row')} of pass {run.get('pass', 0) + 1}"
    return f" (a checkpoint after {where}: --resume finishes the run)"


def _names(learner: Learner) -> dict[int, str]:
    """The names of features, if the model knows them."""
    if not learner.attached:
        return {}
    from sketchnewton.streams import Names

    try:
        return Names.from_state(learner.attached, exact=True).readable()
    except (KeyError, ValueError) as error:
        raise CommandError(f"the model's names of features are damaged: {error}") from None


def _page(path: str, facts: dict[str, Any], labels: str) -> list[str]:
    lines = [
        f"{path}: {facts['class']}",
        f"  learned        {labels}",
        f"  rows seen      {amount(facts['rows_seen'])}{facts['unfinished'] or ''}",
        f"  features seen  {_features(facts)}",
        f"  intercept      {' '.join(number(value) for value in np.atleast_1d(facts['intercept']).tolist())}",
    ]
    lines += [f"  {name:<13}  {value}" for name, value in facts["data"].items()]
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


def _scale_lines(scales: dict[str, Any]) -> list[str]:
    quantiles = scales["quantiles"]
    lines = [
        "  " + "".join(f"{name:>12}" for name in quantiles),
        "  " + "".join(f"{number(value):>12}" for value in quantiles.values()),
    ]
    for end in ("smallest", "largest"):
        features = ", ".join(f"{item['feature']} {number(item['scale'])}" for item in scales[end])
        lines.append(f"  {end:<8}  {features}")
    return lines


def _features(facts: dict[str, Any]) -> str:
    if facts["largest_index"] is None:
        return "0"
    used = amount(facts["nonzero_weights"])
    return f"{amount(facts['features'])}, {used} with a weight, largest index {facts['largest_index']}"


def _absent(name: str, facts: dict[str, Any]) -> str:
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
