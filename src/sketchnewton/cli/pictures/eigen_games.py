"""The games of `skn eigen`: which methods play, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sketchnewton.core.types import Floats
from sketchnewton.eigen import (
    EigenLearner,
    EpochPowerMethod,
    FollowPerturbedLeader,
    FollowTheLeader,
    Game,
    MatrixMultiplicativeWeights,
    OjaLearner,
    OnlineFrankWolfe,
    play,
)
from sketchnewton.eigen.sequences import SEQUENCES

__all__ = ["METHODS", "Growth", "Method", "Score", "compare", "exponent", "grow", "growths_of_table_1"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Method:
    """A way to play, and what the paper's Table 1 says about it ("-" where it says nothing)."""

    name: str
    make: Callable[[int, int, int], EigenLearner]
    """The learner for dimension n, horizon T and a seed."""
    regret: str = "-"
    cost: str = "-"

    def bound(self, n: int, rounds: int) -> float | None:
        """What theory promises for the expected regret, with constants; None if nothing."""
        promise = getattr(self.make(n, rounds, 0), "regret_bound", None)
        return None if promise is None else float(promise(rounds))


def _perturbed(noise: str) -> Callable[[int, int, int], EigenLearner]:
    return lambda n, T, seed: FollowPerturbedLeader(n, noise=noise, horizon=T, random_state=seed)


METHODS = (
    Method(
        "multiplicative weights",
        lambda n, T, seed: MatrixMultiplicativeWeights(n, horizon=T, random_state=seed),
        "√T",
        "n³ (SVD)",
    ),
    Method("leader, uniform noise", _perturbed("uniform"), "n^5/4 √T", "EV"),
    Method("leader, exponential noise", _perturbed("exponential"), "n √T", "EV"),
    Method(
        "Frank-Wolfe",
        lambda n, T, seed: OnlineFrankWolfe(n, horizon=T, random_state=seed),
        "√n T^3/4",
        "EV",
    ),
    Method("leader, rank-one noise", _perturbed("rank_one"), "√(nT)", "EV"),
    Method(
        "epoch power method",
        lambda n, T, seed: EpochPowerMethod(n, horizon=T, random_state=seed),
        "√T, stochastic",
        "nnz",
    ),
    Method("Oja", lambda n, T, seed: OjaLearner(n, random_state=seed)),
    Method("leader, no noise", lambda n, T, seed: FollowTheLeader(n, random_state=seed)),
)


@dataclass(frozen=True)
class Score:
    """A method's games on one sequence, one per seed."""

    method: Method
    games: Sequence[Game]

    @property
    def regret(self) -> float:
        """Mean over seeds."""
        return float(np.mean([game.regret for game in self.games]))

    @property
    def error(self) -> float:
        """Standard error of the mean; 0 for one seed."""
        regrets = [game.regret for game in self.games]
        return float(np.std(regrets, ddof=1) / np.sqrt(len(regrets))) if len(regrets) > 1 else 0.0

    @property
    def microseconds(self) -> float:
        """Of the learner per round, the least of the games."""
        return 1e6 * min(game.seconds / len(game.rewards) for game in self.games)

    @property
    def curve(self) -> tuple[Floats, Floats]:
        """Rounds, and the mean regret after them."""
        return self.games[0].checkpoints.astype(float), np.mean([g.regret_curve for g in self.games], axis=0)


def compare(
    sequence: str,
    n: int,
    rounds: int,
    seeds: int,
    *,
    methods: Iterable[Method] = METHODS,
    checkpoints: int = 50,
    on_game: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Every method on the same sequences, one for each seed."""
    inputs = [SEQUENCES[sequence](n, rounds, seed) for seed in range(seeds)]
    scores = []
    for method in methods:
        games = []
        for seed, vectors in enumerate(inputs):
            learner = method.make(n, rounds, seed)
            games.append(play(learner, vectors, checkpoints=checkpoints, progress=False))
            on_game()
        scores.append(Score(method, games))
    return scores


@dataclass(frozen=True)
class Growth:
    """How a method's mean regret grows with T (at a fixed n) or with n (at a fixed T)."""

    method: Method
    sequence: str
    sizes: Sequence[int]
    regrets: Sequence[float]
    microseconds: float
    """Per round, at the last size."""

    @property
    def exponent(self) -> float:
        """The slope of the line through the logarithms."""
        return exponent(self.sizes, self.regrets)


def exponent(sizes: Sequence[int], regrets: Sequence[float]) -> float:
    """The least-squares slope of log regret against log size; NaN where a regret is not positive."""
    if min(regrets) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(regrets), 1)[0])


def grow(
    sequence: str,
    cases: Sequence[tuple[int, int]],
    seeds: int,
    *,
    methods: Sequence[Method] = METHODS,
    on_game: Callable[[], None] = lambda: None,
) -> list[Growth]:
    """The growth over (n, T) cases in which one of the two changes."""
    scores = [
        compare(sequence, n, T, seeds, methods=methods, checkpoints=1, on_game=on_game) for n, T in cases
    ]
    changing = 0 if len({n for n, _ in cases}) > 1 else 1
    sizes = [case[changing] for case in cases]
    return [
        Growth(method, sequence, sizes, [score[k].regret for score in scores], scores[-1][k].microseconds)
        for k, method in enumerate(methods)
    ]


def growths_of_table_1(
    rounds: Sequence[int], sizes: Sequence[int], seeds: int, on_progress: Progress = lambda done, total: None
) -> tuple[list[Growth], list[Growth]]:
    """Growth in T at n = 10, and in n at the middle T; on alternating directions where no theorem forbids it."""
    played, total = 0, seeds * len(METHODS) * (len(rounds) + len(sizes))

    def on_game() -> None:
        nonlocal played
        played += 1
        on_progress(played, total)

    results = []
    for cases in ([(10, T) for T in rounds], [(n, rounds[1]) for n in sizes]):
        growths = []
        for method in METHODS:
            sequence = "stochastic" if "stochastic" in method.regret else "alternating"
            growths += grow(sequence, cases, seeds, methods=[method], on_game=on_game)
        results.append(growths)
    return results[0], results[1]
