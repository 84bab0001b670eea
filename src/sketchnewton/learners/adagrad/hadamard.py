"""The subsampled randomised Hadamard transform, for features that may still be coming."""

from __future__ import annotations

import math
from functools import lru_cache

from sketchnewton.core.types import Floats, NDArray, np


def hadamard_projection(features: NDArray[np.int64], m: int, seed: int) -> Floats:
    """Rows of a subsampled randomised Hadamard transform Π (d × m) with E[ΠΠᵀ] = I, for any d.

    Π_ij = s_i(−1)^|i & r_j|/√m: the Walsh functions r_j of the features' indices, with random signs s_i. The
    lowest k bits of the r_j run through all 2^k values before one repeats, so that m ≥ d columns have full rank;
    the others are random. Nothing depends on d: features may come later.
    """
    rows = _walsh_functions(m, seed)
    index = features.astype(np.uint64)
    parity = (
        _parity(index[:, None] & rows[None, :]) ^ (_mixed(index, np.uint64(seed)) >> np.uint64(63))[:, None]
    )
    signs: Floats = np.where(parity == 1, -1.0, 1.0)
    return signs / math.sqrt(m)


@lru_cache(maxsize=16)  # learners ask for the same ones in every row
def _walsh_functions(m: int, seed: int) -> NDArray[np.uint64]:
    return _scrambled(np.arange(m, dtype=np.uint64), np.uint64(seed))


def _mixed(x: NDArray[np.uint64], seed: np.uint64) -> NDArray[np.uint64]:
    """Well-mixed bits of x and seed (splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (seed * np.uint64(0xD1342543DE82EF95))) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _scrambled(x: NDArray[np.uint64], seed: np.uint64) -> NDArray[np.uint64]:
    """Flip each bit by a coin that depends on the bits below it: a permutation of every 2^k lowest values."""
    out = x.copy()
    for bit in range(62):
        below = x & np.uint64((1 << bit) - 1)
        coin = _mixed(below ^ np.uint64(bit << 56), ~seed) & np.uint64(1)
        out ^= coin << np.uint64(bit)
    return out


def _parity(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for shift in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> np.uint64(shift))
    return x & np.uint64(1)
