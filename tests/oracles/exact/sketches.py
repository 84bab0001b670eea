"""The sketches of SON and RFD, dense: every round is counted, whether it has a gradient or none."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from mpmath import mp, mpf

from .linalg import (
    Matrix,
    Number,
    Vector,
    add_outer,
    dot,
    is_zero,
    orthonormal,
    outer_sum,
    outside,
    plus,
    row_eigen,
    scaled,
    times,
    zeros,
)


class Sketch(Protocol):
    """Rows S with SᵀS ≈ Σĝĝᵀ; `ridge` is what has been added to α, `shrinks` the sum of what was subtracted."""

    ridge: Number
    shrinks: Number

    @property
    def rows(self) -> Matrix:
        """S."""

    def update(self, g: Vector) -> None:
        """One round: g may be zero."""

    def matrix(self, size: int) -> Matrix:
        """SᵀS."""

    def basis(self) -> Matrix:
        """Orthonormal rows that span the range of SᵀS."""


class Exact:
    """SON Equation 2: SᵀS = Σĝĝᵀ."""

    def __init__(self, size: int) -> None:
        self.total = zeros(size, size)
        self.rows: Matrix = []
        self.range: Matrix = []
        self.ridge = mpf(0)
        self.shrinks = mpf(0)

    def update(self, g: Vector) -> None:
        add_outer(self.total, g)
        self.rows.append(g)
        rest = outside(self.range, g)
        if not is_zero(rest, g):
            self.range.append(scaled(rest, 1 / mp.sqrt(dot(rest, rest))))

    def matrix(self, size: int) -> Matrix:
        return [row[:size] for row in self.total]

    def basis(self) -> Matrix:
        return self.range


def floor_share(beta: float, m: int) -> int:
    """⌊βm⌋ with β as it is written in decimals: 0.29·100 is 29."""
    return int(Fraction(repr(beta)) * m)


class FrequentDirections:
    """SON Algorithm 6 (FD), RFD Algorithms 3 and 6 (robust), PFD of RFD §6 (beta), by when it shrinks.

    `epoch` says when: `"rounds"`, every m rounds, as SON's Algorithm 6; `"row"`, whenever there are m rows, as
    SON's Algorithm 2 and RFD's Algorithm 3; `"2m"`, when there are 2m rows, as RFD's Algorithm 6, whose sketch
    begins with `first_rows` zero rows (its B⁽⁰⁾ has m; its Algorithm 5 begins with none).

    A shrink keeps the m − 1 leading eigenvalues of SᵀS, and of the m leading ones the last ⌊βm⌋ lose the m-th, ρ.
    Robust: half of ρ goes to the ridge.
    """

    def __init__(
        self,
        m: int,
        *,
        robust: bool = False,
        beta: float = 1.0,
        epoch: str = "rounds",
        first_rows: int | None = None,
    ) -> None:
        self.m = m
        self.robust = robust
        self.shrunk = floor_share(beta, m)
        if self.shrunk < 1:
            raise ValueError(f"beta={beta} is invalid: of {m} directions none would shrink")
        self.capacity = {"rounds": m, "row": m, "2m": 2 * m}[epoch]
        self.epoch = epoch
        self.kept: Matrix = []
        self.recent: Matrix = []
        self.held = {"rounds": 0, "row": 0, "2m": m if first_rows is None else first_rows}[epoch]
        self.ridge = mpf(0)
        self.shrinks = mpf(0)

    @property
    def rows(self) -> Matrix:
        return self.kept + self.recent

    def matrix(self, size: int) -> Matrix:
        return outer_sum(self.rows, size)

    def basis(self) -> Matrix:
        return orthonormal(self.rows)

    def update(self, g: Vector) -> None:
        self.recent.append(g)
        self.held += 1
        if self.held == self.capacity:
            self.shrink(len(g))

    def shrink(self, size: int) -> None:
        m = self.m
        values, vectors = row_eigen(self.rows, size)
        rho = values[m - 1] if len(values) >= m else mpf(0)
        left = [value if i < m - self.shrunk else value - rho for i, value in enumerate(values[: m - 1])]
        self.kept = [scaled(v, mp.sqrt(value)) for value, v in zip(left, vectors, strict=False)]
        self.recent = []
        self.held = 0 if self.epoch == "rounds" else m - 1
        self.shrinks += rho
        if self.robust:
            self.ridge += rho / 2


class Oja:
    """SON Algorithm 3 and Equation 4.

    V starts empty: while it has fewer than m rows, a gradient (not zero) with more than 1% of its squared length
    outside their span opens a direction, after which Equation 4 takes it in. `rate` c: Γ_t = min(1, c/t), t being
    the round; a sequence has a c for each direction. `"adaptive"`: E_j = tΛ_j gains ŷ_j², and the rate is
    1/max(E_j, ‖ĝ‖²).
    """

    def __init__(self, m: int, *, rate: str | float | Sequence[float] = 1.0) -> None:
        self.m = m
        self.rate = rate
        self.t = 0
        self.V: Matrix = []
        self.energy: Vector = []
        self.ridge = mpf(0)
        self.shrinks = mpf(0)

    @property
    def rows(self) -> Matrix:
        return [scaled(v, mp.sqrt(e)) for v, e in zip(self.V, self.energy, strict=True)]

    def matrix(self, size: int) -> Matrix:
        return outer_sum(self.rows, size)

    def basis(self) -> Matrix:
        return self.V

    def open(self, g: Vector) -> None:
        rest = outside(self.V, g)
        if len(self.V) < self.m and 100 * dot(rest, rest) > dot(g, g) and any(g):
            self.V.append(scaled(rest, 1 / mp.sqrt(dot(rest, rest))))
            self.energy.append(mpf(0))

    def update(self, g: Vector) -> None:
        self.t += 1
        self.open(g)
        seen = times(self.V, g)
        gains = self.gains(seen, dot(g, g))
        moved = [plus(v, g, gain * y) for v, gain, y in zip(self.V, gains, seen, strict=True)]
        self.V = orthonormal(moved)
        if len(self.V) != len(moved):
            raise ArithmeticError("Oja's directions have become dependent, which SON's footnote 4 rules out")

    def gains(self, seen: Vector, length: Number) -> Vector:
        """Take the gradient into the eigenvalues, and return Γ_t."""
        if isinstance(self.rate, str):
            self.energy = [e + y * y for e, y in zip(self.energy, seen, strict=True)]
            return [1 / max(e, length) if length else mpf(0) for e in self.energy]
        given = [self.rate] * self.m if isinstance(self.rate, int | float) else list(self.rate)
        t = mpf(self.t)
        rates = [min(mpf(1), mpf(c) / t) for c in given[: len(self.V)]]
        before = max(t - 1, mpf(1))
        self.energy = [
            t * ((1 - rate) * e / before + rate * y * y)
            for e, rate, y in zip(self.energy, rates, seen, strict=True)
        ]
        return rates
