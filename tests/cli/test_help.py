"""Help says what is true of the options: their defaults, the formats that are read, how long a demo takes."""

from __future__ import annotations

import argparse
import re

import pytest

from sketchnewton import NewtonBank, SketchedNewton
from sketchnewton.cli.commands import COMMANDS
from sketchnewton.cli.options.command_line import help_page, parser_of
from sketchnewton.cli.options.data import DATA_HELP
from sketchnewton.core.formats import FORMATS
from sketchnewton.sklearn import SketchedNewtonClassifier

_STATED = re.compile(r"\(?default:? ([^\s();,]+)")


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_those_of_the_help(command: str) -> None:
    for action in parser_of(command)._actions:
        if isinstance(action.default, bool) or not isinstance(action.default, int | float):
            continue
        stated = [text.replace(",", "").rstrip(".") for text in _STATED.findall(action.help or "")]
        assert float(action.default) in map(float, stated), (command, action.option_strings, action.help)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_sentence(command: str) -> None:
    for action in parser_of(command)._actions:
        if action.help == argparse.SUPPRESS or action.dest == "help":
            continue
        assert action.help, (command, action.dest)
        assert action.help[0].isupper() or action.option_strings or action.metavar == "DATA", action.help


def test_all_formats_are_named() -> None:
    names = {
        "jsonl": "JSON lines",
        "parquet": "Parquet",
        "arrow": "Arrow",
        "npz": "npz",
        "svmlight": "svmlight",
    }
    for format in FORMATS:
        name = names.get(format, format.upper())
        assert name in DATA_HELP
        assert name in help_page()


def test_sizes_of_sketches_are_those_of_the_learners() -> None:
    bank, newton = NewtonBank().params["sketch_size"], SketchedNewton().params["sketch_size"]
    sizes = {action.dest: action.help for action in parser_of("train")._actions}
    assert f"(default {newton}; bank {bank})" in (sizes["sketch_size"] or "")
    assert f'None: {bank} for "bank", {newton} for "newton"' in (SketchedNewtonClassifier.__doc__ or "")
