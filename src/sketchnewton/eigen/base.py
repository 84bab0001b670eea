"""What all learners of eigenvectors share: the game's two moves, and checking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from sketchnewton.core.parameters import checked, checked_size
from sketchnewton.core.persistence import Persistent, expect, part
from sketchnewton.core.types import Arrays, Floats, Header
from sketchnewton.eigen.matrices import Matrix, as_matrix, within

__all__ = ["EigenLearner", "unit_vector"]


_FREE = 64  # sizes up to this one are harmless


class EigenLearner(Persistent):
    """Plays unit vectors against symmetric matrices and competes with the leading eigenvector of their sum.

    `predict` gives the vector of this round; asking again gives the same one. `observe` reveals the matrix: an
    array, a scipy.sparse matrix, a vector x for xxᵀ, or a pair (U, s) for U diag(s) Uᵀ. Its norm may be at most
    `bound`, by which it is divided, so that the theorems' ‖A‖ ≤ 1 holds and one `bound` fits data of any scale.
    A matrix that is refused (not symmetric, NaN, wrong size, above the bound) leaves the learner as it was.

    A saved learner continues bit for bit. Seeds are whole numbers; all randomness comes from `random_state`.

    `n`: the number of rows and columns of the matrices.
    """

    noun: ClassVar[str] = "learner of eigenvectors"
    n: int
    bound: float
    components = 1
    """How many orthonormal vectors a prediction has."""

    def __init__(self, n: int, bound: float, random_state: int, **others: object) -> None:
        self.n = checked_size("n", n)
        self.bound = checked("bound", bound, positive=True)
        seed = checked_size("random_state", random_state, 0)
        # In the order of the constructor, for `repr`.
        given = {"n": self.n, "bound": self.bound, "random_state": seed, **others}
        super().__init__(**{name: given[name] for name in self.defaults()})
        self._rng = np.random.default_rng(seed)
        self._rounds = 0
        self._prediction: Floats | None = None  # of this round, once asked for

    # -- for users

    def predict(self) -> Floats:
        """The unit vector to play in this round, shape (n,)."""
        if self._prediction is None:
            self._prediction = self._predict()
        return self._prediction.copy()

    def observe(self, A: object) -> None:
        """Observe the matrix of this round and start the next round."""
        matrix = self.checked(A)
        self._observe(matrix)
        self._rounds += 1
        self._prediction = None

    def checked(self, A: object) -> Matrix:
        """The matrix as `observe` understands it; a ValueError if it would be refused."""
        return within(as_matrix(A, self.n), self.bound)

    @property
    def rounds(self) -> int:
        """How many matrices have been observed."""
        return self._rounds

    # -- for learners

    @abstractmethod
    def _predict(self) -> Floats: ...

    @abstractmethod
    def _observe(self, matrix: Matrix) -> None:
        """Learn a checked matrix; to be divided by `bound`."""

    def _counters(self) -> dict[str, int]:
        """The state that is whole numbers."""
        return {"rounds": self._rounds}

    def _restore_counters(self, counters: Mapping[str, int]) -> None:
        """Take over what `_counters` gave; none of them is negative."""
        self._rounds = counters["rounds"]

    def _all_arrays(self) -> Arrays:
        return {} if self._prediction is None else {"prediction": self._prediction}

    def _restore(self, arrays: Arrays) -> None:
        if "prediction" in arrays:
            shape = (self.n,) if self.components == 1 else (self.n, self.components)
            self._prediction = expect(arrays, "prediction", np.float64, shape)

    def _header(self) -> Header:
        return {"counters": self._counters(), "random": self._rng.bit_generator.state}

    @classmethod
    def _rebuilt(cls, header: Mapping[str, object], arrays: Arrays) -> Self:
        _check_size(part(header, "parameters"), arrays)
        learner = super()._rebuilt(header, arrays)
        counters = {name: checked_size(name, value, 0) for name, value in part(header, "counters").items()}
        learner._restore_counters(counters)
        learner._rng.bit_generator.state = part(header, "random")
        return learner


def _check_size(parameters: Mapping[str, object], arrays: Arrays) -> None:
    """Refuse an n that the file's own arrays contradict, before matrices of n² numbers are drawn."""
    n, noise = parameters.get("n"), arrays.get("noise")
    if not isinstance(n, int) or n <= _FREE:
        return
    lengths = {array.shape[0] for array in arrays.values() if array.ndim}
    square = parameters.get("noise") in ("uniform", "exponential")
    known = not lengths or n in lengths or n + 1 in lengths  # the latter of a sparse sum
    if not known or (square and (noise is None or noise.size != n * n)):
        raise ValueError(f"n={n} contradicts its arrays")


def unit_vector(n: int, rng: np.random.Generator) -> Floats:
    """A uniform point of the sphere."""
    vector = rng.standard_normal(n)
    return vector / np.linalg.norm(vector)
