"""The state of a Frequent Directions sketch: its rows, the rows that wait, and an account of what was lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import DTypeLike

from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.sketches.rows import as_rows
from sketchnewton.sketches.spectrum import Spectrum, spectrum_of
from sketchnewton.sketches.stack import Matrix, Stack, concatenated
from sketchnewton.sketches.threads import one_blas_thread

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# From squared singular values, largest first, and m to the at most m − 1 that remain, none above its old value.
ShrinkRule = Callable[[Floats, int], Floats]

_SMALL = 1e9  # multiplications of a shrink, sparse rows aside, up to which more threads have not paid


class Source(Protocol):
    """Rows that are asked for piece by piece, in order."""

    def stack(self, start: int, stop: int, dtype: DTypeLike) -> Stack:
        """The rows `start` to `stop`."""


@dataclass(frozen=True)
class Loss:
    """`least`·I ⪯ AᵀA − BᵀB ⪯ `most`·I, and `energy` is the trace: all that must be known of what was dropped."""

    least: float = 0.0
    most: float = 0.0
    energy: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.least + other.least, self.most + other.most, self.energy + other.energy)

    def __mul__(self, weight: float) -> Loss:
        return Loss(weight * self.least, weight * self.most, weight * self.energy)


def loss_of(spectrum: Spectrum, new: Floats) -> Loss:
    """What replacing squared singular values by the fewer and smaller `new` loses."""
    lost = spectrum.squares.copy()
    lost[: len(new)] -= new
    # Directions that B does not reach lose nothing, so `least` is 0 unless B spans the whole space.
    least = float(lost.min()) if len(lost) == spectrum.B.width else 0.0
    return Loss(least, float(lost.max(initial=0.0)), float(lost.sum()) + spectrum.rest) * spectrum.unit


def _threads_for(rows: int, dense: int, columns: int) -> AbstractContextManager[None]:
    """Limits threads where a shrink of so many rows does not gain from more."""
    return one_blas_thread() if dense**2 * columns + 10 * rows**3 < _SMALL else nullcontext()


@dataclass(frozen=True)
class Rules:
    """What a kind of sketch decides: how to shrink, when (`buffer` rows, None: 3m), and what is certified."""

    shrink: ShrinkRule
    bound: Callable[[Loss], float]
    buffer: int | None = None
    decay: float = 1.0
    target: float | None = None

    def capacity(self, size: int) -> int:
        """Rows held when a shrink is due: m − 1 of the sketch, and the buffer."""
        return size - 1 + (self.buffer or 3 * size)

    def reduce(self, B: Stack, size: int, lost: Loss) -> tuple[Matrix, int, Loss]:
        """Shrink `B` to fewer than `size` rows, or than the size that the target needs; that size; the loss."""
        with _threads_for(len(B), len(B.dense), B.width):
            return self._reduce(B, size, lost)

    def _reduce(self, B: Stack, size: int, lost: Loss) -> tuple[Matrix, int, Loss]:
        spectrum = spectrum_of(B, size, all_squares=self.target is not None)
        chosen, new, loss = size, *self._shrunk(spectrum, size)
        if self.target is not None:
            allowed = self.target * (lost.energy + float(spectrum.squares.sum()) * spectrum.unit)
            while self.bound(lost + loss) > allowed and chosen <= len(spectrum.squares):
                chosen += 1
                new, loss = self._shrunk(spectrum, chosen)
            if chosen > size:  # other values have become the decisive ones
                spectrum = spectrum_of(B, chosen)
                new, loss = self._shrunk(spectrum, chosen)
        return spectrum.rows(new), chosen, loss

    def _shrunk(self, spectrum: Spectrum, size: int) -> tuple[Floats, Loss]:
        old = spectrum.squares
        # σ² − σ_m² can come out below 0 by rounding.
        new = np.maximum(self.shrink(old, size), 0.0) if len(old) >= size else old
        return new, loss_of(spectrum, new)


class BufferedRows:
    """Fewer than `capacity` rows. When they are that many, they are shrunk to m − 1: on counts, on nothing else.

    `head` is what the last shrink left, `waiting` what came since. With decay γ every row multiplies the weight of
    all earlier ones by γ: the rows of `head` have had theirs applied, the others get it when they are looked at.
    """

    def __init__(self, rules: Rules, size: int, n_features: int, dtype: str) -> None:
        self.rules = rules
        self.size = size
        self.head: Matrix = np.zeros((0, n_features), dtype)
        self.waiting: list[Stack] = []
        self.count = 0
        self.seen = 0  # rows that came from the stream, not from merges
        self.lost = Loss()

    def absorb(self, rows: Source, start: int, stop: int) -> None:
        """Take in the rows `start` to `stop` of the stream."""
        most = min(self.rules.capacity(self.size), self.count + stop - start)
        with _threads_for(most, most, self.head.shape[1]):  # once for many shrinks
            while start < stop:
                step = min(self.rules.capacity(self.size) - self.count, stop - start)
                self.seen += step
                self._add(rows.stack(start, start + step, self.head.dtype))
                start += step

    def merge(self, other: BufferedRows) -> None:
        """Take in what another one holds, and what it has lost."""
        own, lost = self.weighed()
        self.head, self.lost, self.waiting = own.toarray(), lost, []
        stack, lost = other.weighed()
        rows = stack.toarray().astype(self.head.dtype, copy=False)
        self.lost += lost
        self.seen += other.seen
        while len(rows):
            capacity = self.rules.capacity(self.size)
            step = capacity - self.count
            self.head, rows = np.concatenate([self.head, rows[:step]]), rows[step:]
            self.count = len(self.head)
            if self.count == capacity:
                self._shrink()

    def widen(self, n_features: int) -> None:
        """Add columns of zeros."""
        # What was lost spanned the old columns at most, so in the new ones nothing was.
        self.lost = replace(self.lost, least=0.0)
        self.head = Stack(self.head).widened(n_features).dense
        self.waiting = [stack.widened(n_features) for stack in self.waiting]

    def weighed(self) -> tuple[Stack, Loss]:
        """The rows with the weights that they have by now, and likewise the loss."""
        since = self.count - len(self.head)
        if self.rules.decay == 1.0 or since == 0:
            return self._held(), self.lost
        age = np.concatenate([np.full(len(self.head), float(since)), np.arange(since - 1.0, -1.0, -1.0)])
        weights = self.rules.decay ** (age / 2)
        rows = self._held().toarray()
        return Stack(rows * weights[:, None].astype(rows.dtype)), self.lost * self.rules.decay**since

    def compressed(self) -> tuple[Matrix, Loss]:
        """At most m rows that stand for all, and the loss with that of this last shrink; the state stays."""
        stack, lost = self.weighed()
        if self.count <= self.size:
            return stack.toarray(), lost
        reduced, _, loss = self.rules.reduce(stack, self.size, lost)
        return reduced, lost + loss

    def _held(self) -> Stack:
        return concatenated([Stack(self.head), *self.waiting])

    def _add(self, stack: Stack) -> None:
        if stack.sparse is None and any(other.sparse is not None for other in self.waiting):
            # In one stack dense rows come first. So that these stay last, those before them become dense, too.
            self.waiting = [Stack(concatenated(self.waiting).toarray())]
        self.waiting.append(stack)
        self.count += len(stack)
        if self.count == self.rules.capacity(self.size):
            self._shrink()
        else:
            self.waiting[-1] = stack.owned()

    def _shrink(self) -> None:
        stack, lost = self.weighed()
        kept, self.size, loss = self.rules.reduce(stack, self.size, lost)
        self.lost = lost + loss
        missing = self.size - 1 - len(kept)
        if missing:
            # Where fewer directions than m − 1 are left, rows of zeros stand for them: counts alone decide when.
            kept = np.concatenate([kept, np.zeros((missing, kept.shape[1]), kept.dtype)])
        self.head, self.waiting, self.count = kept, [], len(kept)

    def arrays(self, name: str) -> Arrays:
        """The state, for a file."""
        held = self._held()
        arrays: Arrays = {
            f"{name}.rows": held.dense,
            f"{name}.counts": np.array([self.size, len(self.head), self.seen, self.count], np.int64),
            f"{name}.lost": np.array([self.lost.least, self.lost.most, self.lost.energy]),
        }
        if held.sparse is not None:
            arrays[f"{name}.data"] = held.sparse.data
            arrays[f"{name}.indices"] = held.sparse.indices.astype(np.int64)
            arrays[f"{name}.indptr"] = held.sparse.indptr.astype(np.int64)
        if held.mix is not None:
            arrays[f"{name}.mix"] = held.mix
        return arrays

    @classmethod
    def restored(
        cls, rules: Rules, arrays: Arrays, name: str, size_limit: int, n_features: int, dtype: str
    ) -> BufferedRows:
        """Rebuild what `arrays` wrote."""
        size, settled, seen, count = (int(n) for n in expect(arrays, f"{name}.counts", np.int64, (4,)))
        rows = expect(arrays, f"{name}.rows", dtype, (None, n_features))
        lost = expect(arrays, f"{name}.lost", np.float64, (3,))
        sparse = _restored_sparse(arrays, name, n_features, dtype)
        held = len(rows) + (0 if sparse is None else sparse.shape[0])
        mix = None
        if f"{name}.mix" in arrays:
            mix = expect(arrays, f"{name}.mix", np.float64, (count, held))
            held = count
        counts_fit = 0 < size <= size_limit and 0 <= settled <= min(len(rows), count)
        if not (counts_fit and seen >= 0 and held == count < rules.capacity(size)):
            raise ValueError(f"counts of {name!r} contradict each other")
        if lost.min() < 0:
            raise ValueError(f"array {name + '.lost'!r} is negative")
        state = cls(rules, size, n_features, dtype)
        state.head = rows[:settled].copy()
        waiting = Stack(
            rows[settled:].copy(), sparse, None if mix is None else mix[settled:, settled:].copy()
        )
        state.waiting = [waiting] if len(waiting) else []
        state.count, state.seen = count, seen
        state.lost = Loss(*(float(value) for value in lost))
        return state


def _restored_sparse(arrays: Arrays, name: str, n_features: int, dtype: str) -> csr_array:
    """The sparse rows of a file, if it has any."""
    if f"{name}.indptr" not in arrays:
        return None
    from scipy.sparse import csr_array  # dense users need not wait for it

    data = expect(arrays, f"{name}.data", dtype, (None,))
    indices = expect(arrays, f"{name}.indices", np.int64, (len(data),))
    indptr = expect(arrays, f"{name}.indptr", np.int64, (None,))
    matrix = csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    as_rows(matrix, n_features, dtype)  # refuses indices that point outside
    return matrix
