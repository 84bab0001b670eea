"""The table of sketches inside learners: what they are called, which class each is, which parameters it has.

Nothing here imports what it names: choices on the command line, documentation and tests are made from it.
"""

from __future__ import annotations

from sketchnewton.core.hints import NamedTuple

__all__ = ["BY_NAME", "SHRINKS", "SKETCHES", "TABLE", "SketchKind", "epoch_rounds"]


class SketchKind(NamedTuple):
    """One kind; `module`, in `sketchnewton.learners.curvature`, has its class."""

    name: str
    module: str
    class_name: str
    what: str
    parameters: tuple[str, ...] = ("sketch_size",)
    """Those of `SketchedNewton` that mean something to this sketch alone, or to some sketches."""


_FREQUENT = ("sketch_size", "shrink")
SHRINKS = ("rounds", "row", "2m")
"""When Frequent Directions shrink."""

TABLE = (
    SketchKind("oja", "oja", "OjaSketchState", "Oja's sketch", ("sketch_size", "oja_rate", "block")),
    SketchKind("fd", "frequent_directions", "FrequentState", "Frequent Directions", _FREQUENT),
    SketchKind(
        "rfd",
        "frequent_directions",
        "RobustFrequentState",
        "the same, robust (--alpha 0 by default)",
        _FREQUENT,
    ),
    SketchKind(
        "pfd",
        "frequent_directions",
        "ParameterizedFrequentState",
        "the same, parameterised",
        (*_FREQUENT, "beta"),
    ),
    SketchKind("rp", "projection", "ProjectionState", "random projection"),
    SketchKind("none", "none", "NoSketch", "no sketch, online gradient descent", ()),
)
BY_NAME = {kind.name: kind for kind in TABLE}
SKETCHES = tuple(BY_NAME)


def epoch_rounds(shrink: str, m: int) -> int:
    """How many rounds there are from one shrink of Frequent Directions to the next."""
    return {"rounds": m, "row": 1, "2m": m + 1}[shrink]
