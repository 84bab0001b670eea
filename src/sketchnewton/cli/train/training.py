"""A run of `skn train`: learn from a stream, score every prediction first, save the model."""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.data_source import Data, fit, labelled
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.files import (
    check_distinct,
    check_model_place,
    check_readable,
    check_writable,
    open_output,
)
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.train import table
from sketchnewton.cli.train.early import Early, Learned
from sketchnewton.cli.train.learner import (
    class_count,
    describe,
    labels_of,
    make_learner,
    positive_label,
)
from sketchnewton.cli.train.observed_learner import Pupil, new_score
from sketchnewton.cli.train.passes import Passes, cache_place
from sketchnewton.cli.train.report import dry_run, report, scored
from sketchnewton.cli.train.rows import cut_for_reports
from sketchnewton.core import archive
from sketchnewton.core.names import DEFAULT_LOSS
from sketchnewton.evaluation import ProgressiveScore, Report, progressive
from sketchnewton.learners import Learner, NewtonBank, OneVsAll
from sketchnewton.learners.table import TableLearner
from sketchnewton.streams import Batch

__all__ = ["Training", "run"]


def run(args: argparse.Namespace) -> int:
    """Train as `args` say; the exit code is 0, or 130 or 143 when a signal ended the run."""
    _check(args)
    training = Training(args)
    if args.dry_run:
        dry_run(training)
        return 0
    with training.stop:
        training.learn()
        training.save()
        training.test()
        report(training)
        training.close()
    return training.stop.exit_code


def _check(args: argparse.Namespace) -> None:
    """Refuse at once what would fail only after the work is done."""
    if "-" in args.data and args.test == "-":
        raise usage_error("DATA and --test cannot both be stdin")
    if args.json and args.predictions == "-":
        raise usage_error("--json and --predictions - would both write to stdout")
    if args.checkpoint_every is not None and args.model is None:
        raise usage_error("--checkpoint-every needs --model, where the checkpoints are saved")
    if args.test is not None:
        check_readable(args.test)
    outputs = {"--predictions": args.predictions, "--readable": args.readable, "--cache": args.cache}
    inputs = {f"DATA {path}" if len(args.data) > 1 else "DATA": path for path in args.data}
    check_distinct({"--model": args.model, **outputs}, {**inputs, "--test": args.test})
    if args.resume is not None:
        check_distinct(outputs, {"--resume": args.resume})
    if args.model is not None:
        check_model_place(args.model)
    for path in outputs.values():
        if path is not None:
            check_writable(path)


class Training:
    """One run of the command: what was asked for, and what came of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.console = Console(args.quiet)
        self.stop = GracefulStop()
        self.begun: dict[str, Any] | None = None  # the run that is gone on with
        self.fresh = args.resume is None
        self._early: Early | None = None
        if args.resume is None:
            self.learner = self._new_learner()
        else:
            from sketchnewton.cli.train.resume import resume  # only where there is something to resume

            self.learner, self.begun, self.fresh = resume(args)
        self.data = Data(args.data, args, self.learner, readable=args.readable is not None)
        self.data.check()
        self._remember_data()
        self._set_up_run()
        self.labels = labels_of(self.learner)
        if isinstance(self.learner, OneVsAll):
            self.learner.threads = max(1, args.threads - 1)
        form = PredictionFormat(self.learner, self.labels, link=args.link, raw=args.raw)
        self.pupil = Pupil(self.learner, self.console, form, self.holdout)
        self.passes = Passes(
            self.data, cache_place(args, self.data, self.pass_count), self.console, self.stop
        )
        self.seconds = 0.0
        self.scores: list[ProgressiveScore] = []  # of each pass; later ones have seen their rows before
        self.held: list[ProgressiveScore] = []  # of each pass, on the rows held out
        self.pass_seconds: list[float] = []
        self.best: tuple[Learner, int] | None = None  # the learner after the best pass
        self.saved = False
        self.tested: ProgressiveScore | None = None
        self._checkpoints: Any = None
        if self.begun is not None:
            self._take_up(self.begun)

    def _new_learner(self) -> Learner:
        """As the options say; one that does without NumPy if nothing is asked for but to learn row after row."""
        args = self.args
        more = (args.multiclass, args.holdout, args.checkpoint_every, args.readable)
        if args.dry_run or any(option is not None for option in more):
            return make_learner(args)
        learner = make_learner(args)
        if isinstance(learner, TableLearner):
            self._early = Early(learner)
        return learner

    def _remember_data(self) -> None:
        notes, wanted = self.learner.notes, self.data.remembered()
        if self.learner.rows_seen:
            for name in ("features", "exact_names"):
                if wanted.get(name) != notes.get(name):
                    raise usage_error(
                        f"the options on features do not agree with {self.args.resume}, which was trained with "
                        f"{notes.get(name) or 'none'}: leave them out to go on, or --resume to start anew"
                    )
        notes.update(wanted)

    def _set_up_run(self) -> None:
        """Passes, holdout and checkpoints: as asked for, or as the interrupted run has them."""
        args, begun = self.args, self.begun
        if begun is not None:
            from sketchnewton.cli.train.checkpoint import agree

            agree(
                args.resume, begun, {"passes": args.passes, "holdout": args.holdout, "way": self.data.way()}
            )
            if args.predictions is not None and begun["row"] + begun["pass"]:
                raise usage_error(
                    f"--predictions would lack those of the {amount(begun['row'])} rows that {args.resume} has "
                    "learned already: leave it out, or --resume to start anew"
                )
        begun = begun or {}
        self.pass_count: int = args.passes or begun.get("passes", 1)
        self.holdout: int | None = args.holdout or begun.get("holdout")
        self.every: int | None = args.checkpoint_every or (begun.get("every") if args.model else None)
        if self.pass_count > 1 and args.cache is None and self.data.identity() is None:
            raise usage_error(
                f"--passes {self.pass_count} needs a file: {self.data.name} can be read only once "
                "(or --cache FILE)"
            )
        if self.every is not None and self.holdout is not None and self.pass_count > 1:
            raise usage_error(
                "--checkpoint-every does not go with --holdout and --passes, which keep the best pass in memory"
            )

    def _take_up(self, begun: dict[str, Any]) -> None:
        """Set the scores and counters of an interrupted run."""
        for states, scores in ((begun["scores"], self.scores), (begun["held"], self.held)):
            for state in states:
                score = new_score(self.learner)
                try:
                    score.state = state
                except (KeyError, TypeError, ValueError) as error:
                    raise CommandError(
                        f"{self.args.resume}: its note on the run is damaged: {error}"
                    ) from None
                scores.append(score)
        self.pupil.rows = sum(score.rows for score in self.scores)
        self.pupil.row = begun["row"]

    @property
    def score(self) -> ProgressiveScore:
        """That of the first pass; of nothing, if a signal came before it."""
        return self.scores[0] if self.scores else new_score(self.learner)

    @property
    def held_out(self) -> ProgressiveScore | None:
        """The score of the pass that is kept, on the rows held out."""
        at = len(self.held) - 1
        if self.best is not None and self.learner is self.best[0]:
            at = self.best[1]
        return self.held[at] if self.held and self.held[at].rows else None

    @property
    def positive(self) -> float | None:
        """The label that is learned as +1, if there is one."""
        return positive_label(self.learner)

    def learn(self) -> None:
        """All passes over the data, or what a signal left of them."""
        self.console.line(describe(self.learner) + self.whence())
        if self.every is not None and self.args.model is not None:
            from sketchnewton.cli.train.checkpoint import Checkpoints  # only where asked for

            self._checkpoints = Checkpoints(self.args.model, self.learner, self._run_note(), fresh=self.fresh)
        if self.args.model is not None:  # while kernels work, the interpreter is idle
            threading.Thread(target=archive.prepare, daemon=True).start()
        start = time.perf_counter()
        first = 0 if self.begun is None else int(self.begun["pass"])
        try:
            with contextlib.ExitStack() as files:
                if self.args.predictions is not None:
                    self.pupil.output = files.enter_context(open_output(self.args.predictions))
                for at in range(first, self.pass_count):
                    self._one_pass(at)
                    self.pupil.output = None
                    if self.stop.signal is not None or not self._worth_another(at):
                        break
                self._check_learned()
        except (ValueError, MemoryError, CommandError) as error:
            raise self._failed(error) from None
        self.seconds = time.perf_counter() - start

    def _check_learned(self) -> None:
        left_out = self.data.skipped + self.data.unlearnable
        if left_out and not self.pupil.rows and self.stop.signal is None:
            raise CommandError(
                f"{self.data.name}: no row can be learned: all {amount(left_out)} were skipped"
            )

    def whence(self) -> str:
        """What is gone on with, if anything, for a line."""
        if self.begun is not None:
            if self.begun.get("over"):
                return f" ({self.args.resume} has learned all of {self.data.name}: nothing is left to do)"
            in_pass = f" of pass {self.begun['pass'] + 1}" if self.pass_count > 1 else ""
            return f" (finishing {self.args.resume}, from row {amount(self.begun['row'] + 1)}{in_pass})"
        return "" if self.args.resume is None else f" (going on with {self.args.resume})"

    def _one_pass(self, at: int) -> None:
        if self.pass_count > 1:
            self.console.line(f"pass {at + 1} of {self.pass_count}")
        if at == len(self.scores):  # else taken up in the middle
            self.scores.append(new_score(self.learner))
            self.held.append(new_score(self.learner))
            self.pupil.row = 0
        score, self.pupil.held = self.scores[at], self.held[at]
        start, before = time.perf_counter(), self.pupil.rows
        bank = self.learner if isinstance(self.learner, NewtonBank) else None
        headed = False

        def show(report: Report) -> None:
            nonlocal headed
            if not headed:
                self.console.line(table.header(bank=bank is not None))
                headed = True
            leading = None if bank is None else bank.leading_expert
            speed = (self.pupil.rows - before) / (time.perf_counter() - start)
            self.console.line(table.row(report, speed, leading))

        full = at == 0 and not self.args.quiet  # of later passes the last line is enough
        # A line names the expert that leads then, not at the end of the batch.
        rows = self._rows(at, score if full and bank is not None else None)
        progressive(self.pupil, rows, on_report=show if full else None, score=score)
        if self.pupil.rows > before and (
            score.rows & (score.rows - 1) or not full
        ):  # a power of two has its line
            show(score.report(*self.pupil.last))
        self.pass_seconds.append(time.perf_counter() - start)
        if self.held[at].rows:
            self.console.line(scored("holdout", self.held[at]))
        if at == 0:
            self._hint()
            self.data.report_skipped(self.console)

    def _rows(self, at: int, steps: ProgressiveScore | None) -> Iterator[Batch | Learned]:
        """The rows of a pass, learned already or still to be; cut where `steps` is to be reported, if given."""
        if self._early is None:
            rest = self._unlearned(at, self.passes.batches())
        else:
            batches = self.passes.batches()
            for batch in batches:
                if (plain := self._early.plain(batch)) is None:
                    break
                yield from self._early.learn(plain, in_steps=steps is not None)
                del batch, plain  # before the next is asked for: memory for one batch less
            else:
                return
            self._early = None  # from here on NumPy is needed
            rest = self._unlearned(at, itertools.chain([batch], batches), self.pupil.row)
            del batch  # as above
        yield from rest if steps is None else cut_for_reports(rest, steps)

    def _unlearned(self, at: int, batches: Iterator[Batch], seen: int = 0) -> Iterator[Batch]:
        """The rows of a pass that are still to be learned, cut where a checkpoint is due; `seen` came before."""
        for batch in fit(batches, self.data, self.labels, seen):
            begin = max(0, self.pupil.row - seen)
            seen += len(batch)
            while begin < len(batch):
                room = len(batch) - begin
                end = begin + (
                    room if self.every is None else min(room, self.every - self.pupil.row % self.every)
                )
                yield batch[begin:end]  # when asked for the next, it is learned and scored
                begin = end
                if self._checkpoints is not None and self.every and self.pupil.row % self.every == 0:
                    self._checkpoint(at)

    def _checkpoint(self, at: int) -> None:
        self._remember()
        self._checkpoints.save(self.learner, self._run_note(at))

    def _remember(self) -> None:
        """Let the model know what the data has told about itself so far."""
        self.learner.notes.update(self.data.remembered())
        if self.data.names is not None and self.data.names.exact:
            self.learner.attached = self.data.names.state()

    def _run_note(self, at: int = 0) -> dict[str, Any]:
        """How far the run has come, for a checkpoint."""
        return {
            "files": self.data.identity(),
            "way": self.data.way(),
            "passes": self.pass_count,
            "holdout": self.holdout,
            "every": self.every,
            "pass": at,
            "row": self.pupil.row,
            "scores": [score.state for score in self.scores],
            "held": [score.state for score in self.held],
        }

    def _worth_another(self, at: int) -> bool:
        """Keep the best of the passes so far; False when the last was no better on the rows held out."""
        if self.holdout is None or self.pass_count == 1 or not self.held[at].rows:
            return True
        losses = [score.mean_loss for score in self.held]
        if self.best is not None and losses[at] >= losses[self.best[1]]:
            self.learner, kept = self.best
            self.console.line(f"pass {at + 1} is no better on the rows held out: pass {kept + 1} is kept")
            return False
        if at + 1 < self.pass_count:
            self.best = copy.deepcopy(self.learner), at
        return True

    def _hint(self) -> None:
        hint = None
        if self.positive is not None:
            hint = self.pupil.labels.no_positive(self.positive)
        elif (
            self.learner.loss.name == DEFAULT_LOSS
            and self.args.resume is None
            and not class_count(self.learner)
        ):
            hint = self.pupil.labels.two_classes()
        if hint is not None:
            self.console.line(hint)

    def save(self) -> None:
        """Write the model, unless nothing was learned: an older model at that place is worth more."""
        over = self.begun is not None and self.begun.get("over", False)
        if self.args.model is not None and (self.pupil.rows or over):
            if self._checkpoints is not None and self.stop.signal is not None:
                self._checkpoint(max(0, len(self.scores) - 1))
            else:
                self._remember()
                self.learner.save(self.args.model)
            self.saved = True
        if self.args.readable is not None and self.pupil.rows:
            from sketchnewton.cli.train.readable import write_readable  # only where asked for

            write_readable(self.args.readable, self.learner, self.labels, self.data.names)

    def test(self) -> None:
        """Score the test file without learning from it."""
        if self.args.test is None or self.stop.signal is not None:
            return
        score = new_score(self.learner)
        test = self.data.other(self.args.test)
        try:
            for batch in labelled(test, self.labels, self.console, self.stop):
                score.update(self.learner.predict(batch), batch.labels, batch.weights)
        except (ValueError, CommandError) as error:
            raise CommandError(
                f"{error} ({self.args.model} was written)" if self.saved else str(error)
            ) from None
        test.report_skipped(self.console)
        if self.stop.signal is None:
            self.tested = score

    def close(self) -> None:
        """The run is over, and with it the need to tell it from one that is not."""
        if self.saved and self.stop.signal is None:
            from sketchnewton.cli.train.checkpoint import forget

            forget(self.args.model)

    def _failed(self, error: Exception) -> CommandError:
        """The error, and what it means for the work done."""
        notes = [f"learned {amount(self.pupil.rows)} of the rows before it"] if self.pupil.rows else []
        if self._checkpoints is not None and self._checkpoints.count:
            notes.append(f"{self.args.model} holds the last checkpoint")
        elif self.args.model is not None:
            notes.append(f"{self.args.model} was not written")
        code = error.code if isinstance(error, CommandError) else 1
        return CommandError(f"{error} ({'; '.join(notes)})" if notes else str(error), code)
