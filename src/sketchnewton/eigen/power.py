"""One product per round: the epoch power method for stochastic data, and Oja's rule."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sketchnewton.core.parameters import checked, checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.eigen.base import EigenLearner, unit_vector
from sketchnewton.eigen.matrices import Matrix
from sketchnewton.eigen.running_sum import RunningSum

__all__ = ["EpochPowerMethod", "OjaLearner"]

_FIRST_HORIZON = 64  # without a given one, doubled as often as needed


class EpochPowerMethod(EigenLearner):
    """One vector per epoch, made by power iterations on the mean of earlier epochs (EIG Algorithm 2).

    For matrices drawn independently from one distribution: expected regret O(√(T ln nT)) with one matrix-vector
    product per round, in time proportional to the non-zeros seen so far plus O(n). Against an adversary it
    promises nothing. During the first two epochs it plays a random vector; the vector of epoch τ + 1 is built in
    epoch τ on the mean of epochs ≤ τ − 1.

    `horizon` is T and `block` the epoch's length ℓ; None takes Theorem 1's ⌈¼√(2T ln 2nT)⌉. Without a horizon
    it is doubled as rounds pass, and epochs grow with it. `shift` is added to the mean's eigenvalues, so that
    the largest is the largest in size; None takes what the data need: 0 for vectors and other factors of
    weights ≥ 0 and for diagonally dominant matrices, at most 1 (in units of `bound`) for all.

    >>> learner = EpochPowerMethod(3, horizon=400)
    >>> for _ in range(400):
    ...     learner.observe(np.array([0.0, 0.8, 0.1]))
    >>> bool(abs(learner.predict()[1]) > 0.99)
    True
    """

    def __init__(
        self,
        n: int,
        *,
        horizon: int | None = None,
        block: int | None = None,
        shift: float | None = None,
        bound: float = 1.0,
        random_state: int = 0,
    ) -> None:
        super().__init__(n, bound, random_state, horizon=horizon, block=block, shift=shift)
        self._horizon = _FIRST_HORIZON if horizon is None else checked_size("horizon", horizon)
        self._given_block = None if block is None else checked_size("block", block)
        self._shift = None if shift is None else checked("shift", shift)
        self._start = unit_vector(self.n, self._rng)  # v
        self._playing = self._start.copy()  # x of this epoch
        self._building = self._start.copy()  # x of the next
        self._done = RunningSum(self.n)  # the epochs before this one
        self._current = RunningSum(self.n)
        self._done_rounds = 0
        self._block = self._length()

    @property
    def block(self) -> int:
        """ℓ: the length of the present epoch."""
        return self._block

    def regret_bound(self, rounds: int) -> float:
        """What Theorem 1 promises for the expected regret on stochastic data, with the constants of its proof."""
        n = self.n
        return self.bound * (10.5 * math.sqrt(rounds * math.log(2 * n * rounds**2)) + 4)

    def _length(self) -> int:
        if self._given_block is not None:
            return self._given_block
        T = self._horizon
        return math.ceil(math.sqrt(2 * T * math.log(2 * self.n * T)) / 4)

    def _predict(self) -> Floats:
        return self._playing

    def _observe(self, matrix: Matrix) -> None:
        self._current.add(matrix, 1.0 / self.bound)
        if self._done_rounds:
            shift = self._done.floor if self._shift is None else self._shift * self._done_rounds
            image = self._done.times(self._building) + shift * self._building
            size = float(np.linalg.norm(image))
            if size > 0:  # else the vector is in the kernel, and any other would do as well
                self._building = image / size
        rounds = self._rounds + 1
        if rounds >= self._horizon:
            self._horizon *= 2
        if rounds - self._done_rounds == self._block:
            self._playing = self._building
            self._building = self._start.copy()
            self._done.absorb(self._current)
            self._done_rounds = rounds
            self._block = self._length()

    def _counters(self) -> dict[str, int]:
        own = {"horizon": self._horizon, "block": self._block, "done_rounds": self._done_rounds}
        return {**super()._counters(), **own}

    def _restore_counters(self, counters: Mapping[str, int]) -> None:
        super()._restore_counters(counters)
        self._horizon = checked_size("horizon", counters["horizon"])
        self._block = checked_size("block", counters["block"])
        self._done_rounds = counters["done_rounds"]

    def _all_arrays(self) -> Arrays:
        vectors = {"start": self._start, "playing": self._playing, "building": self._building}
        sums = {**self._done.arrays("done"), **self._current.arrays("current")}
        return {**super()._all_arrays(), **vectors, **sums}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._start, self._playing, self._building = (
            expect(arrays, name, np.float64, (self.n,)) for name in ("start", "playing", "building")
        )
        self._done = RunningSum.restored(self.n, arrays, "done")
        self._current = RunningSum.restored(self.n, arrays, "current")


class OjaLearner(EigenLearner):
    """Oja's rule: x ← (x + η_t A x)/‖·‖ with η_t = `rate`/√t. Nothing is remembered but x.

    The cheapest method, O(nnz + n) per round whatever was seen before, and good on stochastic data; no regret
    bound against an adversary. η_t is in units of 1/`bound`.

    >>> learner = OjaLearner(2)
    >>> for _ in range(50):
    ...     learner.observe(np.array([0.0, 1.0]))
    >>> bool(abs(learner.predict()[1]) > 0.99)
    True
    """

    def __init__(self, n: int, *, rate: float = 1.0, bound: float = 1.0, random_state: int = 0) -> None:
        self._rate = checked("rate", rate, positive=True)
        super().__init__(n, bound, random_state, rate=self._rate)
        self._vector = unit_vector(self.n, self._rng)

    def _predict(self) -> Floats:
        return self._vector

    def _observe(self, matrix: Matrix) -> None:
        step = self._rate / math.sqrt(self._rounds + 1) / self.bound
        moved = self._vector + step * matrix.times(self._vector)
        size = float(np.linalg.norm(moved))
        if size > 0:  # x + ηAx = 0 only for an eigenvector of −1/η: it stays
            self._vector = moved / size

    def _all_arrays(self) -> Arrays:
        return {**super()._all_arrays(), "vector": self._vector}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._vector = expect(arrays, "vector", np.float64, (self.n,))
