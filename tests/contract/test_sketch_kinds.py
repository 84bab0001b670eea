"""One table of the sketches inside learners: what it says is so, and every kind is tested."""

from __future__ import annotations

import pytest

from sketchnewton import SketchedNewton
from sketchnewton.cli.options.learner import ONLY_WITH_SKETCH
from sketchnewton.core.sketch_kinds import BY_NAME, SKETCHES
from sketchnewton.learners.curvature import make_sketch
from sketchnewton.learners.curvature.base import SketchParameters
from tests.contract.learners import LEARNERS


@pytest.mark.parametrize("name", SKETCHES)
def test_a_kind_is_the_class_that_the_table_names(name: str) -> None:
    made = make_sketch(name, SketchParameters(3, "float32"))
    assert type(made).__name__ == BY_NAME[name].class_name
    assert type(made).__module__ == f"sketchnewton.learners.curvature.{BY_NAME[name].module}"
    assert set(BY_NAME[name].parameters) <= SketchedNewton.defaults().keys()


@pytest.mark.parametrize("name", SKETCHES)
def test_no_directions_are_no_sketch(name: str) -> None:
    assert type(make_sketch(name, SketchParameters(0, "float64"))).__name__ == "NoSketch"


@pytest.mark.parametrize("name", SKETCHES)
def test_every_kind_is_among_the_learners_of_all_promises(name: str) -> None:
    tested = [make() for make in LEARNERS.values()]
    assert any(type(learner) is SketchedNewton and learner.params["sketch"] == name for learner in tested)


def test_options_apply_to_the_sketches_that_have_them() -> None:
    assert ONLY_WITH_SKETCH == {
        "sketch_size": ("oja", "fd", "rfd", "pfd", "rp"),
        "oja_rate": ("oja",),
        "block": ("oja",),
        "beta": ("pfd",),
        "shrink": ("fd", "rfd", "pfd"),
    }


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(
        ValueError, match="sketch='pca' is invalid: must be one of oja, fd, rfd, pfd, rp, none"
    ):
        SketchedNewton("pca")
