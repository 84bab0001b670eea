"""What a sketch is inside a learner: columns of the feature table, small arrays, and a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from sketchnewton import _native
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.base import Arrays


class Merged(NamedTuple):
    """Two sketches in one: small arrays, columns of the table by feature, and α."""

    arrays: Arrays
    columns: Floats
    alpha: float


class LearnerSketch(ABC):
    """One kind of sketch. It has no state of its own: the learner's arrays are passed in.

    To add a kind: a class like this, its native twin (`native/oja.hpp` is the pattern), a binding in
    `native/bindings_learners.cpp`, and a line in `SketchedNewton`'s table of kinds.
    """

    columns: int
    """How many of the table's columns it takes, after the weight and the scale."""
    extra: int = 0
    """How many more belong to a feature but are kept elsewhere."""

    @abstractmethod
    def fresh(self) -> Arrays:
        """The small arrays of a learner that has seen nothing."""

    @abstractmethod
    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""

    def reserve(self, arrays: Arrays, features: int, widest: int) -> bool:
        """Make room for rows of `widest` non-zeros among so many features. True if an array was replaced."""
        return False

    def coefficients(self, arrays: Arrays) -> Floats:
        """How a feature's weight depends on the sketch's columns, the extra ones last."""
        return np.zeros(self.columns + self.extra)

    def spectrum(self, arrays: Arrays) -> Floats:
        """The eigenvalues of SᵀS, largest first."""
        return np.empty(0)

    def basis(self, arrays: Arrays, columns: Floats) -> Floats:
        """Orthonormal rows that span the sketch, given its columns of all features, the extra ones last."""
        return np.empty((0, len(columns)))

    def factor(self, arrays: Arrays, columns: Floats) -> Floats:
        """S itself: rows with SᵀS the sketch, given its columns of all features, the extra ones last."""
        return np.empty((0, len(columns)))

    def merged(self, mine: Arrays, theirs: Arrays, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The state of a sketch that stands for both; S are the factors of both, over the same features."""
        return Merged({}, np.zeros((S[0].shape[1], 0)), alpha)

    def error_bound(self, arrays: Arrays) -> float | None:
        """A certified bound of ‖Σĝĝᵀ − SᵀS‖ (plus the ridge that has grown), where there is one."""
        return None

    def ridge(self, arrays: Arrays) -> float:
        """What α has gained."""
        return 0.0

    def fits(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Kernels trust the counters of a model file, so they are checked when it is loaded."""
        return True

    def saved(self, arrays: Arrays) -> Arrays:
        """The arrays as a model file keeps them: without spare room."""
        if "recent" not in arrays:
            return arrays
        return {**arrays, "recent": arrays["recent"][: arrays["sketch_counts"][-1]]}

    def restored(self, arrays: Arrays) -> Arrays:
        """The arrays as a kernel wants them, from what `saved` gave."""
        return arrays


class NoSketch(LearnerSketch):
    """m = 0: A = αI, online gradient descent."""

    columns = 0

    def __init__(self, dtype: str) -> None:
        self._make = _native.newton64 if dtype == "float64" else _native.newton32

    def fresh(self) -> Arrays:
        """Nothing."""
        return {}

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views)


def padded4(n: int) -> int:
    """Rows of small matrices are padded to whole vectors of four."""
    return -(-n // 4) * 4


def reserve_recent(arrays: Arrays, more: int) -> bool:
    """Let the list of features touched in a block hold `more` than it does."""
    size = int(arrays["sketch_counts"][-1]) + more
    if len(arrays["recent"]) >= size:
        return False
    recent = np.zeros(size, np.int64)
    recent[: len(arrays["recent"])] = arrays["recent"]
    arrays["recent"] = recent
    return True


def recent_fits(arrays: Arrays, count: Any, seen: Integers) -> bool:
    """Does the list hold `count` features that the table knows?"""
    recent = arrays["recent"]
    return bool(0 <= count <= len(recent) and np.isin(recent[:count], seen).all())
