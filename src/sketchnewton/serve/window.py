"""The last rows that were learned, with what was predicted before: for figures of how the model does now."""

from __future__ import annotations

from typing import TypedDict

from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, np
from sketchnewton.evaluation.metrics import calibration, measure
from sketchnewton.model import Model

__all__ = ["Figures", "Window"]

_ROWS = 2000
_ROOM = _ROWS + _ROWS // 4  # so that rows are seldom moved


class Bin(TypedDict):
    """Rows of about the same prediction."""

    predicted: float
    observed: float
    count: float


class Figures(TypedDict, total=False):
    """How the model does; empty where there are no rows."""

    loss: float
    metrics: dict[str, float]
    calibration: list[Bin]


class Window:
    """Scores, labels and weights of the last 2,000 rows, in memory that does not grow."""

    def __init__(self) -> None:
        self._scores: Floats | None = None
        self._labels = np.empty(_ROOM)
        self._weights = np.empty(_ROOM)
        self._end = 0

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take a step in."""
        if self._scores is None:
            self._scores = np.empty((_ROOM, *scores.shape[1:]))
        views, rows = batch.views, min(len(scores), _ROWS)
        if self._end + rows > _ROOM:
            stay = min(self._end, _ROWS - rows)
            for kept in (self._scores, self._labels, self._weights):
                kept[:stay] = kept[self._end - stay : self._end]
            self._end = stay
        begin, self._end = self._end, self._end + rows
        self._scores[begin : self._end] = scores[-rows:]
        self._labels[begin : self._end] = views.labels[-rows:]
        self._weights[begin : self._end] = 1.0 if views.weights is None else views.weights[-rows:]

    def figures(self, model: Model) -> Figures:
        """Mean loss, metrics and calibration of these rows; empty if there are none."""
        if self._scores is None:
            return {}
        last = slice(max(0, self._end - _ROWS), self._end)
        scores, labels, weights = self._scores[last], self._labels[last], self._weights[last]
        score = model.new_score()
        score.update(scores, labels, weights)
        answers = model.judged(scores, labels, weights, signs=score.error_rate is not None)
        return {
            "loss": score.mean_loss,
            "metrics": measure(answers),
            "calibration": [
                {"predicted": said, "observed": seen, "count": weight}
                for said, seen, weight in calibration(answers)
            ],
        }
