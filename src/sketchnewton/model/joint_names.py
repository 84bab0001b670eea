"""Models that numbered the names of features apart, with one numbering for all."""

from __future__ import annotations

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import np
from sketchnewton.features.names import Names
from sketchnewton.learners import Learner

if TYPE_CHECKING:
    from sketchnewton.model.model import Model

__all__ = ["renumbered"]


def renumbered(models: list[Model], base: Model | None) -> tuple[Names | None, list[Learner], Learner | None]:
    """The names of all models, and their learners and that of `base` with features numbered by them."""
    first, start = models[0], None if base is None else base.learner
    learners = [model.learner for model in models]
    if first.names is None:
        return None, learners, start
    all_models = models if base is None else [*models, base]
    names = first.names
    for model in all_models[1:]:
        if model.names is not None:
            names = names.united(model.names)
    found = []
    for model in all_models:
        its = first.names if model.names is None else model.names
        places = its.places_in(names)
        same = bool((places == np.arange(len(places))).all())
        found.append(model.learner if same else model.learner.renumbered(places))
    copy = Names.from_state(names.state(), exact=True)
    return copy, found[: len(models)], None if base is None else found[-1]
