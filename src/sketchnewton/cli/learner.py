"""The learner that the options of `skn train` describe, new or resumed."""

from __future__ import annotations

import argparse
from typing import Any

from sketchnewton import learners, model_file
from sketchnewton.cli.errors import usage_error
from sketchnewton.cli.options import LEARNER_OPTIONS
from sketchnewton.learners import Learner
from sketchnewton.losses import get_loss

__all__ = ["describe", "make_learner"]

_NEWTON, _FULL, _ADAGRAD = learners.SketchedNewton, learners.FullNewton, learners.AdaGrad
_CLASSES: dict[str, type[Learner]] = {"newton": _NEWTON, "full": _FULL, "adagrad": _ADAGRAD}
_DESCRIBED = ("sketch", "sketch_size", "alpha", "eta", "loss", "clip")
_ALL = frozenset({"loss", "clip", "intercept", "eta"})
_TAKES = {
    "newton": _ALL | {"sketch", "sketch_size", "alpha", "diagonal", "oja_rate", "block", "dtype", "seed"},
    "full": _ALL | {"alpha"},
    "adagrad": _ALL | {"dtype"},
}


def make_learner(args: argparse.Namespace) -> Learner:
    """A new learner, or the one of `--resume` after checking that the options given agree with it."""
    given = {name: getattr(args, name) for name in LEARNER_OPTIONS if hasattr(args, name)}
    kind = given.pop("learner", None)
    if args.resume is not None:
        return _resume(args.resume, kind, given)
    kind = kind or "newton"
    for name in given:
        if name not in _TAKES[kind]:
            raise usage_error(f"{_option(name)} does not apply to --learner {kind}")
    parameters = {_parameter(name): value for name, value in given.items()}
    parameters.setdefault("intercept", True)
    try:
        return _CLASSES[kind](**parameters)
    except (TypeError, ValueError) as error:
        raise usage_error(str(error)) from None


def describe(learner: Learner) -> str:
    """The learner in one short line."""
    parameters = learner.params
    if parameters.get("sketch") == "none":
        parameters.pop("sketch_size", None)
    shown = [f"{name}={_shown(parameters[name])}" for name in _DESCRIBED if parameters.get(name) is not None]
    return f"{type(learner).__name__}: {', '.join(shown)}"


def _resume(path: str, kind: str | None, given: dict[str, Any]) -> Learner:
    learner = model_file.load_learner(path)
    name = type(learner).__name__
    if kind is not None and not isinstance(learner, _CLASSES[kind]):
        raise usage_error(f"--learner {kind} does not agree with {path}, which holds a {name}")
    for option, wanted in given.items():
        parameter = _parameter(option)
        if parameter not in learner.params:
            raise usage_error(f"{_option(option)} does not apply to the {name} in {path}")
        held = learner.params[parameter]
        if not _same(parameter, wanted, held):
            raise usage_error(
                f"{_option(option)} {_shown(wanted)} does not agree with {path}, which was trained with "
                f"{parameter}={_shown(held)}: leave the option out to go on, or --resume to start anew"
            )
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
