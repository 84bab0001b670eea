"""Seeded streams of awkward rows for property tests: each is rows X (n × d) and labels y within [−1, 1]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Stream(NamedTuple):
    """Rows and their labels."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]


def labelled(
    r: np.random.Generator,
    X: NDArray[np.float64],
    reference: NDArray[np.float64] | None = None,
    signs: bool = False,
) -> Stream:
    """Labels of a noisy linear function of `reference`, X with ordinary scales; ±1 with `signs`."""
    Z = X if reference is None else reference
    score = 0.3 * Z @ r.standard_normal(Z.shape[1]) + 0.2 * r.standard_normal(len(Z))
    y = np.where(score >= 0, 1.0, -1.0) if signs else np.clip(score, -0.9, 0.9)
    return Stream(X, y)


def rows(r: np.random.Generator, n: int, d: int, density: float = 1.0) -> NDArray[np.float64]:
    X = r.standard_normal((n, d))
    return X if density == 1.0 else X * (r.random((n, d)) < density)


def gaussian(seed: int, n: int = 80, d: int = 8, signs: bool = False) -> Stream:
    """Benign: dense Gaussian rows."""
    r = np.random.default_rng(seed)
    return labelled(r, rows(r, n, d), signs=signs)


def few_features(seed: int, n: int = 80, d: int = 16, signs: bool = False) -> Stream:
    """Sparse Gaussian rows: with sketch_size m and d < 2m − 1 the sketch is wider than the space."""
    r = np.random.default_rng(seed)
    return labelled(r, rows(r, n, d, 0.15), signs=signs)


def repeated(seed: int, n: int = 80, d: int = 10, times: int = 2, signs: bool = False) -> Stream:
    """Every row `times` times in succession, its label too."""
    r = np.random.default_rng(seed)
    once = labelled(r, rows(r, -(-n // times), d, 0.5), signs=signs)
    return Stream(np.repeat(once.X, times, axis=0)[:n], np.repeat(once.y, times)[:n])


def returning(seed: int, n: int = 80, d: int = 10, distinct: int = 7, signs: bool = False) -> Stream:
    """A few distinct rows that come again and again in random order."""
    r = np.random.default_rng(seed)
    once = labelled(r, rows(r, distinct, d, 0.5), signs=signs)
    chosen = r.integers(distinct, size=n)
    return Stream(once.X[chosen], once.y[chosen])


def near_copies(seed: int, n: int = 80, d: int = 10, size: float = 1e-7, signs: bool = False) -> Stream:
    """Every row followed by a copy whose entries differ by `size`, relatively."""
    twice = repeated(seed, n, d, 2, signs)
    r = np.random.default_rng([seed, 1])
    X = twice.X.copy()
    X[1::2] *= 1 + size * r.standard_normal(X[1::2].shape)
    return Stream(X, twice.y)


def feature_scales(seed: int, n: int = 80, d: int = 8, decades: float = 8.0, signs: bool = False) -> Stream:
    """Features of scales 10^-decades to 10^decades."""
    r = np.random.default_rng(seed)
    Z = rows(r, n, d)
    scales = 10.0 ** r.permutation(np.linspace(-decades, decades, d))
    return labelled(r, Z * scales, Z, signs)


def row_scales(seed: int, n: int = 80, d: int = 8, decades: float = 4.0, signs: bool = False) -> Stream:
    """Whole rows of scales 10^-decades to 10^decades."""
    r = np.random.default_rng(seed)
    Z = rows(r, n, d)
    return labelled(r, Z * 10.0 ** r.uniform(-decades, decades, (n, 1)), Z, signs)


def one_large_feature(seed: int, n: int = 80, d: int = 8, factor: float = 1e5, signs: bool = False) -> Stream:
    """One feature is `factor` times as large as the others."""
    r = np.random.default_rng(seed)
    Z = rows(r, n, d)
    X = Z.copy()
    X[:, r.integers(d)] *= factor
    return labelled(r, X, Z, signs)


def rank_deficient(seed: int, n: int = 80, d: int = 10, rank: int = 4, signs: bool = False) -> Stream:
    """Rows in a space of `rank` dimensions, exactly: small integers throughout."""
    r = np.random.default_rng(seed)
    X = (r.integers(-3, 4, (n, rank)) @ r.integers(-3, 4, (rank, d))).astype(float) / 8
    return labelled(r, X, signs=signs)


def single_feature(seed: int, n: int = 60, signs: bool = False) -> Stream:
    r = np.random.default_rng(seed)
    return labelled(r, rows(r, n, 1), signs=signs)


def zero_rows(seed: int, n: int = 80, d: int = 8, share: float = 0.3, signs: bool = False) -> Stream:
    """Some rows are zero, the first among them."""
    r = np.random.default_rng(seed)
    stream = labelled(r, rows(r, n, d), signs=signs)
    stream.X[r.random(n) < share] = 0
    stream.X[0] = 0
    return stream


STREAMS: dict[str, Callable[..., Stream]] = {
    make.__name__: make
    for make in (
        gaussian,
        few_features,
        repeated,
        returning,
        near_copies,
        feature_scales,
        row_scales,
        one_large_feature,
        rank_deficient,
        single_feature,
        zero_rows,
    )
} | {
    "repeated_often": lambda seed, **named: repeated(seed, times=12, **named),
    "nearest_copies": lambda seed, **named: near_copies(seed, size=1e-9, **named),
    "one_huge_feature": lambda seed, **named: one_large_feature(seed, factor=1e7, **named),
}

#: Sketch sizes worth trying: the smallest there are, ordinary ones, and more than there are features.
SKETCH_SIZES = (1, 2, 3, 5, 10, 25)


def all_streams(seeds: range, **named: int | bool) -> Iterator[tuple[str, int, Stream]]:
    """Every kind of stream with every seed, with its name and seed."""
    for name, make in STREAMS.items():
        for seed in seeds:
            yield name, seed, make(seed, **named)


def perturbed(stream: Stream, size: float, seed: int = 0) -> Stream:
    """The stream with every entry changed by a share of `size` of itself; labels and zeros stay."""
    r = np.random.default_rng([seed, 2])
    return Stream(stream.X * (1 + size * r.uniform(-1, 1, stream.X.shape)), stream.y)
