"""The bank of Newton learners, dense: experts over one Robust Frequent Directions sketch.

Every line is the algorithm of docs/untuned-theory.md; W and U are kept whole, nothing is put off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .bank_first import First
from .bank_full import FullExperts
from .bank_paths import travel
from .bank_stack import Stack
from .bank_working import Working
from .common import Vector

Matrix = NDArray[np.float64]

EXPERTS = (
    ("constant", 0.5),
    ("constant", 2.0),
    ("root", 0.5),
    ("root", 8.0),
    ("rare", 1.0),
    ("averaged", 0.0),  # takes no steps: the mean of the next one's weights
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
    constant: float = 0.0  # of the expert that knows only labels
    full: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # of the experts with whole matrices
    full_shifts: Vector = field(default_factory=lambda: np.zeros(0))  # of their log odds
    tracking: Vector | None = None  # of the expert whose weights wander
    offset: float = 0.0  # of all scores
    scales: Vector = field(default_factory=lambda: np.zeros(0))
    eigenvalues: Vector = field(default_factory=lambda: np.zeros(0))


def mix(loss: str, p: Vector, v: Vector) -> float:
    """The prediction that is played: in units where labels fill [-1, 1] for the squared loss."""
    if loss == "squared":
        return 0.5 * float(np.log(v @ np.exp(-0.5 * (p - 1) ** 2)) - np.log(v @ np.exp(-0.5 * (p + 1) ** 2)))
    if loss == "logistic":
        return float(np.log(v @ expit(p)) - np.log(v @ expit(-p)))
    return float(np.log(v @ np.exp(p))) if loss == "poisson" else float(v @ p)


def losses(loss: str, parameter: float, p: Vector, y: float) -> Vector:
    """Each expert's loss; of the mixable ones times the rate at which the aggregating rule learns from it."""
    if loss == "squared":
        return 0.5 * (p - y) ** 2
    if loss == "logistic":
        return np.logaddexp(0.0, -y * p)
    if loss == "poisson":
        return np.exp(p) - y * p
    r = abs(p - y)
    if loss == "huber":
        return np.where(r <= parameter, 0.5 * r**2, parameter * (r - 0.5 * parameter))
    if loss == "hinge":
        return np.maximum(0.0, 1 - y * p)
    return r if loss == "absolute" else np.where(y >= p, parameter * r, (1 - parameter) * r)


@dataclass
class Shares:
    """The weights of the experts: exponential in their losses, of which a share is redistributed."""

    v: Vector
    mixable: bool
    rate: float = np.inf  # of AdaHedge: ln K over the gaps between mean loss and mix loss so far
    gaps: float = 0.0

    def charge(self, cost: Vector, share: float) -> None:
        cost, K = cost - cost.min(), len(self.v)
        if self.mixable:
            self.v = self._dealt(self.v * np.exp(-cost), share)
            return
        old = self.rate
        mix_loss = 0.0 if old == np.inf else -np.log(self.v @ np.exp(-old * cost)) / old
        self.gaps += max(0.0, float(self.v @ cost) - mix_loss)
        if self.gaps == 0:
            return
        self.rate = np.log(K) / self.gaps
        now = self.rate if old == np.inf else old  # before the first difference all losses were equal
        v = self._dealt(self.v * np.exp(-now * cost), share) ** (self.rate / now)
        self.v = v / v.sum()

    def leave(self, remain: int) -> None:
        """The first of them remain."""
        self.v = self.v[:remain] / self.v[:remain].sum()

    def _dealt(self, v: Vector, share: float) -> Vector:
        return (1 - share) * v / v.sum() + share / len(v)


def slope(loss: str, parameter: float, p: float, y: float, miss: float) -> float:
    """What a row weighs in the sketch, in units in which the experts' steps suit all losses."""
    if loss == "squared":
        return 2 * (p - y)
    if loss == "logistic":
        return float(-4 * y * expit(-y * p))
    if loss == "poisson":  # the curvature of the loss divided by the dispersion
        return 4 * float(np.sqrt(np.exp(p) / miss))
    if loss == "huber":
        return float(np.clip(2 * np.clip(p - y, -parameter, parameter) / min(parameter, miss), -4, 4))
    tau = parameter if loss == "quantile" else 0.5
    return -4 * tau if p < y else 4 * (1 - tau)


@dataclass
class Labels:
    """The range of the labels: that of predictions, too, but for log odds and logarithms of counts."""

    loss: str
    clip: float = np.inf
    signs: bool = True
    offset: float = 0.0
    low: float = -1.0
    high: float = 1.0
    seen: list[float] = field(default_factory=list)
    total: float = 0.0  # of counts
    clock: float = 0.0
    begun: First = field(default_factory=First)
    news: bool = False  # is there one more of these?

    def bounds(self) -> tuple[float, float]:
        """Of the experts' scores."""
        if self.loss == "logistic":
            return -min(LARGEST_LOGIT, self.clip), min(LARGEST_LOGIT, self.clip)
        if self.loss == "poisson":
            counted = bool(self.seen) and self.high > 0
            least = np.log((self.total / self.clock if counted else 1.0) / (self.clock + 1))
            most = np.log(self.high) if counted else least
            least, most = np.clip([least, most], -self.clip, self.clip)
            return min(least, most), most
        return max(self.low, -self.clip), min(self.high, self.clip)

    def first(self, label: float) -> None:
        if self.loss == "poisson":
            self.signs, self.low, self.high = False, 0.0, 0.0
        elif self.loss != "logistic" and abs(label) != 1:
            self.signs, self.offset = False, float(np.clip(label, -self.clip, self.clip))
            self.low = self.high = self.offset
        elif self.loss != "logistic":
            self.low, self.high = -min(1.0, self.clip), min(1.0, self.clip)

    def free(self, t: int) -> bool:
        """While there are few labels, their range grows at will."""
        return t <= 8 if self.loss == "poisson" else not self.begun.all_met

    def wild(self, label: float, t: int) -> bool:
        """Farther from the range than it is wide."""
        width = self.high - self.low
        if self.loss != "poisson":
            label = float(np.clip(label, -self.clip, self.clip))
        return (
            not (self.signs or self.low - width <= label <= self.high + width)
            and not self.free(t)
            and width > 0
        )

    def grow(self, label: float, h: float, t: int) -> float:
        """The range grows to the labels seen; past the first rows at most twofold. Old width over new width."""
        if self.loss == "poisson":
            if self.high == 0 and label > 0:
                self.offset = float(np.log(label))
            self.total += h * (min(label, self.high) if self.high > 0 else label)
            room = np.inf if self.free(t) or self.high == 0 else 2 * self.high
            self.high = min(max(self.high, label), room)
            self.seen.append(label)
            return 1.0
        self.seen.append(float(np.clip(label, -self.clip, self.clip)))
        if self.loss == "logistic":
            return 1.0
        if self.signs and abs(label) == 1:
            self.meet()
            return 1.0
        labels = self.seen if self.signs else [self.low, self.seen[-1], self.high]
        old = self.high - self.low
        room = np.inf if self.free(t) or old == 0 else old
        self.low, self.high = max(self.low - room, min(labels)), min(self.high + room, max(labels))
        self.signs = False
        if self.high > self.low or not self.begun.labels:  # a run of equal labels is one
            self.meet()
        return old / (self.high - self.low) if old > 0 and self.loss == "squared" else 1.0

    def meet(self) -> None:
        if not self.begun.all_met:
            self.begun.labels.append(self.seen[-1])
            self.news = True

    def start_again(self) -> bool:
        """Count from the first label that is not wild, if wild ones have set the range."""
        news, self.news = self.news, False
        if self.signs or not news:
            return False
        usual = self.begun.usual()
        least, most = min(usual), max(usual)
        if least == most or (least <= self.low and self.high <= most):
            return False
        self.offset, self.low, self.high = usual[0], max(least, self.low), min(most, self.high)
        return True


@dataclass
class Usual:
    """The expert that knows only labels: the mean of those learned and of the offset, for classes 0.

    For losses without a simple best constant it walks along the path of the loss.
    """

    loss: str
    parameter: float
    level: float = 0.0  # above the offset
    rows: float = 0.0

    def score(self, labels: Labels) -> float:
        if self.loss == "logistic":
            return float(2 * np.arctanh(self.level))
        if self.loss == "poisson":
            return float(np.log(labels.total / labels.clock)) if labels.high > 0 else -np.inf
        return labels.offset + self.level

    def learn(self, y: float, p: float, h: float, miss: float, labels: Labels) -> None:
        """A label in its own unit; p was predicted."""
        self.rows += h
        bounds = labels.bounds()
        if self.loss in ("squared", "logistic"):
            self.level += h * (y - labels.offset - self.level) / (self.rows + 1)
        elif self.loss != "poisson":
            way = travel(self.loss, self.parameter, p, y, h / np.sqrt(max(self.rows, 1.0)), miss)
            self.level += float(np.clip(way, min(0.0, bounds[0] - p), max(0.0, bounds[1] - p)))


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


def seen(
    xs: Vector, known: float, typical: float | None, T: int, *, classes: bool, intercept: bool
) -> dict[str, Vector]:
    """A row as the experts of each schedule see it; `known` is ‖x‖² of the features seen before.

    Classes do not depend on how long a row is: the falling experts see it at the typical length. The constant
    stays 1, but for the restless expert's, which follows frequencies that drift. The rare expert's features are
    divided by mean|x| n^¼, without the number of all rows.
    """
    even = xs.copy()
    if classes and typical is not None and known > 0:
        even[: len(xs) - intercept] *= np.sqrt(typical / known)
    restless = even.copy()
    if intercept and typical is not None:
        restless[-1] = max(1.0, 0.25 * np.sqrt(max(typical - 1, 0.0)))
    rare = xs / (T + 1) ** 0.25
    return {"constant": xs, "root": even, "restless": restless, "averaged": restless, "rare": rare}


def newton(row: Vector, a: float, U: Matrix, curvature: Vector) -> Vector:
    """(a + U diag(curvature) Uᵀ)⁻¹ times the row."""
    c = U @ row
    rest = row - c @ U
    return (rest - (U @ rest) @ U) / a + (c / (a + curvature)) @ U


def average(W: Matrix, averaged: set[int], t: int) -> None:
    """Means of the next expert's weights, in which later rows count for more, in proportion to their number."""
    for k in averaged:
        W[k] += 2 / (t + 1) * (W[k + 1] - W[k])


def bank(
    X: Matrix,
    y: Vector,
    *,
    m: int,
    loss: str = "squared",
    parameter: float = 0.5,
    clip: float = np.inf,
    experts: Sequence[tuple[str, float]] = EXPERTS,
    importance: Vector | None = None,
    intercept: bool = True,
) -> Trace:
    """Run the bank over the rows in order; `parameter` is that of the loss, tau or delta."""
    # On [-1, 1] the squared hinge loss of labels -1 and +1 is the squared loss.
    loss = "squared" if loss == "squared_hinge" else loss
    mixable, poisson = loss in ("squared", "logistic"), loss == "poisson"
    X = np.hstack([X, np.full((len(X), int(intercept)), 1.0)])
    d, K = X.shape[1], len(experts)
    h_all = np.ones(len(y)) if importance is None else importance
    W, N, M1 = np.zeros((K, d)), np.zeros(d), np.zeros(d)
    U, lam, buffer = np.zeros((0, d)), np.zeros(0), []
    T, R, rho = 0, 0.0, 0.0
    shares, labels = Shares(np.full(K, 1 / K), mixable), Labels(loss, clip)
    missed, expected, miss = 0.0, 0.0, 1.0
    following, trace = 0, Trace()
    full, usual = FullExperts(loss, d, intercept), Usual(loss, parameter)
    working = Working(loss, parameter)
    shares.v = np.full(K + 1 + len(full), 1 / (K + 1 + len(full)))
    stepping = [(k, *its) for k, its in enumerate(experts) if its[0] != "averaged"]
    stack = Stack(loss, clip, 1 + K + len(full))
    for t, (x, label, h) in enumerate(zip(X, y, h_all, strict=True), 1):
        if t == 1:
            labels.first(label)
        low, high = labels.bounds()
        middle, half = ((low + high) / 2, (high - low) / 2) if loss == "squared" else (0.0, 1.0)
        # Scales include the row itself: they do not look at the label.
        present = x != 0
        N_new, M1_new = N + present, M1 + abs(x)
        s = M1_new / np.maximum(N_new, 1) * (N_new / (T + 1)) ** 0.25
        most = 16 * ((T + 1) / np.maximum(N_new, 1)) ** 0.25 if labels.signs else np.inf
        xs = np.clip(np.where(present, x / np.where(s > 0, s, 1.0), 0.0), -most, most)
        known = xs[(N > 0) | (np.arange(d) >= d - intercept)]
        typical = R / T if T > 0 else None  # before this row
        views = seen(xs, known @ known, typical, T, classes=labels.signs, intercept=intercept)
        # That a row has no known features counts as a feature, which no other row has.
        nothing = labels.signs and intercept and known @ known <= 1
        lacking = (typical or 0.0) - float(views["restless"] @ views["restless"]) if nothing else 0.0
        seen_by = [views[schedule] for schedule, _ in experts]
        scores = np.array([w @ row for w, row in zip(W, seen_by, strict=True)]) + labels.offset
        p = (np.clip(scores, low, high) - middle) / half if half > 0 else np.zeros(K)
        odds = [loss == "squared" and labels.signs and schedule == "rare" for schedule, _ in experts]
        scores = np.clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT)
        p = np.where(odds, 2 * expit(scores) - 1, p)
        constant = (np.clip(usual.score(labels), low, high) - middle) / half if half > 0 else 0.0
        p = np.concatenate([p, [constant], full.predictions(x, labels, middle, half)])
        P, rest = mix(loss, p, shares.v), np.arange(len(p)) != K
        own = mix(loss, p[rest], shares.v[rest] / shares.v[rest].sum())  # without the constant expert
        P = stack.play(P, p[rest], classes=labels.signs)
        trace.played.append(0.0 if t == 1 and not labels.signs else middle + half * P)
        trace.experts.append(middle + half * p)

        # A label beyond the range of those before it is learned as the nearest one within; if it is farther
        # away than the range is wide, not at all.
        labels.clock += h
        clock, r, stands_for = labels.clock, 0.0, 0
        Y = label if loss == "logistic" else float(np.clip(label, labels.low, labels.high))
        Y = (Y - middle) / half if half > 0 else 0.0
        if (loss == "logistic" or labels.high > labels.low) and not labels.wild(label, t):
            shares.charge(h * losses(loss, parameter, p, Y), 1 / (clock + 1))
            stack.learn(Y, h, clock)
            at = np.exp(own) if poisson else own
            missed += h * ((at - Y) ** 2 if poisson else abs(at - Y))
            expected += h * (at if poisson else 1.0)
            miss = missed / expected
            if mixable or abs(at - Y) >= 1e-9 * (labels.high - labels.low) / 2:
                r = slope(loss, parameter, own, Y, miss)
            usual.learn(middle + half * Y, p[K], h, miss, labels)
            if t >= following:  # this row goes into the sketch, for all up to the next that does
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
            for k, schedule, multiplier in stepping:
                row = seen_by[k]
                if schedule == "rare":  # AdaGrad, with numbers of rows for sums of squares
                    steepest, length = (
                        row / np.sqrt(np.maximum(N, 1)),
                        multiplier / np.sqrt(R / T / np.sqrt(T)),
                    )
                else:
                    f = 1 / 8 if schedule == "constant" else 2 / np.sqrt(max(clock, 1.0))
                    steepest, length = newton(row, R / T + f * rho / 2, U, f * lam), multiplier
                q = row @ steepest + (
                    max(0.0, lacking) / (R / T + f * rho / 2) if schedule == "restless" else 0.0
                )
                score, rule, unit = (scores[k], "logistic", 1.0) if odds[k] else (p[k], loss, half)
                way = travel(rule, parameter, score, Y, h * length * q, miss)
                stopped = loss != "squared" and (clip < np.inf or poisson)
                way = min(max(way, low - p[k]), high - p[k]) if stopped else way
                W[k] += unit * way / q * steepest
            at = middle + half * own, middle + half * Y
            z, weight = (
                (Y, 1.0)
                if labels.signs
                else working.of_count(*at, miss, np.exp(p[K]))
                if poisson
                else working.of(*at, h, miss, expected, full.places)
            )
            full.learn(x, z - labels.offset, weight, h, labels, T, N, M1, shares.v[K + 1 :])
            shares.leave(K + 1 + len(full))

        average(W, set(range(K)) - {k for k, *_ in stepping}, t)
        shrink = labels.grow(label, h, t)
        full.go_on(signs=labels.signs)
        shares.leave(K + 1 + len(full))
        lam, rho, buffer = lam * shrink**2, rho * shrink**2, [row * shrink for row in buffer]
        shares.v = shares.v ** (shrink**2) / (shares.v ** (shrink**2)).sum()
        if labels.start_again():
            W, U, lam, buffer, rho = np.zeros((K, d)), np.zeros((0, d)), np.zeros(0), [], 0.0
            shares = Shares(np.full(len(shares.v), 1 / len(shares.v)), mixable)
            missed, expected, miss = 0.0, 0.0, 1.0
            full.restart()
            usual, working = Usual(loss, parameter), Working(loss, parameter)
        trace.shares.append(shares.v.copy())
    factors = [(T + 1) ** -0.25 if schedule == "rare" else 1.0 for schedule, _ in experts]
    trace.W, trace.eigenvalues = W * np.array(factors)[:, None], lam
    trace.constant = usual.score(labels)
    trace.full, trace.full_shifts = full.weights(signs=labels.signs)
    trace.tracking = full.tracking and full.tracking.weights()
    trace.offset = labels.offset
    trace.scales = M1 / np.maximum(N, 1) * (N / max(T, 1)) ** 0.25
    return trace
