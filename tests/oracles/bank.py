"""The bank of Newton learners, dense: experts over one Robust Frequent Directions sketch.

Every line is the algorithm of docs/untuned.md; W and U are kept whole, nothing is put off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, wrightomega

from .common import Vector

Matrix = NDArray[np.float64]

EXPERTS = (
    ("constant", 0.5),
    ("constant", 2.0),
    ("constant", 8.0),
    ("root", 0.5),
    ("root", 8.0),
    ("restless", 1e6),
)
LARGEST_LOGIT = 20.0


@dataclass
class Trace:
    """What the bank did: predictions played, those of the experts, weights of the experts after each row."""

    played: list[float] = field(default_factory=list)
    experts: list[Vector] = field(default_factory=list)
    shares: list[Vector] = field(default_factory=list)
    W: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    scales: Vector = field(default_factory=lambda: np.zeros(0))
    eigenvalues: Vector = field(default_factory=lambda: np.zeros(0))


def mix(loss: str, p: Vector, v: Vector) -> float:
    """The prediction that the aggregating rule plays, in units where labels fill [-1, 1]."""
    if loss == "squared":
        return 0.5 * float(np.log(v @ np.exp(-0.5 * (p - 1) ** 2)) - np.log(v @ np.exp(-0.5 * (p + 1) ** 2)))
    if loss == "logistic":
        return float(np.log(v @ expit(p)) - np.log(v @ expit(-p)))
    return float(v @ p)


def losses(loss: str, tau: float, p: Vector, y: float) -> Vector:
    """Each expert's loss times the rate at which the aggregating rule learns from it."""
    if loss == "squared":
        return 0.5 * (p - y) ** 2
    if loss == "logistic":
        return np.logaddexp(0.0, -y * p)
    return np.where(y >= p, tau * (y - p), (1 - tau) * (p - y))


def rate(loss: str, clock: float, K: int) -> float:
    """How fast the rule learns: of losses that are not mixable ever more slowly."""
    return 1.0 if loss in ("squared", "logistic") else np.sqrt(8 * np.log(K) / max(clock, 1.0)) / 2


def charged(v: Vector, cost: Vector, share: float) -> Vector:
    """Exponential weights, of which a share is dealt out anew."""
    v = v * np.exp(cost.min() - cost)
    return (1 - share) * v / v.sum() + share / len(v)


def slope(loss: str, tau: float, p: float, y: float) -> float:
    if loss == "squared":
        return 2 * (p - y)
    if loss == "logistic":
        return float(-4 * y * expit(-y * p))
    return 0.0 if abs(p - y) < 1e-9 else -4 * tau if p < y else 4 * (1 - tau)


def travel(loss: str, tau: float, p: float, y: float, rate: float) -> float:
    """How far the score moves towards the label in a step that is `rate` long, taken in infinitely many parts."""
    if loss == "squared":
        return float((p - y) * np.expm1(-2 * rate))
    if loss == "logistic":
        start = y * p
        z = 8 * rate + start + np.exp(start)
        m = float(z - wrightomega(z))  # m + exp(m) = z
        return y * (m - start)
    distance = y - p
    speed = 4 * rate * (tau if distance > 0 else 1 - tau)
    return float(np.sign(distance) * min(abs(distance), speed))


def robust_frequent_directions(
    U: Matrix, lam: Vector, rows: list[Vector], m: int
) -> tuple[Matrix, Vector, float]:
    """The m directions that remain of [√λU; rows], their eigenvalues, and what all of them have shrunk by."""
    _, sigma, V = np.linalg.svd(np.vstack([np.sqrt(lam)[:, None] * U, *rows]), full_matrices=False)
    values = sigma**2
    least = 1e-13 * values[0]
    delta = values[m] if len(values) > m and values[m] > least else 0.0
    kept = values[:m] - delta > least
    return V[:m][kept], (values[:m] - delta)[kept], delta


def widened(low: float, high: float, labels: Sequence[float] | Vector, *, free: bool) -> tuple[float, float]:
    """The range of labels, grown by at most its own width to either side."""
    room = np.inf if free or high == low else high - low
    return max(low - room, min(labels)), min(high + room, max(labels))


def seen(
    xs: Vector, known: float, typical: float | None, *, classes: bool, intercept: bool
) -> dict[str, Vector]:
    """A row as the experts of each schedule see it; `known` is ‖x‖² of the features seen before.

    Classes do not depend on how long a row is: the falling experts see it at the typical length. The constant
    stays 1, but for the restless expert's, which follows frequencies that drift.
    """
    even = xs.copy()
    if classes and typical is not None and known > 0:
        even[: len(xs) - intercept] *= np.sqrt(typical / known)
    restless = even.copy()
    if intercept and typical is not None:
        restless[-1] = max(1.0, 0.25 * np.sqrt(max(typical - 1, 0.0)))
    return {"constant": xs, "root": even, "restless": restless}


def bank(
    X: Matrix,
    y: Vector,
    *,
    m: int,
    loss: str = "squared",
    tau: float = 0.5,
    experts: Sequence[tuple[str, float]] = EXPERTS,
    importance: Vector | None = None,
    intercept: bool = True,
) -> Trace:
    """Run the bank over the rows in order."""
    X = np.hstack([X, np.full((len(X), int(intercept)), 1.0)])
    d, K = X.shape[1], len(experts)
    h_all = np.ones(len(y)) if importance is None else importance
    W, N, M1 = np.zeros((K, d)), np.zeros(d), np.zeros(d)
    U, lam, buffer = np.zeros((0, d)), np.zeros(0), []
    T, R, rho, clock = 0, 0.0, 0.0, 0.0
    v, eta = np.full(K, 1 / K), rate(loss, 0.0, K)
    offset, low, high, signs = 0.0, -1.0, 1.0, True
    following, trace = 0, Trace()
    for t, (x, label, h) in enumerate(zip(X, y, h_all, strict=True), 1):
        if t == 1 and loss != "logistic" and abs(label) != 1:
            signs, offset, low, high = False, label, label, label
        middle, half = (0.0, 1.0) if loss == "logistic" else ((low + high) / 2, (high - low) / 2)
        # Scales include the row itself: they do not look at the label.
        present = x != 0
        N_new, M1_new = N + present, M1 + abs(x)
        s = M1_new / np.maximum(N_new, 1) * (N_new / (T + 1)) ** 0.25
        xs = np.where(present, x / np.where(s > 0, s, 1.0), 0.0)
        known = xs[(N > 0) | (np.arange(d) >= d - intercept)]
        views = seen(xs, known @ known, R / T if T > 0 else None, classes=signs, intercept=intercept)
        seen_by = [views[schedule] for schedule, _ in experts]
        scores = np.array([w @ row for w, row in zip(W, seen_by, strict=True)]) + offset
        if loss == "logistic":
            p = np.clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT)
        else:
            p = (np.clip(scores, low, high) - middle) / half if half > 0 else np.zeros(K)
        P = mix(loss, p, v)
        trace.played.append(0.0 if t == 1 and not signs else middle + half * P)
        trace.experts.append(middle + half * p)

        # A label beyond the range of those before it is learned as the nearest one within.
        Y = label if loss == "logistic" else (np.clip(label, low, high) - middle) / half if half > 0 else 0.0
        # If it is farther away than the range is wide, not at all.
        wild = not (signs or low - 2 * half <= label <= high + 2 * half) and t > 8 and half > 0
        clock += h
        now = eta if wild else rate(loss, clock, K)
        v = v if wild else charged(v ** (now / eta), now * h * losses(loss, tau, p, Y), 1 / (clock + 1))
        eta = now
        r = 0.0 if wild else slope(loss, tau, P, Y)

        stands_for = 0
        if (
            half > 0 and t >= following and not wild
        ):  # this row goes into the sketch, for all up to the next that does
            stands_for = 1 if t <= 30 * m else max(8, t // 64)
            following = t + stands_for
        if abs(r) >= 1e-9 and xs @ xs > 0:
            T, N, M1 = T + 1, N_new, M1_new
            R += xs @ xs
            if m > 0 and stands_for > 0:
                buffer.append(np.sqrt(h * stands_for) * abs(r) * xs)
            if buffer and len(buffer) >= min(4 * m, 1 + t // 16):
                U, lam, delta = robust_frequent_directions(U, lam, buffer, m)
                rho, buffer = rho + delta, []
            for k, (schedule, multiplier) in enumerate(experts):
                row = seen_by[k]
                c = U @ row
                f = 1 / 8 if schedule == "constant" else 2 / np.sqrt(max(clock, 1.0))
                a = R / T + f * rho / 2
                g = 1 / (a + f * lam)
                q = max(0.0, row @ row - c @ c) / a + c**2 @ g
                step = half * travel(loss, tau, p[k], Y, h * multiplier * q) / q
                W[k] += step * (row / a + (c * (g - 1 / a)) @ U)

        if loss != "logistic" and not (signs and abs(label) == 1):
            # The range grows to the labels seen; past the first rows at most twofold.
            low, high = widened(low, high, y[:t] if signs else [low, label, high], free=t <= 8)
            signs, grown = False, (high - low) / 2
            if half > 0:
                shrink = (half / grown) ** 2
                lam, rho, buffer = lam * shrink, rho * shrink, [row * (half / grown) for row in buffer]
                v = v**shrink / (v**shrink).sum() if loss == "squared" else v
        trace.shares.append(v.copy())
    trace.W, trace.eigenvalues = W, lam
    trace.scales = M1 / np.maximum(N, 1) * (N / max(T, 1)) ** 0.25
    return trace
