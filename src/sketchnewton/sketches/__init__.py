"""Streaming sketches of AᵀA: one pass over the rows of A, little memory, errors with a certificate.

>>> import numpy as np
>>> from sketchnewton import FrequentDirections
>>> A = np.random.default_rng(0).standard_normal((500, 30))
>>> first, second = FrequentDirections(10).update(A[:300]), FrequentDirections(10).update(A[300:])
>>> both = first + second
>>> error = np.linalg.norm(A.T @ A - both.covariance(), 2)
>>> bool(error <= both.error_bound <= np.sum(A**2) / 10)
True
"""

from sketchnewton.sketches.base import Sketch
from sketchnewton.sketches.centering import CenteredSketch
from sketchnewton.sketches.exact import ExactCovariance
from sketchnewton.sketches.frequent_directions import (
    CompensativeFrequentDirections,
    FrequentDirections,
    GreedyDirections,
    ParameterizedFrequentDirections,
    RobustFrequentDirections,
)
from sketchnewton.sketches.oja import OjaSketch
from sketchnewton.sketches.random_projection import RandomProjection

__all__ = [
    "CenteredSketch",
    "CompensativeFrequentDirections",
    "ExactCovariance",
    "FrequentDirections",
    "GreedyDirections",
    "OjaSketch",
    "ParameterizedFrequentDirections",
    "RandomProjection",
    "RobustFrequentDirections",
    "Sketch",
]
