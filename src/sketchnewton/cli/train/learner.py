"""The learner that the options of `skn train` describe, new or resumed."""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Mapping, Sequence

from sketchnewton import learners
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.options.learner import (
    DEFAULT_LEARNER,
    LEARNER_OPTIONS,
    LEARNERS,
    ONLY_WITH_SKETCH,
    SKETCH_LEARNER,
)
from sketchnewton.core.hints import Any
from sketchnewton.core.names import SOFTMAX_LOSS
from sketchnewton.learners import Learner
from sketchnewton.losses import get_loss
from sketchnewton.model import Classes, Model, Signs, Target
from sketchnewton.model.target import shown_label

__all__ = ["automatic_alpha", "build", "check_agreement", "describe", "new_model", "smaller_steps"]

_WAYS_ON = "leave the option out to continue, or leave --resume out to start over"
_DESCRIBED = ("sketch", "sketch_size", "alpha", "curvature_weight", "eta", "loss", "clip")


def new_model(args: argparse.Namespace, names: Sequence[Hashable] | None = None) -> Model:
    """A model that has learned nothing, as the options say; its features are those of the data.

    `names` are those of the classes, if labels are classes with names.
    """
    given = _given(args)
    kind = given.pop("learner", None)
    if args.positive is not None:
        if args.multiclass is not None or (names is not None and args.classes is not None):
            raise usage_error(
                "--positive does not apply to --multiclass and --classes, which learn all classes"
            )
        learner = build(kind, given)
        return Model(learner, target=_positive(learner, args.positive, names))
    if names is None:
        return Model(build(kind, given, args.multiclass))
    if args.multiclass not in (None, len(names)):
        raise usage_error(
            f"--multiclass {args.multiclass} does not agree with the labels, of which there are {len(names)}"
        )
    several = len(names) > 2 or args.multiclass is not None
    learner = build(kind, given, len(names) if several else None)
    try:
        return Model(learner, target=Classes(names=names) if several else Signs(names=names))
    except ValueError as error:
        raise usage_error(str(error)) from None


def build(kind: str | None, given: Mapping[str, Any], classes: int | None = None) -> Learner:
    """The learner called `kind` with the options `given`, once for each of the `classes` if there are any.

    Without a name it is the bank, or with a sketch the learner that has it; no other option changes the learner.
    """
    default = kind is None
    if kind is None:
        kind = SKETCH_LEARNER if "sketch" in given else DEFAULT_LEARNER
    make = _class(kind)
    takes = make.defaults()
    parameters = {}
    for name, value in given.items():
        if _parameter(name) in takes:
            parameters[_parameter(name)] = value
        elif name != "seed":  # where nothing is random, any seed will do
            raise usage_error(_misplaced(name, kind, default=default))
    if "sketch" in takes:
        _check_sketch(given, (takes | parameters)["sketch"])
    if "intercept" in takes:
        parameters.setdefault("intercept", True)
    several = LEARNERS[kind][0] == ("ClassBank",)  # which need not be imported to know
    if several and classes is None:
        raise usage_error(
            f"--learner {kind} needs several classes: give --multiclass K, or labels that are names"
        )
    try:
        if classes is None:
            return make.simplest(**parameters)
        if several:
            return make(**parameters, classes=classes)
        if "classes" in takes and "clip" not in given:
            loss = get_loss(parameters.get("loss", SOFTMAX_LOSS))
            if loss.softmax:
                return make(**{**parameters, "loss": loss, "classes": classes})
        part = make.simplest(**parameters)
        return learners.OneVsAll(type(part), classes, part.params)
    except (TypeError, ValueError) as error:
        raise usage_error(str(error)) from None


def check_agreement(path: str, model: Model, args: argparse.Namespace) -> None:
    """Refuse options that do not agree with the model that `path` holds."""
    given = _given(args)
    kind = given.pop("learner", None)
    learner = model.learner
    held, held_class = learner.base_params, learner.base_name
    if args.multiclass is not None and args.multiclass != learner.classes:
        name = type(learner).__name__
        raise usage_error(f"--multiclass {args.multiclass} does not agree with {path}, a {name}: {_WAYS_ON}")
    if kind is not None and held_class not in LEARNERS[kind][0]:
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
    _resume_positive(path, model, args.positive)


def describe(model: Model) -> str:
    """The model in one short line."""
    learner = model.learner
    parameters = learner.base_params
    if parameters.get("sketch") == "none":
        parameters.pop("sketch_size", None)
    if parameters.get("alpha") is None:
        parameters["alpha"] = learner.alpha_ or None
    shown = [f"{name}={_shown(parameters[name])}" for name in _DESCRIBED if parameters.get(name) is not None]
    if model.target.kind == "signs" or model.target.names is not None:
        shown.append(model.target.description)
    return f"{learner.title}: {', '.join(shown)}"


def smaller_steps(learner: Learner) -> str:
    """What makes the learner's steps smaller, as advice."""
    names = {
        "alpha": "a larger --alpha",
        "eta": "a smaller --eta",
        "curvature_weight": "a larger --curvature-weight",
    }
    advice = next((words for name, words in names.items() if name in learner.base_params), "smaller features")
    return f"{advice} or a tighter --clip" if "clip" in learner.base_params else advice


def automatic_alpha(alpha: float | None, parameters: Mapping[str, object]) -> str:
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
    found: type[Learner] = getattr(learners, LEARNERS[kind][0][-1])
    return found


def _misplaced(option: str, kind: str, *, default: bool) -> str:
    """What to do about an option that the learner does not have."""
    owners = [name for name in LEARNERS if _parameter(option) in _class(name).defaults()]
    owners = [SKETCH_LEARNER] if SKETCH_LEARNER in owners else owners  # the nearest relative
    which = f"the default learner, {kind}" if default else f"--learner {kind}"
    advice = f": {' or '.join(f'--learner {name}' for name in owners)} has it" if owners else ""
    return f"{_option(option)} does not apply to {which}{advice}"


def _check_sketch(given: Mapping[str, object], sketch: str) -> None:
    """Refuse options that the sketch has no use for."""
    for name in given:
        if name in ONLY_WITH_SKETCH and sketch not in ONLY_WITH_SKETCH[name]:
            raise usage_error(
                f"{_option(name)} does not apply to --sketch {sketch}, only to {', '.join(ONLY_WITH_SKETCH[name])}"
            )


def _trained_with(learner: Learner, parameter: str) -> str:
    held = learner.base_params[parameter]
    if parameter == "alpha" and held is None:
        return f"alpha {automatic_alpha(learner.alpha_ or None, learner.params)}"
    return f"{parameter}={_shown(held)}"


def _resume_positive(path: str, model: Model, positive: float | str | None) -> None:
    if positive is None or positive == model.target.positive:
        return
    if model.learner.rows_seen:
        raise usage_error(
            f"--positive {shown_label(positive)} does not agree with {path}, which was trained with "
            f"{model.target.description}: {_WAYS_ON}"
        )
    model.target = _positive(model.learner, positive)


def _positive(learner: Learner, positive: float | str, names: Sequence[Hashable] | None = None) -> Target:
    loss = learner.loss
    if not loss.takes(-1.0):
        raise usage_error(
            f"--positive makes labels -1 and +1, but the {loss.name} loss needs {loss.label_rule}: leave it out"
        )
    # In a table of texts all labels are texts.
    return Signs(positive if names is None else shown_label(positive))


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


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
