"""A process of `skn train --shards`: it learns its part of each round from the model it is sent."""

from __future__ import annotations

import argparse
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from sketchnewton.cli.io.console import Console
from sketchnewton.cli.io.data_source import DataSource
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.io.predictions import PredictionFormat
from sketchnewton.cli.train.observed_learner import ObservedLearner
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Header
from sketchnewton.evaluation import ProgressiveScore, progressive
from sketchnewton.model import LabelWatch, Model
from sketchnewton.model.fitting import fit
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.parts import Part, read_parts

__all__ = ["Rows", "learn_rows", "work"]

_AHEAD = 4  # batches of some megabytes: about what is read while models of a thousand features are merged


def work(
    args: argparse.Namespace,
    number: int,
    rounds: Sequence[Sequence[Part]],
    warmed_up: int,
    pipe: Connection,
    parents: list[Connection],
) -> None:
    """The life of a shard's process, with a model for each of its `rounds`. The parent hears signals, and ends it.

    The first `warmed_up` rows of the first round the parent has learned itself.

    The parent's ends of pipes, which a fork has too, are closed: else none would hear that the parent is gone.
    """
    for heard in (signal.SIGINT, signal.SIGHUP):
        signal.signal(heard, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in parents:
        end.close()
    shard = _Shard(args, number, rounds, warmed_up)
    while True:
        while not pipe.poll() and shard.read_ahead():
            pass
        try:
            state = pipe.recv_bytes()
        except EOFError:
            return
        try:
            pipe.send(shard.learn(Model.from_bytes(state)))
        except (ValueError, OSError, MemoryError, CommandError) as error:
            pipe.send({"error": str(error), "code": getattr(error, "code", 1)})


class _Shard:
    """Learns the rows of a round, and begins to read those of the next while models are merged."""

    def __init__(
        self, args: argparse.Namespace, number: int, rounds: Sequence[Sequence[Part]], warmed_up: int
    ) -> None:
        self._args, self._number, self._warmed_up = args, number, warmed_up
        self._rounds = deque(rounds)  # that are yet to be read
        self._ahead: Rows | None = None
        self._labels = LabelWatch()  # one for all rounds: it looks at the first labels most closely

    def read_ahead(self) -> bool:
        """Read one more batch of the next round; False if there is none, or enough of them."""
        return self._ahead is not None and self._ahead.read_ahead()

    def learn(self, model: Model) -> Header:
        """What comes of a round."""
        args, number = self._args, self._number
        rows = self._ahead or Rows(args, model, self._rounds.popleft(), begin=self._warmed_up)
        self._warmed_up = 0
        policy, score = rows.policy, model.new_score()
        unlearnable = learn_rows(args, model, rows, number, score, self._labels)
        # How lines are read does not depend on what is learned, unless names are numbered as they appear.
        lines = model.names is None and all(part.end is not None for part in next(iter(self._rounds), ()))
        self._ahead = Rows(args, model, self._rounds.popleft()) if self._rounds and lines else None
        return {
            "model": model.to_bytes(),
            "score": score.state,
            "labels": self._labels,
            "skipped": policy.skipped + len(unlearnable),
            "first_error": policy.first or next(iter(unlearnable), None),
            "misfits": policy.misfits,
            "first_misfit": policy.first_misfit,
        }


def learn_rows(
    args: argparse.Namespace,
    model: Model,
    rows: Rows,
    number: int,
    score: ProgressiveScore,
    labels: LabelWatch,
) -> list[str]:
    """Learn what the shard of this `number` reads in a round; why rows were left out that no learner takes."""
    unlearnable: list[str] = []

    def refuse(row: int, why: str, _: int | None) -> None:
        place = f"row {rows.begin + row} of what shard {number + 1} reads in this round"
        message = f"{rows.data.name}: {place} {why}"
        if args.on_error == "stop":
            raise CommandError(message)
        unlearnable.append(message)

    observed = ObservedLearner(model, Console(quiet=True), PredictionFormat(model, args))
    observed.labels = labels
    progressive(observed, fit(rows, model.target.as_read, refuse), score=score)
    rows.data.kinds = rows.kinds
    rows.data.remember(model)
    return unlearnable


class Rows:
    """Rows `begin` to `end` of a round in batches, the first of which may be read before they are asked for."""

    def __init__(
        self,
        args: argparse.Namespace,
        model: Model,
        parts: Sequence[Part],
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        self.begin = begin
        self.data = data = DataSource([part.path for part in parts], args, model)
        self.policy = ErrorPolicy(args.on_error)
        self.kinds: dict[str, str] = {}
        read = read_parts(
            parts,
            self.policy,
            data.format,
            features=data.features,
            columns=data.columns,
            names=data.names,
            kinds=self.kinds,
            label_codes=data.label_codes,
            delimiter=data.delimiter,
            header=data.header,
        )
        self._unread = _between(read, begin, end)
        self._read: deque[Batch] = deque()
        self._error: Exception | None = None

    def read_ahead(self) -> bool:
        """Read one more batch; False if there is none, or enough of them."""
        if len(self._read) == _AHEAD:
            return False
        try:
            self._read.append(next(self._unread))
        except StopIteration:
            return False
        except (ValueError, OSError, MemoryError) as error:  # to be raised behind the rows before it
            self._error = error
            return False
        return True

    def __iter__(self) -> Iterator[Batch]:
        while self._read:
            yield self._read.popleft()
        if self._error is not None:
            raise self._error
        yield from self._unread


def _between(batches: Iterator[Batch], begin: int, end: int | None) -> Iterator[Batch]:
    """Some rows of these batches; what is behind them is not read."""
    at = 0
    for batch in batches:
        first = max(0, begin - at)
        last = len(batch) if end is None else min(end - at, len(batch))
        at += len(batch)
        if first < last:
            yield batch if last - first == len(batch) else batch[first:last]
        del batch  # before the next is asked for: memory for one batch less
        if end is not None and at >= end:
            return
