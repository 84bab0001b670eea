"""What all learners of eigenvectors share: the game's two moves, checking, saving and loading."""

from __future__ import annotations

import inspect
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sketchnewton.core import archive
from sketchnewton.eigen.matrices import Floats, Matrix, as_matrix, within

__all__ = ["Arrays", "EigenLearner", "checked_positive", "checked_size", "shaped", "unit_vector"]

Path = str | os.PathLike[str]
Arrays = dict[str, NDArray[Any]]


class EigenLearner(ABC):
    """Plays unit vectors against symmetric matrices and competes with the leading eigenvector of their sum.

    `predict` gives the vector of this round; asking again gives the same one. `observe` reveals the matrix: an
    array, a scipy.sparse matrix, a vector x for xxᵀ, or a pair (U, s) for U diag(s) Uᵀ. Its norm may be at most
    `bound`, by which it is divided, so that the theorems' ‖A‖ ≤ 1 holds and one `bound` fits data of any scale.
    A matrix that is refused (not symmetric, NaN, wrong size, above the bound) leaves the learner as it was.

    A saved learner continues bit for bit. Seeds are whole numbers; all randomness comes from `random_state`.
    """

    n: int
    bound: float
    components = 1
    """How many orthonormal vectors a prediction has."""

    def __init__(self, n: int, bound: float, random_state: int, **others: Any) -> None:
        self.n = checked_size("n", n, 1)
        self.bound = checked_positive("bound", bound)
        seed = checked_size("random_state", random_state, 0)
        # In the order of the constructor, for `repr`.
        given = {"n": self.n, "bound": self.bound, "random_state": seed, **others}
        self._params = {name: given[name] for name in inspect.signature(type(self)).parameters}
        self._rng = np.random.default_rng(seed)
        self._rounds = 0
        self._prediction: Floats | None = None  # of this round, once asked for

    # -- for users

    def predict(self) -> Floats:
        """The unit vector to play in this round, shape (n,)."""
        if self._prediction is None:
            self._prediction = self._predict()
        return self._prediction.copy()

    def observe(self, A: Any) -> None:
        """Learn this round's matrix and begin the next round."""
        matrix = self.checked(A)
        self._observe(matrix)
        self._rounds += 1
        self._prediction = None

    def checked(self, A: Any) -> Matrix:
        """The matrix as `observe` understands it; a ValueError if it would be refused."""
        return within(as_matrix(A, self.n), self.bound)

    @property
    def rounds(self) -> int:
        """How many matrices have been observed."""
        return self._rounds

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments; `type(learner)(**learner.params)` is a fresh learner of the same kind."""
        return dict(self._params)

    def save(self, path: Path) -> None:
        """Write the learner to a `.skn` file, whole or not at all."""
        archive.write(path, *self._state())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a learner of this class back; it continues bit for bit."""
        header, arrays = archive.read(path)
        if header.get("class") != cls.__name__:
            raise archive.ModelFileError(f"{path}: holds a {header.get('class')}, not a {cls.__name__}")
        return cls.from_archive(header, arrays, path)

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays, path: Path = "model") -> Self:
        """Rebuild a learner from what `archive.read` returned for `path`."""
        try:
            learner = cls(**header["parameters"])
            learner._take(header, arrays)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise archive.ModelFileError(f"{path}: not a usable {cls.__name__} model: {error}") from error
        return learner

    def __repr__(self) -> str:
        signature = inspect.signature(type(self)).parameters
        shown = [f"{k}={v!r}" for k, v in self._params.items() if signature[k].default != v]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = self._state()
        return header, {name: array.copy() for name, array in arrays.items()}

    def __setstate__(self, state: tuple[dict[str, Any], Arrays]) -> None:
        header, arrays = state
        self.__init__(**header["parameters"])  # type: ignore[misc]
        self._take(header, {name: array.copy() for name, array in arrays.items()})

    # -- for learners

    @abstractmethod
    def _predict(self) -> Floats: ...

    @abstractmethod
    def _observe(self, matrix: Matrix) -> None:
        """Learn a checked matrix; to be divided by `bound`."""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """The state as arrays."""

    @abstractmethod
    def _restore(self, counters: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what `_arrays` and `_counters` gave."""

    def _counters(self) -> dict[str, int]:
        """The state that is whole numbers."""
        return {}

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        header = {
            "class": type(self).__name__,
            "parameters": self._params,
            "counters": {"rounds": self._rounds, **self._counters()},
            "random": self._rng.bit_generator.state,
        }
        arrays = self._arrays()
        if self._prediction is not None:
            arrays["prediction"] = self._prediction
        return header, arrays

    def _take(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        counters = {name: checked_size(name, value, 0) for name, value in header["counters"].items()}
        self._rng.bit_generator.state = header["random"]
        self._restore(counters, arrays)
        self._rounds = counters["rounds"]
        if "prediction" in arrays:
            shape = (self.n,) if self.components == 1 else (self.n, self.components)
            self._prediction = shaped(arrays, "prediction", shape)


def shaped(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    """The array of that name, if it is of that shape."""
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float64:
        raise ValueError(f"array {name!r} has the wrong type or shape")
    return array


def unit_vector(n: int, rng: np.random.Generator) -> Floats:
    """A uniform point of the sphere."""
    vector = rng.standard_normal(n)
    return vector / np.linalg.norm(vector)


def checked_positive(name: str, value: float) -> float:
    """The parameter as a float > 0, or what is wrong with it."""
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{name}={value!r} is invalid: must be > 0")
    return number


def checked_size(name: str, value: int, least: int) -> int:
    """The parameter as a whole number, or what is wrong with it."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise ValueError(f"{name}={value!r} is invalid: must be a whole number >= {least}")
    return int(value)
