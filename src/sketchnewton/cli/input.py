"""Batches from a file or stdin, with a progress bar and a way out when a signal comes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from sketchnewton.cli.console import Console, counted
from sketchnewton.cli.errors import CommandError
from sketchnewton.cli.signals import GracefulStop, Stopped
from sketchnewton.losses import Loss
from sketchnewton.streams import Batch, read_svmlight

__all__ = ["labelled", "read"]


def read(path: str, console: Console, stop: GracefulStop) -> Iterator[Batch]:
    """The batches of a file, up to the moment when a signal comes; `stop.signal` tells whether one came."""
    try:
        stream = stop.wait(read_svmlight, path)
    except Stopped:
        return
    try:
        while (batch := stop.wait(next, stream, None)) is not None:
            yield batch
            known = stream.position / stream.size if stream.size else None
            console.progress(known, counted(stream.rows, "row"))
    except Stopped:
        return
    finally:
        console.clear()
        stream.close()


def labelled(
    path: str, console: Console, stop: GracefulStop, positive: float | None, loss: Loss
) -> Iterator[Batch]:
    """Batches with labels fit for the loss: +1 for `positive` and −1 for the others, if it is given."""
    rows = 0
    for batch in read(path, console, stop):
        fit = batch
        if positive is not None:
            fit = dataclasses.replace(batch, labels=np.where(batch.labels == positive, 1.0, -1.0))
        try:
            loss.check_labels(fit.labels)
        except ValueError:
            raise _unfit(path, rows, fit, loss) from None
        yield fit
        rows += len(fit)


def _unfit(path: str, rows: int, batch: Batch, loss: Loss) -> CommandError:
    at = next(at for at, label in enumerate(batch.labels) if not _fits(loss, float(label)))
    name = "<stdin>" if path == "-" else path
    hint = ": --positive LABEL makes them" if "-1" in loss.label_rule else ""
    return CommandError(
        f"{name}: row {rows + at + 1} has the label {batch.labels[at]:g}, but the {loss.name} loss needs "
        f"{loss.label_rule}{hint}"
    )


def _fits(loss: Loss, label: float) -> bool:
    try:
        loss.check_labels(label)
    except ValueError:
        return False
    return True
