"""Sketched Online Newton (SON Algorithm 1) and its relatives, dense and in many digits.

    run = fd_newton(X, y, m=10, alpha=1.0)
    run.predictions  # made before each row was learned
    run.spectral_error  # ‖Σĝĝᵀ − SᵀS‖, which a learner's `error_bound` must not be below

All take rows X (n × d), labels y and, by name:

- `loss`: a name, or a `Loss`, which says its subgradient at a kink;
- `alpha`; `clip` C, None for no projection;
- `sigma`: the loss's curvature σ; None: 1/(8C²) for the squared loss, 0 for losses with kinks; others need it;
- `eta`: the extra weight η_t, a number, "1/t" or "1/sqrt(t)"; None: 1/(CL√t) where σ = 0, else 0;
- `sample_weight` h: slope hℓ′, curvature σ/h; a row of weight 0 is predicted and not learned;
- `diagonal`: SON §5.2, D = 0.1 + Σg², with the row's own gradient in it before its step;
- `intercept`: None, or the number that its own metric starts from;
- `digits`.

t counts rounds, and so do epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np
from mpmath import mp, mpf

from .linalg import (
    Floats,
    LowRankSolver,
    Number,
    PseudoSolver,
    Solver,
    Vector,
    add_outer,
    dot,
    is_zero,
    minus,
    plus,
    scaled,
    shifted,
    spectral_norm,
    to_floats,
    vector,
    zeros,
)
from .losses import Loss, named
from .run import Run
from .sketches import Exact, FrequentDirections, Oja, Sketch


class Options(TypedDict, total=False):
    """What all learners take by name."""

    loss: str | Loss
    clip: float | None
    sigma: float | None
    eta: float | str | None
    sample_weight: Sequence[float] | Floats | None
    diagonal: bool
    intercept: float | None
    digits: int


@dataclass
class NewtonRun(Run):
    """With `diagonal` the sketch and Σĝĝᵀ are in scaled coordinates, D being `scales`."""

    #: ℓ′ (times the row's weight) of each round.
    slopes: Vector
    intercept: Number
    #: The α of the last metric, and that of the first.
    alpha: Number
    first_alpha: Number
    scales: Vector
    rounds: int
    state: State

    @cached_property
    def robust_error(self) -> float:
        """‖Σĝĝᵀ − SᵀS − (α − α₀)I‖₂: RFD's, where half of every shrink is in α."""
        with mp.workdps(self.digits):
            ridge = self.first_alpha - self.alpha
            return float(spectral_norm(shifted(minus(self.curvature, self.sketch), ridge)))

    @property
    def sketch_matrix(self) -> Floats:
        return to_floats(self.sketch)

    @property
    def curvature_matrix(self) -> Floats:
        return to_floats(self.curvature)


@dataclass
class Weighting:
    """σ_t + η_t, the weight of gggᵀ in A."""

    loss: Loss
    clip: float | None
    sigma: float | None
    eta: float | str | None

    def __post_init__(self) -> None:
        if self.sigma is None:
            self.sigma = self.own_sigma()

    def own_sigma(self) -> float:
        if self.loss.kinked:
            return 0.0
        if self.loss.kind == "squared" and self.clip is not None:
            return 1 / (8 * self.clip**2)
        raise ValueError(
            "sigma=None is invalid: only the squared loss with a clip, and losses with kinks, have a default"
        )

    def __call__(self, t: int, weight: Number) -> Number:
        return mpf(self.sigma) / weight + self.extra(t)

    def extra(self, t: int) -> Number:
        if self.eta == "1/t":
            return 1 / mpf(t)
        if self.eta == "1/sqrt(t)":
            return 1 / mp.sqrt(t)
        if self.eta is not None:
            return mpf(self.eta)
        if self.sigma:
            return mpf(0)
        if self.clip is None or self.loss.lipschitz is None:
            raise ValueError("eta=None is invalid: 1/(CL√t) needs a clip C and a loss with a constant L")
        return 1 / (mpf(self.clip) * mpf(self.loss.lipschitz) * mp.sqrt(t))


@dataclass
class State:
    """The weights and the metric A = αI + SᵀS of SON Algorithm 1, the pseudo-inverse taking over at α = 0."""

    size: int
    sketch: Sketch
    first_alpha: Number
    clip: float | None
    invariant: bool
    metric_of_intercept: Number | None
    w: Vector = field(init=False)
    b: Number = field(init=False)

    def __post_init__(self) -> None:
        self.w = [mpf(0)] * self.size
        self.b = mpf(0)
        self.refactor()

    @property
    def alpha(self) -> Number:
        return self.first_alpha + self.sketch.ridge

    def refactor(self) -> None:
        rows = self.sketch.rows
        if not self.alpha:
            self.inverse = PseudoSolver(rows, self.sketch.basis(), self.size)
        elif len(rows) < self.size:
            self.inverse = LowRankSolver(self.alpha, rows)
        else:
            self.inverse = Solver(shifted(self.sketch.matrix(self.size), self.alpha))

    def project(self, x: Vector) -> Number:
        """SON Lemma 1, and Lemma 2 where α = 0: the prediction, once |wᵀx| ≤ C; App. D with trap 11 mended."""
        score = dot(self.w, x) + self.b
        target = score if self.clip is None else max(-mpf(self.clip), min(mpf(self.clip), score))
        free = self.inverse.outside(x) if isinstance(self.inverse, PseudoSolver) else None
        if free is not None and is_zero(free, x):
            free = None
        if self.invariant and free is not None:
            target = mpf(0)
        excess = score - target
        if not excess:
            return target
        if free is not None:
            self.w = plus(self.w, free, -excess / dot(free, free))
            return target
        self.move(x, excess / self.quadratic_form(x))
        return target

    def quadratic_form(self, x: Vector) -> Number:
        own = 1 / self.metric_of_intercept if self.metric_of_intercept is not None else 0
        return dot(x, self.inverse(x)) + own

    def move(self, x: Vector, length: Number) -> None:
        """w ← w − length·A⁻¹x."""
        self.w = plus(self.w, self.inverse(x), -length)
        if self.metric_of_intercept is not None:
            self.b -= length / self.metric_of_intercept

    def learn(self, x: Vector, slope: Number, weight: Number) -> Vector:
        """The sketch and the step, SON Algorithm 1 lines 7 to 9; ĝ is returned."""
        root = mp.sqrt(weight)
        g = scaled(x, root * slope)
        self.sketch.update(g)
        if self.metric_of_intercept is not None:
            self.metric_of_intercept += (root * slope) ** 2
        self.refactor()
        self.move(x, slope)
        return g


def newton(
    X: Floats,
    y: Sequence[float] | Floats,
    *,
    sketch: Sketch,
    alpha: float,
    invariant: bool = False,
    loss: str | Loss = "squared",
    clip: float | None = 1.0,
    sigma: float | None = None,
    eta: float | str | None = None,
    sample_weight: Sequence[float] | Floats | None = None,
    diagonal: bool = False,
    intercept: float | None = None,
    digits: int = 100,
    start: NewtonRun | None = None,
) -> NewtonRun:
    """SON Algorithm 1 with any sketch; the functions below are its instances. It continues where `start` ended."""
    X = np.asarray(X, dtype=float)
    n, d = X.shape
    loss = named(loss)
    weighting = Weighting(loss, clip, sigma, eta)
    importance = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    predictions: Vector = []
    slopes: Vector = []
    with mp.workdps(digits):
        own = None if intercept is None else mpf(intercept)
        state = State(d, sketch, mpf(alpha), clip, invariant, own) if start is None else start.state
        D: Vector = [mpf("0.1") if diagonal else mpf(1)] * d if start is None else start.scales
        curvature = zeros(d, d) if start is None else start.curvature
        t = 0 if start is None else start.rounds
        sketch = state.sketch
        for row, label, share in zip(X, y, importance, strict=True):
            x, h = vector(row), mpf(float(share))
            before = list(state.w), state.b
            p = state.project([value / mp.sqrt(scale) for value, scale in zip(x, D, strict=True)])
            predictions.append(p)
            if not h:
                state.w, state.b = before
                slopes.append(mpf(0))
                continue
            t += 1
            slope = h * loss.slope(p, mpf(float(label)))
            if abs(slope) <= mpf(10) ** (-3 * digits // 4):  # zero in exact arithmetic
                slope = mpf(0)
            slopes.append(slope)
            if diagonal:
                D = [scale + (slope * value) ** 2 for scale, value in zip(D, x, strict=True)]
            z = [value / mp.sqrt(scale) for value, scale in zip(x, D, strict=True)]
            add_outer(curvature, state.learn(z, slope, weighting(t, h)))
        weights = [w / mp.sqrt(scale) for w, scale in zip(state.w, D, strict=True)]
        return NewtonRun(
            exact_predictions=predictions,
            slopes=slopes,
            exact_weights=weights,
            intercept=state.b,
            scales=D,
            rounds=t,
            state=state,
            sketch=sketch.matrix(d),
            curvature=curvature,
            alpha=state.alpha,
            first_alpha=state.first_alpha,
            shrinks=+sketch.shrinks,
            digits=digits,
        )


def full_newton(X: Floats, y: Floats, *, alpha: float, **options: Unpack[Options]) -> NewtonRun:
    """SON Equations 1 and 2: the full matrix."""
    with mp.workdps(options.get("digits", 100)):
        return newton(X, y, sketch=Exact(X.shape[1]), alpha=alpha, **options)


def invariant_newton(X: Floats, y: Floats, **options: Unpack[Options]) -> NewtonRun:
    """SON Appendix D, α = 0; where x is outside the range of A, the free move makes the prediction 0."""
    with mp.workdps(options.get("digits", 100)):
        return newton(X, y, sketch=Exact(X.shape[1]), alpha=0.0, invariant=True, **options)


def fd_newton(
    X: Floats, y: Floats, *, m: int, alpha: float, epoch: str = "rounds", **options: Unpack[Options]
) -> NewtonRun:
    """FD-SON: SON Algorithms 1 and 6 (epoch="rounds", m rounds each), or 2 (epoch="row")."""
    return newton(X, y, sketch=FrequentDirections(m, epoch=epoch), alpha=alpha, **options)


def pfd_newton(
    X: Floats, y: Floats, *, m: int, alpha: float, beta: float, **options: Unpack[Options]
) -> NewtonRun:
    """PFD-SON of RFD §6: of m values only the last ⌊βm⌋ shrink, every m rounds."""
    return newton(X, y, sketch=FrequentDirections(m, beta=beta), alpha=alpha, **options)


def rfd_newton(
    X: Floats,
    y: Floats,
    *,
    m: int,
    alpha: float = 0.0,
    epoch: str = "rounds",
    first_rows: int | None = None,
    **options: Unpack[Options],
) -> NewtonRun:
    """RFD-SON: RFD Algorithm 3 (epoch="row") or 6 (epoch="2m"), or a shrink every m rounds (epoch="rounds").

    `first_rows` is how many zero rows Algorithm 6 begins with: m as printed (None), or 0.
    """
    sketch = FrequentDirections(m, robust=True, epoch=epoch, first_rows=first_rows)
    return newton(X, y, sketch=sketch, alpha=alpha, **options)


def oja_newton(
    X: Floats,
    y: Floats,
    *,
    m: int,
    alpha: float,
    rate: str | float | Sequence[float] = 1.0,
    **options: Unpack[Options],
) -> NewtonRun:
    """Oja-SON: SON Algorithms 1 and 3; `rate` is c of Γ_t = min(1, c/t), one or m of them, or "adaptive"."""
    return newton(X, y, sketch=Oja(m, rate=rate), alpha=alpha, **options)
