"""The learner in class: its predictions written down, its labels looked at, some rows kept from it."""

from __future__ import annotations

from typing import Any, TextIO

from sketchnewton import _native
from sketchnewton.cli.io.console import Console
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.train.early import Learned
from sketchnewton.cli.train.learner import class_count, has_softmax, parameters_of, smaller_steps
from sketchnewton.core.types import Floats, np
from sketchnewton.evaluation import ClassScore, ProgressiveScore, SoftmaxScore
from sketchnewton.learners import Learner
from sketchnewton.model.target import LabelWatch
from sketchnewton.streams import Batch

__all__ = ["Pupil", "new_score"]


def new_score(learner: Learner) -> ProgressiveScore:
    """A score of nothing yet, of the kind that fits the learner."""
    classes = class_count(learner)
    if classes is None:
        return ProgressiveScore(learner.loss)
    return (SoftmaxScore if has_softmax(learner) else ClassScore)(learner.loss, classes)


class Pupil:
    """A learner for `progressive`. `row` is the place in the pass of the next row, `held` the score of the rows
    that are kept from it: every `holdout`-th."""

    def __init__(
        self, learner: Learner, console: Console, form: PredictionFormat, holdout: int | None = None
    ) -> None:
        self.learner = learner
        self.loss = learner.loss
        self.rows = 0
        self.row = 0
        self.held = new_score(learner)
        self.last: tuple[float, Any] = (0.0, 0.0)  # label and prediction
        self.output: TextIO | None = None
        self.labels = LabelWatch()
        self._console = console
        self._form = form
        self._holdout = holdout
        # Other losses have labels of their own kind, which no bound on predictions has to reach.
        regression = learner.loss.shift_invariant and class_count(learner) is None
        clip = parameters_of(learner).get("clip")
        self._clip = clip if regression and isinstance(clip, float | int) else None

    def learn(self, batch: Batch | Learned, labels: Floats, weights: Floats | None = None, /) -> Floats:
        """Learn a batch, unless it is learned already; return the prediction made before each update."""
        self._look_at(labels)
        if isinstance(batch, Learned):
            self._finish(batch, batch.predictions)
            return batch.predictions
        held = None
        learned_weights = weights
        if self._holdout is not None:
            held = (self.row + 1 + np.arange(len(labels))) % self._holdout == 0
            # A row of no weight is predicted and leaves no trace.
            learned_weights = np.where(held, 0.0, 1.0 if weights is None else weights)
        try:
            predictions = self.learner.learn(batch, labels, learned_weights)
        except MemoryError as error:
            raise _too_large(self.learner, batch.shape[1] - 1, error) from None
        if held is not None:
            self.held.update(predictions[held], labels[held], None if weights is None else weights[held])
        self._finish(batch, predictions)
        return predictions

    def _finish(self, batch: Batch | Learned, predictions: Floats) -> None:
        # Of several classes, the largest in size: NaN and infinity stay what they are.
        each = predictions if predictions.ndim == 1 else np.abs(predictions).max(axis=1)
        if (at := _native.not_finite(each)) >= 0:
            raise CommandError(
                f"the learner diverged: its prediction for row {self.row + at + 1} is {predictions[at]}: "
                f"try {smaller_steps(self.learner)}"
            )
        self.rows += len(predictions)
        self.row += len(predictions)
        self.last = (float(batch.labels[-1]), predictions[-1])
        if self.output is not None:
            self._form.write(self.output, predictions, batch)

    def _look_at(self, labels: Floats) -> None:
        values, least, largest, _ = _native.look(labels)
        self.labels.see(values)
        if self._clip is not None and (reach := max(-least, largest)) > self._clip:
            self._console.line(
                f"skn: warning: labels reach {reach:g}, but predictions are clipped to ±{self._clip:g}: "
                f"consider --clip {reach:g}"
            )
            self._clip = None


def _too_large(learner: Learner, largest: int, error: MemoryError) -> MemoryError:
    """The error for a feature index beyond this machine."""
    from sketchnewton.learners import FullNewton  # only for this error

    if not isinstance(learner, FullNewton):
        return error
    size = (largest + 1) ** 2 * 8 / 1e9
    return MemoryError(
        f"feature index {largest} needs a table of {size:.3g} GB with --learner full: renumber or hash the "
        "features, or use a sketch"
    )
