"""Play a learner against matrices and keep the score."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sketchnewton.core.types import Floats, Integers
from sketchnewton.eigen.matrices import Matrix
from sketchnewton.eigen.oracle import Operator, largest_eigenvalues
from sketchnewton.eigen.running_sum import RunningSum

__all__ = ["Game", "Player", "play"]

_BAR_AFTER = 2.0  # seconds
_BAR_EVERY = 0.2
_BAR_CELLS = 30


class Player(Protocol):
    """What `play` needs of a learner."""

    n: int
    components: int

    def predict(self) -> Any:
        """A unit vector, orthonormal columns, or a pair of unit vectors."""

    def observe(self, A: object) -> None:
        """Learn this round's matrix."""

    def checked(self, A: object) -> Matrix:
        """The matrix as the learner understands it."""


@dataclass(frozen=True)
class Game:
    """Rewards, regret and time of a game."""

    rewards: Floats
    """xᵀAx (uᵀAv) of every round."""
    checkpoints: Integers
    """The rounds after which the regret was measured; the last is the last round."""
    best: Floats
    """At each checkpoint, λ_max (σ_max) of the sum so far: the reward of the best fixed choice."""
    seconds: float
    """Time spent in the learner's `predict` and `observe`."""

    @property
    def regret_curve(self) -> Floats:
        """The regret at each checkpoint."""
        return self.best - np.cumsum(self.rewards)[self.checkpoints - 1]

    @property
    def regret(self) -> float:
        """The regret at the end; 0 for a game without rounds."""
        return float(self.regret_curve[-1]) if len(self.best) else 0.0


def play(
    learner: Player, matrices: Iterable[object], *, checkpoints: int = 50, progress: bool | None = None
) -> Game:
    """Let `learner` predict and observe every matrix in turn.

    The regret is measured at about `checkpoints` rounds, spread evenly if `matrices` has a length and doubling
    otherwise, and at the last; the eigenvalue that it needs is not counted as the learner's time. `progress`
    shows a bar on stderr; None does so on a terminal when a game is long. A learner with k > 1 components is
    measured against the sum of the k largest eigenvalues.

    >>> from sketchnewton.eigen import FollowTheLeader
    >>> e = np.eye(2)
    >>> game = play(FollowTheLeader(2), [0.7 * e[0]] + [e[1], e[0]] * 50)   # vectors stand for xxᵀ
    >>> len(game.rewards), bool(game.regret > 45)
    (101, True)
    """
    total: int | None = len(matrices) if isinstance(matrices, Sized) else None
    bar = _Bar(total, progress)
    seen = RunningSum(learner.n)
    rewards: list[float] = []
    measured: dict[int, float] = {}
    due = 1 if total is None else max(1, total // max(checkpoints, 1))
    step = due
    seconds = 0.0
    for round_number, A in enumerate(matrices, 1):
        start = time.perf_counter()
        prediction = learner.predict()
        middle = time.perf_counter()
        matrix = learner.checked(A)
        rewards.append(matrix.reward(_as_vector(prediction)))
        seen.add(matrix)
        again = time.perf_counter()
        learner.observe(matrix)
        end = time.perf_counter()
        seconds += (middle - start) + (end - again)
        if round_number == due:
            measured[round_number] = _best(seen, learner.components)
            due += step if total is not None else max(1, due // max(checkpoints // 20, 1))
        bar.show(round_number, end)
    bar.clear()
    if rewards and len(rewards) not in measured:
        measured[len(rewards)] = _best(seen, learner.components)
    return Game(
        rewards=np.array(rewards),
        checkpoints=np.array(list(measured), np.int64),
        best=np.array(list(measured.values())),
        seconds=seconds,
    )


def _as_vector(prediction: object) -> Floats:
    """For a pair, the x = (u, v)/√2 with xᵀÃx = uᵀAv."""
    if isinstance(prediction, tuple):
        return np.asarray(np.concatenate(prediction) / np.sqrt(2.0))
    return np.asarray(prediction)


def _best(seen: RunningSum, components: int) -> float:
    return largest_eigenvalues(Operator(seen.n, seen.times, seen.dense), components)


class _Bar:
    """A progress bar that appears once a game turns out to be long."""

    def __init__(self, total: int | None, wanted: bool | None) -> None:
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._on = terminal if wanted is None else wanted
        self._total = total
        self._next = time.perf_counter() + (_BAR_AFTER if wanted is None else 0.0)
        self._drawn = False

    def show(self, rounds: int, now: float) -> None:
        if not self._on or now < self._next:
            return
        self._next = now + _BAR_EVERY
        text = f"{rounds:,} rounds"
        if self._total:
            full = _BAR_CELLS * rounds // self._total
            text = f"{'━' * full}{'╌' * (_BAR_CELLS - full)} {rounds / self._total:4.0%}  {text}"
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
