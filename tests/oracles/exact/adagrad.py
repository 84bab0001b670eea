"""AdaGrad with the full matrix and its approximations (ADA), dense and in many digits.

    run = fd_adagrad(X, y, m=10, eta=0.3, sigma=1.0)

All take rows X (n × d), labels y and, by name: `loss`, `eta` the step size, `sigma` the ridge of H = σI + G^½,
`form` ("mirror_descent", the papers', or "dual_averaging"), `l2` λ of the composite term φ(β) = ½λ‖β‖², `digits`.
There is no projection. With H of round t, its gradient included:

- mirror descent: β_{t+1} = argmin η⟨g_t, β⟩ + ηφ(β) + ½(β − β_t)ᵀH(β − β_t);
- dual averaging: β_{t+1} = argmin η⟨Σg, β⟩ + ηtφ(β) + ½βᵀHβ.

Random numbers are the caller's: `R` has the random vector r_t of round t as its row t (n × τ), and `projection` is
the Π of ADA-LR (d × τ). RADAGRAD is not here: ADA names it without its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, Unpack

import numpy as np
from mpmath import mp, mpf

from .linalg import (
    Floats,
    Matrix,
    Number,
    Vector,
    add_outer,
    dot,
    orthonormal,
    outer_sum,
    plus,
    row_eigen,
    scaled,
    symmetric_eigen,
    times,
    vector,
    zeros,
)
from .losses import Loss, named
from .run import Run
from .sketches import FrequentDirections


class Options(TypedDict, total=False):
    """What all learners take by name, beside `eta` and `sigma`."""

    loss: str | Loss
    form: str
    l2: float
    digits: int


class Metric(Protocol):
    """What stands for G = Σggᵀ."""

    def update(self, g: Vector, x: Vector) -> None:
        """One round: g may be zero."""

    def matrix(self) -> Matrix:
        """The d × d matrix that stands for G."""

    def root(self) -> tuple[Number, Vector, Matrix]:
        """G^½ as its value outside of all eigenvectors, what they have beyond that, and the eigenvectors."""


@dataclass
class Full:
    """ADA-FULL: G itself."""

    size: int

    def __post_init__(self) -> None:
        self.total = zeros(self.size, self.size)

    def update(self, g: Vector, x: Vector) -> None:
        add_outer(self.total, g)

    def matrix(self) -> Matrix:
        return self.total

    def root(self) -> tuple[Number, Vector, Matrix]:
        values, vectors = symmetric_eigen(self.total)
        return mpf(0), [mp.sqrt(max(value, mpf(0))) for value in values], vectors


@dataclass
class Frequent:
    """ADA-FD: G = SᵀS, and SᵀS + αI where the sketch is robust, α being half of all shrinks."""

    size: int
    sketch: FrequentDirections

    def update(self, g: Vector, x: Vector) -> None:
        self.sketch.update(g)

    def matrix(self) -> Matrix:
        return self.sketch.matrix(self.size)

    def root(self) -> tuple[Number, Vector, Matrix]:
        values, vectors = row_eigen(self.sketch.rows, self.size)
        ridge = self.sketch.ridge
        return mp.sqrt(ridge), [mp.sqrt(value + ridge) - mp.sqrt(ridge) for value in values], vectors


@dataclass
class Projected:
    """ADA-GP and ADA-DP (ADA Algorithms 1 and 2): S_t = S_{t−1} + r_t g_tᵀ, or r_t x_tᵀ."""

    size: int
    R: Matrix
    of_data: bool

    def __post_init__(self) -> None:
        self.t = 0
        self.S = zeros(len(self.R[0]), self.size)

    def update(self, g: Vector, x: Vector) -> None:
        r = self.R[self.t]
        self.S = [plus(row, x if self.of_data else g, r[k]) for k, row in enumerate(self.S)]
        self.t += 1

    def matrix(self) -> Matrix:
        return outer_sum(self.S, self.size)

    def root(self) -> tuple[Number, Vector, Matrix]:
        values, vectors = row_eigen(self.S, self.size)
        return mpf(0), [mp.sqrt(value) for value in values], vectors


def solve(metric: Metric, v: Vector, sigma: Number, decay: Number) -> tuple[Vector, Vector]:
    """(H + decay·I)⁻¹ v and H (H + decay·I)⁻¹ v, H = σI + G^½."""
    outside, inside, vectors = metric.root()
    h = sigma + outside
    inverse = scaled(v, 1 / (h + decay))
    product = scaled(v, h / (h + decay))
    for g, direction in zip(inside, vectors, strict=True):
        c = dot(direction, v)
        inverse = plus(inverse, direction, c * (1 / (h + g + decay) - 1 / (h + decay)))
        product = plus(product, direction, c * ((h + g) / (h + g + decay) - h / (h + decay)))
    return inverse, product


def adagrad(
    X: Floats,
    y: Sequence[float] | Floats,
    *,
    metric: Metric,
    eta: float,
    sigma: float,
    loss: str | Loss = "squared",
    form: str = "mirror_descent",
    l2: float = 0.0,
    digits: int = 100,
) -> Run:
    """ADA §2 with any metric; the functions below are its instances."""
    X = np.asarray(X, dtype=float)
    d = X.shape[1]
    loss = named(loss)
    with mp.workdps(digits):
        step, ridge, penalty = mpf(eta), mpf(sigma), mpf(l2)
        beta: Vector = [mpf(0)] * d
        total: Vector = [mpf(0)] * d
        curvature = zeros(d, d)
        predictions: Vector = []
        for t, (row, label) in enumerate(zip(X, y, strict=True), 1):
            x = vector(row)
            predictions.append(dot(beta, x))
            g = scaled(x, loss.slope(predictions[-1], mpf(float(label))))
            metric.update(g, x)
            add_outer(curvature, g)
            total = plus(total, g)
            if form == "dual_averaging":
                beta, _ = solve(metric, scaled(total, -step), ridge, step * t * penalty)
            elif form == "mirror_descent":
                move, _ = solve(metric, g, ridge, step * penalty)
                kept = solve(metric, beta, ridge, step * penalty)[1] if penalty else beta
                beta = plus(kept, move, -step)
            else:
                raise ValueError(f"form={form!r} is invalid: must be mirror_descent or dual_averaging")
        shrinks = +metric.sketch.shrinks if isinstance(metric, Frequent) else mpf(0)
        return Run(predictions, beta, metric.matrix(), curvature, shrinks, digits)


def full_adagrad(X: Floats, y: Floats, *, eta: float, sigma: float, **options: Unpack[Options]) -> Run:
    """ADA-FULL: H = σI + (Σggᵀ)^½."""
    return adagrad(X, y, metric=Full(X.shape[1]), eta=eta, sigma=sigma, **options)


def fd_adagrad(
    X: Floats,
    y: Floats,
    *,
    m: int,
    eta: float,
    sigma: float,
    robust: bool = False,
    epoch: str = "rounds",
    **options: Unpack[Options],
) -> Run:
    """ADA-FD (ADA §3.2, remark): Frequent Directions of the gradients, shrunk every m rounds; `robust` as RFD."""
    sketch = FrequentDirections(m, robust=robust, epoch=epoch)
    return adagrad(X, y, metric=Frequent(X.shape[1], sketch), eta=eta, sigma=sigma, **options)


def projected_adagrad(
    X: Floats,
    y: Floats,
    *,
    R: Floats,
    eta: float,
    sigma: float,
    of: str = "gradients",
    **options: Unpack[Options],
) -> Run:
    """ADA-GP (ADA Algorithm 1), and with of="data" ADA-DP (Algorithm 2); R has a row for each round."""
    if of not in ("gradients", "data"):
        raise ValueError(f"of={of!r} is invalid: must be gradients or data")
    metric = Projected(X.shape[1], [vector(row) for row in R], of == "data")
    return adagrad(X, y, metric=metric, eta=eta, sigma=sigma, **options)


def low_rank_adagrad(
    X: Floats,
    y: Floats,
    *,
    projection: Floats,
    eta: float,
    sigma: float,
    loss: str | Loss = "squared",
    digits: int = 100,
) -> Run:
    """ADA-LR (ADA Equation 1): QR = GΠ, UΣVᵀ = QᵀG, β ← β − ηV(Σ^½ + σI)⁻¹Vᵀg.

    Where GΠ is rank-deficient, Q is an orthonormal basis of its range, and where QᵀG is, V has the directions of
    its row space: those that the equation leaves open do not move.
    """
    X = np.asarray(X, dtype=float)
    d = X.shape[1]
    loss = named(loss)
    with mp.workdps(digits):
        columns = [vector(column) for column in projection.T]
        beta: Vector = [mpf(0)] * d
        G = zeros(d, d)
        predictions: Vector = []
        found: Matrix = zeros(d, d)
        for row, label in zip(X, y, strict=True):
            x = vector(row)
            predictions.append(dot(beta, x))
            g = scaled(x, loss.slope(predictions[-1], mpf(float(label))))
            add_outer(G, g)
            Q = orthonormal([times(G, column) for column in columns])
            squares, V = row_eigen([times(G, q) for q in Q], d)
            for square, v in zip(squares, V, strict=True):
                beta = plus(beta, v, -mpf(eta) * dot(v, g) / (mp.sqrt(mp.sqrt(square)) + mpf(sigma)))
            found = outer_sum([scaled(v, mp.sqrt(mp.sqrt(s))) for s, v in zip(squares, V, strict=True)], d)
        return Run(predictions, beta, found, G, mpf(0), digits)


def diagonal_adagrad(
    X: Floats,
    y: Floats,
    *,
    eta: float,
    sigma: float,
    loss: str | Loss = "squared",
    digits: int = 100,
) -> Run:
    """ADA-DIAG: H = σI + diag(Σg²)^½."""
    X = np.asarray(X, dtype=float)
    d = X.shape[1]
    loss = named(loss)
    with mp.workdps(digits):
        beta: Vector = [mpf(0)] * d
        squares: Vector = [mpf(0)] * d
        G = zeros(d, d)
        predictions: Vector = []
        for row, label in zip(X, y, strict=True):
            x = vector(row)
            predictions.append(dot(beta, x))
            g = scaled(x, loss.slope(predictions[-1], mpf(float(label))))
            add_outer(G, g)
            squares = [s + value**2 for s, value in zip(squares, g, strict=True)]
            beta = [
                b - mpf(eta) * v / (mpf(sigma) + mp.sqrt(s)) for b, v, s in zip(beta, g, squares, strict=True)
            ]
        found = [[squares[i] if i == j else mpf(0) for j in range(d)] for i in range(d)]
        return Run(predictions, beta, found, G, mpf(0), digits)
