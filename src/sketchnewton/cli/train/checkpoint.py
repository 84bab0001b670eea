"""Unfinished runs: `--resume` continues where they stopped, and ends with the model of an undisturbed run.

A checkpoint is the model itself, saved at its own place with a note (`run`) on how far the run had come; the
finished model has no such note. Ctrl-C leaves one; `--checkpoint-every` leaves one every so many rows.
Beside it, while a run with checkpoints lasts, lies a small file `MODEL.run`, so that a kill before the first
checkpoint, or between the last save and the end, is told from a run that is over.
"""

from __future__ import annotations

import contextlib
import json
import os

from sketchnewton.cli.io.console import amount
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.files import open_output
from sketchnewton.core.types import Header
from sketchnewton.learners import Learner
from sketchnewton.model import Model, open_model
from sketchnewton.model.run_note import checked_run

__all__ = ["Checkpoints", "Run", "forget", "mark", "resumed", "save_unfinished"]

Run = Header
"""What is known of a run: data and options, `pass` and `row` reached, the scores so far."""

_FIXED = {"passes": "--passes", "holdout": "--holdout", "shuffle": "--shuffle"}


def _place(model: str) -> str:
    return f"{model}.run"


class Checkpoints:
    """Saves a model at `path` every so many rows of a run."""

    def __init__(self, path: str, model: Model, run: Run, *, fresh: bool) -> None:
        self._path = path
        self.count = 0
        mark(path, model, run, fresh=fresh)

    def save(self, model: Model, run: Run, best: Learner | None) -> None:
        """Save the model with a note on how far the run has come."""
        save_unfinished(self._path, model, run, best)
        self.count += 1


def mark(path: str, model: Model, run: Run, *, fresh: bool) -> None:
    """Leave word beside `path` that a run has begun: what lies at `path` itself is older."""
    start = model.to_archive()[0] if fresh else None
    text = json.dumps({"run": run, "old": _stamp(path), "fresh": start})
    with open_output(_place(path)) as file:
        file.write(text)


def save_unfinished(path: str, model: Model, run: Run, best: Learner | None) -> None:
    """Save the model with a note on how far its run has come, and the learner after its best pass."""
    model.run, model.best = run, best
    try:
        model.save(path)
    finally:
        model.run = model.best = None


def forget(model: str) -> None:
    """The run that wrote `model` is over. A file of that name that is not a mark is left alone."""
    with contextlib.suppress(CommandError, FileNotFoundError):
        if _marker(model) is not None:
            os.unlink(_place(model))


def resumed(path: str, files: list[list[object]] | None) -> tuple[Model, Run | None, bool]:
    """The model to continue, the run over the same `files` that it is in the middle of, and whether it is new."""
    marker = _marker(path)
    if marker is not None and (files is None or marker["run"]["files"] != files):
        marker = None
    if marker is not None and marker["old"] == _stamp(path):  # killed before the first checkpoint
        if marker["fresh"] is not None:
            return _rebuilt(path, marker["fresh"]), marker["run"], True
        model = open_model(path)
        model.run = None
        return model, marker["run"], False
    model = open_model(path)
    run, model.run = model.run, None
    if run is not None:
        _check_same(path, run, files)
        if run["files"] == files and files is not None:
            return model, run, False
        model.best = None  # other data: the run is not continued
        return model, None, False
    if marker is not None:  # killed after the last save
        return model, {**marker["run"], "pass": marker["run"]["passes"], "over": True}, False
    return model, None, False


def _rebuilt(path: str, header: Header) -> Model:
    """The model that a run began with."""
    try:
        return Model.like(header)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
        raise CommandError(f"{_place(path)}: not the mark of a run of skn train: delete it") from None


def agree(path: str, run: Run, given: Header) -> None:
    """Refuse options that differ from those with which the run began."""
    for name, option in _FIXED.items():
        if given[name] is not None and given[name] != run.get(name):
            held = "none" if run.get(name) is None else run[name]
            typed = option if given[name] is True else f"{option} {given[name]}"
            raise usage_error(
                f"{typed} does not agree with {path}, a checkpoint of a run with {held}: "
                "leave the option out to finish the run"
            )
    # Other rows may be skipped from now on: those before the checkpoint were read without an error, or skipped.
    if {**given["way"], "on_error": None} != {**run["way"], "on_error": None}:
        raise usage_error(f"{path} is a checkpoint of a run that read its data with other options: use those")


def _check_same(path: str, run: Run, files: list[list[object]] | None) -> None:
    """A checkpoint of other data is an ordinary model; one of data that has changed since is a trap."""
    if files is None or run["files"] is None or run["files"] == files:
        return
    if [name for name, *_ in files] == [name for name, *_ in run["files"]]:
        raise CommandError(
            f"{files[0][0]}: has changed since the checkpoint {path}, which holds its first "
            f"{amount(run['row'])} rows: restore the data, or give only the rows that are new under another name"
        )


def _stamp(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _marker(path: str) -> Header | None:
    try:
        with open(_place(path), encoding="utf-8") as file:
            marker: Header = json.load(file)
        if not {"run", "old", "fresh"} <= marker.keys():
            raise ValueError
        checked_run(marker["run"])
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise CommandError(f"{_place(path)}: not the mark of a run of skn train: delete it") from None
    return marker
