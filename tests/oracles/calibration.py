"""Calibrated probabilities, from their definition in docs/untuned.md: what a score says, tempered, mixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def said(scores: Vector, rows: float, classes: int, *, logistic: bool) -> Vector:
    """What each score says of its class."""
    if logistic:
        return 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
    n = min(rows, 50 * classes)
    return (n * (1 + np.clip(scores, -1, 1)) / 2 + 1) / (n + 2)


class Side:
    """Q ∝ exp(β(ln p − p) + γp) beside P = p/Σp; Newton's steps for −ln Q(y), weights by Bayes' rule."""

    def __init__(self) -> None:
        self.theta, self.H, self.v = np.ones(2), np.eye(2), np.full(2, 0.5)
        self.rows = self.clock = 0.0

    def tempered(self, p: Vector) -> Vector:
        powers = np.stack([np.log(p) - p, p]).T @ self.theta
        Q = np.exp(powers - powers.max())
        return np.asarray(Q / Q.sum())

    def play(self, p: Vector) -> Vector:
        return np.asarray(self.v[0] * p / p.sum() + self.v[1] * self.tempered(p))

    def learn(self, p: Vector, y: int, h: float) -> None:
        Z, Q, P = np.stack([np.log(p) - p, p]).T, self.tempered(p), p / p.sum()
        self.rows, self.clock, h = self.rows + 1, self.clock + h, min(h, 100.0)
        mean = Q @ Z
        self.H = (1 - 1 / (self.rows + 19)) * self.H + h * ((Z.T * Q) @ Z - np.outer(mean, mean))
        A, slope, old = self.H + 1e-3 * np.eye(2), h * (Z[y] - mean), self.theta
        beta, gamma = old + np.linalg.solve(A, slope)
        if gamma < 0:
            gamma, beta = 0.0, old[0] + (slope[0] + A[0, 1] * old[1]) / A[0, 0]
        elif beta < 0.05:
            beta, gamma = 0.05, old[1] + (slope[1] + A[0, 1] * (old[0] - 0.05)) / A[1, 1]
        self.theta = np.array([np.clip(beta, 0.05, 20), np.clip(gamma, 0, 20)])
        v = self.v * np.exp(h * np.log([P[y] / max(P[y], Q[y]), Q[y] / max(P[y], Q[y])]))
        self.v = (1 - 1 / (self.clock + 1)) * v / v.sum() + 0.5 / (self.clock + 1)


def two_classes(scores: Vector, labels: Vector, weights: Vector, *, logistic: bool) -> Vector:
    """The probability of +1 that is played before each row; each side of 0 is calibrated on its own."""
    sides, played = [Side(), Side()], []
    for s, y, h in zip(scores, labels, weights, strict=True):
        p = said(np.array([-s, s]), sides[0].rows + sides[1].rows, 2, logistic=logistic)
        side = sides[int(s > 0)]
        played.append(side.play(p)[1])
        side.learn(p, int(y > 0), h)
    return np.array(played)


def classes(scores: Vector, labels: Vector, weights: Vector, *, logistic: bool) -> Vector:
    """The probabilities of all classes that are played before each row."""
    side, played = Side(), []
    for s, y, h in zip(scores, labels, weights, strict=True):
        p = said(s, side.rows, len(s), logistic=logistic)
        played.append(side.play(p))
        side.learn(p, int(y), h)
    return np.array(played)
