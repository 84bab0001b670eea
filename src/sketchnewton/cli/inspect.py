"""`skn inspect`: what a model is and what it has learned."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

import numpy as np

from sketchnewton import model_file
from sketchnewton.cli.console import amount, number
from sketchnewton.cli.files import check_readable
from sketchnewton.cli.learner import alpha_in_force, automatic_alpha, label_coding, positive_label

__all__ = ["run"]

_SPECTRUM = 20  # eigenvalues shown
_BAR = 30  # cells of the longest bar


def run(args: argparse.Namespace) -> int:
    """Print the model at `args.model`."""
    check_readable(args.model)
    facts = _facts(args.model, args.top)
    print(json.dumps(facts) if args.json else "\n".join(_page(args.model, facts)))
    return 0


def _facts(path: str, top: int) -> dict[str, Any]:
    learner = model_file.load(path)
    features, weights = learner.largest_weights()
    used = int(np.count_nonzero(weights))
    largest = zip(features[: min(top, used)].tolist(), weights.tolist(), strict=False)
    return {
        "class": type(learner).__name__,
        "parameters": learner.params,
        "alpha": alpha_in_force(learner),
        "positive": positive_label(learner),
        "rows_seen": learner.rows_seen,
        "features": learner.features_seen,
        "largest_index": learner.dimension - 1 if learner.dimension else None,
        "nonzero_weights": used,
        "intercept": float(learner.intercept_),
        "spectrum": [float(value) for value in learner.spectrum],
        "largest_weights": [{"feature": feature, "weight": weight} for feature, weight in largest],
    }


def _page(path: str, facts: dict[str, Any]) -> list[str]:
    lines = [
        f"{path}: {facts['class']}",
        f"  learned        {label_coding(facts['positive'])}",
        f"  rows seen      {amount(facts['rows_seen'])}",
        f"  features seen  {_features(facts)}",
        f"  intercept      {number(facts['intercept'])}",
        "",
        "parameters",
    ]
    width = max((len(name) for name in facts["parameters"]), default=0)
    for name, value in facts["parameters"].items():
        lines.append(f"  {name:<{width}}  {_absent(name, facts) if value is None else value}")
    if facts["spectrum"]:
        lines += ["", "curvature spectrum (eigenvalues, one per direction)"]
        lines += _bars([(str(i), value) for i, value in enumerate(facts["spectrum"][:_SPECTRUM], 1)])
        if len(facts["spectrum"]) > _SPECTRUM:
            lines.append(f"  and {amount(len(facts['spectrum']) - _SPECTRUM)} smaller ones")
    if facts["largest_weights"]:
        lines += ["", "largest weights, by feature"]
        lines += _bars([(str(item["feature"]), item["weight"]) for item in facts["largest_weights"]])
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
