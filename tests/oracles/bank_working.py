"""What the bank's experts with whole matrices regress on: labels or working responses (docs/untuned-theory.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Working:
    """Targets and weights for least squares, so that it takes the loss's Newton steps."""

    loss: str
    parameter: float
    near: float = 0.0  # residuals in windows around 0
    windows: float = 0.0  # how wide these were

    def of_count(self, p: float, y: float, miss: float, usual: float) -> tuple[float, float]:
        """Of a count y; p is the logarithm of its prediction, `usual` the mean count."""
        return float(p + y * np.exp(-p) - 1), float(np.exp(p)) / (miss + usual / 64)

    def of(self, p: float, y: float, h: float, miss: float, rows: float, places: int) -> tuple[float, float]:
        """Of a row with the label y that was predicted as p, after so many `rows`, for weights at `places`."""
        if self.loss not in ("absolute", "quantile", "hinge"):
            return y, 1.0
        tau = self.parameter if self.loss == "quantile" else 0.5
        window = miss * max(1.0, 12 * tau * (1 - tau)) * max(rows, 1.0) ** -0.2
        self.near += h * (abs(y - p) <= window)
        self.windows += 2 * h * window
        if rows < 8 * places:
            return y + (2 * tau - 1) * miss, 1.0
        density = max(self.near / self.windows, tau * (1 - tau) / miss)
        below = float(np.clip((p - y + window) / (2 * window), 0, 1))  # [y < p], smoothed
        return p + (tau - below) / density, 1.0
