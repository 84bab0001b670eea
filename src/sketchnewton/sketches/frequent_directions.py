"""Frequent Directions and its variants: one state, one shrink rule each.

When the buffer is full, the rows are rotated onto their singular vectors and the squared lengths σ₁² ≥ σ₂² ≥ …
are replaced by at most m − 1 smaller ones. The kinds differ in that replacement, and in what they make of the
account of losses.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np

from sketchnewton.core.parameters import checked_share, checked_size
from sketchnewton.core.persistence import expect
from sketchnewton.core.types import Arrays, DTypeLike, Floats
from sketchnewton.sketches.base import LowRank, Sketch
from sketchnewton.sketches.buffered import BufferedRows, Loss, Rules
from sketchnewton.sketches.rows import Rows

_BLOCKS = 8  # a window is forgotten in this many steps


class _DirectionsSketch(Sketch):
    """What the kinds share. A kind defines `_shrink`, and where it must `_bound`, `ridge` and `_decompose`."""

    def __init__(
        self,
        sketch_size: int | None = None,
        *,
        target_error: float | None = None,
        buffer_size: int | None = None,
        decay: float = 1.0,
        window: int | None = None,
        dtype: DTypeLike = "float64",
    ) -> None:
        if (sketch_size is None) == (target_error is None):
            raise ValueError("give either sketch_size or target_error")
        self.sketch_size = None if sketch_size is None else checked_size("sketch_size", sketch_size)
        self.target_error = None if target_error is None else checked_share("target_error", target_error)
        self.buffer_size = None if buffer_size is None else checked_size("buffer_size", buffer_size)
        self.decay = checked_share("decay", decay)
        self.window = None if window is None else checked_size("window", window)
        if self.window is not None and self.decay < 1:
            raise ValueError("decay and window are two ways to forget: give one of them")
        super().__init__(
            sketch_size=self.sketch_size,
            target_error=self.target_error,
            buffer_size=self.buffer_size,
            decay=self.decay,
            window=self.window,
            dtype=dtype,
        )
        self._rules = Rules(self._shrink, self._bound, self.buffer_size, self.decay, self.target_error)
        # One state; with a window several, oldest first, of which the last is being filled.
        self._states: list[BufferedRows] = []
        self._summary: tuple[LowRank, Loss] | None = None

    # -- what a kind decides

    @abstractmethod
    def _shrink(self, squares: Floats, m: int) -> Floats:
        """The squared lengths that remain of `squares`; at least m of them are given."""

    @staticmethod
    def _bound(lost: Loss) -> float:
        """The certified error, given the account of losses."""
        return lost.most

    # -- what they say

    @property
    def error_bound(self) -> float:
        """Certified bound of ‖AᵀA − (BᵀB + ridge·I)‖₂: the running sum of what shrinks took."""
        return self._bound(self._summarise()[1])

    @property
    def squared_norm(self) -> float:
        """‖A‖²_F of the rows that count, with the weights that decay gives them."""
        low, lost = self._summarise()
        return lost.energy + float(low.squares.sum())

    @property
    def size(self) -> int:
        """m: `sketch_size`, or what `target_error` has needed so far."""
        return max((state.size for state in self._states), default=self.sketch_size or 1)

    @property
    def rows_covered(self) -> int:
        """How many of the last rows the sketch stands for: all, or with a window W from W to W + ⌈W/8⌉ − 1."""
        return sum(state.seen for state in self._states)

    def _summarise(self) -> tuple[LowRank, Loss]:
        """The low-rank part and the losses of all states together, the waiting rows included; no state changes."""
        if self._summary is None:
            whole = self._states[0] if len(self._states) == 1 else self._new_state()
            if len(self._states) > 1:
                for state in self._states:
                    whole.merge(state)
            rows, lost = whole.compressed()
            self._summary = LowRank.of(rows), lost
        return self._summary

    def _changed(self) -> None:
        super()._changed()
        self._summary = None

    def _decompose(self) -> LowRank:
        return self._summarise()[0]

    # -- state

    def _new_state(self) -> BufferedRows:
        return BufferedRows(self._rules, self.sketch_size or 1, self.n_features, self.dtype)

    def _widen(self, n_features: int) -> None:
        for state in self._states:
            state.widen(n_features)

    def _absorb(self, rows: Rows) -> None:
        if not self._states:
            self._states.append(self._new_state())
        if self.window is None:
            self._states[0].absorb(rows, 0, len(rows))
            return
        block = -(-self.window // _BLOCKS)
        start = 0
        while start < len(rows):
            if self._states[-1].seen >= block:
                self._states.append(self._new_state())
            state = self._states[-1]
            stop = min(len(rows), start + block - state.seen)
            state.absorb(rows, start, stop)
            start = stop
            while self.rows_covered - self._states[0].seen >= self.window:
                del self._states[0]

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        for name, value in self._params.items():
            if name not in ("sketch_size", "buffer_size", "dtype") and other._params[name] != value:
                raise ValueError(
                    f"cannot merge sketches with {name}={value!r} and {name}={other._params[name]!r}"
                )
        if self.window is not None:
            raise ValueError("cannot merge sketches of windows: which rows are the last is not known")

    def _merge(self, other: Self) -> None:
        if not self._states:
            self._states.append(self._new_state())
        for state in other._states:
            self._states[0].merge(state)

    def _all_arrays(self) -> Arrays:
        arrays = {**super()._all_arrays(), "states": np.array([len(self._states)], np.int64)}
        for at, state in enumerate(self._states):
            arrays |= state.arrays(f"state{at}")
        return arrays

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        count = int(expect(arrays, "states", np.int64, (1,))[0])
        if not 0 <= count <= (1 if self.window is None else _BLOCKS + 1):
            raise ValueError(f"{count} states")
        limit = self.sketch_size or self.n_features + 1  # with more than n_features rows, nothing is lost
        self._states = [
            BufferedRows.restored(self._rules, arrays, f"state{at}", limit, self.n_features, self.dtype)
            for at in range(count)
        ]


class FrequentDirections(_DirectionsSketch):
    """Frequent Directions: a sketch BᵀB ⪯ AᵀA with a certified error.

    A shrink subtracts σ_m² from every squared singular value, so at most m − 1 rows stay, m = `sketch_size` (RFD
    Algorithms 1 and 4). At any time, rows that wait in the buffer included, for every k < m:

        0 ⪯ AᵀA − BᵀB ⪯ error_bound·I,    error_bound = Σσ_m² ≤ ‖A − A_k‖²_F/(m − k)

    but for rounding, less than eps·‖A‖²_F per shrink, which the bound does not include (nor that of other kinds).
    `target_error=ε` instead of a size lets the sketch grow so that error_bound ≤ ε‖A‖²_F holds after every row.
    `buffer_size` rows wait between shrinks (default 3m; 1 is the textbook's row-by-row algorithm).
    `decay=γ` multiplies the weight of all earlier rows by γ with every row: all that is said here holds with the
    rows so weighted in A. `window=W` forgets old rows in blocks: A is then the last `rows_covered` rows, from W to
    W + ⌈W/8⌉ − 1 of them, at nine times the memory; all that is said here holds for that A.

    Cost per row O(m·n_features), memory 4m rows. Values may be as large as their squares can be summed in float64,
    for float32 up to 1e30.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((1000, 3)) @ np.ones((3, 20))
    >>> sketch = FrequentDirections(5).update(A)
    >>> sketch.matrix.shape, sketch.rows_seen
    ((4, 20), 1000)
    >>> bool(np.linalg.norm(A.T @ A - sketch.covariance(), 2) <= sketch.error_bound + 1e-9 * sketch.squared_norm)
    True
    """

    def _shrink(self, squares: Floats, m: int) -> Floats:
        kept: Floats = squares[: m - 1] - squares[m - 1]
        return kept


class RobustFrequentDirections(FrequentDirections):
    """Robust Frequent Directions (RFD Algorithm 2): FD plus a ridge of half of all shrinks, half the error bound.

    AᵀA is approximated by BᵀB + ridge·I, which is invertible as soon as something was lost:

        ‖AᵀA − (BᵀB + ridge·I)‖₂ ≤ error_bound ≤ ½ ‖A − A_k‖²_F/(m − k)

    Where the rows at hand span the whole space, a shrink takes at least σ_d² from every direction. The ridge then
    grows by (σ_m² + σ_d²)/2 and the bound by (σ_m² − σ_d²)/2, as RFD's Theorem 1 has it; otherwise σ_d is 0 and
    this is Algorithm 2. All parameters are those of `FrequentDirections`; an initial ridge is `solve`'s alpha.

    >>> import numpy as np
    >>> sketch = RobustFrequentDirections(3).update(np.eye(8)).update(np.eye(8))
    >>> sketch.ridge > 0, sketch.error_bound <= 16 / 3 / 2
    (True, True)
    """

    @staticmethod
    def _bound(lost: Loss) -> float:
        return (lost.most - lost.least) / 2

    @property
    def ridge(self) -> float:
        """The middle of what is known about the losses."""
        lost = self._summarise()[1]
        return (lost.most + lost.least) / 2


class CompensativeFrequentDirections(FrequentDirections):
    """Frequent Directions that adds the sum of all shrinks back to the directions it has kept.

    ‖AᵀA − BᵀB‖₂ ≤ error_bound ≤ ‖A − A_k‖²_F/(m − k) as for `FrequentDirections`, but BᵀB is no longer below AᵀA:
    kept directions come out too long rather than too short (Desai, Ghashami and Phillips 2016).

    >>> import numpy as np
    >>> A = np.vstack([np.eye(6)] * 4)
    >>> sketch, plain = (kind(3).update(A) for kind in (CompensativeFrequentDirections, FrequentDirections))
    >>> bool(np.allclose(sketch.singular_values_**2, plain.singular_values_**2 + plain.error_bound))
    True
    """

    def _decompose(self) -> LowRank:
        low, lost = self._summarise()
        # Not the root of a sum: squares of short rows may vanish.
        return LowRank(np.hypot(low.lengths, np.sqrt(lost.most)), low.directions)


class ParameterizedFrequentDirections(_DirectionsSketch):
    """Frequent Directions that shrinks only the last ⌊βm⌋ of the m rows, at least one: PFD, with β = `beta`.

    Long rows keep their length, which pays where a few directions dominate. The guarantee is weaker by β:
    0 ⪯ AᵀA − BᵀB ⪯ error_bound·I and error_bound ≤ ‖A − A_k‖²_F/(⌊βm⌋ − k) for k < ⌊βm⌋. With beta=1 this is
    `FrequentDirections`. Its other parameters are the same.

    Other parameters are those of `FrequentDirections`: `sketch_size`, `buffer_size`, `decay`, `window` and
    `target_error`.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((300, 20)) * np.geomspace(10, 0.1, 20)
    >>> errors = [np.linalg.norm(A.T @ A - kind.update(A).covariance(), 2)
    ...           for kind in (ParameterizedFrequentDirections(10, beta=0.2), FrequentDirections(10))]
    >>> bool(errors[0] < errors[1])
    True
    """

    def __init__(
        self,
        sketch_size: int | None = None,
        *,
        beta: float = 0.2,
        target_error: float | None = None,
        buffer_size: int | None = None,
        decay: float = 1.0,
        window: int | None = None,
        dtype: DTypeLike = "float64",
    ) -> None:
        self.beta = checked_share("beta", beta)
        super().__init__(
            sketch_size,
            target_error=target_error,
            buffer_size=buffer_size,
            decay=decay,
            window=window,
            dtype=dtype,
        )
        self._params["beta"] = self.beta

    def _shrink(self, squares: Floats, m: int) -> Floats:
        from fractions import Fraction

        # As it is written: 0.29·100 is 28.999999999999996 in binary.
        untouched = m - max(1, int(Fraction(repr(self.beta)) * m))
        new = squares[: m - 1].copy()
        new[untouched:] -= squares[m - 1]
        return new


class GreedyDirections(_DirectionsSketch):
    """The best rank m − 1 approximation at every step: truncated incremental SVD, kept as a baseline.

    Good where old directions stay important, and without any guarantee where new ones must take their place: rows
    that are each a little shorter than what is kept are all forgotten, however many (RFD Appendix F). What was
    lost is still accounted for: 0 ⪯ AᵀA − BᵀB ⪯ error_bound·I, but error_bound may be as large as ‖A‖²_F.

    Other parameters are those of `FrequentDirections`: `sketch_size`, `buffer_size`, `decay`, `window`,
    `target_error`.

    >>> import numpy as np
    >>> A = np.vstack([np.eye(4)[:2], np.tile(0.9 * np.eye(4)[3], (100, 1))])
    >>> greedy, fd = (kind(3, buffer_size=1).update(A) for kind in (GreedyDirections, FrequentDirections))
    >>> greedy.covariance()[3, 3], bool(fd.covariance()[3, 3] > 79)
    (np.float64(0.0), True)
    """

    def _shrink(self, squares: Floats, m: int) -> Floats:
        return squares[: m - 1]
