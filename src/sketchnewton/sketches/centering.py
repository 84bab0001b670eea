"""Rows whose products add up to those of centered rows, without knowing the mean beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchnewton.sketches.base import Sketch
from sketchnewton.sketches.rows import as_rows
from sketchnewton.sketches.spectrum import Floats, Matrix

_BLOCK = 64


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


class CenteredSketch:
    """A sketch of rows about their mean, which comes to be known with them.

    `sketch` is then a sketch of the centered matrix, certificate included. Rows are made dense, 64 at a time.

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

    def update(self, rows: Any) -> None:
        """Add rows, as to a sketch; they are checked before anything changes."""
        checked = as_rows(rows, self.sketch.n_features or None, "float64")
        if self._running is None:
            self._running = RunningMean(checked.width)
        for start in range(0, len(checked), _BLOCK):
            block = checked.block(start, min(start + _BLOCK, len(checked)), np.float64)
            self.sketch.update(self._running.center(block))
