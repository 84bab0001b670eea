"""Rows whose products add up to those of centered rows, without knowing the mean beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from sketchnewton.core.types import Array, Floats
from sketchnewton.sketches.base import Sketch
from sketchnewton.sketches.rows import Rows, as_rows
from sketchnewton.sketches.stack import Matrix, Stack

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class RunningMean:
    """The mean of the rows so far, and for each new row the one that makes the scatter matrix exact.

    Adding x to n rows of mean μ adds n/(n+1)·(x − μ)(x − μ)ᵀ to Σ(xᵢ − μ)(xᵢ − μ)ᵀ (Welford). So a sketch of rows
    √(n/(n+1))·(x − μ) is a sketch of the centered matrix: with its certificate, and however the rows arrive.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 3)) + 7
    >>> mean = RunningMean(3)
    >>> rows = np.vstack([mean.center(X[:20]), mean.center(X[20:])])
    >>> centered = X - X.mean(axis=0)
    >>> bool(np.allclose(rows.T @ rows, centered.T @ centered)), bool(np.allclose(mean.mean, X.mean(axis=0)))
    (True, True)
    """

    def __init__(self, n_features: int) -> None:
        self.count = 0
        self.mean: Floats = np.zeros(n_features)

    def center(self, block: Matrix) -> Floats:
        """Take in a few dense rows and return as many."""
        number = self.count + np.arange(len(block), dtype=np.float64)[:, None]  # rows before each
        # Sums of differences to the mean so far, not of the rows: a large mean would swamp them.
        shifted = block - self.mean
        sums = np.cumsum(shifted, axis=0)
        before = sums - shifted
        rows = (shifted - before / np.maximum(number, 1)) * np.sqrt(number / (number + 1))
        self.count += len(block)
        if len(block):
            self.mean = self.mean + sums[-1] / self.count
        return rows

    def mixture(self, block: csr_array) -> Stack:
        """Take in a few CSR rows; what `center` returns for them, as a mixture of them and the mean so far."""
        rows = int(block.shape[0])
        number = self.count + np.arange(rows, dtype=np.float64)[:, None]
        L = np.tril(np.broadcast_to(-1 / np.maximum(number, 1), (rows, rows + 1)), 0)
        L[:, 0] *= self.count
        L[np.arange(rows), np.arange(rows) + 1] = 1.0
        L *= np.sqrt(number / (number + 1))
        mean = self.mean.astype(block.dtype)[None]
        self.count += rows
        self.mean = self.mean + (np.asarray(block.sum(axis=0)).ravel() - rows * self.mean) / self.count
        return Stack(mean, block, L)


@dataclass(frozen=True)
class _CenteredRows(Rows):
    """Rows that are centered as they are asked for: each once, and in order."""

    running: RunningMean

    def copy_to(self, out: Array, start: int) -> None:
        """Write the rows from `start` on, centered, into `out`, as many as it has."""
        rows = np.empty(out.shape)
        super().copy_to(rows, start)
        out[...] = self.running.center(rows)

    def stack(self, start: int, stop: int, dtype: DTypeLike) -> Stack:
        """The rows `start` to `stop`, centered; sparse ones are not made dense."""
        if self.dense is None and stop - start > 1:
            matrix = self.csr(start, stop, dtype)
            if self.worth_sparse(matrix):
                return self.running.mixture(matrix)
        return Stack(self.block(start, stop, dtype))


class CenteredSketch:
    """A sketch of centered rows; the mean is learned along with them.

    `sketch` is then a sketch of the centered matrix, certificate included. Sparse rows stay sparse in Frequent
    Directions and its variants; other sketches make them dense a few at a time.

    >>> import numpy as np
    >>> from sketchnewton import FrequentDirections
    >>> X = np.random.default_rng(0).standard_normal((300, 4)) + 100
    >>> centered = CenteredSketch(FrequentDirections(6))
    >>> centered.update(X)
    >>> bool(np.allclose(centered.sketch.covariance() / 299, np.cov(X.T)))
    True
    """

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self._running: RunningMean | None = None

    @property
    def mean(self) -> Floats:
        """The mean of the rows so far."""
        return np.zeros(0) if self._running is None else self._running.mean

    @property
    def rows_seen(self) -> int:
        """How many rows came."""
        return self.sketch.rows_seen

    def update(self, rows: object) -> None:
        """Add rows, as to a sketch; they are checked before anything changes."""
        checked = as_rows(rows, self.sketch.n_features or None, "float64")
        running = self._running or RunningMean(checked.width)
        # Twice the peak: entries less their mean.
        rows = _CenteredRows(
            checked.width, len(checked), 2 * checked.peak, checked.dense, checked.sparse, running
        )
        self.sketch._update(rows)
        self._running = running  # rows that are refused decide nothing, not even how many columns there are

    def merge(self, other: CenteredSketch) -> CenteredSketch:
        """Merge the sketch of other rows into this one. Returns the sketch; `other` is not changed.

        The scatter of both about the common mean is that of each about its own, and one more row: the difference
        of the means, √(n₁n₂/(n₁ + n₂)) times as long.
        """
        if other._running is None:
            return self
        if self._running is None:
            self._running = RunningMean(len(other.mean))
        mine, theirs = self._running.count, other._running.count
        gap = other.mean - self.mean
        self.sketch.merge(other.sketch)
        if mine and theirs:
            self.sketch.update((np.sqrt(mine * theirs / (mine + theirs)) * gap)[None])
            self.sketch.rows_seen -= 1  # which was none of the rows
        self._running.count = mine + theirs
        self._running.mean = self.mean + gap * (theirs / max(mine + theirs, 1))
        return self
