"""How far labels lie from predictions, written from docs/intervals.md: histograms, their mixture, levels."""

from __future__ import annotations

import numpy as np

from .common import Vector

LEVELS = np.array([0.005, 0.01, 0.025, *np.linspace(0.05, 0.95, 19), 0.975, 0.99, 0.995])
FORMS = ((False, 1.0, 1.0), (True, 1.0, 1.0), (True, 0.999, 0.999), (True, 0.999, 0.99))
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

    def __init__(self, stretched: bool, keep: float, keep_size: float) -> None:
        self.stretched, self.keep, self.keep_size = stretched, keep, keep_size
        self.mass = np.zeros(BINS)
        self.absolute = self.squares = self.rows = 0.0

    def size(self, stretch: float) -> float:
        return max(self.absolute / self.rows, 1e-100) * (stretch if self.stretched else 1.0)

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


class Residuals:
    """All of it, for rows of weight 1."""

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

    def stretch(self, p: float) -> float:
        return float(np.exp(np.clip(self.theta @ self.covariates(p), -3, 3)))

    def sizes(self, p: float) -> list[float]:
        return [expert.size(self.stretch(p)) for expert in self.experts]

    def cdf(self, p: float, r: float) -> float:
        sizes = self.sizes(p)
        return float(
            sum(w * e.cdf(r, size) for w, e, size in zip(self.shares, self.experts, sizes, strict=True))
        )

    def std(self, p: float) -> float:
        by = [self.stretch(p) if e.stretched else 1.0 for e in self.experts]
        squares = [b * b * e.squares / e.rows for b, e in zip(by, self.experts, strict=True)]
        return float(np.sqrt(self.shares @ squares))

    def learn(self, p: float, y: float) -> None:
        r, stretch, z = y - p, self.stretch(p), self.covariates(p)
        if self.rows:
            sizes = self.sizes(p)
            u = self.cdf(p, r)
            likely = self.shares * [e.density(r, size) for e, size in zip(self.experts, sizes, strict=True)]
            self.shares = (1 - MIXED) * likely / likely.sum() + MIXED / len(FORMS)
            for expert, size in zip(self.experts, sizes, strict=True):
                expert.add(r, size)
            self.levels = self.levels + step(self.rows) * (LEVELS - (u <= self.levels))
            self.information = (1 - FORGET) * self.information + np.outer(z, z)
            g = min(abs(r) / sizes[GUIDE], 5) - 1
            move = np.linalg.solve(10 * np.eye(2) + self.information, g * z)
            self.theta = np.clip(self.theta + move, -3, 3)
        for expert in self.experts:
            expert.grow(abs(r) / (stretch if expert.stretched else 1.0))
        part = max(1 / (self.rows + 1), FORGET)
        self.mean += part * (p - self.mean)
        self.deviation += part * (abs(p - self.mean) - self.deviation)
        self.rows += 1
