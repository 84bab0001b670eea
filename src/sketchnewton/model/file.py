"""What a model file holds: the learner's own header and arrays, and beside them what surrounds the learner."""

from __future__ import annotations

from collections.abc import Mapping

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.persistence import Persistent, class_named, part, prefixed, taken, without_prefix
from sketchnewton.core.state import Buffers
from sketchnewton.core.types import Arrays, Header
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.learners import Learner
from sketchnewton.model.run_note import checked_run
from sketchnewton.model.target import Target

if TYPE_CHECKING:
    from typing import TypedDict

    from sketchnewton.model.model import Model

    class Parts(TypedDict):
        """What a model is made of."""

        learner: Learner
        target: Target
        features: Features
        columns: Columns
        exact_names: bool


__all__ = ["archived", "parts_around", "rebuilt_learner", "restore"]

_LEARNER, _NAMES, _BEST = "learner/", "names/", "best/"  # before the names of arrays


def archived(model: Model) -> tuple[Header, Buffers]:
    """Header and arrays of the file."""
    inner, arrays = model.learner.to_archive()
    header: Header = {
        "class": type(model).__name__,
        "learner": inner,
        "target": model.target.to_dict(),
        "features": model.features.to_dict(),
        "columns": model.columns.to_dict(),
        "exact_names": model.names is not None,
        "run": model.run,
        "best": None,
    }
    if model.notes:
        header["notes"] = dict(model.notes)
    held = {**prefixed(_LEARNER, arrays)}
    if model.names is not None:
        held.update(prefixed(_NAMES, model.names.state()))
    if model.best is not None:
        header["best"], arrays = model.best.to_archive()
        held.update(prefixed(_BEST, arrays))
    return header, held


def parts_around(learner: Persistent, header: Mapping[str, object]) -> Parts:
    """The learner, and the rest that the header describes; raises what a damaged header leads to."""
    if not isinstance(learner, Learner):
        raise ValueError(f"a {type(learner).__name__} is not a learner")
    target = Target.from_dict(header["target"])
    if not isinstance(header["exact_names"], bool):
        raise ValueError("exact_names must be true or false")
    return {
        "learner": learner,
        "target": target,
        "features": Features.from_dict(part(header, "features")),
        "columns": Columns.from_dict(part(header, "columns")),
        "exact_names": header["exact_names"],
    }


def rebuilt_learner(header: Mapping[str, object], arrays: Arrays, prefix: str = _LEARNER) -> Persistent:
    """The learner whose arrays have names that begin so."""
    kind = class_named(header["class"])
    return kind._rebuilt(header, taken(kind, without_prefix(prefix, arrays)))


def restore(model: Model, header: Mapping[str, object], arrays: Arrays) -> None:
    """Give the model what is in no parameter: names, notes and how far an unfinished run had come."""
    if model.names is not None:
        model.names = Names.from_state(without_prefix(_NAMES, arrays), exact=True)
    model.notes = _checked_notes(header.get("notes", {}))
    model.run = None if header["run"] is None else checked_run(header["run"])
    if header["best"] is not None:
        best = rebuilt_learner(part(header, "best"), arrays, _BEST)
        model.best = _checked_best(best, model.learner, model.run)


def _checked_notes(notes: object) -> dict[str, int | str]:
    if not isinstance(notes, dict) or not all(type(note) in (int, str) for note in notes.values()):
        raise ValueError("its notes are damaged")
    return notes


def _checked_best(best: Persistent, learner: Learner, run: Header | None) -> Learner:
    if not isinstance(best, type(learner)) or run is None or not isinstance(run.get("best"), int):
        raise ValueError("its note on the best pass is damaged")
    return best
