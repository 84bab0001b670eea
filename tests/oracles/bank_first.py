"""The bank's first labels: which of them are wild (docs/untuned-theory.md)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MOST = 8


@dataclass
class First:
    """Up to eight labels."""

    labels: list[float] = field(default_factory=list)

    @property
    def all_met(self) -> bool:
        return len(self.labels) == MOST

    def usual(self) -> list[float]:
        """Those that are not wild: 100 times as far from the median as most are."""
        labels = np.array(self.labels)
        if len(labels) < 4:
            return self.labels
        away = abs(labels - np.sort(labels)[(len(labels) - 1) // 2])
        near = np.sort(away)[len(labels) // 2]
        if near <= 1e-9 * abs(labels).max():
            return self.labels
        return [float(label) for label in labels[away <= 100 * near]]
