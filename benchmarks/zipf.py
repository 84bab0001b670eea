"""The rows that the benchmarks share: sparse, with a few very common features and a long tail of rare ones.

Feature popularity follows Zipf's law, feature numbers are shuffled so that popular ones lie apart, rows have
about unit length, and labels are the signs of a sparse linear model with noise (its own error is about 8%).
Values are multiples of 1e-6, so that text and memory hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROWS, FEATURES, NONZEROS = 100_000, 50_000, 60

_CHUNK = 20_000  # rows made or written at a time, which bounds the memory
_MODEL_FEATURES = 2_000  # how many of the features decide the label
_NOISE = 0.1
_DIGITS = 6


@dataclass(frozen=True)
class SparseRows:
    """Rows in CSR form, with a label of −1 or +1 each."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    data: npt.NDArray[np.float64]
    labels: npt.NDArray[np.float64]
    format: str = "csr"

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.labels), int(self.indices.max()) + 1


def zipf_rows(
    rows: int = ROWS, features: int = FEATURES, nonzeros: int = NONZEROS, seed: int = 0
) -> SparseRows:
    """Rows with `nonzeros` non-zeros on average, drawn by popularity without repetition."""
    random = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, features + 1)
    popularity /= popularity.sum()
    names = random.permutation(features)
    truth = np.zeros(features)
    chosen = random.choice(features // 5, min(_MODEL_FEATURES, features // 5), replace=False)
    truth[names[chosen]] = random.standard_normal(len(chosen))

    draws = _draws_for(nonzeros, popularity)
    edges = np.cumsum(popularity)
    lengths, indices, data, labels = [], [], [], []
    for begin in range(0, rows, _CHUNK):
        count = min(_CHUNK, rows - begin)
        drawn = names[np.searchsorted(edges, random.random((count, draws))).clip(max=features - 1)]
        drawn.sort(axis=1)
        new = np.ones(drawn.shape, bool)
        new[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
        values = random.uniform(0.1, 1.0, drawn.shape) * new
        values = np.rint(values / np.linalg.norm(values, axis=1, keepdims=True) * 10**_DIGITS) / 10**_DIGITS
        scores = (values * truth[drawn]).sum(axis=1)
        lengths.append(new.sum(axis=1))
        indices.append(drawn[new])
        data.append(values[new])
        labels.append(np.where(scores + _NOISE * random.standard_normal(count) >= 0.0, 1.0, -1.0))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    return SparseRows(indptr, np.concatenate(indices), np.concatenate(data), np.concatenate(labels))


def uniform_rows(rows: int, features: int, nonzeros: int = NONZEROS, seed: int = 0) -> SparseRows:
    """Rows whose features are drawn uniformly: the worst case for caches."""
    random = np.random.default_rng(seed)
    indices = np.sort(random.integers(0, features, (rows, nonzeros)), axis=1)
    data = random.standard_normal((rows, nonzeros)) / np.sqrt(nonzeros)
    labels = np.where(random.random(rows) < 0.5, -1.0, 1.0)
    indptr = np.arange(rows + 1, dtype=np.int64) * nonzeros
    return SparseRows(indptr, indices.ravel(), data.ravel(), labels)


def write_text(rows: SparseRows, svmlight: Path, vw: Path) -> None:
    """The same rows as svmlight text (`1 17:0.123456 …`) and as VW text (`1 | 17:0.123456 …`)."""
    with svmlight.open("wb") as ours, vw.open("wb") as theirs:
        for label, pairs in _lines(rows):
            ours.write(b"%d%b\n" % (label, pairs))
            theirs.write(b"%d |%b\n" % (label, pairs))


def _draws_for(nonzeros: int, popularity: npt.NDArray[np.float64]) -> int:
    """How many draws with repetition give `nonzeros` different features on average."""
    draws = nonzeros
    while -np.expm1(draws * np.log1p(-popularity)).sum() < nonzeros:
        draws += 1
    return draws


def _lines(rows: SparseRows) -> Iterator[tuple[float, bytes]]:
    for begin in range(0, len(rows.labels), _CHUNK):
        indptr = rows.indptr[begin : begin + _CHUNK + 1]
        part = slice(indptr[0], indptr[-1])
        text, ends = _pairs(rows.indices[part], rows.data[part])
        cuts = np.concatenate(([0], ends))[indptr - indptr[0]].tolist()
        labels = rows.labels[begin : begin + _CHUNK].tolist()
        for label, start, end in zip(labels, cuts[:-1], cuts[1:], strict=True):
            yield label, text[start:end]


def _pairs(
    indices: npt.NDArray[np.int64], data: npt.NDArray[np.float64]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """All ` index:0.dddddd` in a row, and where each ends: digits as columns, leading zeros masked out."""
    width = len(str(indices.max()))
    powers = 10 ** np.arange(width - 1, -1, -1)
    index_digits = indices[:, None] // powers % 10
    value_digits = (
        np.rint(data * 10**_DIGITS).astype(np.int64)[:, None] // 10 ** np.arange(_DIGITS, -1, -1) % 10
    )
    cells = np.empty((len(indices), 1 + width + 1 + 2 + _DIGITS), np.uint8)
    cells[:, 0] = ord(" ")
    cells[:, 1 : 1 + width] = index_digits + ord("0")
    cells[:, 1 + width] = ord(":")
    cells[:, 2 + width] = value_digits[:, 0] + ord("0")
    cells[:, 3 + width] = ord(".")
    cells[:, 4 + width :] = value_digits[:, 1:] + ord("0")
    shown = np.ones(cells.shape, bool)
    shown[:, 1:width] = indices[:, None] >= powers[:-1]
    return cells[shown].tobytes(), np.cumsum(shown.sum(axis=1))
