"""The learner that the options of `skn train` describe, new or resumed."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from typing import Any

from sketchnewton import learners
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.learner import (
    DEFAULT_LEARNERS,
    LEARNER_OPTIONS,
    LEARNERS,
    ONLY_WITH_SKETCH,
)
from sketchnewton.core.names import SOFTMAX_LOSS
from sketchnewton.core.types import Floats, np
from sketchnewton.learners import Learner, OneVsAll
from sketchnewton.losses import get_loss
from sketchnewton.model.target import Classes, Coded, Numbers, Signs, Target

__all__ = [
    "alpha_in_force",
    "automatic_alpha",
    "build",
    "check_agreement",
    "class_count",
    "constants",
    "describe",
    "has_softmax",
    "labels_of",
    "load_learner",
    "make_learner",
    "parameters_of",
    "positive_label",
    "smaller_steps",
]

_WAYS_ON = "leave the option out to go on, or --resume to start anew"
_POSITIVE = "positive"  # the note that remembers --positive
_DESCRIBED = ("sketch", "sketch_size", "alpha", "eta", "loss", "clip")


def make_learner(args: argparse.Namespace) -> Learner:
    """A new learner, as the options say."""
    given = _given(args)
    kind = given.pop("learner", None)
    learner = build(kind, given, args.multiclass)
    if args.positive is not None:
        if args.multiclass is not None:
            raise usage_error("--positive does not apply to --multiclass, which learns all classes")
        _set_positive(learner, args.positive)
    return learner


def build(kind: str | None, given: Mapping[str, Any], classes: int | None = None) -> Learner:
    """The learner called `kind` with the options `given`, once for each of the `classes` if there are any."""
    if kind is None:
        return _default(given, classes)
    make = _class(kind)
    takes = make.defaults()
    parameters = {}
    for name, value in given.items():
        if _parameter(name) in takes:
            parameters[_parameter(name)] = value
        elif name != "seed":  # where nothing is random, any seed will do
            raise usage_error(f"{_option(name)} does not apply to --learner {kind}")
    if "sketch" in takes:
        _check_sketch(given, parameters.get("sketch", takes["sketch"]))
    if "intercept" in takes:
        parameters.setdefault("intercept", True)
    try:
        if classes is None:
            return make(**parameters)
        if "classes" in takes and "clip" not in given:
            loss = get_loss(parameters.get("loss", SOFTMAX_LOSS))
            if loss.softmax:
                return make(**{**parameters, "loss": loss, "classes": classes})
        return OneVsAll(make, classes, parameters)
    except (TypeError, ValueError) as error:
        raise usage_error(str(error)) from None


def load_learner(path: str) -> Learner:
    """The learner in the model file `path`."""
    from sketchnewton import model_file  # brings all kinds of models along

    return model_file.load_learner(path)


def check_agreement(path: str, learner: Learner, args: argparse.Namespace) -> None:
    """Refuse options that do not agree with the learner that `path` holds."""
    given = _given(args)
    kind = given.pop("learner", None)
    held = parameters_of(learner)
    name = held_class = type(learner).__name__
    if isinstance(learner, OneVsAll):
        held_class = learner.params["make"]
    if args.multiclass is not None and args.multiclass != class_count(learner):
        raise usage_error(f"--multiclass {args.multiclass} does not agree with {path}, a {name}: {_WAYS_ON}")
    if kind is not None and LEARNERS[kind][0] != held_class:
        raise usage_error(f"--learner {kind} does not agree with {path}, which is of class {held_class}")
    for option, wanted in given.items():
        parameter = _parameter(option)
        if parameter not in held:
            if option == "seed":
                continue
            raise usage_error(f"{_option(option)} does not apply to the {held_class} in {path}")
        if not _same(parameter, wanted, held[parameter]):
            raise usage_error(
                f"{_option(option)} {_shown(wanted)} does not agree with {path}, which was trained with "
                f"{_trained_with(learner, parameter)}: {_WAYS_ON}"
            )
    if "sketch" in held:
        _check_sketch(given, held["sketch"])
    _resume_positive(path, learner, args.positive)


class _NotedClasses(Classes):
    """Classes whose way of counting is remembered in the learner's notes."""

    def __init__(self, count: int, notes: dict[str, Any]) -> None:
        super().__init__(count, notes.get("zero"))
        self._notes = notes

    def code(self, labels: Any) -> Coded:
        """What the learner gets for each label."""
        coded = super().code(labels)
        if self.zero is not None:
            self._notes["zero"] = self.zero
        return coded


def labels_of(learner: Learner) -> Target:
    """How labels are coded for this learner."""
    if (count := class_count(learner)) is not None:
        if not isinstance(notes := learner.notes.setdefault("classes", {}), dict):
            raise CommandError(f"the model's note on classes is {notes!r}: expected a table")
        try:
            return _NotedClasses(count, notes)
        except ValueError as error:
            raise CommandError(f"the model's note on classes makes no sense: {error}") from None
    positive = positive_label(learner)
    return Numbers(learner.loss) if positive is None else Signs(positive)


def class_count(learner: Learner) -> int | None:
    """How many classes the learner tells apart; None for a learner of one number."""
    return learner.params.get("classes")


def constants(learner: Learner) -> Floats:
    """The constant of each class, or the one of a learner of one number."""
    many: Any = learner
    return np.atleast_1d(learner.intercept_ if class_count(learner) is None else many.intercepts)


def has_softmax(learner: Learner) -> bool:
    """Whether the learner tells classes apart by itself, with the cross-entropy of a softmax."""
    return class_count(learner) is not None and not isinstance(learner, OneVsAll | learners.SharedNewton)


def positive_label(learner: Learner) -> float | None:
    """The label that the learner knows as +1, all others being −1; None if it knows labels as they are."""
    label = learner.notes.get(_POSITIVE)
    if label is not None and type(label) not in (int, float):
        raise CommandError(f"the model's note on labels is {label!r}: expected a number")
    return label


def parameters_of(learner: Learner) -> dict[str, Any]:
    """The parameters that options set; for many classes, those of each class's learner."""
    return dict(learner.params["parameters"]) if isinstance(learner, OneVsAll) else learner.params


def describe(learner: Learner) -> str:
    """The learner in one short line."""
    parameters = parameters_of(learner)
    if parameters.get("sketch") == "none":
        parameters.pop("sketch_size", None)
    if parameters.get("alpha") is None:
        parameters["alpha"] = alpha_in_force(learner)
    shown = [f"{name}={_shown(parameters[name])}" for name in _DESCRIBED if parameters.get(name) is not None]
    if positive_label(learner) is not None:
        shown.append(labels_of(learner).description)
    name = type(learner).__name__
    if isinstance(learner, OneVsAll):
        name = f"{name}, {learner.classes} x {learner.params['make']}"
    elif has_softmax(learner):
        name = f"{name}, softmax of {class_count(learner)} classes"
    return f"{name}: {', '.join(shown)}"


def smaller_steps(learner: Learner) -> str:
    """What makes the learner's steps smaller, as advice."""
    names = {"alpha": "a larger --alpha", "sigma": "a smaller --eta", "eta": "a larger --eta"}
    advice = next(
        (words for name, words in names.items() if name in parameters_of(learner)), "smaller features"
    )
    return f"{advice} or a tighter --clip" if "clip" in parameters_of(learner) else advice


def alpha_in_force(learner: Learner) -> float | None:
    """α as given or as the learner has chosen it; None before that, and for learners that have none."""
    return getattr(learner, "alpha_", learner.params.get("alpha")) or None


def automatic_alpha(alpha: float | None, parameters: Mapping[str, Any]) -> str:
    """The α in force of a learner to which none was given, in words."""
    if alpha is None:
        return "to be chosen from the data"
    return (
        f"{alpha:g}, as --diagonal has it"
        if parameters.get("diagonal")
        else f"chosen from the data ({alpha:g})"
    )


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in LEARNER_OPTIONS if hasattr(args, name)}


def _class(kind: str) -> type[Learner]:
    found: type[Learner] = getattr(learners, LEARNERS[kind][0])
    return found


def _default(given: Mapping[str, Any], classes: int | None) -> Learner:
    """The first of the default learners that takes all options given; if none does, the last complains."""
    for kind in DEFAULT_LEARNERS[:-1]:
        with contextlib.suppress(CommandError):
            return build(kind, given, classes)
    return build(DEFAULT_LEARNERS[-1], given, classes)


def _check_sketch(given: Mapping[str, Any], sketch: str) -> None:
    """Refuse options that the sketch has no use for."""
    for name in given:
        if name in ONLY_WITH_SKETCH and sketch not in ONLY_WITH_SKETCH[name]:
            raise usage_error(
                f"{_option(name)} does not apply to --sketch {sketch}, only to {', '.join(ONLY_WITH_SKETCH[name])}"
            )


def _trained_with(learner: Learner, parameter: str) -> str:
    held = parameters_of(learner)[parameter]
    if parameter == "alpha" and held is None:
        return f"alpha {automatic_alpha(alpha_in_force(learner), learner.params)}"
    return f"{parameter}={_shown(held)}"


def _resume_positive(path: str, learner: Learner, positive: float | None) -> None:
    if positive is None or positive == positive_label(learner):
        return
    if learner.rows_seen:
        raise usage_error(
            f"--positive {positive:.12g} does not agree with {path}, which was trained with "
            f"{labels_of(learner).description}: {_WAYS_ON}"
        )
    _set_positive(learner, positive)


def _set_positive(learner: Learner, positive: float) -> None:
    loss = learner.loss
    if not loss.takes(-1.0):
        raise usage_error(
            f"--positive makes labels -1 and +1, but the {loss.name} loss needs {loss.label_rule}: leave it out"
        )
    learner.notes[_POSITIVE] = positive


def _same(parameter: str, wanted: Any, held: Any) -> bool:
    if parameter == "loss":
        try:
            return get_loss(wanted) == get_loss(held)
        except ValueError as error:
            raise usage_error(str(error)) from None
    if isinstance(held, tuple):
        held = list(held)
    return bool(wanted == held)


def _parameter(option: str) -> str:
    return "random_state" if option == "seed" else option


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
