"""What is kept of a run of `skn train`: its model, and while it is unfinished how far it has come."""

from __future__ import annotations

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import Header
from sketchnewton.learners import Learner

if TYPE_CHECKING:
    from sketchnewton.cli.train.checkpoint import Checkpoints
    from sketchnewton.cli.train.training import Training

__all__ = ["Saving"]


class Saving:
    """Saves the model of a run: every so many rows, when a signal ends it, and when it is over."""

    def __init__(self, training: Training) -> None:
        self.done = False
        self.checkpoints: Checkpoints | None = None
        self._training = training
        self._noted = False  # as unfinished

    @property
    def resumable(self) -> bool:
        """Whether `--resume` finishes this run: what a pipe has given is gone."""
        return self._training.args.model is not None and self._training.data.identity() is not None

    def begin(self) -> None:
        """Leave word of the run, if it is to leave checkpoints."""
        training = self._training
        if training.every is not None and training.args.model is not None:
            from sketchnewton.cli.train.checkpoint import Checkpoints  # only where asked for

            run = training.interrupted  # killed again, it is where it is now
            if run is not None and run.get("over", False):
                return  # and its mark stays true until it goes
            at = 0 if run is None else min(run["pass"], training.pass_count - 1)
            self.checkpoints = Checkpoints(
                training.args.model, training.model, self._note(at), fresh=training.fresh
            )

    def checkpoint(self, at: int) -> None:
        """Save the model in the middle of pass `at`, if that is asked for and due."""
        training = self._training
        if self.checkpoints is not None and training.every and training.observed.row % training.every == 0:
            training.data.remember(training.model)
            self.checkpoints.save(training.model, self._note(at), self._best())

    def save(self) -> None:
        """Write the model, unless nothing was learned: an older model at that place is worth more."""
        training, args = self._training, self._training.args
        over = training.interrupted is not None and training.interrupted.get("over", False)
        if args.model is not None and (training.observed.rows or over):
            if training.stop.signal is not None:
                self._save_unfinished()
            else:
                training.data.remember(training.model)
                training.model.save(args.model)
            self.done = True
        elif training.stop.signal is not None:
            self._mark_unbegun()
        if args.readable is not None and training.observed.rows:
            from sketchnewton.cli.train.readable import write_readable

            write_readable(args.readable, training.model, training.data.names)

    def close(self) -> None:
        """The run is over, and with it the need to tell it from one that is not."""
        if not self.done:
            return
        if self._training.stop.signal is None or self._noted:
            from sketchnewton.cli.train.checkpoint import forget

            forget(self._training.args.model)
        else:  # the signal came after the model was saved: the test is still to be done
            self._save_unfinished()

    def _save_unfinished(self) -> None:
        """The model with a note on how far it has come, so that `--resume` learns no row twice."""
        from sketchnewton.cli.train.checkpoint import save_unfinished

        training = self._training
        training.data.remember(training.model)
        if self.resumable:
            note = self._note(max(0, len(training.scores) - 1))
            save_unfinished(training.args.model, training.model, note, self._best())
            self._noted = True
        else:
            training.model.save(training.args.model)

    def _mark_unbegun(self) -> None:
        """Stopped before the first row: `--resume` must not take an older model for this run's."""
        if self.resumable and self.checkpoints is None:
            from sketchnewton.cli.train.checkpoint import mark

            training = self._training
            mark(training.args.model, training.model, self._note(), fresh=training.fresh)

    def _best(self) -> Learner | None:
        return None if self._training.best is None else self._training.best[0]

    def _note(self, at: int = 0) -> Header:
        """How far the run has come, in pass `at`."""
        training = self._training
        return {
            "files": training.data.identity(),
            "way": training.data.way(),
            "passes": training.pass_count,
            "holdout": training.holdout,
            "shuffle": training.shuffle or None,
            "every": training.every,
            "pass": at,
            "best": None if training.best is None else training.best[1],
            "row": training.observed.row,
            "scores": [score.state for score in training.scores],
            "held": [score.state for score in training.holdout_scores],
            "predictions": None if training.predictions is None else training.predictions.note(),
        }
