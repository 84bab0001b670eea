"""Online Frank-Wolfe over density matrices: one eigenvector per round instead of a projection."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sketchnewton.core.parameters import checked, checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.eigen.base import EigenLearner, unit_vector
from sketchnewton.eigen.matrices import Matrix
from sketchnewton.eigen.oracle import Operator, leading
from sketchnewton.eigen.running_sum import RunningSum

__all__ = ["OnlineFrankWolfe"]

_EXACT = 1e-6


class OnlineFrankWolfe(EigenLearner):
    """Online Frank-Wolfe (Hazan and Kale 2012), in the form of Hazan's book (2016, online conditional gradient).

    A density matrix X moves towards vvᵀ, v the leading eigenvector of η Σ A − 2(X − X₁), by a step min(1, 2/√t).
    The prediction is a random vector with E[xxᵀ] = X: each step replaces the vector by v with the probability of
    the step, else keeps it. That costs nothing and leaves every round's expected reward as it is, but the draws
    of different rounds are dependent.

    Expected regret at most 8DG T^{3/4} = 8√(2n) T^{3/4}, with the diameter D = √2 and G = √n ≥ ‖A‖_F. One call
    of the oracle per round and an n×n array for X. `horizon` is T; without one it is doubled as rounds pass.
    `eta` is η, None for D/(2G T^{3/4}), in units of 1/`bound`.

    >>> learner = OnlineFrankWolfe(3, horizon=300)
    >>> for _ in range(300):
    ...     learner.observe(np.array([0.0, 1.0, 0.0]))
    >>> int(learner.density.diagonal().argmax())
    1
    """

    def __init__(
        self,
        n: int,
        *,
        horizon: int | None = None,
        eta: float | None = None,
        bound: float = 1.0,
        random_state: int = 0,
    ) -> None:
        super().__init__(n, bound, random_state, horizon=horizon, eta=eta)
        self._horizon = self.n if horizon is None else checked_size("horizon", horizon)
        self._eta = None if eta is None else checked("eta", eta, positive=True)
        self._sum = RunningSum(self.n)
        self._density = np.eye(self.n) / self.n  # X, at first X₁
        self._vector = unit_vector(self.n, self._rng)
        self._leader = self._vector.copy()

    @property
    def eta(self) -> float:
        """η of the present horizon."""
        return self._eta or 1.0 / (math.sqrt(2 * self.n) * math.pow(self._horizon, 0.75))

    @property
    def density(self) -> Floats:
        """X: positive semidefinite, of trace 1."""
        return self._density.copy()

    def regret_bound(self, rounds: int) -> float:
        """8DG T^{3/4}."""
        return self.bound * 8 * math.sqrt(2 * self.n) * math.pow(rounds, 0.75)

    def _predict(self) -> Floats:
        return self._vector

    def _observe(self, matrix: Matrix) -> None:
        # The step of round t uses the gradients of the rounds before it, so it comes first.
        step = min(1.0, 2.0 / math.sqrt(self._rounds + 1))
        gradient = self.eta * self._sum.dense() - 2.0 * self._density
        gradient.flat[:: self.n + 1] += 2.0 / self.n
        operator = Operator(self.n, lambda x: gradient @ x, lambda: gradient)
        self._leader = leading(operator, 1, self._leader, _EXACT, self._rng)[:, 0]
        self._density *= 1.0 - step
        self._density += np.multiply.outer(step * self._leader, self._leader)
        if self._rng.random() < step:
            self._vector = self._leader.copy()
        self._sum.add(matrix, 1.0 / self.bound)
        if self._rounds + 1 >= self._horizon:
            self._horizon *= 2

    def _counters(self) -> dict[str, int]:
        return {**super()._counters(), "horizon": self._horizon}

    def _restore_counters(self, counters: Mapping[str, int]) -> None:
        super()._restore_counters(counters)
        self._horizon = checked_size("horizon", counters["horizon"])

    def _all_arrays(self) -> Arrays:
        state = {"density": self._density, "vector": self._vector, "leader": self._leader}
        return {**super()._all_arrays(), **state, **self._sum.arrays("sum")}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._density = expect(arrays, "density", np.float64, (self.n, self.n))
        self._vector, self._leader = (
            expect(arrays, name, np.float64, (self.n,)) for name in ("vector", "leader")
        )
        self._sum = RunningSum.restored(self.n, arrays, "sum")
