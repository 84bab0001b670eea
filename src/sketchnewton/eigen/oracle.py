"""The eigenvector oracle EV(·): leading eigenvectors of a matrix that is known by its products.

>>> rng = np.random.default_rng(0)
>>> A = Operator(3, lambda x: np.array([1.0, 3.0, 2.0]) * x)
>>> abs(leading(A, 1, np.ones(3) / 3**0.5, 1e-9, rng)).round(6).ravel().tolist()
[0.0, 1.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sketchnewton.core.types import Floats

__all__ = ["ORACLES", "Operator", "largest_eigenvalues", "leading"]

_EXACT = 40  # up to this size LAPACK is faster than any iteration
_STEPS = 24  # of our Lanczos before LAPACK or ARPACK, which restarts, takes over
_FALLBACK = 300  # up to this size LAPACK
_STIR = 0.01  # share of a random vector in the start: an exact old eigenvector would never see a new leader
_RESTARTS = 300
_POWER_STEPS = 20_000

ORACLES = ("lanczos", "power")


@dataclass
class Operator:
    """A symmetric n×n matrix: its products, and its entries where someone has them cheaply."""

    n: int
    times: Callable[[Floats], Floats]
    dense: Callable[[], Floats] | None = None
    floor: float = field(default=0.0)
    """λ_min ≥ −floor; only the power iterations need it."""


def leading(
    operator: Operator,
    components: int,
    start: Floats,
    tolerance: float,
    rng: np.random.Generator,
    method: str = "lanczos",
) -> Floats:
    """Unit vectors x (columns) with xᵀMx below λ_max(M) by about `tolerance` at most; several by deflation.

    `start` is the answer for a nearby matrix. Lanczos begins there and stops as soon as the residual r promises
    the tolerance, by r²/gap or r; usually after a few products. "power" multiplies until the same rule holds.
    """
    n = operator.n
    start = start.reshape(n, -1)
    if n <= _EXACT and operator.dense is not None and method == "lanczos":
        # In ascending order. All of them: LAPACK's search for a few may lose one among equal eigenvalues.
        _, vectors = np.linalg.eigh(operator.dense())
        return np.ascontiguousarray(
            vectors[:, : n - components - 1 : -1] if components < n else vectors[:, ::-1]
        )
    find = _lanczos if method == "lanczos" else _power
    found = np.empty((n, 0))
    values: list[float] = []
    for k in range(components):
        first = start[:, k] if k < start.shape[1] else rng.standard_normal(n)
        value, vector = find(_deflated(operator, found, values), first, tolerance, rng)
        vector -= found @ (found.T @ vector)
        found = np.column_stack([found, vector / np.linalg.norm(vector)])
        values.append(value)
    return found


def largest_eigenvalues(operator: Operator, components: int) -> float:
    """The sum of the largest eigenvalues, to ten digits: what a game is measured against."""
    n = operator.n
    if operator.dense is not None and (n <= 200 or components >= n):
        values = np.linalg.eigvalsh(operator.dense())
        return float(values[n - components :].sum())
    start = np.random.default_rng(0).standard_normal(n)
    linear = LinearOperator((n, n), matvec=operator.times, dtype=np.float64)
    values = eigsh(linear, k=components, which="LA", v0=start, tol=1e-10, return_eigenvectors=False)
    return float(values.sum())


def _deflated(operator: Operator, found: Floats, values: list[float]) -> Operator:
    """The operator with the found eigenvectors moved below all others."""
    if not values:
        return operator
    shift = np.array(values) + operator.floor + abs(values[0])
    return Operator(
        operator.n,
        lambda x: operator.times(x) - found @ (shift * (found.T @ x)),
        floor=2 * operator.floor + abs(values[0]),
    )


def _lanczos(
    operator: Operator, start: Floats, tolerance: float, rng: np.random.Generator
) -> tuple[float, Floats]:
    """Lanczos with full reorthogonalisation; ARPACK continues where a few steps are not enough."""
    n = operator.n
    steps = min(_STEPS, n)
    basis = np.empty((steps, n))
    alpha, beta = np.zeros(steps), np.zeros(steps)
    stir = rng.standard_normal(n)
    basis[0] = start / np.linalg.norm(start) + _STIR / np.linalg.norm(stir) * stir
    basis[0] /= np.linalg.norm(basis[0])
    value, weights = 0.0, np.ones(1)
    for j in range(steps):
        w = operator.times(basis[j])
        alpha[j] = basis[j] @ w
        for _ in range(2):  # twice is enough for orthogonality to rounding
            w = w - (basis[: j + 1] @ w) @ basis[: j + 1]
        beta[j] = np.linalg.norm(w)
        small = np.diag(alpha[: j + 1]) + np.diag(beta[:j], 1) + np.diag(beta[:j], -1)
        values, vectors = np.linalg.eigh(small)
        value, weights = float(values[-1]), vectors[:, -1]
        residual = beta[j] * abs(weights[-1])
        if (j >= 2 and _close(residual, value - values[-2], tolerance)) or j == n - 1:
            return value, weights @ basis[: j + 1]
        if beta[j] <= 1e-14 * max(
            abs(values[0]), abs(value)
        ):  # an invariant space: nothing more to see from here
            return value, weights @ basis[: j + 1]
        if j + 1 < steps:
            basis[j + 1] = w / beta[j]
    if n <= _FALLBACK and operator.dense is not None:
        values, vectors = np.linalg.eigh(operator.dense())
        return float(values[-1]), vectors[:, -1]
    return _arpack(operator, weights @ basis, tolerance / max(abs(value), tolerance))


def _arpack(operator: Operator, start: Floats, relative: float) -> tuple[float, Floats]:
    n = operator.n
    linear = LinearOperator((n, n), matvec=operator.times, dtype=np.float64)
    try:
        values, vectors = eigsh(
            linear, k=1, which="LA", v0=start, tol=relative, ncv=min(n, 40), maxiter=_RESTARTS
        )
    except ArpackNoConvergence:
        # Eigenvalues closer than rounding: any vector of their space is as good as another.
        vector = start / np.linalg.norm(start)
        return float(vector @ operator.times(vector)), vector
    return float(values[0]), vectors[:, 0]


def _power(
    operator: Operator, start: Floats, tolerance: float, rng: np.random.Generator
) -> tuple[float, Floats]:
    """x ← (M + floor·I)x / ‖·‖, the shift so that the largest eigenvalue is also the largest in size."""
    stir = rng.standard_normal(operator.n)
    x = start / np.linalg.norm(start) + _STIR / np.linalg.norm(stir) * stir
    x /= np.linalg.norm(x)
    value = 0.0
    for _ in range(_POWER_STEPS):
        y = operator.times(x)
        value = float(x @ y)
        residual = float(np.linalg.norm(y - value * x))
        if residual <= tolerance:
            break
        y += operator.floor * x
        x = y / np.linalg.norm(y)
    return value, x


def _close(residual: float, gap: float, tolerance: float) -> bool:
    """Whether the Ritz value is within the tolerance of an eigenvalue (Parlett, chapter 11)."""
    return bool(residual <= tolerance or residual**2 <= tolerance * gap)
