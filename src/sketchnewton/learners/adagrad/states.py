"""Sketches inside AdaGrad's learners: columns of the feature table, small arrays, and a kernel.

Small arrays have one entry per block: a sketch and the `weights` classes that share it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sketchnewton import _native
from sketchnewton.core.checks import are_whole, check_numbers
from sketchnewton.core.state import State, View, filled, zeros
from sketchnewton.core.types import Arrays, Floats, Integers, NDArray, np
from sketchnewton.learners.curvature.base import padded4

GROUP, LEVELS = 16, 4  # of MapState in native/curvature/delayed_maps.hpp


class AdaptiveSketch(ABC):
    """One kind of sketch. It has no state of its own: the learner's is passed in.

    `columns` of the table, weights not counted, hold its basis; weights of classes beyond the first start
    `further` columns after the basis does.
    """

    columns: int
    further: int

    def __init__(self, m: int, dtype: str, blocks: int, weights: int) -> None:
        self._m, self._blocks, self._weights = m, blocks, weights
        self._dtype = dtype

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        shape = (self._blocks, self._weights, padded4(self._size))
        return {"a": filled([1.0] * self._blocks), "b": zeros(shape), "u": zeros(shape)}

    @property
    @abstractmethod
    def _size(self) -> int:
        """The largest size of the basis."""

    @abstractmethod
    def kernel(
        self, problem: _native.Problem, composite: _native.Composite, intercept: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""

    @abstractmethod
    def coefficients(self, state: State, block: int, k: int) -> Floats:
        """How the k-th weight of a block depends on the basis columns of a feature's row."""

    @abstractmethod
    def matrix(self, state: State, block: int, columns: Floats) -> Floats:
        """S, given a block's basis columns of all features."""

    @abstractmethod
    def height(self, state: State) -> int:
        """The most rows that `matrix` has."""

    @abstractmethod
    def spectra(self, state: State) -> Floats:
        """The eigenvalues of SᵀS of each block, largest first."""

    @abstractmethod
    def fits(self, state: State, block: int, seen: Integers, columns: NDArray[np.floating]) -> bool:
        """Kernels trust the counters of a model file, so they are checked when it is loaded."""

    def reserve(self, state: State, widest: int) -> dict[str, View]:
        """The arrays that rows of `widest` non-zeros ask for, instead of those that are too small."""
        return {}

    def saved(self, state: State) -> dict[str, View]:
        """The arrays as a model file keeps them: without spare room."""
        return state.views()

    def restored(self, arrays: Arrays) -> Arrays:
        """The arrays as a kernel wants them, from what `saved` gave."""
        return arrays


class ProjectionBasis(AdaptiveSketch):
    """S = Σ ρ_t v_tᵀ with ρ_t ~ N(0, I/τ) drawn from (seed, t); the table's columns hold S itself."""

    def __init__(self, m: int, dtype: str, blocks: int, weights: int, seed: int, averaging: bool) -> None:
        super().__init__(m, dtype, blocks, weights)
        self._averaging = averaging
        self.columns = self.further = m
        self._seed = seed
        self._make = _native.projection_adaptive64 if dtype == "float64" else _native.projection_adaptive32

    @property
    def _size(self) -> int:
        return self._m

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        return {
            **super().fresh(),
            # kRounds, … of native/learners/adagrad_basis.hpp
            "sketch_counts": zeros((self._blocks, 3 if self._averaging else 2), "int64"),
            "G": zeros((self._blocks, self._m, padded4(self._m))),
        }

    def kernel(
        self, problem: _native.Problem, composite: _native.Composite, intercept: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, composite, intercept, views, self._m, self._seed)

    def coefficients(self, state: State, block: int, k: int) -> Floats:
        """The weights' part in the sketch is Sᵀb."""
        values = np.zeros(self.columns + self._weights - 1)
        values[: self._m] = state["b"][block, k, : self._m]
        return values

    def matrix(self, state: State, block: int, columns: Floats) -> Floats:
        """S itself."""
        return columns[:, : self._m].T

    def height(self, state: State) -> int:
        """The most rows that `matrix` has."""
        return self._m

    def spectra(self, state: State) -> Floats:
        """The eigenvalues of SSᵀ, which are those of SᵀS."""
        return np.asarray(np.linalg.eigvalsh(state["G"][:, :, : self._m])[:, ::-1], np.float64)

    def fits(self, state: State, block: int, seen: Integers, columns: NDArray[np.floating]) -> bool:
        """Are the counters possible?"""
        return bool(state["sketch_counts"].min() >= 0 and state["a"].min() > 0)


class FrequentBasis(AdaptiveSketch):
    """S = [diag(D) V; G]: the table holds a count of epochs, V, and what G has outside of it.

    See native/learners/adagrad_frequent.hpp.
    """

    def __init__(self, m: int, dtype: str, blocks: int, weights: int, ridge: float) -> None:
        super().__init__(m, dtype, blocks, weights)
        self._q = max(m - 1, 1)  # rows of V: a shrink leaves at most m − 1
        self.columns = 1 + self._q + m
        self.further = 1 + self._q
        self._ridge = ridge
        self._make = _native.frequent_adaptive64 if dtype == "float64" else _native.frequent_adaptive32

    @property
    def _size(self) -> int:
        return 2 * self._m - 1

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        m, blocks = self._m, self._blocks
        maps = (self._q + self._weights - 1, padded4(self._q + self._weights))
        return {
            **super().fresh(),
            # kRank, … of native/learners/adagrad_frequent.hpp
            "sketch_counts": zeros((blocks, 7), "int64"),
            "c": zeros((blocks, self._weights, padded4(self._size))),
            "alpha": zeros(blocks),
            "doubt": filled([1.0] * blocks),
            "s": zeros((blocks, padded4(self._size))),
            "E": zeros((blocks, self._size, padded4(self._size))),
            "C": zeros((blocks, m, padded4(self._q))),
            "T": zeros((blocks, m, padded4(m))),
            "touched": zeros((blocks, 0), "int64"),
            "items": zeros((blocks, LEVELS), "int64"),
            "suffix": zeros((blocks, LEVELS * GROUP, *maps), self._dtype),
            # Zero pages until they are used: room for 65,536 epochs, then for their groups.
            **{
                f"archive{level}": zeros((blocks, GROUP ** (LEVELS - level), *maps), self._dtype)
                for level in range(LEVELS - 1)
            },
        }

    def kernel(
        self, problem: _native.Problem, composite: _native.Composite, intercept: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, composite, intercept, views, self._m, self._ridge)

    def reserve(self, state: State, widest: int) -> dict[str, View]:
        """Room for the features of an epoch."""
        used = self._touched(state)
        size = max(used) + self._m * widest
        if state.shape("touched")[1] >= size:
            return {}
        return {"touched": state.heads("touched", used, size)}

    def _touched(self, state: State) -> list[int]:
        """How many features each block has touched."""
        counts = state.view("sketch_counts")
        return [int(counts[block, 3]) for block in range(self._blocks)]

    def _basis(self, state: State, block: int) -> Floats:
        """W = [V; C V + T G] as a combination of a row's columns."""
        rank, opened = state["sketch_counts"][block, :2]
        W = np.zeros((rank + opened, self.columns + self._weights - 1))
        W[:rank, 1 : 1 + rank] = np.eye(rank)
        W[rank:, 1 : 1 + self._q] = state["C"][block, :opened, : self._q]
        W[rank:, self._q + self._weights :] = state["T"][block, :opened, : self._m]
        return W

    def coefficients(self, state: State, block: int, k: int) -> Floats:
        """The weights' part in the sketch is Wᵀb."""
        W = self._basis(state, block)
        return np.asarray(state["b"][block, k, : len(W)] @ W, np.float64)

    def matrix(self, state: State, block: int, columns: Floats) -> Floats:
        """diag(s) E W."""
        W = self._basis(state, block)
        n = len(W)
        root = state["s"][block, :n, None] * state["E"][block, :n, :n]
        return np.asarray(root @ (W @ columns.T), np.float64)

    def height(self, state: State) -> int:
        """The most rows that `matrix` has."""
        return int(state["sketch_counts"][:, :2].sum(axis=1).max())

    def spectra(self, state: State) -> Floats:
        """The squares of the singular values of S."""
        values: Floats = np.zeros((self._blocks, self.height(state)))
        for block, (rank, opened) in enumerate(state["sketch_counts"][:, :2]):
            values[block, : rank + opened] = np.square(state["s"][block, : rank + opened])
        return values

    def fits(self, state: State, block: int, seen: Integers, columns: NDArray[np.floating]) -> bool:
        """Are the counters possible?"""
        rank, opened, filled, touched, met, since, everywhere = state["sketch_counts"][block]
        items = state["items"][block]
        listed = state["touched"][block]
        return bool(
            0 <= rank < self._m
            and 0 <= opened <= filled < self._m
            and 0 <= touched <= len(listed)
            and np.isin(listed[:touched], seen).all()
            and 0 <= items[0] < GROUP**LEVELS
            and all(items[level + 1] == items[level] // GROUP for level in range(LEVELS - 1))
            and are_whole(columns[:, 0], 0, items[0])
            and state["a"][block] > 0
            and state["alpha"][block] >= 0
            and state["doubt"][block] >= 1
            and min(met, since) >= 0
            and everywhere in (0, 1)
            and (state["s"][block] >= 0).all()
        )

    def saved(self, state: State) -> dict[str, View]:
        """Only the maps and features that are in use."""
        used, items = self._touched(state), state.view("items")
        kept = {"touched": state.heads("touched", used, max(used))}
        for level in range(LEVELS - 1):
            maps = max(int(items[block, level]) // GROUP * GROUP for block in range(self._blocks))
            name = f"archive{level}"
            kept[name] = state.heads(name, [maps] * self._blocks, maps)
        return state.views() | kept

    def restored(self, arrays: Arrays) -> Arrays:
        """Room again for all maps."""
        full = State(self.fresh())
        archives = [name for name in full if name.startswith("archive")]
        for name in archives:
            kept, room = arrays[name], full[name]
            if (
                kept.dtype != room.dtype
                or kept.ndim != room.ndim
                or kept.shape[0] != room.shape[0]
                or kept.shape[1] > room.shape[1]
                or kept.shape[2:] != room.shape[2:]
            ):
                raise ValueError(f"array {name!r} has the wrong type or shape")
            check_numbers(name, kept)
            room[:, : kept.shape[1]] = kept
        if arrays["touched"].ndim != 2 or len(arrays["touched"]) != self._blocks:
            raise ValueError("array 'touched' has the wrong type or shape")
        return {**arrays, **{name: full[name] for name in archives}}
