"""Matrices without symmetry: play two unit vectors u, v, gain uᵀAv, compete with the largest singular value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from sketchnewton.core.parameters import checked_size
from sketchnewton.core.persistence import Persistent, expect, part, prefixed, without_prefix
from sketchnewton.core.state import Buffers
from sketchnewton.core.types import Arrays, Floats, Header
from sketchnewton.eigen.base import EigenLearner, unit_vector
from sketchnewton.eigen.matrices import Dense, Factor, Matrix, Sparse, as_array, as_rows, within

__all__ = ["AsymmetricLearner"]

_INNER = "learner."  # prefix of the wrapped learner's arrays


class AsymmetricLearner(Persistent):
    """Turns a `learner` of eigenvectors in dimension m + n into one of singular vectors (EIG Algorithm 1).

    The learner sees the symmetric matrix with A and Aᵀ off its diagonal. Its vector x = (ũ, ṽ) becomes the pair
    (ũ/‖ũ‖, ṽ/‖ṽ‖) with probability 2‖ũ‖‖ṽ‖, else a uniformly random pair: the expected reward is exactly xᵀÃx
    (Lemma 1), so the learner's regret is kept. `observe` takes an m×n array, a scipy.sparse matrix, or a triple
    (U, s, V) for U diag(s) Vᵀ, of norm at most the learner's `bound`.

    The embedded matrices are never positive semidefinite. `FollowPerturbedLeader` with rank-one noise and
    `MatrixMultiplicativeWeights` do not mind; the bounds of the other two noises double; `EpochPowerMethod`
    shifts.

    `shape` is (m, n); `random_state` is the seed of what is drawn.

    >>> from sketchnewton.eigen import FollowPerturbedLeader
    >>> learner = AsymmetricLearner(FollowPerturbedLeader(5, horizon=10), (2, 3))
    >>> u, v = learner.predict()
    >>> u.shape, v.shape
    ((2,), (3,))
    >>> learner.observe([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    """

    noun: ClassVar[str] = "learner of eigenvectors"
    components = 1

    def __init__(self, learner: EigenLearner, shape: tuple[int, int], *, random_state: int = 0) -> None:
        self.m, self.k = (checked_size("shape", size) for size in shape)
        self.n = self.m + self.k
        if learner.n != self.n or learner.components != 1:
            raise ValueError(
                f"the learner has n={learner.n}, components={learner.components}, but matrices of shape "
                f"{self.m}x{self.k} need n={self.n}, components=1"
            )
        self.learner = learner
        seed = checked_size("random_state", random_state, 0)
        super().__init__(learner=learner, shape=(self.m, self.k), random_state=seed)
        self._rng = np.random.default_rng(seed)
        self._pair: Floats | None = None  # (u, v) of this round, once asked for

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of the matrices."""
        return self.m, self.k

    @property
    def bound(self) -> float:
        """The largest norm a matrix may have."""
        return self.learner.bound

    @property
    def rounds(self) -> int:
        """How many matrices have been observed."""
        return self.learner.rounds

    def predict(self) -> tuple[Floats, Floats]:
        """The unit vectors u and v to play in this round."""
        if self._pair is None:
            self._pair = self._convert(self.learner.predict())
        return self._pair[: self.m].copy(), self._pair[self.m :].copy()

    def observe(self, A: object) -> None:
        """Observe the matrix of this round and start the next round."""
        self.learner.observe(self.checked(A))
        self._pair = None

    def checked(self, A: object) -> Matrix:
        """The embedding of the matrix; a ValueError if it would be refused."""
        return within(A if isinstance(A, Matrix) else self._embedding(A), self.bound)

    def to_archive(self) -> tuple[Header, Buffers]:
        """What a file holds: this and the wrapped learner."""
        inner, arrays = self.learner.to_archive()
        header = {
            "class": type(self).__name__,
            "parameters": {"shape": [self.m, self.k], "random_state": self._params["random_state"]},
            "random": self._rng.bit_generator.state,
            "learner": inner,
        }
        return header, {**self._all_arrays(), **prefixed(_INNER, arrays)}

    @classmethod
    def _rebuilt(cls, header: Mapping[str, object], arrays: Arrays) -> Self:
        inner = EigenLearner.from_archive(part(header, "learner"), without_prefix(_INNER, arrays))
        learner = cls(inner, **part(header, "parameters"))
        learner._rng.bit_generator.state = part(header, "random")
        learner._restore(arrays)
        return learner

    def _all_arrays(self) -> Arrays:
        return {} if self._pair is None else {"pair": self._pair}

    def _restore(self, arrays: Arrays) -> None:
        if "pair" in arrays:
            self._pair = expect(arrays, "pair", np.float64, (self.n,))

    def _convert(self, x: Floats) -> Floats:
        first, second = x[: self.m], x[self.m :]
        sizes = float(np.linalg.norm(first)), float(np.linalg.norm(second))
        if self._rng.random() < 2 * sizes[0] * sizes[1]:
            return np.concatenate([first / sizes[0], second / sizes[1]])
        return np.concatenate([unit_vector(self.m, self._rng), unit_vector(self.k, self._rng)])

    def _embedding(self, A: object) -> Matrix:
        if isinstance(A, tuple):
            return self._embedded_factor(A)
        if sp.issparse(A):
            rows = as_rows(A, "the matrix")
        else:
            array = as_array(A, "the matrix")
            if array.shape == self.shape and self.n**2 <= 8 * array.size:
                corner, other = np.zeros((self.m, self.m)), np.zeros((self.k, self.k))
                return Dense(np.block([[corner, array], [array.T, other]]))
            rows = array if array.ndim != 2 else as_rows(array, "the matrix")
        if rows.shape != self.shape:
            raise ValueError(f"the matrix has shape {rows.shape}, expected {self.shape}")
        return Sparse(sp.csr_array(sp.block_array([[None, rows], [rows.T, None]])))

    def _embedded_factor(self, factor: tuple[object, ...]) -> Factor:
        """s·uvᵀ, embedded, is s/2 times the difference of the squares of (u, v) and (u, −v)."""
        if len(factor) != 3:
            raise ValueError(f"a factor is a triple (U, s, V), got a tuple of {len(factor)}")
        U, s, V = (as_array(part, name) for part, name in zip(factor, ("U", "s", "V"), strict=True))
        s = np.atleast_1d(s)
        U, V = (part[:, None] if part.ndim == 1 else part for part in (U, V))
        if U.shape != (self.m, len(s)) or V.shape != (self.k, len(s)) or s.ndim != 1:
            raise ValueError(
                f"the factor has U, s, V of shapes {U.shape}, {s.shape}, {V.shape}, expected ({self.m}, r), (r,) "
                f"and ({self.k}, r)"
            )
        scale = math.sqrt(0.5)
        plus, minus = np.vstack([U, V]).T * scale, np.vstack([U, -V]).T * scale
        return Factor(np.vstack([plus, minus]), np.concatenate([s, -s]))
