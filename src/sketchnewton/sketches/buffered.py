"""The state of a Frequent Directions sketch: its rows, the rows that wait, and an account of what was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchnewton.sketches.base import Arrays, expect, widened
from sketchnewton.sketches.rows import Rows
from sketchnewton.sketches.spectrum import Floats, Matrix, Spectrum, spectrum_of

# From squared singular values, largest first, and m to the at most m − 1 that remain, none above its old value.
ShrinkRule = Callable[[Floats, int], Floats]


_SPARSE = 0.05  # products with rows that have more non-zeros than this share are faster dense


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


def loss_of(old: Floats, new: Floats, n_features: int) -> Loss:
    """What replacing the squared singular values `old` by the fewer and smaller `new` loses."""
    lost = old.copy()
    lost[: len(new)] -= new
    # Directions that B does not reach lose nothing, so `least` is 0 unless B spans the whole space.
    least = float(lost.min()) if len(old) == n_features else 0.0
    return Loss(least, float(lost.max(initial=0.0)), float(lost.sum()))


@dataclass(frozen=True)
class Rules:
    """What a kind of sketch decides: how to shrink, when (`buffer` rows, None: 2m), and what is certified."""

    shrink: ShrinkRule
    bound: Callable[[Loss], float]
    buffer: int | None = None
    decay: float = 1.0
    target: float | None = None

    def capacity(self, size: int) -> int:
        """Rows held when a shrink is due: m − 1 of the sketch, and the buffer."""
        return size - 1 + (self.buffer or 2 * size)

    def reduce(self, B: Matrix, size: int, lost: Loss, tail: Any = None) -> tuple[Matrix, int, Loss]:
        """Shrink `B` to fewer than `size` rows, or than the size that the target needs; that size; the loss."""
        spectrum = spectrum_of(B, size, tail)
        chosen, new, loss = size, *self._shrunk(spectrum, size)
        if self.target is not None:
            allowed = self.target * (lost.energy + float(spectrum.squares.sum()) * spectrum.unit)
            while self.bound(lost + loss) > allowed and chosen <= len(spectrum.squares):
                chosen += 1
                new, loss = self._shrunk(spectrum, chosen)
            if chosen > size:  # other values have become the decisive ones
                spectrum = spectrum_of(B, chosen, tail)
                new, loss = self._shrunk(spectrum, chosen)
        return spectrum.rows(new), chosen, loss

    def _shrunk(self, spectrum: Spectrum, size: int) -> tuple[Floats, Loss]:
        old = spectrum.squares
        # σ² − σ_m² can come out below 0 by rounding.
        new = np.maximum(self.shrink(old, size), 0.0) if len(old) >= size else old
        return new, loss_of(old, new, spectrum.B.shape[1]) * spectrum.unit


class BufferedRows:
    """At most `capacity` rows. When they are that many, they are shrunk to m − 1: on row counts, on nothing else.

    With decay γ every row multiplies the weight of all earlier ones by γ. The rows before `settled` have had
    their weight applied at that point; those after it get theirs when they are looked at.
    """

    def __init__(self, rules: Rules, size: int, n_features: int, dtype: str) -> None:
        self.rules = rules
        self.size = size
        self.rows: Matrix = np.zeros((rules.capacity(size), n_features), dtype)
        self.count = 0
        self.settled = 0
        self.seen = 0  # rows that came from the stream, not from merges
        self.lost = Loss()
        self.tail: list[Any] = []  # the last rows once more, sparse, as far as they came so

    def absorb(self, rows: Rows, start: int, stop: int) -> None:
        """Take in the rows `start` to `stop` of the stream."""
        while start < stop:
            step = min(len(self.rows) - self.count, stop - start)
            rows.copy_to(self.rows[self.count : self.count + step], start)
            if rows.dense is not None:
                self.tail = []
            else:
                self.tail.append(rows.csr(start, start + step, self.rows.dtype))
            self.count += step
            self.seen += step
            start += step
            if self.count == len(self.rows):
                self._shrink()

    def merge(self, other: BufferedRows) -> None:
        """Take in what another one holds, and what it has lost."""
        self._settle()
        self.tail = []
        rows, lost = other.weighed()
        self.lost += lost
        self.seen += other.seen
        for row in rows:
            self.rows[self.count] = row
            self.count = self.settled = self.count + 1
            if self.count == len(self.rows):
                self._shrink()

    def widen(self, n_features: int) -> None:
        """Add columns of zeros."""
        # What was lost spanned the old columns at most, so in the new ones nothing was.
        self.lost = replace(self.lost, least=0.0)
        self.rows = widened(self.rows, n_features)
        self.tail = []

    def weighed(self) -> tuple[Matrix, Loss]:
        """The rows with the weights that they have by now, and likewise the loss."""
        rows = self.rows[: self.count]
        since = self.count - self.settled
        if self.rules.decay == 1.0 or since == 0:
            return rows, self.lost
        age = np.concatenate([np.full(self.settled, float(since)), np.arange(since - 1.0, -1.0, -1.0)])
        weights = self.rules.decay ** (age / 2)
        return rows * weights[:, None].astype(rows.dtype), self.lost * self.rules.decay**since

    def compressed(self) -> tuple[Matrix, Loss]:
        """At most m rows that stand for all, and the loss with that of this last shrink; the state stays."""
        rows, lost = self.weighed()
        if self.count <= self.size:
            return rows.copy(), lost
        reduced, _, loss = self.rules.reduce(rows, self.size, lost, self._sparse_tail())
        return reduced, lost + loss

    def _sparse_tail(self) -> Any:
        """The last rows as one sparse matrix, if they came so and products with it are cheaper than dense ones."""
        cells = self._tail_rows * self.rows.shape[1]
        if self.rules.decay < 1 or cells == 0 or sum(part.nnz for part in self.tail) > _SPARSE * cells:
            return None
        from scipy.sparse import vstack  # noqa: PLC0415 - dense users need not wait for it

        return vstack(self.tail, format="csr")

    def _settle(self) -> None:
        rows, self.lost = self.weighed()
        self.rows[: self.count] = rows
        self.settled = self.count

    def _shrink(self) -> None:
        rows, lost = self.weighed()
        kept, size, loss = self.rules.reduce(rows, self.size, lost, self._sparse_tail())
        self.lost = lost + loss
        if size > self.size:
            self.size = size
            self.rows = np.zeros((self.rules.capacity(size), self.rows.shape[1]), self.rows.dtype)
        self.rows[: len(kept)] = kept
        # Where fewer directions than m − 1 are left, rows of zeros stand for them: counts alone decide when.
        self.rows[len(kept) : self.size - 1] = 0
        self.count = self.settled = self.size - 1
        self.tail = []

    @property
    def _tail_rows(self) -> int:
        return sum(part.shape[0] for part in self.tail)

    def arrays(self, name: str) -> Arrays:
        """The state, for a file."""
        return {
            f"{name}.rows": self.rows[: self.count],
            f"{name}.counts": np.array([self.size, self.settled, self.seen, self._tail_rows], np.int64),
            f"{name}.lost": np.array([self.lost.least, self.lost.most, self.lost.energy]),
        }

    @classmethod
    def restored(
        cls, rules: Rules, arrays: Arrays, name: str, size_limit: int, n_features: int, dtype: str
    ) -> BufferedRows:
        """Rebuild what `arrays` wrote."""
        size, settled, seen, tail = (int(n) for n in expect(arrays, f"{name}.counts", np.int64, (4,)))
        rows = expect(arrays, f"{name}.rows", dtype, (None, n_features))
        lost = expect(arrays, f"{name}.lost", np.float64, (3,))
        held = len(rows)
        counts_fit = 0 < size <= size_limit and 0 <= settled <= held < rules.capacity(size)
        if not (counts_fit and seen >= 0 and 0 <= tail <= held):
            raise ValueError(f"counts of {name!r} contradict each other")
        if lost.min() < 0:
            raise ValueError(f"array {name + '.lost'!r} is negative")
        state = cls(rules, size, n_features, dtype)
        state.rows[: len(rows)] = rows
        state.count, state.settled, state.seen = len(rows), settled, seen
        state.lost = Loss(*(float(value) for value in lost))
        if tail:
            from scipy.sparse import csr_array  # noqa: PLC0415

            state.tail = [csr_array(rows[len(rows) - tail :])]
        return state
