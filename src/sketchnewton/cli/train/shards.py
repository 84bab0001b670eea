"""`skn train --shards N`: N processes learn parts of the data, and are merged, round after round."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait

from sketchnewton.cli.io.console import amount, counted
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.train.learner import describe
from sketchnewton.cli.train.shard import Rows, learn_rows, work
from sketchnewton.core import archive
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.types import Header
from sketchnewton.model import LabelWatch, Model, shards
from sketchnewton.streams.parts import Part, cut

if TYPE_CHECKING:
    from sketchnewton.cli.train.training import Training
    from sketchnewton.evaluation import ProgressiveScore

__all__ = ["check", "learn_in_shards"]

ROUNDS = 16  # one, or sixteen and more: docs/merging.md
_NOT_WITH = ("passes", "holdout", "checkpoint_every", "predictions", "readable", "cache", "shuffle")
_POLL = 0.2  # seconds between looks at signals


def check(args: argparse.Namespace) -> None:
    """Refuse at once what shards cannot do."""
    if args.shards is None:
        if args.rounds is not None:
            raise usage_error("--rounds needs --shards: it sets how often shards are merged")
        return
    for name in _NOT_WITH:
        if getattr(args, name) not in (None, False):
            raise usage_error(
                f"--{name.replace('_', '-')} cannot be combined with --shards: remove one of them"
            )
    if "-" in args.data:
        raise usage_error("--shards needs files: standard input cannot be read in parts")


def learn_in_shards(training: Training) -> None:
    """What `Training.learn` does, in several processes; a signal ends it without a model."""
    args, model, data = training.args, training.model, training.data
    rounds = args.rounds or (ROUNDS if model.learner.merges_from_base else 1)
    if not model.learner.merges_from_base and (rounds > 1 or model.learner.rows_seen):
        raise usage_error(
            f"{model.learner.base_name} cannot be merged relative to a base: use --shards with "
            "--rounds 1 and a new model"
        )
    plan = _plan(cut(data.paths, args.shards * rounds, data.format), args.shards, rounds)
    if plan is None:
        raise usage_error(
            f"{data.name} cannot be divided among {args.shards} shards: give as many files, or one of svmlight or "
            "VW text that is not compressed"
        )
    console = training.console
    console.line(
        describe(model)
        + training.whence()
        + f" ({counted(args.shards, 'shard')}, {counted(len(plan), 'round')})"
    )
    start = time.perf_counter()
    score = model.new_score()
    watch = LabelWatch()
    first = shards.warm_up_rows(model.learner, args.shards, len(plan))
    with _Workers(args, plan, first) as workers:
        if first:
            _warm_up(training, plan[0], first, score, watch)
        summed = score.state
        for turn in range(len(plan)):
            found = workers.learn(model, training)
            model = shards.merged_models([part["model"] for part in found], model)
            for part in found:
                summed = _added(summed, part["score"])
                data.skipped += part["skipped"]
                data.first_error = data.first_error or part["first_error"]
                data.misfits += part["misfits"]
                data.first_misfit = data.first_misfit or part["first_misfit"]
            console.progress((turn + 1) / len(plan), f"round {turn + 1} of {len(plan)}")
    console.clear()
    score.state = summed
    training.model = model
    data.names, data.kinds = model.names, dict(model.columns.kinds)
    training.scores, training.observed.rows = [score], score.rows
    if not score.rows:
        raise CommandError(f"{data.name}: no row can be learned: all {amount(data.skipped)} were skipped")
    training.seconds = time.perf_counter() - start
    training.pass_seconds = [training.seconds]
    training.observed.labels = LabelWatch.joined([watch, *(part["labels"] for part in found)])
    training.hint("shuf mixes the lines of a file")
    data.report_skipped(console)


def _plan(parts: list[Part], count: int, rounds: int) -> list[list[list[Part]]] | None:
    """The parts of each shard in each round: consecutive, of about equal size; None if there are too few."""
    rounds = min(rounds, len(parts) // count)
    if rounds == 0:
        return None
    total, cells = sum(part.size for part in parts), rounds * count
    plan: list[list[Part]] = [[] for _ in range(cells)]
    done, cell = 0, 0
    for at, part in enumerate(parts):
        left = len(parts) - at
        # A cell is full when it has its share, and when the rest of the parts is needed for those behind it.
        while plan[cell] and (done >= total * (cell + 1) / cells or left <= cells - cell - 1):
            cell += 1
        plan[cell].append(part)
        done += part.size
    return [plan[at : at + count] for at in range(0, cells, count)]


def _warm_up(
    training: Training,
    cells: Sequence[Sequence[Part]],
    first: int,
    score: ProgressiveScore,
    watch: LabelWatch,
) -> None:
    """Learn the first rows of each part of the first round; shards, which leave them out, begin with that.

    What cannot be read is counted by the shards, which read these rows again.
    """
    args, data = training.args, training.data
    try:
        for number, parts in enumerate(cells):
            rows = Rows(args, training.model, parts, end=first)
            unlearnable = learn_rows(args, training.model, rows, number, score, watch)
            data.skipped += len(unlearnable)
            data.first_error = data.first_error or next(iter(unlearnable), None)
    except (ValueError, OSError, MemoryError, CommandError) as error:
        raise CommandError(f"{error} (nothing was saved)", getattr(error, "code", 1)) from None


def _added(mine: Header, theirs: Header) -> Header:
    """Two states of scores in one."""
    return {
        name: (value and theirs[name]) if isinstance(value, bool) else value + theirs[name]
        for name, value in mine.items()
    }


class _Workers:
    """Processes that wait for a model, learn a round of the plan, and send back what they have learned."""

    def __init__(
        self, args: argparse.Namespace, plan: Sequence[Sequence[Sequence[Part]]], warmed_up: int
    ) -> None:
        # A fork has all modules at once, where a new process would import them; threads do not survive it.
        forks = sys.platform == "linux" and threading.active_count() == 1
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        archive.prepare()
        plain = argparse.Namespace(**{**vars(args), "ahead": None, "quiet": True})
        self._pairs: list[tuple[Any, Connection]] = []
        for number, rounds in enumerate(zip(*plan, strict=True)):
            mine, theirs = context.Pipe()
            ours = [mine, *(pipe for _, pipe in self._pairs)] if forks else []
            process = context.Process(
                target=work, args=(plain, number, rounds, warmed_up, theirs, ours), daemon=True
            )
            process.start()
            theirs.close()
            self._pairs.append((process, mine))

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._pairs:
            pipe.close()
            process.terminate()
            process.join()

    def learn(self, model: Model, training: Training) -> list[Header]:
        """One round: what each shard gives, in the order of shards."""
        state = model.to_bytes()
        for _, pipe in self._pairs:
            pipe.send_bytes(state)
        # Merging takes NumPy, which shards do not need: it is imported while they learn.
        import_module("sketchnewton.learners.newton.bank_merge")
        answers: dict[int, Header] = {}
        while len(answers) < len(self._pairs):
            ready = wait([pipe for at, (_, pipe) in enumerate(self._pairs) if at not in answers], _POLL)
            if training.stop.signal is not None:
                raise CommandError(
                    f"stopped: {training.args.model or 'no model'} was not written", training.stop.exit_code
                )
            for at, (process, pipe) in enumerate(self._pairs):
                if pipe in ready:
                    try:
                        answers[at] = pipe.recv()
                    except EOFError:
                        process.join()
                        raise CommandError(
                            f"the process of shard {at + 1} ended with code {process.exitcode}: nothing was saved"
                        ) from None
                    if "error" in answers[at]:
                        raise CommandError(f"{answers[at]['error']} (nothing was saved)", answers[at]["code"])
                    answers[at]["model"] = Model.from_bytes(answers[at]["model"])  # others may still learn
        return [answers[at] for at in range(len(self._pairs))]
