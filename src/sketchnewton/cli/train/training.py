"""A run of `skn train`: learn from a stream, score every prediction first, save the model."""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from collections.abc import Hashable, Iterator

from sketchnewton.cli.io.console import Console, amount, printable
from sketchnewton.cli.io.data_source import DataSource
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.files import (
    check_distinct,
    check_model_place,
    check_readable,
    check_writable,
)
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.options.data import COLUMN_OPTIONS, FEATURE_OPTIONS
from sketchnewton.cli.train import table
from sketchnewton.cli.train.learner import describe, new_model
from sketchnewton.cli.train.observed_learner import ObservedLearner
from sketchnewton.cli.train.passes import Passes, cache_place
from sketchnewton.cli.train.report import dry_run, report, scored
from sketchnewton.cli.train.saving import Saving
from sketchnewton.core import archive
from sketchnewton.core.batch import Batch, IndexTooLarge
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.evaluation import ProgressiveScore, Report, progressive
from sketchnewton.features.columns import described_kinds
from sketchnewton.learners import Learner

if TYPE_CHECKING:
    from sketchnewton.cli.train.checkpoint import Run
    from sketchnewton.cli.train.metric import ProgressiveMetric
    from sketchnewton.cli.train.prediction_file import PredictionFile
    from sketchnewton.model import Model

__all__ = ["Training", "run"]


def run(args: argparse.Namespace) -> int:
    """Train as `args` say; the exit code is 0, or 130 or 143 when a signal ended the run."""
    _check(args)
    training = Training(args)
    if args.dry_run:
        dry_run(training)
        return 0
    with training.stop:
        if args.shards is None:
            training.learn()
        else:
            from sketchnewton.cli.train.shards import learn_in_shards

            learn_in_shards(training)
        training.saving.save()
        training.test()
        report(training)
        training.saving.close()
    return training.stop.exit_code


def _check(args: argparse.Namespace) -> None:
    """Refuse at once what would fail only after the work is done."""
    if args.shards is not None or args.rounds is not None:
        from sketchnewton.cli.train import shards

        shards.check(args)
    if "-" in args.data and args.test == "-":
        raise usage_error("DATA and --test cannot both be stdin")
    _check_predictions(args)
    if args.checkpoint_every is not None and args.model is None:
        raise usage_error("--checkpoint-every needs --model, where the checkpoints are saved")
    if args.test is not None:
        check_readable(args.test)
    outputs = {"--predictions": args.predictions, "--readable": args.readable, "--cache": args.cache}
    inputs = {f"DATA {path}" if len(args.data) > 1 else "DATA": path for path in args.data}
    runs = {}
    if args.model is not None:
        runs["the mark of --model"] = f"{args.model}.run"
    if args.predictions not in (None, "-"):
        part = runs["the unfinished --predictions"] = f"{os.path.realpath(args.predictions)}.run"
        if args.checkpoint_every and os.path.exists(part) and not os.path.exists(f"{args.model}.run"):
            raise CommandError(
                f"{part}: --predictions is written there until a run is over: move that file away"
            )
    check_distinct({"--model": args.model, **outputs, **runs}, {**inputs, "--test": args.test})
    if args.resume is not None:
        check_distinct({**outputs, **runs}, {"--resume": args.resume})
    if args.model is not None:
        check_model_place(args.model)
    for path in outputs.values():
        if path is not None:
            check_writable(path)


def _check_predictions(args: argparse.Namespace) -> None:
    if args.json and args.predictions == "-":
        raise usage_error("--json and --predictions - would both write to stdout")


def _begun(model: str) -> bool:
    """Is there anything to continue: the model, or the mark of a run that saved none yet?"""
    return os.path.lexists(model) or os.path.lexists(f"{model}.run")


class Training:
    """One run of the command: what was asked for, and what came of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.console = Console(args.quiet)
        self.stop = GracefulStop()
        self.interrupted: Run | None = None  # the run that is continued
        if args.resume is not None and args.resume == args.model and not _begun(args.model):
            self.console.line(f"{args.resume} does not exist yet: starting a new model")
            args.resume = None
        self.fresh = args.resume is None
        if args.resume is None:
            self.model = new_model(args, self._class_names())
        else:
            from sketchnewton.cli.train.resume import resume

            self.model, self.interrupted, self.fresh = resume(args)
        self.data = DataSource(args.data, args, self.model, readable=args.readable is not None)
        self.data.check()
        self._check_features()
        self.data.remember(self.model)
        self._set_up_run()
        self.model.learner.threads = max(1, args.threads - 1)
        form = PredictionFormat(self.model, args)
        self.predictions = None if args.predictions is None else self._prediction_file(form.scale)
        self.observed = ObservedLearner(self.model, self.console, form, self.holdout)
        self.metric: ProgressiveMetric | None = None
        if args.metric is not None:
            from sketchnewton.cli.train.metric import ProgressiveMetric  # which takes NumPy

            self.metric = self.observed.metric = ProgressiveMetric(self.model, args.metric)
        read = 1 if self.shuffle else self.pass_count
        self.passes = Passes(self.data, cache_place(args, self.data, read), self.console, self.stop)
        self.seconds = 0.0
        self.scores: list[ProgressiveScore] = []  # of each pass; later ones have seen their rows before
        self.holdout_scores: list[ProgressiveScore] = []  # of each pass, on the rows held out
        self.pass_seconds: list[float] = []
        self._shuffled: list[Batch] | None = None  # all rows, for all passes
        self.best: tuple[Learner, int] | None = None  # the learner after the best pass
        self.saving = Saving(self)
        self.tested: ProgressiveScore | None = None
        if self.interrupted is not None:
            self._continue(self.interrupted)

    def _class_names(self) -> list[Hashable] | None:
        """Those of the classes that labels are; None, at once, for data whose labels can only be numbers."""
        args = self.args
        data = DataSource(args.data, args)
        if args.classes is None and not args.regression and data.without_columns:
            if isinstance(args.positive, str):
                raise usage_error(
                    f"--positive {args.positive} does not apply to {data.name}, whose labels are numbers"
                )
            return None
        from sketchnewton.cli.train.labels import class_names, lone_text

        names = class_names(args)
        if args.classes is None and names is not None and (text := lone_text(names)) is not None:
            self.console.line(
                f"skn: warning: {data.name}: labels are numbers, but one is the text '{text}', which makes "
                f"{len(names)} classes of them: correct it, or confirm them with --classes all"
            )
        return names

    @property
    def learner(self) -> Learner:
        """The model's learner."""
        return self.model.learner

    def _check_features(self) -> None:
        """Refuse options on features that the rows learned so far were not read with."""
        model = self.model
        if model.learner.rows_seen and not self.data.reads_like(model):
            raise usage_error(
                f"the options on features do not agree with {self.args.resume}, which was trained with "
                f"{_features_typed(model) or 'none'}: leave them out to continue, or leave --resume out to "
                "start over"
            )

    def _set_up_run(self) -> None:
        """Passes, holdout and checkpoints: as asked for, or as the interrupted run has them."""
        args, run = self.args, self.interrupted
        if run is not None:
            from sketchnewton.cli.train.checkpoint import agree

            given = {"passes": args.passes, "holdout": args.holdout, "shuffle": args.shuffle or None}
            agree(args.resume, run, {**given, "way": self.data.way()})
        run = run or {}
        self.pass_count: int = args.passes or run.get("passes", 1)
        self.holdout: int | None = args.holdout or run.get("holdout")
        self.shuffle: bool = args.shuffle or run.get("shuffle") or False
        if self.shuffle and args.predictions is not None:
            raise usage_error(
                "--predictions cannot be combined with --shuffle: lines would be in another order"
            )
        self.every: int | None = args.checkpoint_every or (run.get("every") if args.model else None)
        again = self.pass_count > 1 and not self.shuffle  # rows that are shuffled stay in memory
        if again and args.cache is None and self.data.identity() is None:
            raise usage_error(
                f"--passes {self.pass_count} needs a file: {self.data.name} can be read only once "
                "(or --cache FILE)"
            )

    def _prediction_file(self, scale: str | None) -> PredictionFile | None:
        """Where predictions go; None if the interrupted run has written all of them."""
        from sketchnewton.cli.train.prediction_file import PredictionFile

        file = PredictionFile(self.args.predictions, scale, kept=self.every is not None)
        run = self.interrupted
        if run is None or not run["row"] + run["pass"]:
            return file
        noted = run.get("predictions")
        over = run.get("over") and noted is not None
        if over and os.path.exists(self.args.predictions):
            return None
        if over or not file.continues(noted):
            raise usage_error(
                f"--predictions {self.args.predictions} lacks those of the {amount(run['row'])} rows that "
                f"{self.args.resume} has learned already: give the file that the run began, leave the option out, "
                "or leave --resume out to start over"
            )
        return file

    def _continue(self, run: Run) -> None:
        """Set the scores and counters of an interrupted run."""
        for states, scores in ((run["scores"], self.scores), (run["held"], self.holdout_scores)):
            for state in states:
                score = self.model.new_score()
                try:
                    score.state = state
                except (KeyError, TypeError, ValueError) as error:
                    raise CommandError(
                        f"{self.args.resume}: its note on the run is damaged: {error}"
                    ) from None
                scores.append(score)
        self.observed.rows = sum(score.rows for score in self.scores)
        self.observed.row = run["row"]
        if self.model.best is not None:
            kept, self.model.best = self.model.best, None
            self.best = kept, max(0, min(run["best"], len(self.holdout_scores) - 1))

    @property
    def score(self) -> ProgressiveScore:
        """The score of the first pass; of nothing, if a signal came before it."""
        return self.scores[0] if self.scores else self.model.new_score()

    @property
    def held_out(self) -> ProgressiveScore | None:
        """The score of the pass that is kept, on the rows held out."""
        at = len(self.holdout_scores) - 1
        if self.best is not None and self.learner is self.best[0]:
            at = self.best[1]
        return self.holdout_scores[at] if at >= 0 and self.holdout_scores[at].rows else None

    def learn(self) -> None:
        """All passes over the data, or what a signal left of them."""
        self.console.line(describe(self.model) + self.whence())
        self.saving.begin()
        if self.args.model is not None:  # while kernels work, the interpreter is idle
            threading.Thread(target=archive.prepare, daemon=True).start()
        start = time.perf_counter()
        first = 0 if self.interrupted is None else int(self.interrupted["pass"])
        try:
            with contextlib.ExitStack() as files:
                if self.predictions is not None:
                    self.observed.output = files.enter_context(self.predictions.opened())
                for at in range(first, self.pass_count):
                    if at > 0:  # only the first pass has not seen its rows before
                        self.observed.output, self.observed.seen = None, True
                    self._one_pass(at)
                    if self.stop.signal is not None or not self._worth_another(at):
                        break
                self._check_learned()
        except IndexTooLarge as error:
            from sketchnewton.cli.io.places import located

            raise self._failed(located(error, self.data.paths)) from None
        except (ValueError, MemoryError, CommandError) as error:
            raise self._failed(error) from None
        self.seconds = time.perf_counter() - start

    def _check_learned(self) -> None:
        left_out = self.data.skipped + self.data.unlearnable
        if left_out and not self.observed.rows and self.stop.signal is None:
            raise CommandError(
                f"{self.data.name}: no row can be learned: all {amount(left_out)} were skipped"
            )

    def whence(self) -> str:
        """What is continued, if anything, for a line."""
        if self.interrupted is not None:
            if self.interrupted.get("over"):
                return f" ({self.args.resume} already learned all of {self.data.name}: nothing left to do)"
            in_pass = f" of pass {self.interrupted['pass'] + 1}" if self.pass_count > 1 else ""
            return f" (finishing {self.args.resume}, from row {amount(self.interrupted['row'] + 1)}{in_pass})"
        return "" if self.args.resume is None else f" (continuing {self.args.resume})"

    def _one_pass(self, at: int) -> None:
        if self.pass_count > 1:
            self.console.line(f"pass {at + 1} of {self.pass_count}")
        if at == len(self.scores):  # else continued in the middle
            self.scores.append(self.model.new_score())
            self.holdout_scores.append(self.model.new_score())
            self.observed.row = 0
        if self.metric is not None:
            self.metric.begin()
        score, self.observed.held_out = self.scores[at], self.holdout_scores[at]
        start, before = time.perf_counter(), self.observed.rows
        headed = False

        def show(report: Report) -> None:
            nonlocal headed
            leading = self.learner.leading_expert
            if not headed:
                self.console.line(table.header(bank=leading is not None, metric=self.args.metric))
                headed = True
            speed = (self.observed.rows - before) / (time.perf_counter() - start)
            metric = None if self.metric is None else self.metric.shown
            self.console.line(table.row(report, self.model.target, speed, leading, metric))

        full = at == 0 and not self.args.quiet  # of later passes the last line is enough
        progressive(self.observed, self._rows(at), on_report=show if full else None, score=score)
        if self.observed.rows > before and (
            score.rows & (score.rows - 1) or not full
        ):  # a power of two has its line
            show(score.report(*self.observed.last))
        self.pass_seconds.append(time.perf_counter() - start)
        if self.holdout_scores[at].rows:
            self.console.line(scored("holdout", self.holdout_scores[at]))
        if at == 0:
            self.hint("--shuffle learns rows in random order")
            self.data.report_skipped(self.console)

    def _rows(self, at: int) -> Iterator[Batch]:
        """The rows of a pass that are still to be learned, cut where a checkpoint is due."""
        seen = 0
        for batch in self._in_order():
            if seen == 0 and at == 0 and self.data.kinds:
                labels = "; labels as numbers" if self.model.target.kind == "numbers" else ""
                self.console.line(f"columns: {printable(described_kinds(self.data.kinds))}{labels}")
            begin = max(0, self.observed.row - seen)
            seen += len(batch)
            while begin < len(batch):
                end = len(batch)
                if self.every is not None:
                    end = min(end, begin + self.every - self.observed.row % self.every)
                yield batch[begin:end]  # when asked for the next, it is learned and scored
                begin = end
                self.saving.checkpoint(at)
            del batch  # before the next is asked for: memory for one batch less

    def _in_order(self) -> Iterator[Batch]:
        """The batches of a pass, in the order in which they are learned."""
        if not self.shuffle:
            yield from self.data.fitted(self.passes.batches(), self.model.target)
            return
        if self._shuffled is None:
            from sketchnewton.streams.shuffle import shuffled

            self.console.line("reading all rows, to learn them in random order")
            self._shuffled = shuffled(self.data.fitted(self.passes.batches(), self.model.target))
        for batch in self._shuffled:
            if self.stop.signal is not None:
                return
            yield batch

    def _worth_another(self, at: int) -> bool:
        """Keep the best of the passes so far; False when the last was no better on the rows held out."""
        if self.holdout is None or self.pass_count == 1 or not self.holdout_scores[at].rows:
            return True
        losses = [score.mean_loss for score in self.holdout_scores]
        if self.best is not None and losses[at] >= losses[self.best[1]]:
            self.model.learner, kept = self.best
            self.console.line(f"pass {at + 1} is no better on the rows held out: pass {kept + 1} is kept")
            return False
        if at + 1 < self.pass_count:
            from copy import deepcopy

            self.best = deepcopy(self.learner), at
        return True

    def hint(self, how_to_shuffle: str) -> None:
        """Say what the labels of all rows suggest."""
        numbers = self.args.regression or self.model.target.kind == "numbers"
        if not self.shuffle and (runs := self.observed.labels.runs(numbers=numbers)) is not None:
            self.console.line(f"skn: warning: {runs}; {how_to_shuffle}")
        if (
            self.fresh and not self.args.regression
        ) or self.model.target.kind == "signs":  # what numbers mean is settled in a trained model
            hint = self.model.target.hint(self.observed.labels)
            if hint is not None:
                self.console.line(hint)

    def test(self) -> None:
        """Score the test file without learning from it."""
        if self.args.test is None or self.stop.signal is not None:
            return
        score = self.model.new_score()
        test = self.data.other(self.args.test)
        try:
            for batch in test.fitted(test.read(self.console, self.stop), self.model.target):
                score.update(self.learner.predict(batch.rows), batch.labels, batch.weights)
        except (ValueError, CommandError) as error:
            raise CommandError(
                f"{error} ({self.args.model} was written)" if self.saving.done else str(error)
            ) from None
        test.report_skipped(self.console)
        if self.stop.signal is None:
            self.tested = score

    def _failed(self, error: Exception) -> CommandError:
        """The error, and what it means for the work done."""
        notes = [f"learned {amount(self.observed.rows)} of the rows before it"] if self.observed.rows else []
        if self.saving.checkpoints is not None and self.saving.checkpoints.count:
            notes.append(f"{self.args.model} holds the last checkpoint")
        elif self.args.model is not None:
            notes.append(f"{self.args.model} was not written")
        code = error.code if isinstance(error, CommandError) else 1
        return CommandError(f"{error} ({'; '.join(notes)})" if notes else str(error), code)


def _features_typed(model: Model) -> str:
    """The options that say which features the model has, as they are typed."""
    import shlex  # only for a mistake

    held = {**model.features.to_dict(), **model.columns.to_dict()}
    words = [] if model.names is None else ["--exact-names"]
    for name in (*FEATURE_OPTIONS, *COLUMN_OPTIONS):
        value, option = held.get(name), f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name in ("interactions", "ngram"):  # one each
            words += [word for item in value or () for word in (option, item)]
        elif value is not None and name not in ("label", "weight", "tag"):
            words += [option, ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join(words)
