"""Events of the log, learned again: by the same calls, in the same order, to the same bits."""

from __future__ import annotations

import json

from sketchnewton.core.batch import Batch, IndexTooLarge
from sketchnewton.core.persistence import Persistent
from sketchnewton.core.types import Floats, Json
from sketchnewton.evaluation import ProgressiveScore
from sketchnewton.learners import Learner
from sketchnewton.model import Model
from sketchnewton.serve.bodies import Records, records_of
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.log import LABEL, LOAD, Event, LogError

__all__ = ["REFUSED", "Lesson", "Standing", "count", "lesson_of", "model_of_bytes"]

REFUSED = (ValueError, TypeError, OverflowError, IndexTooLarge)
"""What a model says of records that it cannot take."""

Lesson = tuple[Records, list[Json] | None, list[float] | None]
"""Records, labels and weights, as `Model.learn` takes them."""


def lesson_of(event: Event) -> Lesson:
    """What an event teaches."""
    body = records_of(event.format, event.body)
    if event.kind == LABEL:
        labels = None if event.label is None else [json.loads(event.label)]
        return body.records, labels, None if event.weight is None else [event.weight]
    return body.records, body.labels, body.weights


class Standing:
    """A model, its progressive score and the last event it has learned."""

    def __init__(self, model: Model, score: ProgressiveScore, seq: int) -> None:
        self.model = model
        self.score = score
        self.seq = seq
        self.replayed = 0

    def learn(self, event: Event) -> None:
        """Learn an event; a LOAD event is another model."""
        if event.kind == LOAD:
            self.model = model_of_bytes(event.body)
            self.score = self.model.new_score()
        else:
            try:
                for batch, scores in self.model.learning(*lesson_of(event)):
                    count(self.score, batch, scores)
            except (*REFUSED, ApiError) as error:
                raise LogError(f"event {event.seq} cannot be learned by this model: {error}") from None
        self.seq = event.seq
        self.replayed += 1


def count(score: ProgressiveScore, batch: Batch, scores: Floats) -> None:
    """Add the rows of a step to a progressive score."""
    score.update(scores, batch.views.labels, batch.views.weights)


def model_of_bytes(data: bytes) -> Model:
    """The model in the bytes of a model file; a learner alone becomes a model of numbered features."""
    found = Persistent.from_bytes(data)
    if isinstance(found, Model):
        return found
    if isinstance(found, Learner):
        return Model(found)
    raise ValueError(f"the file holds a {type(found).__name__}, not a model")
