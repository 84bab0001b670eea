"""Predictions of a model, within limits: what the owner of the model and its readers share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, np
from sketchnewton.model import Model
from sketchnewton.model.record_reader import PYTHON_ADVICE
from sketchnewton.serve.answers import Answer, answers
from sketchnewton.serve.bodies import Body
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.replaying import REFUSED

__all__ = ["Predictor", "RowLimits", "refused"]

_FEW = 1000  # features of one record that need no look at the limits


class RowLimits:
    """How much one request may hold."""

    def __init__(self, rows: int = 10_000, features: int = 100_000) -> None:
        self.rows = rows
        self.features = features

    def check(self, batches: Sequence[Batch]) -> None:
        """Refuse what is too much, or nothing."""
        if (
            len(batches) == 1
            and len(batches[0]) == 1
            and len(batches[0].views.indices) < min(_FEW, self.features)
        ):
            return
        rows = sum(map(len, batches))
        if not rows:
            raise ApiError(400, "no_records", "the body has no records")
        if rows > self.rows:
            raise ApiError(
                413, "too_many_rows", f"there are more than {self.rows} records: send fewer at a time"
            )
        most = self.features
        if any(len(batch.views.indices) > most and np.diff(batch.indptr).max() > most for batch in batches):
            raise ApiError(413, "too_many_features", f"a record has more than {most} features")


class Predictor:
    """A model that answers."""

    def __init__(self, model: Model, limits: RowLimits) -> None:
        self.model = model
        self.limits = limits

    @property
    def version(self) -> int:
        """Rows learned by the model."""
        return self.model.learner.rows_seen

    def predict(self, body: Body) -> tuple[list[Answer], int]:
        """The answers for the records of a body, and the version of the model that made them."""
        return answers(self.model, self._scores(self.model, body)), self.version

    async def predict_beside(self, body: Body) -> tuple[list[Answer], int]:
        """The same for a body that takes long to read: in another thread."""
        model = self.model
        scores, version = await asyncio.to_thread(
            lambda: (self._scores(model, body), model.learner.rows_seen)
        )
        return answers(model, scores), version

    def _scores(self, model: Model, body: Body) -> Floats:
        try:
            batches = list(
                model.rows_of(body.records, absent={})
            )  # what a table lacks is missing, without a word
            self.limits.check(batches)
            parts = [model.scores(batch) for batch in batches]
        except REFUSED as error:
            raise refused(error) from None
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def refused(error: Exception, code: str = "bad_records") -> ApiError:
    """What the model says of records that it cannot take is the client's mistake."""
    return ApiError(400, code, str(error).removesuffix(PYTHON_ADVICE) or type(error).__name__)
