"""Options that say what is written and where, shared by several subcommands."""

from __future__ import annotations

import argparse

__all__ = ["add_scale_options", "add_sketch_output_options"]


def add_scale_options(group: argparse._ActionsContainer) -> None:
    """On which scale predictions are written."""
    group.add_argument(
        "--link",
        action="store_true",
        help="Write predictions on the scale of the labels: probabilities for logistic loss, within "
        "sigmoid(-C..C) for --clip C; counts for poisson. Other losses have no other scale and refuse it.",
    )
    group.add_argument(
        "--raw",
        action="store_true",
        help="Write raw scores; with several classes, one score per class instead of the predicted class.",
    )
    group.add_argument(
        "--probabilities",
        action="store_true",
        help="Write the probability of each class, a column per class, the smallest label first.",
    )


def add_sketch_output_options(group: argparse._ActionsContainer, *, required: bool) -> None:
    """Where a sketch goes, on disk and on the screen."""
    group.add_argument("-o", "--output", metavar="OUT", required=required, help="Save the result here.")
    group.add_argument("--plot", metavar="FILE", help="Draw the spectrum: .png, .svg or .pdf.")
    group.add_argument("--json", action="store_true", help="Print a machine-readable summary on stdout.")
    group.add_argument("--quiet", action="store_true", help="Print only errors.")
