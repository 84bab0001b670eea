"""RFD Figures 1 and 2: on real and synthetic spectra the robust sketch halves the error of the plain one."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from sketchnewton import (
    CompensativeFrequentDirections,
    FrequentDirections,
    ParameterizedFrequentDirections,
    RobustFrequentDirections,
)

DATA = Path(os.environ.get("SKETCHNEWTON_DATA", "../shared/data"))
SPECTRA = {"power law": np.arange(1, 121) ** -0.7, "exponential": np.exp(-np.arange(120) / 20)}
SIZES = (10, 20, 40)


def error(sketch: object, A: np.ndarray) -> float:
    exact = A.T @ A
    return float(np.linalg.norm(exact - sketch.update(A).covariance(), 2) / np.linalg.norm(exact, 2))


def check_figures(A: np.ndarray) -> None:
    for m in SIZES:
        fd, rfd, cfd = (
            error(kind(m), A)
            for kind in (FrequentDirections, RobustFrequentDirections, CompensativeFrequentDirections)
        )
        assert 0.3 * fd <= rfd <= 0.65 * fd
        assert rfd <= cfd
        for beta in (0.2, 0.4, 0.6, 0.8):  # Figure 2: never much worse than FD, and better where rows are few
            assert error(ParameterizedFrequentDirections(m, beta=beta), A) <= 1.05 * fd


@pytest.mark.parametrize("name", SPECTRA)
def test_synthetic_spectra(name: str) -> None:
    random = np.random.default_rng(0)
    check_figures(random.standard_normal((2000, 120)) * SPECTRA[name])


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a9a", "mushrooms", "w1a"])
def test_real_data(name: str) -> None:
    path = DATA / name / f"{name}.xz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with lzma.open(path) as file:
        X = load_svmlight_file(file)[0].toarray()
    check_figures(X[np.random.default_rng(0).permutation(len(X))])


def test_a_flat_spectrum_is_the_limit() -> None:
    """Where a sketch is far too small FD misses everything, 100%, and RFD's ridge is a guess that may be worse."""
    A = np.random.default_rng(0).standard_normal((3000, 100))
    assert error(FrequentDirections(4), A) > 0.9
    sketch = RobustFrequentDirections(4)
    assert error(sketch, A) > 1
    assert np.linalg.norm(A.T @ A - sketch.covariance(), 2) <= sketch.error_bound
