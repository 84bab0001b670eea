"""The learner that the options of `skn train` describe, new or resumed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from sketchnewton import learners, model_file
from sketchnewton.cli.errors import CommandError, usage_error
from sketchnewton.cli.options import LEARNER_OPTIONS
from sketchnewton.learners import Learner
from sketchnewton.losses import get_loss

__all__ = [
    "alpha_in_force",
    "automatic_alpha",
    "describe",
    "label_coding",
    "make_learner",
    "positive_label",
    "smaller_steps",
]

_WAYS_ON = "leave the option out to go on, or --resume to start anew"
_NEWTON, _FULL, _ADAGRAD = learners.SketchedNewton, learners.FullNewton, learners.AdaGrad
_INVARIANT = learners.InvariantNewton
_CLASSES: dict[str, type[Learner]] = {
    "newton": _NEWTON,
    "full": _FULL,
    "invariant": _INVARIANT,
    "adagrad": _ADAGRAD,
}
_POSITIVE = "positive"  # the note that remembers --positive
_DESCRIBED = ("sketch", "sketch_size", "alpha", "eta", "loss", "clip")
_ALL = frozenset({"loss", "clip", "intercept", "eta"})
_TAKES = {
    "newton": _ALL
    | {"sketch", "sketch_size", "alpha", "diagonal", "beta", "oja_rate", "block", "dtype", "seed"},
    "full": _ALL | {"alpha"},
    "invariant": _ALL,
    "adagrad": _ALL | {"dtype"},
}


def make_learner(args: argparse.Namespace) -> Learner:
    """A new learner, or the one of `--resume` after checking that the options given agree with it."""
    given = {name: getattr(args, name) for name in LEARNER_OPTIONS if hasattr(args, name)}
    kind = given.pop("learner", None)
    if args.resume is not None:
        return _resume(args.resume, kind, given, args.positive)
    kind = kind or "newton"
    for name in given:
        if name not in _TAKES[kind]:
            raise usage_error(f"{_option(name)} does not apply to --learner {kind}")
    parameters = {_parameter(name): value for name, value in given.items()}
    parameters.setdefault("intercept", True)
    try:
        learner = _CLASSES[kind](**parameters)
    except (TypeError, ValueError) as error:
        raise usage_error(str(error)) from None
    if args.positive is not None:
        learner.notes[_POSITIVE] = args.positive
    return learner


def positive_label(learner: Learner) -> float | None:
    """The label that the learner knows as +1, all others being −1; None if it knows labels as they are."""
    label = learner.notes.get(_POSITIVE)
    if label is not None and type(label) not in (int, float):
        raise CommandError(f"the model's note on labels is {label!r}: expected a number")
    return label


def describe(learner: Learner) -> str:
    """The learner in one short line."""
    parameters = learner.params
    if parameters.get("sketch") == "none":
        parameters.pop("sketch_size", None)
    if parameters.get("alpha") is None:
        parameters["alpha"] = alpha_in_force(learner)
    shown = [f"{name}={_shown(parameters[name])}" for name in _DESCRIBED if parameters.get(name) is not None]
    if (label := positive_label(learner)) is not None:
        shown.append(label_coding(label))
    return f"{type(learner).__name__}: {', '.join(shown)}"


def smaller_steps(learner: Learner) -> str:
    """The option that makes the learner's steps smaller."""
    if isinstance(learner, _INVARIANT):
        return "a larger --eta"
    return "a smaller --eta" if isinstance(learner, _ADAGRAD) else "a larger --alpha"


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


def label_coding(positive: float | None) -> str:
    """What becomes of labels, in words."""
    return "labels as they are" if positive is None else f"label {positive:.12g} as +1, others as -1"


def _resume(path: str, kind: str | None, given: dict[str, Any], positive: float | None) -> Learner:
    learner = model_file.load_learner(path)
    name = type(learner).__name__
    if kind is not None and not isinstance(learner, _CLASSES[kind]):
        raise usage_error(f"--learner {kind} does not agree with {path}, which is of class {name}")
    for option, wanted in given.items():
        parameter = _parameter(option)
        if parameter not in learner.params:
            raise usage_error(f"{_option(option)} does not apply to the {name} in {path}")
        held = learner.params[parameter]
        if not _same(parameter, wanted, held):
            if parameter == "alpha" and held is None:
                trained_with = f"alpha {automatic_alpha(alpha_in_force(learner), learner.params)}"
            else:
                trained_with = f"{parameter}={_shown(held)}"
            raise usage_error(
                f"{_option(option)} {_shown(wanted)} does not agree with {path}, which was trained with "
                f"{trained_with}: {_WAYS_ON}"
            )
    if positive is not None and positive != (known := positive_label(learner)):
        if learner.rows_seen:
            raise usage_error(
                f"--positive {positive:.12g} does not agree with {path}, which was trained with "
                f"{label_coding(known)}: {_WAYS_ON}"
            )
        learner.notes[_POSITIVE] = positive
    return learner


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
