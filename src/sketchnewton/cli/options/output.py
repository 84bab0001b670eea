"""The options that say what is written and where, of several subcommands."""

from __future__ import annotations

import argparse

__all__ = ["add_scale_options", "add_sketch_output_options"]


def add_scale_options(group: argparse._ActionsContainer) -> None:
    """On which scale predictions are written."""
    group.add_argument(
        "--link",
        action="store_true",
        help="predictions on the scale of the answer: probabilities for logistic loss, which stay within "
        "sigmoid(-C..C) of --clip C; counts for poisson",
    )
    group.add_argument(
        "--raw",
        action="store_true",
        help="predictions as scores; of --multiclass, all K instead of the class",
    )


def add_sketch_output_options(group: argparse._ActionsContainer, *, required: bool) -> None:
    """Where a sketch goes, on disk and on the screen."""
    group.add_argument("-o", "--output", metavar="OUT", required=required, help="save the sketch here")
    group.add_argument("--plot", metavar="FILE", help="draw the spectrum: .png .svg or .pdf")
    group.add_argument("--json", action="store_true", help="machine-readable summary on stdout")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
