"""`skn train`: learn from a stream, score every prediction first, save the model."""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import time
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from sketchnewton import __version__
from sketchnewton.cli import table
from sketchnewton.cli.console import Console, amount, counted, number, percent
from sketchnewton.cli.errors import CommandError, usage_error
from sketchnewton.cli.files import (
    check_distinct,
    check_model_place,
    check_readable,
    check_writable,
    open_output,
    write_numbers,
)
from sketchnewton.cli.input import labelled
from sketchnewton.cli.labels import LabelWatch
from sketchnewton.cli.learner import alpha_in_force, describe, make_learner, positive_label, smaller_steps
from sketchnewton.cli.signals import GracefulStop
from sketchnewton.evaluation import ProgressiveScore, Report, progressive
from sketchnewton.learners import FullNewton, Learner
from sketchnewton.losses import Loss
from sketchnewton.streams import Batch

__all__ = ["run"]

Floats = npt.NDArray[np.float64]


def run(args: argparse.Namespace) -> int:
    """Train as `args` say; the exit code is 0, or 130 or 143 when a signal ended the run."""
    _check(args)
    training = _Training(args)
    with training.stop:
        training.learn()
        training.save()
        training.test()
        training.report()
    return training.stop.exit_code


def _check(args: argparse.Namespace) -> None:
    """Refuse at once what would fail only after the work is done."""
    if args.data == "-" and args.passes > 1:
        raise usage_error(f"--passes {args.passes} needs a file: stdin can be read only once")
    if args.data == "-" and args.test == "-":
        raise usage_error("DATA and --test cannot both be stdin")
    if args.json and args.predictions == "-":
        raise usage_error("--json and --predictions - would both write to stdout")
    for path in (args.data, args.test, args.resume):
        if path is not None:
            check_readable(path)
    check_distinct(
        {"--model": args.model, "--predictions": args.predictions}, {"DATA": args.data, "--test": args.test}
    )
    if args.resume is not None:
        check_distinct({"--predictions": args.predictions}, {"--resume": args.resume})
    if args.model is not None:
        check_model_place(args.model)
    if args.predictions is not None:
        check_writable(args.predictions)


class _Training:
    """One run of the command: what was asked for, and what came of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.console = Console(args.quiet)
        self.stop = GracefulStop()
        self.learner = make_learner(args)
        self.positive = positive_label(self.learner)
        self.pupil = _Watched(self.learner, self.console)
        self.seconds = 0.0
        self.passes: list[ProgressiveScore] = []  # later passes have seen their rows before
        self.saved = False
        self.tested: ProgressiveScore | None = None

    @property
    def score(self) -> ProgressiveScore:
        """That of the first pass; of nothing, if a signal came before it."""
        return self.passes[0] if self.passes else ProgressiveScore(self.learner.loss)

    def learn(self) -> None:
        """All passes over the data, or what a signal left of them."""
        resumed = "" if self.args.resume is None else f" (going on with {self.args.resume})"
        self.console.line(describe(self.learner) + resumed)
        start = time.perf_counter()
        try:
            with contextlib.ExitStack() as files:
                if self.args.predictions is not None:
                    self.pupil.output = files.enter_context(open_output(self.args.predictions))
                while len(self.passes) < self.args.passes and self.stop.signal is None:
                    self._one_pass()
                    self.pupil.output = None
        except (ValueError, MemoryError, CommandError) as error:
            raise self._failed(error) from None
        self.seconds = time.perf_counter() - start

    def _one_pass(self) -> None:
        if self.args.passes > 1:
            self.console.line(f"pass {len(self.passes) + 1} of {self.args.passes}")
        start, before = time.perf_counter(), self.pupil.rows

        def show(report: Report) -> None:
            if report.examples == 1:
                self.console.line(table.header())
            self.console.line(table.row(report, (self.pupil.rows - before) / (time.perf_counter() - start)))

        score = progressive(
            self.pupil, self._batches(self.args.data), on_report=None if self.args.quiet else show
        )
        if score.rows & (score.rows - 1):  # not a power of two, whose line is there already
            show(score.report(*self.pupil.last))
        self.passes.append(score)
        if len(self.passes) == 1:
            self._hint()

    def _hint(self) -> None:
        hint = None
        if self.positive is not None:
            hint = self.pupil.labels.no_positive(self.positive)
        elif self.learner.loss.name == "squared" and self.args.resume is None:
            hint = self.pupil.labels.two_classes()
        if hint is not None:
            self.console.line(hint)

    def save(self) -> None:
        """Write the model, unless nothing was learned: an older model at that place is worth more."""
        if self.args.model is not None and self.pupil.rows:
            self.learner.save(self.args.model)
            self.saved = True

    def test(self) -> None:
        """Score the test file without learning from it."""
        if self.args.test is None or self.stop.signal is not None:
            return
        score = ProgressiveScore(self.learner.loss)
        try:
            for batch in self._batches(self.args.test):
                score.update(self.learner.predict(batch), batch.labels, batch.weights)
        except (ValueError, CommandError) as error:
            raise CommandError(
                f"{error} ({self.args.model} was written)" if self.saved else str(error)
            ) from None
        if self.stop.signal is None:
            self.tested = score

    def report(self) -> None:
        """The closing summary, for people and for machines."""
        summary = self._summary()
        if self.args.json:
            import json  # noqa: PLC0415 - slow to import, and seldom asked for

            print(json.dumps(summary))
        line = self.console.line
        alpha = "" if summary["alpha"] is None else f", alpha {summary['alpha']:.4g}"
        stopped = "" if summary["stopped_by"] is None else f"stopped by {summary['stopped_by']}: "
        line(
            f"{stopped}{counted(self.pupil.rows, 'row')} in {self.seconds:.2f} s "
            f"({amount(summary['rows_per_second'])} rows/s), {counted(summary['features'], 'feature')}{alpha}"
        )
        if self.pupil.rows:
            line(_scored("progressive", self.score))
            if len(self.passes) > 1:
                line(_scored(f"pass {len(self.passes)}", self.passes[-1]))
        if self.tested is not None:
            line(f"{_scored('test', self.tested)} on {counted(self.tested.rows, 'row')}")
        if self.args.model is not None:
            line(f"model saved to {self.args.model}" if self.saved else f"{self.args.model} was not written")

    def _summary(self) -> dict[str, Any]:
        rows = self.pupil.rows
        return {
            "version": __version__,
            "data": self.args.data,
            "rows": rows,
            "passes": len(self.passes),
            "features": self.learner.features_seen,
            "largest_index": self.learner.dimension - 1 if self.learner.dimension else None,
            "progressive_loss": _loss(self.score),
            "error_rate": self.score.error_rate,
            "last_pass_loss": _loss(self.passes[-1]) if len(self.passes) > 1 else None,
            "test": self.args.test,
            "test_rows": None if self.tested is None else self.tested.rows,
            "test_loss": None if self.tested is None else _loss(self.tested),
            "test_error_rate": None if self.tested is None else self.tested.error_rate,
            "seconds": self.seconds,
            "rows_per_second": rows / self.seconds if self.seconds > 0 else 0.0,
            "learner": type(self.learner).__name__,
            "parameters": self.learner.params,
            "alpha": alpha_in_force(self.learner),
            "positive": self.positive,
            "rows_seen": self.learner.rows_seen,
            "model": self.args.model if self.saved else None,
            "stopped_by": None if self.stop.signal is None else signal.Signals(self.stop.signal).name,
        }

    def _batches(self, path: str) -> Iterator[Batch]:
        return labelled(path, self.console, self.stop, self.positive, self.learner.loss)

    def _failed(self, error: Exception) -> CommandError:
        """The error, and what it means for the work done."""
        notes = [f"learned {amount(self.pupil.rows)} of the rows before it"] if self.pupil.rows else []
        if self.args.model is not None:
            notes.append(f"{self.args.model} was not written")
        return CommandError(f"{error} ({'; '.join(notes)})" if notes else str(error))


class _Watched:
    """The learner, with its predictions written down and its labels looked at."""

    def __init__(self, learner: Learner, console: Console) -> None:
        self.loss = learner.loss
        self.rows = 0
        self.last = (0.0, 0.0)  # label and prediction
        self.output: TextIO | None = None
        self.labels = LabelWatch()
        self._learner = learner
        self._console = console
        # Other losses have labels of their own kind, which no bound on predictions has to reach.
        self._clip = learner.params["clip"] if type(learner.loss).label_rule == Loss.label_rule else None

    def learn(self, batch: Batch, labels: Floats, weights: Floats | None = None, /) -> Floats:
        """Learn a batch; return the prediction made before each update."""
        self._warn_of_clip(labels)
        self.labels.see(labels)
        try:
            predictions = self._learner.learn(batch, labels, weights)
        except MemoryError as error:
            raise _too_large(self._learner, batch.shape[1] - 1, error) from None
        if not np.isfinite(predictions).all():
            row = self.rows + int(np.isfinite(predictions).argmin()) + 1
            raise CommandError(
                f"the learner diverged: its prediction for row {row} is {predictions[row - self.rows - 1]}: "
                f"try {smaller_steps(self._learner)} or a tighter --clip"
            )
        self.rows += len(labels)
        self.last = (float(labels[-1]), float(predictions[-1]))
        if self.output is not None:
            write_numbers(self.output, predictions)
        return predictions

    def _warn_of_clip(self, labels: Floats) -> None:
        if self._clip is not None and (reach := float(np.abs(labels).max())) > self._clip:
            self._console.line(
                f"skn: warning: labels reach {reach:g}, but predictions are clipped to ±{self._clip:g}: "
                f"consider --clip {reach:g}"
            )
            self._clip = None


def _too_large(learner: Learner, largest: int, error: MemoryError) -> MemoryError:
    """The error for a feature index beyond this machine."""
    if not isinstance(learner, FullNewton):
        return error
    size = (largest + 1) ** 2 * 8 / 1e9
    return MemoryError(
        f"feature index {largest} needs a table of {size:.3g} GB with --learner full: renumber or hash the "
        "features, or use a sketch"
    )


def _scored(name: str, score: ProgressiveScore) -> str:
    error = "" if score.error_rate is None else f", error {percent(score.error_rate)}"
    return f"{name} loss {number(score.mean_loss)}{error}"


def _loss(score: ProgressiveScore) -> float | None:
    return score.mean_loss if math.isfinite(score.mean_loss) else None
