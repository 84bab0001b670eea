"""`import sketchnewton` is cheap, and everything public is found from there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.util import find_spec

import pytest

import sketchnewton
from sketchnewton.core.names import EXTRAS

SUBPACKAGES = (
    "eigen",
    "evaluation",
    "features",
    "learners",
    "losses",
    "sketches",
    "sklearn",
    "streams",
    "testing",
)


def test_subpackages_are_there_without_being_imported() -> None:
    for name in SUBPACKAGES:
        assert getattr(sketchnewton, name) is importlib.import_module(f"sketchnewton.{name}")
        assert name in dir(sketchnewton)
    for name, needed in EXTRAS.items():  # only where what they need is installed, else `help` would fail
        assert (name in dir(sketchnewton)) == (find_spec(needed) is not None)
    for name in dir(sketchnewton):
        assert getattr(sketchnewton, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sketchnewton.nothing  # noqa: B018


def test_they_are_imported_when_asked_for() -> None:
    script = """
import sys, sketchnewton
print(sorted(name for name in sys.modules if name.startswith("sketchnewton.") or name == "numpy"))
sketchnewton.streams.open_stream, sketchnewton.eigen.play
print("sketchnewton.learners" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Plain names, which say where everything is, and those of annotations.
    tables = ["sketchnewton.core", "sketchnewton.core.hints", "sketchnewton.core.names"]
    assert done.stdout == f"{tables}\nFalse\n"
