"""The tables of plain names say what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import sketchnewton
from sketchnewton import _native, eigen, learners, sketches
from sketchnewton.core.names import (
    EIGEN_LEARNERS,
    LEARNERS,
    SKETCHES,
    command_line_learners,
    loss_modules,
)
from sketchnewton.core.stubs import STUBS


def test_help_lists_the_losses_of_the_compiled_table():
    assert loss_modules() == tuple(sorted(name for name, _ in _native.LOSSES))


@pytest.mark.parametrize("place", STUBS)
def test_stubs_are_up_to_date(place):
    """`python -m sketchnewton.core.stubs` makes them so."""
    assert (Path(sketchnewton.__file__).parent / place).read_text() == STUBS[place]


@pytest.mark.parametrize("package", [sketchnewton, learners])
def test_what_is_exported_is_there(package):
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_learners_are_classes_of_their_modules():
    for learner in LEARNERS:
        assert getattr(learners, learner.name).__module__ == f"sketchnewton.learners.{learner.module}"
        assert hasattr(sketchnewton, learner.name) == learner.top_level


def test_packages_export_the_classes_of_the_tables():
    assert {*SKETCHES} <= {*sketches.__all__}
    assert {*EIGEN_LEARNERS} <= {*eigen.__all__}


def test_every_learner_of_the_command_line_has_one_description():
    for option, (classes, what) in command_line_learners().items():
        assert classes, option
        assert what in [learner.what for learner in LEARNERS if learner.option == option]
