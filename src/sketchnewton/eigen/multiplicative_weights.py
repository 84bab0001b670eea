"""Matrix multiplicative weights: the exponential of the sum as a distribution over eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sketchnewton.core.parameters import checked, checked_size
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.eigen.base import EigenLearner
from sketchnewton.eigen.matrices import Matrix
from sketchnewton.eigen.running_sum import RunningSum

__all__ = ["MatrixMultiplicativeWeights"]


class MatrixMultiplicativeWeights(EigenLearner):
    """Play an eigenvector of the sum so far, drawn with probability ∝ exp(η·eigenvalue).

    The expected reward is that of the density matrix X = exp(ηS)/tr exp(ηS) of Tsuda et al. (2005) and Arora
    and Kale (2007). Expected regret at most 2√(T ln n) with η = √(ln n/T), the least dependence on n of all,
    for O(n³) per round and an n×n array whatever the sparsity. `horizon` is T; without one it is doubled as
    rounds pass, which costs a constant factor. `eta` is η, in units of 1/`bound`.

    >>> learner = MatrixMultiplicativeWeights(2, horizon=200)
    >>> for _ in range(200):
    ...     learner.observe([[0.0, 0.0], [0.0, 1.0]])
    >>> learner.density.round(3).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
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

    @property
    def eta(self) -> float:
        """η of the present horizon, at most 1."""
        return self._eta or min(1.0, math.sqrt(math.log(self.n) / self._horizon))

    @property
    def density(self) -> Floats:
        """X: positive semidefinite, of trace 1."""
        probabilities, vectors = self._spectrum()
        return (vectors * probabilities) @ vectors.T

    def regret_bound(self, rounds: int) -> float:
        """ηT + ln n/η: what the analysis promises for the expected regret."""
        if self.n == 1:
            return 0.0
        eta = self._eta or min(1.0, math.sqrt(math.log(self.n) / rounds))
        return self.bound * (eta * rounds + math.log(self.n) / eta)

    def _spectrum(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(self._sum.dense())
        weights = np.exp(self.eta * (values - values[-1]))
        return weights / weights.sum(), vectors

    def _predict(self) -> Floats:
        probabilities, vectors = self._spectrum()
        return vectors[:, self._rng.choice(self.n, p=probabilities)].copy()

    def _observe(self, matrix: Matrix) -> None:
        self._sum.add(matrix, 1.0 / self.bound)
        if self._rounds + 1 >= self._horizon:
            self._horizon *= 2

    def _counters(self) -> dict[str, int]:
        return {**super()._counters(), "horizon": self._horizon}

    def _restore_counters(self, counters: Mapping[str, int]) -> None:
        super()._restore_counters(counters)
        self._horizon = checked_size("horizon", counters["horizon"])

    def _all_arrays(self) -> Arrays:
        return {**super()._all_arrays(), **self._sum.arrays("sum")}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._sum = RunningSum.restored(self.n, arrays, "sum")
