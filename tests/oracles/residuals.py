"""How far labels lie from predictions, written from docs/intervals.md: histograms, their mixture, levels."""

from __future__ import annotations

import numpy as np

from .bank_full import Full
from .common import Vector

LEVELS = np.array([0.005, 0.01, 0.025, *np.linspace(0.05, 0.95, 19), 0.975, 0.99, 0.995])
FORMS = (
    ("nothing", 1.0, 1.0),
    ("prediction", 1.0, 1.0),
    ("prediction", 0.999, 0.999),
    ("prediction", 0.999, 0.99),
    ("features", 1.0, 1.0),
)
GUIDE, BINS, PRIOR, MIXED, FORGET = 2, 64, 3.0, 1e-3, 1e-4
EDGES = np.linspace(-1, 1, BINS + 1)


def _laplace(t: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        s = t / (1 - np.abs(t))
    return np.where(t < 0, 0.5 * np.exp(-np.abs(s)), 1 - 0.5 * np.exp(-np.abs(s)))


PRIOR_MASS = PRIOR * (0.9 * np.diff(_laplace(EDGES)) + 0.1 / BINS)


def step(rows: float) -> float:
    """How far levels move."""
    return float(np.clip(rows**-0.75, 3e-4, 0.1))


class Expert:
    """A histogram of r/size, over t = s/(1 + |s|)."""

    def __init__(self, by: str, keep: float, keep_size: float) -> None:
        self.by, self.keep, self.keep_size = by, keep, keep_size
        self.mass = np.zeros(BINS)
        self.absolute = self.squares = self.rows = 0.0

    def size(self, stretch: dict[str, float]) -> float:
        return max(self.absolute / self.rows, 1e-100) * stretch[self.by]

    def cdf(self, r: float, size: float) -> float:
        mass = self.mass + PRIOR_MASS
        below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
        return float(np.interp(r / (size + abs(r)), EDGES, below))

    def density(self, r: float, size: float) -> float:
        mass = self.mass + PRIOR_MASS
        b = min(np.searchsorted(EDGES, r / (size + abs(r)), side="right") - 1, BINS - 1)
        return float(mass[b] / mass.sum() * size / (size + abs(r)) ** 2)

    def add(self, r: float, size: float) -> None:
        b = min(np.searchsorted(EDGES, r / (size + abs(r)), side="right") - 1, BINS - 1)
        self.mass *= self.keep
        self.mass[b] += 1

    def grow(self, absolute: float) -> None:
        self.absolute = self.keep_size * self.absolute + absolute
        self.squares = self.keep_size * self.squares + absolute**2
        self.rows = self.keep_size * self.rows + 1


class Spread:
    """How wide the distribution of a row's label is, by its features: ridge regression of √|r|, rows in blocks.

    `x` are the features and the constant, if there is one, last; without one, means are over all rows the same.
    """

    def __init__(self, d: int, intercept: bool = True) -> None:
        self.full = Full(1.0, d, intercept)
        self.block: list[tuple[Vector, float]] = []
        self.roots, self.rows = 0.0, 0
        self.met, self.sizes = np.zeros(d), np.zeros(d)

    def width(self, x: Vector) -> float:
        f = float(self.full.w @ x)
        return float(np.clip(f, 0.25, 4) ** 1.5) if f != 0 else 1.0

    def learn(self, x: Vector, r: float, share: float) -> None:
        """A row that the bank learned from, what its label was off by, and the share of the expert for means."""
        self.rows, self.met, self.sizes = self.rows + 1, self.met + (x != 0), self.sizes + abs(x)
        known = np.count_nonzero(self.met[: len(x) - self.full.intercept])
        self.block.append((x, float(np.sqrt(abs(r)))))
        if len(self.block) < min(1 + self.rows // 32, max(8, (known + 1) // 4), 32):
            return
        X, roots = (np.array(part) for part in zip(*self.block, strict=True))
        self.full.learn(X, roots, np.ones(len(X)), len(X))
        self.roots += roots.sum()
        self.block = []
        if self.full.due(len(X), self.rows, share, known):
            self.full.solve(self.sizes / np.maximum(self.met, 1), self.met > 0)
            if self.roots > 0:  # the mean of f over rows, each as often as its root says, becomes 1
                self.full.w = self.full.w * (self.roots / (self.full.w @ self.full.b))


class Residuals:
    """All of it, for rows of weight 1. Widths by features may be known, as long as these are few."""

    def __init__(self) -> None:
        self.experts = [Expert(*form) for form in FORMS]
        self.shares = np.full(len(FORMS), 1 / len(FORMS))
        self.levels = LEVELS.copy()
        self.rows, self.mean, self.deviation = 0, 0.0, 0.0
        self.theta, self.information = np.zeros(2), np.zeros((2, 2))

    def covariates(self, p: float) -> Vector:
        if self.deviation == 0:
            return np.zeros(2)
        z = np.clip((p - self.mean) / self.deviation, -4, 4)
        return np.array([z, abs(z) - 1])

    def stretch(self, p: float, width: float | None) -> dict[str, float]:
        by = float(np.exp(np.clip(self.theta @ self.covariates(p), -3, 3)))
        return {"nothing": 1.0, "prediction": by, "features": 1.0 if width is None else width}

    def heard(self, width: float | None) -> tuple[list[Expert], Vector]:
        """The experts that have something to say of a row, and their shares."""
        experts = [e for e in self.experts if e.by != "features" or width is not None]
        shares = self.shares[: len(experts)]
        return experts, shares / shares.sum()

    def cdf(self, p: float, r: float, width: float | None = None) -> float:
        stretch = self.stretch(p, width)
        return float(sum(w * e.cdf(r, e.size(stretch)) for e, w in zip(*self.heard(width), strict=True)))

    def std(self, p: float, width: float | None = None) -> float:
        stretch, (experts, shares) = self.stretch(p, width), self.heard(width)
        return float(np.sqrt(shares @ [stretch[e.by] ** 2 * e.squares / e.rows for e in experts]))

    def learn(self, p: float, y: float, width: float | None = None) -> None:
        if width is None:  # features are many, and will be
            self.experts, self.shares = self.heard(width)
        r, stretch, z = y - p, self.stretch(p, width), self.covariates(p)
        if self.rows:
            sizes = [e.size(stretch) for e in self.experts]
            u = self.cdf(p, r, width)
            likely = self.shares * [e.density(r, size) for e, size in zip(self.experts, sizes, strict=True)]
            self.shares = (1 - MIXED) * likely / likely.sum() + MIXED / len(self.experts)
            for expert, size in zip(self.experts, sizes, strict=True):
                expert.add(r, size)
            self.levels = self.levels + step(self.rows) * (LEVELS - (u <= self.levels))
            self.information = (1 - FORGET) * self.information + np.outer(z, z)
            g = min(abs(r) / sizes[GUIDE], 5) - 1
            move = np.linalg.solve(10 * np.eye(2) + self.information, g * z)
            self.theta = np.clip(self.theta + move, -3, 3)
        for expert in self.experts:
            expert.grow(abs(r) / stretch[expert.by])
        part = max(1 / (self.rows + 1), FORGET)
        self.mean += part * (p - self.mean)
        self.deviation += part * (abs(p - self.mean) - self.deviation)
        self.rows += 1
