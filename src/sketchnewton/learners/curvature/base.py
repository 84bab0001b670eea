"""What a sketch is inside a learner: columns of the feature table, small arrays, and a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from sketchnewton import _native
from sketchnewton.core.hints import ClassVar, NamedTuple
from sketchnewton.core.state import State, View
from sketchnewton.core.types import Arrays, Floats, Integers, NDArray, np


class SketchParameters(NamedTuple):
    """The parameters of `SketchedNewton` that are those of its sketch; each kind takes what it has a use for."""

    size: int
    dtype: str
    beta: float = 1.0
    shrink: str = "rounds"
    oja_rate: str | float | Sequence[float] = "adaptive"
    block: int = 1
    seed: int = 0


class Merged(NamedTuple):
    """Two sketches in one: small arrays, columns of the table by feature, and α."""

    state: State
    columns: Floats
    alpha: float


class LearnerSketch(ABC):
    """One kind of sketch. It has no state of its own: the learner's is passed in.

    To add a kind: a class like this, its native twin (`native/curvature/oja.hpp` is the pattern), a binding in
    `native/bindings/newton.cpp`, and a line in `core/sketch_kinds.py`.
    """

    grows_alpha: ClassVar[bool] = False
    """Does it add to α what it loses? Then α may start at 0."""
    random: ClassVar[bool] = False
    """Does it depend on the seed? Then two with the same seed cannot be merged."""
    only_reads: ClassVar[bool] = False
    """Does its kernel write to no array when it predicts? Then several threads can predict at once."""

    packs: ClassVar[bool] = True
    """Is a large table packed? Its kernel has to know of that."""

    columns: int
    """How many of the table's columns it takes, after the weight and the scale."""
    extra: int = 0
    """How many more belong to a feature but are kept elsewhere."""

    @abstractmethod
    def __init__(self, parameters: SketchParameters) -> None: ...

    @abstractmethod
    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""

    @abstractmethod
    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""

    def reserve(self, state: State, features: int, widest: int) -> dict[str, View]:
        """The arrays that rows of `widest` non-zeros among so many features ask for, where those are too short."""
        return {}

    def coefficients(self, state: State) -> Floats:
        """How a feature's weight depends on the sketch's columns, the extra ones last."""
        return np.zeros(self.columns + self.extra)

    def spectrum(self, state: State) -> Floats:
        """The eigenvalues of SᵀS, largest first."""
        return np.empty(0)

    def basis(self, state: State, columns: Floats) -> Floats:
        """Orthonormal rows that span the sketch, given its columns of all features, the extra ones last."""
        return np.empty((0, len(columns)))

    def factor(self, state: State, columns: Floats) -> Floats:
        """S itself: rows with SᵀS the sketch, given its columns of all features, the extra ones last."""
        return np.empty((0, len(columns)))

    def mass(self, state: State, S: Floats, unit: float = 1.0) -> float:
        """The squared lengths of all gradients, as far as it knows, times `unit`, which S has in it already."""
        return float((S * S).sum())

    def merged(self, mine: State, theirs: State, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The state of a sketch that stands for both; S are the factors of both, over the same features."""
        return Merged(State(), np.zeros((S[0].shape[1], 0)), alpha)

    def settled(self, state: State, features: int) -> tuple[Floats, Floats, Floats] | None:
        """Weights, scales and columns of the features seen, in their order, if the sketch keeps them itself."""
        return None

    def place(self, state: State, weights: Floats, scales: Floats) -> None:
        """Take weights and scales of the features seen, in their order, if the sketch keeps them itself."""
        return

    def error_bound(self, state: State) -> float | None:
        """A certified bound of ‖Σĝĝᵀ − SᵀS‖ (plus the ridge that has grown), where there is one."""
        return None

    def ridge(self, state: State) -> float:
        """What α has gained."""
        return 0.0

    def fits(self, state: State, seen: Integers | View, columns: Callable[[], NDArray[np.floating]]) -> bool:
        """Kernels trust the counters of a model file, so they are checked when it is loaded."""
        return True

    def saved(self, state: State) -> dict[str, View]:
        """The arrays as a model file keeps them: without spare room."""
        if "recent" not in state:
            return state.views()
        return state.views() | {"recent": state.head("recent", int(state.view("sketch_counts")[-1]))}

    def restored(self, arrays: Arrays) -> Arrays:
        """The arrays as a kernel wants them, from what `saved` gave."""
        return arrays


def newton_kernel(name: str, dtype: str) -> Callable[..., _native.SketchKernel]:
    """What makes the kernel that `native/bindings/newton.cpp` calls `name`, for a table of this precision."""
    make: Callable[..., _native.SketchKernel] = getattr(
        _native, name + ("64" if dtype == "float64" else "32")
    )
    return make


def padded4(n: int) -> int:
    """Rows of small matrices are padded to whole vectors of four."""
    return -(-n // 4) * 4


def reserve_recent(state: State, more: int) -> dict[str, View]:
    """A list of features touched in a block that can hold `more` than it does, if the present one cannot."""
    used = int(state.view("sketch_counts")[-1])
    if len(state.view("recent")) >= used + more:
        return {}
    return {"recent": state.resized("recent", used + more, used)}


def recent_fits(state: State, count: int, seen: Integers | View) -> bool:
    """Does the list hold `count` features that the table knows?"""
    recent = state.view("recent")
    return 0 <= count <= len(recent) and _native.are_among(recent[:count], seen)
