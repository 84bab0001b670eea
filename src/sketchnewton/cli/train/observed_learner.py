"""A learner whose predictions are recorded and whose labels are checked; some rows are held out."""

from __future__ import annotations

import contextlib

from sketchnewton import _native
from sketchnewton.cli.io.console import Console
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.train.learner import smaller_steps
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.checks import DivergedError
from sketchnewton.core.hints import TYPE_CHECKING, TextIO
from sketchnewton.core.types import ArrayLike, np
from sketchnewton.evaluation import last_row
from sketchnewton.model import LabelWatch, Model

if TYPE_CHECKING:
    from sketchnewton.cli.train.metric import ProgressiveMetric

__all__ = ["ObservedLearner"]


class ObservedLearner:
    """A model's learner for `progressive`.

    `row` is the place in the pass of the next row, `held_out` the score of the rows that are not learned: every
    `holdout`-th.
    """

    def __init__(
        self, model: Model, console: Console, form: PredictionFormat, holdout: int | None = None
    ) -> None:
        self.learner = model.learner
        self.loss = model.learner.loss
        self.rows = 0
        self.row = 0
        self.held_out = model.new_score()
        self.last: tuple[float, ArrayLike] = (0.0, 0.0)  # label and prediction
        self.output: TextIO | None = None
        self.seen = False  # were the rows learned in a pass before?
        self.metric: ProgressiveMetric | None = None
        self.labels = LabelWatch()
        self._console = console
        self._form = form
        self._holdout = holdout
        # Other losses have labels of their own kind, which no bound on predictions has to reach.
        regression = self.loss.takes_all_numbers and model.classes is None
        clip = model.learner.base_params.get("clip")
        self._clip = clip if regression and isinstance(clip, float | int) else None

    def learn_batch(self, batch: Batch, /) -> View:
        """Learn the rows that are not held out; return the prediction made before each update."""
        self._watch(batch.views.labels)
        try:
            with self.learner.relearning() if self.seen else contextlib.nullcontext():
                predictions = self._learn(batch)
        except DivergedError as error:
            raise CommandError(
                f"the learner diverged: its prediction for row {self.row + error.row + 1} is not finite: "
                f"try {smaller_steps(self.learner)}"
            ) from None
        self._record(batch, predictions)
        return predictions

    def _learn(self, batch: Batch) -> View:
        holdout = self._holdout
        if holdout is None:
            return self.learner.learn_batch(batch)
        held = (self.row + 1 + np.arange(len(batch))) % holdout == 0
        # A row of no weight is predicted and leaves no trace.
        weights = batch.weights
        learned = np.where(held, 0.0, 1.0 if weights is None else weights)
        predictions = np.asarray(self.learner.learn_batch(batch.replace(weights=learned)))
        self.held_out.update(
            predictions[held], batch.labels[held], None if weights is None else weights[held]
        )
        return predictions

    def _record(self, batch: Batch, predictions: View) -> None:
        self.rows += len(batch)
        self.row += len(batch)
        self.last = (batch.views.labels[-1], last_row(predictions))
        if self.metric is not None:
            self.metric.add(batch, predictions)
        if self.output is not None:
            self._form.write(self.output, np.asarray(predictions), batch)

    def _watch(self, labels: View) -> None:
        values, least, largest, _ = _native.look(labels)
        self.labels.see(values)
        self.labels.follow(labels)
        if self._clip is not None and (reach := max(-least, largest)) > self._clip:
            self._console.line(
                f"skn: warning: labels reach {reach:g}, but predictions are clipped to ±{self._clip:g}: "
                f"consider --clip {reach:g}"
            )
            self._clip = None
