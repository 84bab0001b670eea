"""What labels are where nobody has said: numbers, or classes that the first records name."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sketchnewton.core.batch import ParseError
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.features.columns import Columns
from sketchnewton.features.kinds import looks_like_number
from sketchnewton.learners import Learner, OneVsAll
from sketchnewton.model.class_names import SeenLabels, label_text, names_of
from sketchnewton.model.target import Classes, Signs, Target, target_of
from sketchnewton.streams.records import read_records

if TYPE_CHECKING:
    from sketchnewton.model.target import Labels

__all__ = ["decided"]


def decided(
    learner: Learner, records: object, labels: Labels | None, columns: Columns
) -> tuple[Learner, Target]:
    """The target of these labels, or of those that the records have, and the learner that goes with it.

    Texts, true and false are classes, all of which must be there; numbers are what they are to the learner.
    """
    texts = _texts_within(records, columns) if labels is None else _texts_of(labels)
    if all(map(looks_like_number, texts)):
        return learner, target_of(learner)
    names = names_of(texts)
    if len(names) < 2:
        raise ValueError(
            f"all labels are {names[0]!r}: give the model its classes, such as "
            f"target=Signs(names=[{names[0]!r}, …])"
        )
    if learner.classes is not None:
        return learner, Classes(names=names)
    if len(names) == 2:
        return learner, Signs(names=names)
    return OneVsAll(type(learner), len(names), learner.params), Classes(names=names)


def _texts_of(labels: Labels) -> list[bytes]:
    """Labels that are in memory, if they are not all numbers."""
    listed = labels.tolist() if hasattr(labels, "tolist") else labels
    known = [
        label for label in listed if not (label is None or (isinstance(label, float) and math.isnan(label)))
    ]
    words = [label for label in known if isinstance(label, str | bool)]
    if not words:
        return []
    if len(words) < len(known):
        number = next(label for label in known if not isinstance(label, str | bool))
        raise ValueError(
            f"labels are both texts and numbers, such as {words[0]!r} and {number!r}: make them one"
        )
    return list(dict.fromkeys(map(label_text, known)))


def _texts_within(records: object, columns: Columns) -> list[bytes]:
    """Labels of records, as far as they can be read twice; numbers if the first are."""
    seen = SeenLabels()
    if isinstance(records, Iterator):
        return []
    try:
        for batch in read_records(records, columns=columns, label_codes=seen):
            if len(batch) and all(map(looks_like_number, seen)):
                return []
    except ParseError:
        pass  # it will be said again
    return list(seen)
