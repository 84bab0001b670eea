"""Shards of one training: models as bytes that travel, learn somewhere else, and come back to be merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypedDict, Unpack

from sketchnewton.core.types import ArrayLike
from sketchnewton.learners import Learner, NewtonBank, OneVsAll
from sketchnewton.model.model import Model
from sketchnewton.model.target import Classes, Signs

__all__ = [
    "AT_ONCE",
    "WARM_UP",
    "BankParameters",
    "learned",
    "merged",
    "merged_models",
    "new_model",
    "part_of_round",
    "warm_up_rows",
]

AT_ONCE = 8  # shards in a merge: more take more memory, and a tree of merges gives nearly the same
WARM_UP = 500  # rows before the first of many rounds; chosen among 250, 500 and 1,000: docs/merging.md
_MANY = 8  # rounds; of fewer the first is so long that texts lose by it


class BankParameters(TypedDict, total=False):
    """Parameters of `NewtonBank`, the default learner."""

    sketch_size: int
    loss: str
    clip: float | None
    intercept: bool
    dtype: str


def new_model(
    classes: Sequence[Hashable] | None = None,
    *,
    exact_names: bool = False,
    **parameters: Unpack[BankParameters],
) -> Model:
    """A model of the default learner with these `parameters`: of numbers, or of named `classes`.

    >>> new_model(["cat", "dog", "bird"]).classes
    ['cat', 'dog', 'bird']
    """
    if classes is None:
        return Model(NewtonBank(**parameters), exact_names=exact_names)
    if len(classes) < 2:
        raise ValueError(f"the number of classes has to be greater than one; got {len(classes)}")
    if len(classes) == 2:
        return Model(NewtonBank(**parameters), target=Signs(names=classes), exact_names=exact_names)
    learner = OneVsAll(NewtonBank, len(classes), parameters)
    return Model(learner, target=Classes(names=classes), exact_names=exact_names)


def learned(model: bytes, parts: Iterable[tuple[object, object, ArrayLike | None]]) -> bytes:
    """The model after it has learned records, labels and weights, part by part."""
    learner = Model.from_bytes(model)
    for records, labels, weights in parts:
        learner.learn(records, labels, weights)
    return learner.to_bytes()


def merged(shards: Sequence[bytes], base: bytes) -> bytes:
    """The models of all shards in one; all of them began as `base`. A shard that learned nothing is left out."""
    begun = Model.from_bytes(base)
    whole = merged_models([Model.from_bytes(shard) for shard in shards], begun)
    return base if whole is begun else whole.to_bytes()


def merged_models(models: Sequence[Model], base: Model) -> Model:
    """The same without bytes: it is `base` itself if nobody has learned anything, else one of `models`."""
    models = [model for model in models if model.learner.rows_seen > base.learner.rows_seen]
    while len(models) > 1:
        groups = [models[at : at + AT_ONCE] for at in range(0, len(models), AT_ONCE)]
        models = [first.merge(*others, base=base) for first, *others in groups]
    return models[0] if models else base


def warm_up_rows(learner: Learner, pieces: int, rounds: int) -> int:
    """How many rows each piece of the data gives to the warm-up, of those that it has for the first round.

    Before the first of eight or more rounds one learner learns `WARM_UP` rows, and all shards begin with what it
    knows: what shards of few rows lose that begin with nothing, later rounds do not make good. 0: no warm-up,
    because rounds are few, or `learner` knows rows already.

    >>> warm_up_rows(NewtonBank(), 8, 16), warm_up_rows(NewtonBank(), 8, 1)
    (63, 0)
    """
    if rounds < _MANY or learner.rows_seen:
        return 0
    return -(-WARM_UP // pieces)


def part_of_round(rows: int, turn: int, rounds: int) -> slice:
    """The rows of a block that are learned in round `turn` of so many."""
    return slice(rows * turn // rounds, rows * (turn + 1) // rounds)
