"""Calibrated probabilities, by their definition in docs/untuned-theory.md: what a score says, tempered, mixed."""

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


class Corrections:
    """What labels were above probabilities near each of 17 nodes, rows counted by their place in the stream."""

    def __init__(self) -> None:
        self.nodes, self.weight, self.above = np.linspace(0, 1, 17), np.zeros(17), np.zeros(17)
        self.v = np.full(2, 0.5)

    def of(self, p: float, clock: float) -> float:
        weight = self.weight + 30 * clock
        to = self.nodes + self.above / np.where(weight > 0, weight, 1.0)
        to = np.array([(to[: i + 1].max() + to[i:].min()) / 2 for i in range(17)])
        moved = np.interp(p, self.nodes, to)
        least = min(p, 1 - p) / 4
        return float(np.clip(moved, 0.5, 1 - least) if p > 0.5 else np.clip(moved, least, 0.5))

    def play(self, p: float, clock: float) -> float:
        return float(self.v @ [p, self.of(p, clock)])

    def learn(self, p: float, y: int, h: float, clock: float) -> None:
        q = self.of(p, clock)
        clock, h = clock + h, min(h, 100.0)
        likely = np.array([p, q] if y else [1 - p, 1 - q])
        v = self.v * np.exp(h * np.log(likely / likely.max()))
        self.v = (1 - 1 / (clock + 1)) * v / v.sum() + 0.5 / (clock + 1)
        near = np.maximum(1 - 16 * np.abs(self.nodes - p), 0)
        self.weight += clock * h * near
        self.above += clock * h * near * (y - p)


def two_classes(scores: Vector, labels: Vector, weights: Vector, *, logistic: bool) -> Vector:
    """The probability of +1 that is played before each row; each side of 0 is calibrated on its own."""
    sides, corrections, played = [Side(), Side()], Corrections(), []
    for s, y, h in zip(scores, labels, weights, strict=True):
        p = said(np.array([-s, s]), sides[0].rows + sides[1].rows, 2, logistic=logistic)
        side, clock = sides[int(s > 0)], sides[0].clock + sides[1].clock
        mixed = side.play(p)[1]
        played.append(corrections.play(mixed, clock))
        corrections.learn(mixed, int(y > 0), h, clock)
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
