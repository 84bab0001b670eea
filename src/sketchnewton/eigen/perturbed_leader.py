"""Follow the (perturbed) leader: play the leading eigenvector of all that was seen, plus noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sketchnewton.core.parameters import checked, checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.eigen import noise as noises
from sketchnewton.eigen.base import EigenLearner, unit_vector
from sketchnewton.eigen.matrices import Matrix
from sketchnewton.eigen.oracle import ORACLES, Operator, leading
from sketchnewton.eigen.running_sum import RunningSum

__all__ = ["FollowPerturbedLeader", "FollowTheLeader"]

_EXACT = 1e-6  # tolerance where no theorem permits more
_SHARE = 0.1  # of the bound's noise term that approximate eigenvectors may cost


class _Leader(EigenLearner):
    """The running sum and the oracle that both leaders share."""

    def __init__(
        self,
        n: int,
        components: int,
        oracle: str,
        tolerance: float | None,
        bound: float,
        random_state: int,
        **others: object,
    ) -> None:
        super().__init__(
            n, bound, random_state, components=components, oracle=oracle, tolerance=tolerance, **others
        )
        self.components = checked_size("components", components)
        if self.components > self.n:
            raise ValueError(f"components={components!r} is invalid: must be at most n={self.n}")
        if oracle not in ORACLES:
            raise ValueError(f"oracle={oracle!r} is invalid: must be {' or '.join(map(repr, ORACLES))}")
        self._oracle = oracle
        self._tolerance = None if tolerance is None else checked("tolerance", tolerance, positive=True)
        self._sum = RunningSum(self.n)
        self._last = unit_vector(self.n, self._rng)[:, None]  # where the oracle starts

    @property
    def tolerance(self) -> float:
        """How far below the largest eigenvalue xᵀMx of a prediction may be."""
        return _EXACT if self._tolerance is None else self._tolerance

    def _predict(self) -> Floats:
        vectors = leading(
            self._perturbed(), self.components, self._last, self.tolerance, self._rng, self._oracle
        )
        self._last = vectors
        return vectors[:, 0].copy() if self.components == 1 else vectors.copy()

    def _observe(self, matrix: Matrix) -> None:
        self._sum.add(matrix, 1.0 / self.bound)

    def _perturbed(self) -> Operator:
        return Operator(self.n, self._sum.times, self._sum.dense, self._sum.floor)

    def _all_arrays(self) -> Arrays:
        return {**super()._all_arrays(), "last": self._last, **self._sum.arrays("sum")}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        columns = arrays["last"].shape[-1] if arrays["last"].ndim == 2 else 0
        if columns not in (1, self.components):
            raise ValueError("array 'last' has the wrong type or shape")
        self._last = expect(arrays, "last", np.float64, (self.n, columns))
        self._sum = RunningSum.restored(self.n, arrays, "sum")


class FollowTheLeader(_Leader):
    """Play the leading eigenvector of the sum so far: best on stationary data, helpless against an adversary.

    On two directions that take turns it always plays the one whose turn is over, and its regret grows linearly:
    the cautionary baseline. `components` > 1 predicts an (n, k) matrix of orthonormal columns, found by
    deflation. One call of the oracle per round.

    `oracle` finds the eigenvector: "lanczos" or "power"; `tolerance`: how far below λ_max it may stay, relatively;
    None: 1e-6.

    >>> learner = FollowTheLeader(2)
    >>> learner.observe([[0.0, 0.0], [0.0, 0.5]])
    >>> abs(learner.predict()).round(6).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        n: int,
        *,
        components: int = 1,
        oracle: str = "lanczos",
        tolerance: float | None = None,
        bound: float = 1.0,
        random_state: int = 0,
    ) -> None:
        super().__init__(n, components, oracle, tolerance, bound, random_state)


class FollowPerturbedLeader(_Leader):
    """Play the leading eigenvector of the sum so far plus noise (EIG Algorithm 3).

    Parameters and the paper's symbols: `noise` is D: "rank_one" c·vvᵀ (section 5), "uniform" entries (4.1) or
    "exponential", density ∝ exp(−ε‖N‖) (4.2). `scale` is c, or 1/ε; None takes the theorem's for the horizon.
    `horizon` is T; without one, and when it has passed, the horizon doubles (first to n) and new noise of the
    new scale is drawn while the sum is kept, which costs a constant factor. `fresh_noise` draws new noise every
    round, for an adversary that watches the predictions. `tolerance` is how far below λ_max the
    eigenvector `oracle` ("lanczos" or "power") may stay; None takes what Theorem 6 permits.

    Expected regret for positive semidefinite matrices of norm ≤ `bound`, in its units, by `regret_bound`:
    O(√(nT ln(T/n))) for rank-one noise, O(n√T) for exponential, O(n^{5/4}√T) for uniform. Rank-one noise needs
    no definiteness and is the only one that stays cheap on sparse data: a round costs a few products with the
    sum's non-zeros plus O(n). The other two keep an n×n array.

    `components` k > 1 predicts an (n, k) matrix of orthonormal columns, found one after the other by deflation;
    the theorems are about k = 1.

    >>> learner = FollowPerturbedLeader(3, horizon=100, random_state=1)
    >>> reward = 0.0
    >>> for _ in range(100):
    ...     x = learner.predict()
    ...     reward += float(x[0] ** 2)
    ...     learner.observe(np.array([1.0, 0.0, 0.0]))     # the vector e₁ stands for e₁e₁ᵀ
    >>> 100 - reward < learner.regret_bound(100)
    True
    """

    def __init__(
        self,
        n: int,
        *,
        noise: str = "rank_one",
        horizon: int | None = None,
        scale: float | None = None,
        fresh_noise: bool = False,
        components: int = 1,
        oracle: str = "lanczos",
        tolerance: float | None = None,
        bound: float = 1.0,
        random_state: int = 0,
    ) -> None:
        if noise not in noises.NOISES:
            raise ValueError(f"noise={noise!r} is invalid: must be one of {', '.join(noises.NOISES)}")
        super().__init__(
            n,
            components,
            oracle,
            tolerance,
            bound,
            random_state,
            noise=noise,
            horizon=horizon,
            scale=scale,
            fresh_noise=bool(fresh_noise),
        )
        self._noise = noise
        self._fresh = bool(fresh_noise)
        self._scale = None if scale is None else checked("scale", scale, positive=True)
        self._horizon = self.n if horizon is None else checked_size("horizon", horizon)
        self._draw()

    @property
    def horizon(self) -> int:
        """T: the number of rounds that the scale of the noise is made for."""
        return self._horizon

    @property
    def scale(self) -> float:
        """c, or 1/ε."""
        return self._scale or noises.scale_for(self._noise, self.n, self._horizon)

    @property
    def perturbation(self) -> Floats:
        """The matrix N of this round as an n×n array, in units of `bound`."""
        return self._drawn if self._noise != "rank_one" else self._rank_one_array()

    @property
    def tolerance(self) -> float:
        """How far below the largest eigenvalue xᵀMx of a prediction may be.

        A deficit ξ turns the vector by sin θ ≤ √(ξ/δ), δ the eigengap, and a round's reward by at most 2 sin θ.
        With Theorem 5's law of δ, T rounds lose at most 4T√(2√2ξ/πc) in expectation; ξ is such that this is a
        tenth of the bound's term cn. It is of the order √(n/T), as Theorem 6 has it.
        """
        if self._tolerance is not None:
            return self._tolerance
        if self._noise != "rank_one":
            return _EXACT
        c = self.scale
        part = _SHARE * c * self.n / (4 * self._horizon)
        permitted = part * part * math.pi * c / (2 * math.sqrt(2))  # infinite, where Python's power raises
        return min(permitted, 0.01)

    def regret_bound(self, rounds: int) -> float:
        """What the theorem promises for the expected regret after `rounds` rounds, with its constants.

        Theorem 3's proof, and Eqs. 4 and 6 with ‖A‖₁ ≤ n^{3/2}, an ℓ₁ diameter of 2n and E‖N‖ = n(n+1)/2ε. For
        a learner that knows the horizon; one that doubles it pays at most √2/(√2 − 1) ≈ 3.4 times the bound of
        its last one.
        """
        n, scale = self.n, self._scale or noises.scale_for(self._noise, self.n, rounds)
        if self._noise == "rank_one":
            spread = max(1.0, math.log(math.pi * math.e * scale / (4 * math.sqrt(2))))
            regret = 8 * rounds / (math.pi * scale) * spread + scale * n
        elif self._noise == "uniform":
            regret = rounds * n**1.5 / scale + 2 * n * scale
        else:
            regret = rounds / scale + noises.dimension(n) * scale
        return self.bound * regret

    def _observe(self, matrix: Matrix) -> None:
        super()._observe(matrix)
        ended = self._rounds + 1 >= self._horizon
        if ended:
            self._horizon *= 2
        if ended or self._fresh:
            self._draw()

    def _draw(self) -> None:
        """New noise of the present scale: the vector v, or the matrix N."""
        if self._noise == "rank_one":
            self._drawn = noises.rank_one(self.n, self._rng)
        elif self._noise == "uniform":
            self._drawn = noises.uniform(self.n, self.scale, self._rng)
        else:
            self._drawn = noises.exponential(self.n, self.scale, self._rng)
        self._drawn_scale = self.scale

    def _perturbed(self) -> Operator:
        total, noise, c = self._sum, self._drawn, self._drawn_scale
        if self._noise == "rank_one":
            return Operator(
                self.n,
                lambda x: total.times(x) + (c * (noise @ x)) * noise,
                lambda: total.dense() + self._rank_one_array(),
                total.floor,
            )
        floor = float(np.abs(noise).sum(axis=1).max()) if self._oracle == "power" else 0.0
        matrix = total.dense() + noise
        return Operator(self.n, lambda x: matrix @ x, lambda: matrix, total.floor + floor)

    def _rank_one_array(self) -> Floats:
        v = self._drawn
        return np.multiply.outer(self._drawn_scale * v, v)

    def _counters(self) -> dict[str, int]:
        return {**super()._counters(), "horizon": self._horizon}

    def _restore_counters(self, counters: Mapping[str, int]) -> None:
        super()._restore_counters(counters)
        self._horizon = checked_size("horizon", counters["horizon"])

    def _all_arrays(self) -> Arrays:
        drawn = {"noise": self._drawn, "noise.scale": np.array(self._drawn_scale)}
        return {**super()._all_arrays(), **drawn}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        shape = (self.n,) if self._noise == "rank_one" else (self.n, self.n)
        self._drawn = expect(arrays, "noise", np.float64, shape)
        self._drawn_scale = float(expect(arrays, "noise.scale", np.float64, ()))
