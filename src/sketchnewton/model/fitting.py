"""Rows that a model can learn or predict: labels become targets, rows that do not fit are refused or left out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator

from sketchnewton import _native
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.types import NDArray, np
from sketchnewton.model.target import Target

__all__ = ["LARGEST_VALUE", "fit"]

LARGEST_VALUE = _native.LARGEST_VALUE

Refuse = Callable[[int, str, int | None], None]
"""Told the number of a row, from 1, what is wrong with it, and its line if that is known.

Raises, or returns if the row is to be left out.
"""

NameFeature = Callable[[int], str]
"""What to call the feature of an index in a message."""

Fault = tuple["NDArray[np.bool_]", Callable[[int], str]]
"""Which rows of a batch have it, and what to say of one."""


def fit(
    batches: Iterable[Batch], target: Target | None, refuse: Refuse, name: NameFeature = "feature {}".format
) -> Generator[Batch]:
    """Batches with targets for labels; without a `target`, for predicting, labels stay what they are.

    Every row that does not fit is told to `refuse`.
    """
    rows = 0
    for batch in batches:
        ready = _ready(batch, target)
        kept = _without_faults(batch, target, refuse, name, rows) if ready is None else ready
        rows += len(batch)
        del batch, ready  # before the next is asked for: memory for one batch less
        if len(kept):
            yield kept
        del kept


def _ready(batch: Batch, target: Target | None) -> Batch | None:
    """The batch if all is well with it; None if something needs a closer look."""
    if batch.rows.scan()[2] >= 0:  # the first bad row
        return None
    views = batch.views
    if target is None:
        return batch
    sound = views.weights is None or _sound(views.weights)
    if not sound or (views.base is not None and _native.look(views.base)[0] != [0.0]):
        return None
    coded = target.code(views.labels)
    if coded.unfit:
        return None
    return batch if coded.labels is views.labels else batch.replace(labels=coded.labels)


def _without_faults(
    batch: Batch, target: Target | None, refuse: Refuse, name: NameFeature, rows: int
) -> Batch:
    faults, read = [*_far(batch, name)], batch
    if target is not None:
        coded = target.code(batch.views.labels)
        faults += _not_learnable(batch, coded.unfit, target)
        batch = batch.replace(labels=coded.labels)
    bad = np.logical_or.reduce([at for at, _ in faults]) if faults else np.zeros(len(batch), bool)
    for row in np.flatnonzero(bad).tolist():
        refuse(rows + row + 1, next(say(row) for at, say in faults if at[row]), read.line_of(row))
    return batch.keep(~bad) if bad.any() else batch


def _not_learnable(batch: Batch, unfit: list[int], target: Target) -> Iterator[Fault]:
    yield np.isin(np.arange(len(batch)), unfit), lambda row: target.complaint(float(batch.labels[row]))
    if (weights := batch.weights) is not None:
        sound = (weights >= 0.0) & (weights <= LARGEST_VALUE)
        yield ~sound, lambda row: f"has the weight {weights[row]:g}: weights are from 0 to {LARGEST_VALUE:g}"
    if (base := batch.base) is not None:
        yield base != 0, lambda _: "has an initial prediction (base), which no learner can start from"


def _far(batch: Batch, name: NameFeature) -> Iterator[Fault]:
    """Rows with a number that no learner takes."""
    entries = np.flatnonzero(~(np.abs(batch.data) <= LARGEST_VALUE))
    if not len(entries):
        return
    rows = np.searchsorted(batch.indptr, entries, side="right") - 1
    first = dict(zip(rows[::-1].tolist(), entries[::-1].tolist(), strict=True))

    def say(row: int) -> str:
        at = first[row]
        return (
            f"has the value {batch.data[at]:g} for {name(int(batch.indices[at]))}, beyond ±{LARGEST_VALUE:g}: "
            "rescale the feature"
        )

    yield np.isin(np.arange(len(batch)), rows), say


def _sound(weights: View) -> bool:
    _, least, largest, finite = _native.look(weights)
    return finite and least >= 0.0 and largest <= LARGEST_VALUE
