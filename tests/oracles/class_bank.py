"""The bank of classes, dense: softmax experts over one Robust Frequent Directions sketch (docs/class-bank.md).

W and U are kept whole, nothing is put off; every class has least squares of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .bank import Matrix, newton, robust_frequent_directions, seen
from .bank_full import FORGET, Full
from .bank_paths import travel
from .common import Vector

EXPERTS = (("constant", 4.0), ("root", 8.0), ("restless", 1e6), ("rare", 4.0))


@dataclass
class Trace:
    """Logarithms of the probabilities played, those of the mixture and of the experts; expert weights."""

    played: list[Vector] = field(default_factory=list)
    mixed: list[Vector] = field(default_factory=list)
    experts: list[Matrix] = field(default_factory=list)
    shares: list[Vector] = field(default_factory=list)
    W: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((0, 0, 0))
    )  # experts × classes × features


def softmax(scores: Vector) -> Vector:
    powers = np.exp(np.maximum(scores - scores.max(), -20.0))
    return powers / powers.sum()


def dealt(v: Vector, share: float) -> Vector:
    return (1 - share) * v / v.sum() + share / len(v)


@dataclass
class Temper:
    """Q ∝ exp(β(ln P − P) + γP), by Newton's method; played is a mixture of P and Q."""

    theta: Vector = field(default_factory=lambda: np.ones(2))
    H: Matrix = field(default_factory=lambda: np.eye(2))
    v: Vector = field(default_factory=lambda: np.full(2, 0.5))

    def tempered(self, P: Vector) -> Vector:
        scores = np.column_stack([np.log(P) - P, P]) @ self.theta
        powers = np.exp(scores - scores.max())
        return powers / powers.sum()

    def learn(self, P: Vector, label: int, h: float, t: int, clock: float) -> None:
        Z, Q = np.column_stack([np.log(P) - P, P]), self.tempered(P)
        mean = Q @ Z
        self.H = (1 - 1 / (t + 19)) * self.H + h * (Z.T @ (Q[:, None] * Z) - np.outer(mean, mean))
        M, slope = self.H + 1e-3 * np.eye(2), h * (Z[label] - mean)
        goal = self.theta + np.linalg.solve(M, slope)
        least = np.array([0.05, 0.0])
        for j, other in ((1, 0), (0, 1)):  # the minimum of the parabola where one of them is at its bound
            if goal[j] < least[j]:
                goal[j] = least[j]
                goal[other] = (
                    self.theta[other] + (slope[other] - M[0, 1] * (goal[j] - self.theta[j])) / M[other, other]
                )
                break
        self.theta = np.clip(goal, least, 20.0)
        self.v = dealt(self.v * np.array([P[label], Q[label]]) ** h, 1 / (clock + 1))


class FullClasses:
    """Least squares of each class against the rest, while there are few features."""

    def __init__(self, K: int, d: int, intercept: bool) -> None:
        self.K, self.features = K, d - intercept
        self.experts = [[Full(forget, d, intercept) for _ in range(K)] for forget in FORGET]
        self.non_zeros, self.waiting = 0, 0
        self.scores: list[list[float]] = []

    def probabilities(self, x: Vector) -> list[Vector]:
        self.scores = [[float(one.w @ x) for one in each] for each in self.experts]
        found = []
        for each, scores in zip(self.experts, self.scores, strict=True):
            odds = np.array([one.odds.of(score) for one, score in zip(each, scores, strict=True)])
            p = expit(np.clip(odds, -20, 20))
            found.append(p / p.sum())
        return found

    def learn(self, x: Vector, label: int, h: float, T: int, N: Vector, M1: Vector) -> None:
        present = x[: self.features] != 0
        self.non_zeros += np.count_nonzero(present)
        known = np.count_nonzero(N[: self.features])
        new = (present & (N[: self.features] == 1)).any()
        if new and (known > 128 or (known > 64 and known * T > 8 * self.non_zeros)):
            self.experts = []
        self.waiting += 1
        due = self.waiting >= min(1 + T // 32, max(8, (known + 1) // 4))
        self.waiting = 0 if due else self.waiting
        for each, scores in zip(self.experts, self.scores, strict=False):
            for k, (one, score) in enumerate(zip(each, scores, strict=True)):
                y = 1.0 if k == label else -1.0
                one.odds.learn(score, y, h, T)
                one.learn(x[None], np.array([y]), np.array([h]), h)
                if due:
                    one.solve(M1 / np.maximum(N, 1), N > 0)


def class_bank(
    X: Matrix,
    y: NDArray[np.int64],
    K: int,
    *,
    m: int,
    importance: Vector | None = None,
    intercept: bool = True,
) -> Trace:
    """Run the bank over the rows in order."""
    X = np.hstack([X, np.full((len(X), int(intercept)), 1.0)])
    d, E = X.shape[1], len(EXPERTS)
    h_all = np.ones(len(y)) if importance is None else importance
    W, N, M1 = np.zeros((E, K, d)), np.zeros(d), np.zeros(d)
    U, lam, buffer = np.zeros((0, d)), np.zeros(0), []
    T, R, rho, clock, following = 0, 0.0, 0.0, 0.0, 0
    full, temper, trace = FullClasses(K, d, intercept), Temper(), Trace()
    v = np.full(E + len(FORGET), 1 / (E + len(FORGET)))
    for t, (x, label, h) in enumerate(zip(X, y, h_all, strict=True), 1):
        present = x != 0
        N_new, M1_new = N + present, M1 + abs(x)
        s = M1_new / np.maximum(N_new, 1) * (N_new / (T + 1)) ** 0.25
        xs = np.where(present, x / np.where(s > 0, s, 1.0), 0.0)
        known = xs[(N > 0) | (np.arange(d) >= d - intercept)]
        typical = R / T if T > 0 else None  # before this row
        views = seen(xs, known @ known, typical, T, classes=True, intercept=intercept)
        nothing = intercept and known @ known <= 1
        lacking = (typical or 0.0) - float(views["restless"] @ views["restless"]) if nothing else 0.0
        seen_by = [views[schedule] for schedule, _ in EXPERTS]
        p = [softmax(weights @ row) for weights, row in zip(W, seen_by, strict=True)]
        p += full.probabilities(x)
        P = v @ np.array(p)
        Q = temper.tempered(P)
        trace.mixed.append(np.log(P))
        trace.played.append(np.log(temper.v @ np.array([P, Q])))
        trace.experts.append(np.array(p))

        clock += h
        r = 4 * float(np.sqrt(((P - (np.arange(K) == label)) ** 2).sum() / 2))
        v = dealt(v * np.array([each[label] for each in p]) ** h, 1 / (clock + 1))
        temper.learn(P, label, h, t, clock)
        stands_for = 0
        if t >= following:  # this row goes into the sketch, for all up to the next that does
            stands_for = 1 if t <= 30 * m else max(8, t // 64)
            following = t + stands_for
        if r >= 1e-9 and xs @ xs > 0:
            T, N, M1 = T + 1, N_new, M1_new
            R += xs @ xs
            if m > 0 and stands_for > 0:
                buffer.append(np.sqrt(h * stands_for) * r * xs)
            if buffer and len(buffer) >= min(4 * m, 1 + t // 16):
                U, lam, delta = robust_frequent_directions(U, lam, buffer, m)
                rho, buffer = rho + delta, []
            for e, (schedule, multiplier) in enumerate(EXPERTS):
                row = seen_by[e]
                if schedule == "rare":  # AdaGrad, with numbers of rows for sums of squares
                    steepest = row / np.sqrt(np.maximum(N, 1))
                    length = multiplier / np.sqrt(R / T / np.sqrt(T))
                else:
                    f = 1 / 8 if schedule == "constant" else 2 / np.sqrt(max(clock, 1.0))
                    steepest, length = newton(row, R / T + f * rho / 2, U, f * lam), multiplier
                q = row @ steepest + (
                    max(0.0, lacking) / (R / T + f * rho / 2) if schedule == "restless" else 0.0
                )
                for k in range(K):
                    if k != label and p[e][k] < 1e-4 / K:
                        continue
                    odds = np.log(p[e][k]) - np.log1p(-min(p[e][k], 1 - 1e-9))
                    way = travel("logistic", 0.0, odds, 1.0 if k == label else -1.0, h * length * q, 1.0)
                    W[e, k] += way / q * steepest
            full.learn(x, label, h, T, N, M1)
            v = v[: E + len(full.experts)] / v[: E + len(full.experts)].sum()
        trace.shares.append(v.copy())
    factors = [(T + 1) ** -0.25 if schedule == "rare" else 1.0 for schedule, _ in EXPERTS]
    trace.W = W * np.array(factors)[:, None, None]
    return trace
