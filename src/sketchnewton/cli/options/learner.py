"""The options that describe a learner. The learners themselves are a table in `core/names.py`.

An option here is a parameter of some learner's constructor, under the same name. It has no default here: the
learner or the resumed model has one. Which learner takes which option is read from the constructors
(`cli/train/learner.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from sketchnewton.cli.options.parser import add_if_given
from sketchnewton.cli.options.types import (
    at_least_one,
    at_least_zero,
    clip,
    curvature_weight,
    finite,
    oja_rate,
)
from sketchnewton.core.names import DEFAULT_LOSS, command_line_learners, loss_modules
from sketchnewton.core.sketch_kinds import SHRINKS, SKETCHES, TABLE

__all__ = [
    "DEFAULT_LEARNER",
    "LEARNERS",
    "LEARNER_OPTIONS",
    "ONLY_WITH_SKETCH",
    "SKETCH_LEARNER",
    "add_learner_options",
]

# --learner NAME: the classes in sketchnewton.learners, the last of which takes the most options, and what it is.
LEARNERS = command_line_learners()

# Without --learner: the first, or with --sketch the second. No other option changes the learner.
DEFAULT_LEARNER, SKETCH_LEARNER = "bank", "newton"

# Options that apply to some sketches only, and those sketches.
ONLY_WITH_SKETCH = {
    option: tuple(kind.name for kind in TABLE if option in kind.parameters)
    for option in dict.fromkeys(option for kind in TABLE for option in kind.parameters)
}

_OPTIONS: dict[str, dict[str, object]] = {
    "learner": {
        "choices": tuple(LEARNERS),
        "help": "; ".join(f"{name}: {what}" for name, (_, what) in LEARNERS.items())
        + f" (default {DEFAULT_LEARNER}; {SKETCH_LEARNER} with --sketch).",
    },
    "sketch": {
        "choices": SKETCHES,
        "help": "Curvature sketch. "
        + "; ".join(f"{kind.name}: {kind.what}" for kind in TABLE)
        + f" (default {SKETCHES[0]}).",
    },
    "sketch_size": {
        "type": at_least_zero,
        "metavar": "M",
        "help": "Directions kept by the sketch (default 10; bank 6).",
    },
    "alpha": {
        "type": finite,
        "metavar": "A",
        "help": "Initial curvature: a larger value means smaller steps.",
    },
    "curvature_weight": {
        "type": curvature_weight,
        "metavar": "E",
        "help": "Newton: extra curvature added to that of the loss; a number, or 1/t or 1/sqrt(t) for row t.",
    },
    "eta": {"type": finite, "metavar": "E", "help": "Learning rate, for the AdaGrad family (default 0.1)."},
    "curvature": {
        "type": finite,
        "metavar": "S",
        "help": "Curvature of the loss along its gradient (default: its minimum within --clip).",
    },
    "sigma": {
        "type": finite,
        "metavar": "S",
        "help": "AdaGrad's epsilon, added to the square root of the summed squared gradients.",
    },
    "of": {
        "choices": ("gradients", "data"),
        "help": "Sketch the gradients (default) or the data, that is, the rows; for sketched AdaGrad.",
    },
    "penalty": {
        "choices": ("l1", "l2", "elasticnet"),
        "help": "Penalty on the weights, for the AdaGrad family (default none).",
    },
    "penalty_strength": {"type": finite, "metavar": "P", "help": "Strength of the penalty (default 1e-4)."},
    "l1_ratio": {"type": finite, "metavar": "R", "help": "Share of l1 in elasticnet (default 0.5)."},
    "form": {
        "choices": ("mirror_descent", "dual_averaging"),
        "help": "Form of AdaGrad's step (default mirror_descent).",
    },
    "loss": {
        "metavar": "LOSS",
        "help": f"Loss function: {', '.join(loss_modules())} (default {DEFAULT_LOSS}). A parameter follows a "
        "colon: quantile:0.9.",
    },
    "clip": {
        "type": clip,
        "metavar": "C",
        "help": "Keep predictions within -C..C, and so logistic probabilities within sigmoid(-C..C): "
        "0.27..0.73 for C=1, 0.02..0.98 for C=4. none: no bound; auto: the range of the labels, learned (default: "
        "bank the range of the labels, newton 1, AdaGrad none).",
    },
    "diagonal": {
        "action": argparse.BooleanOptionalAction,
        "help": "Rescale each feature by its own gradients.",
    },
    "intercept": {
        "action": argparse.BooleanOptionalAction,
        "help": "Learn a constant term (default yes). --no-constant is the same as --no-intercept.",
    },
    "beta": {
        "type": finite,
        "metavar": "B",
        "help": "Share of the directions that pfd shrinks (default 0.2).",
    },
    "shrink": {
        "choices": SHRINKS,
        "help": "When fd, rfd and pfd shrink: every M rounds (default), in every round, or at 2M rows.",
    },
    "oja_rate": {
        "type": oja_rate,
        "metavar": "R",
        "help": "Learning rate of the Oja sketch: adaptive (default), a number, or one per direction: 1,0.5.",
    },
    "block": {
        "type": at_least_one,
        "metavar": "K",
        "help": "Update the Oja sketch every K rows (default 1).",
    },
    "dtype": {
        "choices": ("float32", "float64"),
        "help": "Precision of the feature table (default float32).",
    },
    "seed": {
        "type": at_least_zero,
        "metavar": "S",
        "help": "Random seed (default 0); ignored by learners without randomness.",
    },
}

LEARNER_OPTIONS = tuple(_OPTIONS)


def add_learner_options(group: argparse._ActionsContainer, names: Iterable[str] = LEARNER_OPTIONS) -> None:
    """Define the options that describe a learner."""
    for name in names:
        add_if_given(group, _spelling(name), **_OPTIONS[name])
    add_if_given(group, "--no-constant", dest="intercept", action="store_false", help=argparse.SUPPRESS)


def _spelling(name: str) -> str:
    return "--" + name.replace("_", "-")
