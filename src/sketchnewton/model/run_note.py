"""The note of a checkpoint on how far its run had come, checked before anybody follows it."""

from __future__ import annotations

from sketchnewton.core.types import Header

__all__ = ["checked_run"]


def checked_run(run: object) -> Header:
    """The note itself; ValueError if it is not one that a run of `skn train` has written."""
    if not isinstance(run, dict) or not all(check(run.get(name)) for name, check in _FIELDS.items()):
        raise ValueError("its note on the run is damaged")
    done, scores, held = run["pass"], len(run["scores"]), len(run["held"])
    if not (done <= run["passes"] and done <= scores <= done + 1 and held <= done + 1):
        raise ValueError("its note on the run is damaged")
    return run


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_positive(value: object) -> bool:
    return _is_count(value) and value != 0


def _is_positive_or_none(value: object) -> bool:
    return value is None or _is_positive(value)


def _are_files(value: object) -> bool:
    return value is None or (
        isinstance(value, list)
        and all(isinstance(entry, list) and entry and isinstance(entry[0], str) for entry in value)
    )


def _are_scores(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(state, dict) for state in value)


def _are_predictions(value: object) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(_is_count(value.get(name)) for name in ("bytes", "checksum"))
        and (value.get("scale") is None or isinstance(value["scale"], str))
    )


_FIELDS = {
    "files": _are_files,
    "way": lambda value: isinstance(value, dict),
    "passes": _is_positive,
    "holdout": _is_positive_or_none,
    "shuffle": lambda value: value is None or value is True,
    "every": _is_positive_or_none,
    "pass": _is_count,
    "best": lambda value: value is None or _is_count(value),
    "row": _is_count,
    "scores": _are_scores,
    "held": _are_scores,
    "predictions": _are_predictions,
}
