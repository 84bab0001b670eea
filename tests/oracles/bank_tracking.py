"""The bank's expert whose weights wander, dense: dynamic logistic regression of centred, scaled features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .common import Vector

Matrix = NDArray[np.float64]
LOSSES = ("squared", "logistic")
DRIFT = 5e-5
MOST = 128  # features
WILD = 16.0  # spreads


class Tracking:
    """w ~ N(w, C); with every row of weight h, C ← (1 − ε)C + εI with ε = 5e-5 h/(1 + 5e-5 h).

    The constant, if there is one, is the last of d features. A feature counts from the first row that is learned
    with it on: from 0 in units of its mean size at first, from its mean in units of its spread when a block of
    rows has ended.
    """

    def __init__(self, d: int, *, intercept: bool) -> None:
        self.intercept = intercept
        self.w, self.C = np.zeros(d), np.eye(d)
        self.centre, self.scale, self.known = np.zeros(d), np.ones(d), np.zeros(d, bool)

    def row(self, x: Vector) -> Vector:
        u = np.where(self.known, np.clip((x - self.centre) / self.scale, -WILD, WILD), 0.0)
        if self.intercept:
            u[-1] = 1.0 if self.known[-1] else 0.0
        return u

    def weights(self) -> Vector:
        """Of log odds, for features as they come; the constant last."""
        w = np.where(self.known, self.w / self.scale, 0.0)
        w[-1] -= w @ self.centre if self.intercept else 0.0
        return w

    def score(self, x: Vector) -> float:
        return float(np.tanh(0.5 * self.w @ self.row(x)))

    def learn(self, x: Vector, y: float, h: float, seen: NDArray[np.bool_], sizes: Vector) -> None:
        """A row of the label y; `seen` are the features so far, this row's among them, and their mean sizes."""
        new = seen & ~self.known
        self.scale[new] = sizes[new]
        self.known = seen.copy()
        u = self.row(x)
        v, p = self.C @ u, expit(self.w @ u)
        q = float(u @ v)
        self.w = self.w + h * ((1 + y) / 2 - p) / (1 + h * q / 4) * v
        c = h * p * (1 - p)
        drift = max(1e-12, h * DRIFT / (1 + h * DRIFT))
        self.C = (1 - drift) * (self.C - c / (1 + c * q) * np.outer(v, v)) + drift * np.eye(len(u))

    def measure(self, A: Matrix, sizes: Vector) -> None:
        """Means and spreads, by the moments of all rows in blocks that have ended."""
        features = self.known.copy()
        if self.intercept:
            features[-1] = False
        squares = np.diag(A)
        self.scale[features] = sizes[features]
        if not self.intercept:
            return
        rows = A[-1, -1]
        self.centre[features] = A[features, -1] / rows
        there = np.where(squares > 0, squares, 1.0)
        share = np.clip(1 - A[:, -1] ** 2 / (there * rows), 1 / max(1.0, rows), 1.0)
        self.scale[features] *= np.sqrt(np.where(squares > 0, share, 1.0))[features]
