"""What a learner of the exact oracles did: numbers of mpmath, and the same as floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpmath import mp

from .linalg import Floats, Matrix, Number, Vector, minus, spectral_norm


@dataclass
class Run:
    """Predictions, weights, and the sketch beside what it stands for."""

    #: Scores made before each row was learned, after a projection if there is one.
    exact_predictions: Vector
    #: In the features' own coordinates.
    exact_weights: Vector
    #: SᵀS, what the sketch stands for, without a ridge; where features are scaled, in scaled coordinates.
    sketch: Matrix
    #: Σĝĝᵀ, what it should be.
    curvature: Matrix
    #: Σρ of Frequent Directions, the certificate; else 0.
    shrinks: Number
    digits: int

    @property
    def predictions(self) -> Floats:
        return np.array([float(p) for p in self.exact_predictions])

    @property
    def weights(self) -> Floats:
        return np.array([float(w) for w in self.exact_weights])

    @cached_property
    def spectral_error(self) -> float:
        """‖Σĝĝᵀ − SᵀS‖₂."""
        with mp.workdps(self.digits):
            return float(spectral_norm(minus(self.curvature, self.sketch)))
