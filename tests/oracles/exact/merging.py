"""Two exact learners as one: what `merge` promises, dense and in many digits.

(A₁ + A₂) w = A₁w₁ + A₂w₂, with A_i = (v̄/v_i)²(S_iᵀS_i + r_i I) + a_i I in the scales of both together: r_i is what
shrinks have added to α, a_i the share of α by rounds, v_i the mean squared gradient of a round and v̄ that of both
(docs/merging.md). The sketch is that of the rows of S₁ and S₂: Frequent Directions shrink them once, Oja keeps the
m leading directions.
"""

from __future__ import annotations

from copy import copy

from mpmath import mp, mpf

from .linalg import (
    Matrix,
    Solver,
    Vector,
    dot,
    gram,
    orthonormal,
    plus,
    row_eigen,
    scaled,
    shifted,
    times,
    zeros,
)
from .newton import NewtonRun, State
from .sketches import FrequentDirections, Oja


def merged(first: NewtonRun, second: NewtonRun, *, diagonal: bool = False) -> NewtonRun:
    """The learner that stands for both; `newton(..., start=…)` continues from it."""
    with mp.workdps(first.digits):
        sides = [first, second]
        size, rounds = len(first.scales), first.rounds + second.rounds
        scales = first.scales
        if diagonal:
            scales = [a + b - mpf("0.1") for a, b in zip(first.scales, second.scales, strict=True)]
        share = [side.rounds / mpf(max(rounds, 1)) for side in sides]
        base = sum(s * side.first_alpha for s, side in zip(share, sides, strict=True))
        ratios = [
            [mp.sqrt(own / both) for own, both in zip(side.scales, scales, strict=True)] for side in sides
        ]
        rows = [
            [
                [value * ratio for value, ratio in zip(row, ratios[i], strict=True)]
                for row in side.state.sketch.rows
            ]
            for i, side in enumerate(sides)
        ]
        weights = [
            [value / ratio for value, ratio in zip(side.state.w, ratios[i], strict=True)]
            for i, side in enumerate(sides)
        ]
        sketch = together(first.state.sketch, second.state.sketch, rows, size)
        state = State(size, sketch, base, first.state.clip, first.state.invariant, None)
        trust = precision([mass(side.state.sketch, S) for side, S in zip(sides, rows, strict=True)], share)
        a = [
            s * side.first_alpha + t * side.state.sketch.ridge
            for s, t, side in zip(share, trust, sides, strict=True)
        ]
        trusted = [[scaled(row, mp.sqrt(t)) for row in S] for t, S in zip(trust, rows, strict=True)]
        state.w = combined_weights(trusted, weights, a, share)
        run = copy(first)
        run.scales, run.rounds, run.state = scales, rounds, state
        run.first_alpha, run.alpha, run.shrinks = base, state.alpha, sketch.shrinks
        run.sketch = sketch.matrix(size)
        run.curvature = zeros(size, size)
        if not diagonal:
            run.curvature = [plus(p, q) for p, q in zip(first.curvature, second.curvature, strict=True)]
        run.exact_weights = [w / mp.sqrt(scale) for w, scale in zip(state.w, scales, strict=True)]
        run.exact_predictions, run.slopes = [], []
        return run


def mass(sketch: FrequentDirections | Oja, rows: Matrix) -> mpf:
    """Squared lengths of all gradients, as far as the sketch knows: each shrink took ρ from each of its rows."""
    taken = mpf(0) if isinstance(sketch, Oja) else sketch.shrunk * sketch.shrinks
    return taken + sum((dot(row, row) for row in rows), mpf(0))


def precision(masses: Vector, share: Vector) -> Vector:
    """(v̄/v)² of each; all ones where one of them had no gradient."""
    if not all(masses):
        return [mpf(1)] * len(masses)
    return [(sum(masses) * s / own) ** 2 for own, s in zip(masses, share, strict=True)]


def together(
    mine: FrequentDirections | Oja, theirs: FrequentDirections | Oja, rows: list[Matrix], size: int
) -> FrequentDirections | Oja:
    """The sketch of the rows of both."""
    sketch = copy(mine)
    if isinstance(sketch, Oja):
        values, vectors = row_eigen(rows[0] + rows[1], size)
        sketch.V, sketch.energy = vectors[: sketch.m], values[: sketch.m]
        sketch.t = mine.t + theirs.t
        return sketch
    sketch.ridge, sketch.shrinks = mine.ridge + theirs.ridge, mine.shrinks + theirs.shrinks
    sketch.kept, sketch.recent = [], rows[0] + rows[1]
    sketch.shrink(size)
    return sketch


def combined_weights(rows: list[Matrix], weights: list[Vector], a: Vector, share: Vector) -> Vector:
    """(A₁ + A₂)⁻¹(A₁w₁ + A₂w₂) within the range of S; outside, the mean by a, or by rounds where a is 0."""
    basis = orthonormal(rows[0] + rows[1])
    inside = [times(basis, w) for w in weights]
    both = [times(rows[0] + rows[1], b) for b in basis]
    pull: Vector = [mpf(0)] * len(basis)
    for i in range(2):
        S = [times(basis, row) for row in rows[i]]
        seen = times(S, inside[i])
        pull = plus(pull, inside[i], a[i])
        for row, value in zip(S, seen, strict=True):
            pull = plus(pull, row, value)
    found = Solver(shifted(gram(both), a[0] + a[1]))(pull)
    rest = [value / (a[0] + a[1]) for value in a] if a[0] + a[1] > 0 else share
    w: Vector = [mpf(0)] * len(weights[0])
    for b, value in zip(basis, found, strict=True):
        w = plus(w, b, value)
    for i in range(2):
        outside = weights[i]
        for b in basis:
            outside = plus(outside, b, -dot(b, outside))
        w = plus(w, scaled(outside, rest[i]))
    return w
