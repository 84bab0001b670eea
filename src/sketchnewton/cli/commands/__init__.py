"""The subcommands, one module each.

A module has `USAGE`, `SUMMARY`, `EXAMPLES`, `add_options(parser)` and `run(args)`. It is imported for its options,
before anything is known about the run, so whatever takes time to import (NumPy, learners, streams) is imported
inside `run` and the functions that it calls.
"""

from __future__ import annotations

import argparse
import importlib

from sketchnewton.core.hints import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from sketchnewton.cli.options.parser import Parser

__all__ = ["COMMANDS", "Command", "command"]

# The subcommands in the order of `skn --help`: what follows the name, and what the command does.
COMMANDS = {
    "train": ("DATA", "learn from a stream, scoring every prediction first"),
    "predict": ("MODEL DATA", "predictions of a trained model, one per line"),
    "test": ("MODEL DATA", "error, AUC, calibration of a model on labelled rows"),
    "inspect": ("MODEL", "parameters, spectrum and largest weights of a model"),
    "convert": ("DATA OUT", "convert rows from one format to another"),
    "serve": ("[MODEL]", "predict and learn over HTTP, durably"),
    "replay": ("LOG", "retrain on the log of a server"),
    "bench": ("DATA", "compare learners on your data: table and picture"),
    "sketch": ("DATA", "principal directions of the rows, certified error"),
    "merge": ("FILE ...", "merge several sketches, or several models, into one"),
    "top": ("URL", "watch a server in the terminal"),
    "demo": ("", "the default against tuned learners, in half a minute"),
    "eigen": ("COMPARISON", "compare methods for online learning of eigenvectors"),
    "reproduce": ("NAME", "recompute the papers' tables and figures"),
    "completion": ("SHELL", "print shell completion for bash, zsh or fish"),
}


class Command(Protocol):
    """What the module of a subcommand has."""

    USAGE: str
    """How it is called, on one line."""
    SUMMARY: str
    """What it does, in a sentence."""
    EXAMPLES: str
    """The end of its help page."""

    def add_options(self, parser: Parser) -> None:
        """Define what can be typed after its name."""

    def run(self, args: argparse.Namespace) -> int:
        """Do what `args` ask for and return the exit code."""


def command(name: str) -> Command:
    """The module of the subcommand `name`."""
    return cast("Command", importlib.import_module(f"sketchnewton.cli.commands.{name}"))
