"""`skn inspect`: what a model is and what it has learned."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from sketchnewton import model_file
from sketchnewton.cli.console import amount, bars, number
from sketchnewton.cli.files import check_readable
from sketchnewton.cli.spectrum import show
from sketchnewton.learners import Learner
from sketchnewton.sketches import Sketch

__all__ = ["run"]

_SPECTRUM = 20  # eigenvalues shown


def run(args: argparse.Namespace) -> int:
    """Print the model at `args.model`."""
    check_readable(args.model)
    model = model_file.load(args.model)
    if isinstance(model, Sketch):
        show(args.model, model, args.json)
        return 0
    facts = _facts(model, args.top)
    print(json.dumps(facts) if args.json else "\n".join(_page(args.model, facts)))
    return 0


def _facts(learner: Learner, top: int) -> dict[str, Any]:
    weights = np.asarray(learner.weights, np.float64)
    used = np.flatnonzero(weights)
    largest = used[np.argsort(-np.abs(weights[used]), kind="stable")[:top]]
    return {
        "class": type(learner).__name__,
        "parameters": learner.params,
        "rows_seen": learner.rows_seen,
        "features": learner.dimension,
        "nonzero_weights": len(used),
        "intercept": float(learner.intercept_),
        "spectrum": [float(value) for value in learner.spectrum],
        "largest_weights": [{"feature": int(i), "weight": float(weights[i])} for i in largest],
    }


def _page(path: str, facts: dict[str, Any]) -> list[str]:
    lines = [
        f"{path}: {facts['class']}",
        f"  rows seen      {amount(facts['rows_seen'])}",
        f"  features seen  {amount(facts['features'])}, {amount(facts['nonzero_weights'])} with a weight",
        f"  intercept      {number(facts['intercept'])}",
        "",
        "parameters",
    ]
    width = max((len(name) for name in facts["parameters"]), default=0)
    for name, value in facts["parameters"].items():
        absent = "none" if name == "clip" else "decided by the loss and the sketch"
        lines.append(f"  {name:<{width}}  {absent if value is None else value}")
    if facts["spectrum"]:
        lines += ["", "curvature spectrum (eigenvalues, one per direction)"]
        lines += bars([(str(i), value) for i, value in enumerate(facts["spectrum"][:_SPECTRUM], 1)])
        if len(facts["spectrum"]) > _SPECTRUM:
            lines.append(f"  and {amount(len(facts['spectrum']) - _SPECTRUM)} smaller ones")
    if facts["largest_weights"]:
        lines += ["", "largest weights, by feature"]
        lines += bars([(str(item["feature"]), item["weight"]) for item in facts["largest_weights"]])
    return lines
