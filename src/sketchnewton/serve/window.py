"""The last rows that were learned, with what was predicted before: for figures of how the model does now."""

from __future__ import annotations

from collections import deque
from typing import Any

from sketchnewton.core.batch import Batch, View
from sketchnewton.core.types import Floats, np
from sketchnewton.evaluation.metrics import calibration, measure
from sketchnewton.model import Model

__all__ = ["Window"]

_ROWS = 2000


class Window:
    """Scores, labels and weights of the last steps, of some 2,000 rows."""

    def __init__(self) -> None:
        self._steps: deque[tuple[Floats, View, View | None]] = deque()
        self._rows = 0

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take a step in."""
        self._steps.append((scores, batch.views.labels, batch.views.weights))
        self._rows += len(scores)
        while self._rows - len(self._steps[0][0]) >= _ROWS:
            self._rows -= len(self._steps.popleft()[0])

    def figures(self, model: Model) -> dict[str, Any]:
        """Mean loss, metrics and calibration of these rows; empty if there are none."""
        if not self._rows:
            return {}
        scores = np.concatenate([step[0] for step in self._steps])
        labels = np.concatenate([step[1] for step in self._steps])
        weights = np.concatenate([np.ones(len(s)) if w is None else w for s, _, w in self._steps])
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
