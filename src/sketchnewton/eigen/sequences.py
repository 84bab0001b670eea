"""Sequences of matrices to play against, all rank-one, positive semidefinite and of norm at most 1.

>>> vectors = alternating(4, 5)
>>> [int(np.flatnonzero(x)[0]) for x in vectors]
[0, 1, 0, 1, 0]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sketchnewton.core.types import Floats

__all__ = ["SEQUENCES", "alternating", "axes", "fixed", "rotating", "stochastic"]


def stochastic(n: int, rounds: int, seed: int = 0) -> Floats:
    """Independent unit vectors x with E[xxᵀ] = ½uuᵀ + (½/n)I for a hidden direction u; one per row."""
    rng = np.random.default_rng([seed, n, rounds, 1])
    direction, *noise = _unit_rows(rng.standard_normal((rounds + 1, n)))
    signs = rng.choice([-1.0, 1.0], rounds)
    kinds = rng.random(rounds) < 0.5
    return np.where(kinds[:, None], signs[:, None] * direction, np.array(noise).reshape(rounds, n))


def alternating(n: int, rounds: int, seed: int = 0) -> Floats:
    """Two axes in turn, the first vector at half strength: whoever follows the leader is always wrong."""
    vectors = np.zeros((rounds, n))
    vectors[::2, 0] = 1.0
    vectors[1::2, min(1, n - 1)] = 1.0
    vectors[:1] *= math.sqrt(0.5)
    return vectors


def rotating(n: int, rounds: int, seed: int = 0, turns: float = 2.0) -> Floats:
    """A unit vector that turns slowly through a random plane, `turns` times in all."""
    rng = np.random.default_rng([seed, n, rounds, 2])
    plane = np.linalg.qr(rng.standard_normal((n, min(2, n))))[0]
    angles = np.linspace(0.0, 2 * math.pi * turns, rounds, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])[:, : plane.shape[1]]
    return np.asarray(circle @ plane.T)


def fixed(n: int, rounds: int, seed: int = 0) -> Floats:
    """One axis, over and over: nothing to find out, but noise has to be outgrown while every round costs 1."""
    return np.tile(np.eye(1, n), (rounds, 1))


def axes(n: int, rounds: int, seed: int = 0) -> Floats:
    """Axes drawn at random: every unit vector gains 1/n a round on average, so that all learners are alike.

    Their regret is what the best axis has above the mean and grows like √T, a lower bound for every learner.
    """
    return np.eye(n)[np.random.default_rng([seed, n, rounds, 3]).integers(0, n, rounds)]


SEQUENCES: dict[str, Callable[[int, int, int], Floats]] = {
    "stochastic": stochastic,
    "alternating": alternating,
    "rotating": rotating,
    "fixed": fixed,
    "axes": axes,
}


def _unit_rows(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
