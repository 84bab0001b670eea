"""AdaGrad's learners, dense: every matrix written out, every step solved for (ADA section 2, Algorithms 1 and 2).

A sketch here is an object with `take(v)` and `matrix()`, the approximation of G = Σvvᵀ. The step is

    mirror descent   argmin_β η⟨g, β⟩ + ηφ(β) + ½(β − β_t)ᵀH(β − β_t)
    dual averaging   argmin_β η⟨Σg, β⟩ + ηtφ(β) + ½βᵀHβ

with H = σI + G^½, by coordinate descent if φ has an l1 part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sketchnewton._native import normal_row

from .common import DERIVATIVES, Vector, excess
from .frequent import shrink

Matrix = NDArray[np.float64]


class Sketch(Protocol):
    def take(self, v: Vector) -> None: ...

    def matrix(self) -> Matrix: ...


class Exact:
    """ADA-FULL: G itself."""

    def __init__(self, d: int) -> None:
        self.G = np.zeros((d, d))

    def take(self, v: Vector) -> None:
        self.G += np.outer(v, v)

    def matrix(self) -> Matrix:
        return self.G


class Diagonal(Exact):
    """ADA-DIAG."""

    def matrix(self) -> Matrix:
        return np.diag(np.diag(self.G))


class Projection:
    """ADA-GP and ADA-DP: S ← S + ρvᵀ. The draws are the learner's own."""

    def __init__(self, d: int, m: int, seed: int) -> None:
        self.S, self.m, self.seed, self.updates = np.zeros((m, d)), m, seed, 0

    def take(self, v: Vector) -> None:
        self.S += np.outer(normal_row(self.seed, self.updates, self.m) / np.sqrt(self.m), v)
        self.updates += 1

    def matrix(self) -> Matrix:
        return self.S.T @ self.S


class Frequent:
    """ADA-FD (`ridge` = 0) and its robust form (½): shrinks every m rounds."""

    def __init__(self, d: int, m: int, ridge: float) -> None:
        self.B, self.m, self.ridge, self.alpha, self.waiting = np.zeros((0, d)), m, ridge, 0.0, 0

    def take(self, v: Vector) -> None:
        self.B = np.vstack([self.B, v])
        self.waiting += 1
        if self.waiting == self.m:
            self.B, rho = shrink(self.B, self.m)
            self.alpha += self.ridge * rho
            self.waiting = 0

    def matrix(self) -> Matrix:
        return self.B.T @ self.B + self.alpha * np.eye(self.B.shape[1])


def root(A: Matrix) -> Matrix:
    """A^½ of a symmetric positive semi-definite matrix."""
    values, V = np.linalg.eigh(A)
    return np.asarray((V * np.sqrt(np.maximum(values, 0))) @ V.T)


def minimise(H: Matrix, q: Vector, l1: float, l2: float, start: Vector) -> Vector:
    """argmin ½βᵀHβ − qᵀβ + l1‖β‖₁ + ½l2‖β‖²; by coordinate descent if there is an l1 part."""
    A = H + l2 * np.eye(len(q))
    if l1 == 0:
        return np.asarray(np.linalg.solve(A, q))
    beta = start.copy()
    for _ in range(100_000):
        largest = 0.0
        for i in range(len(q)):
            v = q[i] - A[i] @ beta + A[i, i] * beta[i]
            new = np.sign(v) * max(abs(v) - l1, 0.0) / A[i, i]
            largest = max(largest, abs(new - beta[i]))
            beta[i] = new
        if largest < 1e-13 * max(1.0, np.abs(beta).max()):
            break
    return beta


def softmax(scores: Vector) -> Vector:
    e = np.exp(scores - scores.max())
    return np.asarray(e / e.sum())


def adaptive(
    X: Matrix,
    y: Vector,
    sketch: Callable[[int], Sketch],
    *,
    eta: float,
    sigma: float,
    of_data: bool = False,
    averaging: bool = False,
    l1: float = 0.0,
    l2: float = 0.0,
    loss: str = "squared",
    C: float = np.inf,
    classes: int | None = None,
    importance: Vector | None = None,
) -> tuple[Matrix, Matrix]:
    """Return the scores before each update and the final weights; `sketch(k)` makes the sketch of block k.

    Each class has a sketch of its gradients; a sketch of data serves all.
    """
    (T, d), K = X.shape, classes or 1
    beta, sums, scores = np.zeros((d, K)), np.zeros((d, K)), np.zeros((T, K))
    sketches = [sketch(k) for k in range(1 if of_data else K)]
    for t, x in enumerate(X):
        h = 1.0 if importance is None else importance[t]
        scores[t] = x @ beta
        if classes is None:
            if abs(scores[t, 0]) > C:
                Px = np.linalg.solve(sigma * np.eye(d) + root(sketches[0].matrix()), x)
                beta[:, 0] -= excess(scores[t, 0], C) / (x @ Px) * Px
                scores[t, 0] = np.clip(scores[t, 0], -C, C)
            slopes = np.array([h * DERIVATIVES[loss](scores[t, 0], y[t])])
        else:
            slopes = h * (softmax(scores[t]) - np.eye(K)[int(y[t])])
        for k, part in enumerate(sketches):
            v = x if of_data else slopes[k] * x
            part.take(v)  # zero or not: rounds count
        metrics = [sigma * np.eye(d) + root(part.matrix()) for part in sketches]
        for k in range(K):
            H = metrics[0 if of_data else k]
            g = slopes[k] * x
            sums[:, k] += g
            times = eta * (t + 1) if averaging else eta
            q = -eta * sums[:, k] if averaging else H @ beta[:, k] - eta * g
            beta[:, k] = minimise(H, q, times * l1, times * l2, beta[:, k])
    return (scores[:, 0], beta[:, 0]) if classes is None else (scores, beta)
