"""Sketches inside learners: what they keep per feature, and how a kernel and a merge use it."""

from __future__ import annotations

import importlib

from sketchnewton.core.sketch_kinds import BY_NAME
from sketchnewton.learners.curvature.base import LearnerSketch, SketchParameters

__all__ = ["make_sketch"]


def make_sketch(name: str, parameters: SketchParameters) -> LearnerSketch:
    """The sketch of that name in `core.sketch_kinds`; one of no directions is none."""
    kind = BY_NAME[name if parameters.size else "none"]
    module = importlib.import_module(f"sketchnewton.learners.curvature.{kind.module}")
    make: type[LearnerSketch] = getattr(module, kind.class_name)
    return make(parameters)
