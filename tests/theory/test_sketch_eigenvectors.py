"""The shortcut to a few eigenvectors is as exact as LAPACK's, or is not taken."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from sketchnewton import FrequentDirections, RobustFrequentDirections, _native
from sketchnewton.sketches import symmetric
from tests.oracles.frequent_directions import frequent_directions

Matrix = NDArray[np.float64]

SPECTRA = {
    "power law": lambda n: np.arange(1.0, n + 1) ** -1.4,
    "linear": lambda n: np.linspace(1, 0.1, n),
    "nearly flat": lambda n: 1 + 1e-3 * np.linspace(1, 0, n),
    "flat": np.ones,
    "pairs": lambda n: np.repeat(np.geomspace(1, 0.01, n // 2 + 1), 2)[:n],
    "clusters": lambda n: np.repeat([5.0, 2.0, 1.0], n // 3 + 1)[:n] + 1e-9 * np.arange(n, 0, -1),
    "low rank": lambda n: np.where(np.arange(n) < n // 3, np.linspace(2, 1, n), 0),
    "one": lambda n: np.eye(n)[0],
    "zero": np.zeros,
    "geometric": lambda n: np.geomspace(1, 1e-12, n),
}


def gram(spectrum: str, n: int, seed: int = 0) -> Matrix:
    values = SPECTRA[spectrum](n)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * values) @ Q.T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize(("n", "count"), [(48, 1), (149, 49), (120, 60)])
@pytest.mark.parametrize("all_values", [False, True])
def test_leading_vectors_are_exact(spectrum: str, n: int, count: int, dtype: str, all_values: bool) -> None:
    """Residuals and angles within 50 eps of the largest eigenvalue, and the values LAPACK's."""
    G = gram(spectrum, n).astype(dtype)
    G = (G + G.T) / 2
    values, vectors = symmetric.leading(G, count, all_values=all_values)
    V = vectors[:, :count]
    eps, exact = np.finfo(dtype).eps, np.linalg.eigvalsh(G.astype(float))[::-1]
    assert len(values) == n or (len(values) > count and not all_values)
    np.testing.assert_allclose(values, np.maximum(exact[: len(values)], 0), atol=40 * eps * exact[0])
    np.testing.assert_allclose(V.T @ V, np.eye(count), atol=50 * eps)
    np.testing.assert_allclose(G @ V, V * values[:count], atol=60 * eps * max(exact[0], 1e-300))


@pytest.mark.parametrize("spectrum", ["power law", "linear", "geometric"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_shortcut_is_taken_where_it_pays(spectrum: str, dtype: str) -> None:
    found = symmetric._by_inverse_iteration(gram(spectrum, 149).astype(dtype), 49, False)
    assert found is not None
    assert found[1].shape == (149, 49)


@pytest.mark.parametrize(("dtype", "beside"), [("float32", 1.5e-3), ("float64", 3e-9)])
def test_entries_far_below_their_neighbour_count(dtype: str, beside: float) -> None:
    """Two long rows at the end, nearly at right angles to all others: products of both kinds in one row."""
    rng, n, count = np.random.default_rng(0), 48, 20
    B = 0.1 * np.linalg.qr(rng.standard_normal((n, n)))[0] * np.geomspace(1, 0.1, n)
    B[:, 0] = beside / n * rng.standard_normal(n)
    B[-2:] = np.eye(n)[0]
    G = (B @ B.T).astype(dtype)
    values, vectors = symmetric.leading(G, count)
    V = vectors[:, :count].astype(float)
    residual = G.astype(float) @ V - V * values[:count]
    assert np.abs(residual).max() < 60 * np.finfo(dtype).eps * values[0]


@pytest.mark.parametrize("kind", [FrequentDirections, RobustFrequentDirections])
def test_long_rows_at_right_angles_to_short_ones_are_certified(kind: type[FrequentDirections]) -> None:
    """The bound was too small by a tenth: products of long and short rows were left out of the Gram matrix."""
    rng, d = np.random.default_rng(0), 60
    A = 1e-6 * rng.standard_normal((31, d)) / np.sqrt(d)
    A[:, 0] = 1e-9 * rng.standard_normal(31)
    A[-2:] = np.eye(d)[0]
    sketch = kind(8).update(A)
    wide, B = A.astype(np.longdouble), sketch.matrix.astype(np.longdouble)
    off = (wide.T @ wide - B.T @ B).astype(float) - sketch.ridge * np.eye(d)
    assert np.linalg.norm(off, 2) <= sketch.error_bound + 4 * np.finfo(float).eps * np.sum(A**2)


def test_blocks_that_do_not_touch() -> None:
    """A matrix that is diagonal in part, as after a shrink: T falls into pieces."""
    n, count = 100, 40
    G = np.diag(np.linspace(3, 1, n))
    G[60:, 60:] += gram("linear", 40)
    values, vectors = symmetric.leading(G, count)
    np.testing.assert_allclose(G @ vectors[:, :count], vectors[:, :count] * values[:count], atol=1e-13)
    np.testing.assert_allclose(vectors[:, :count].T @ vectors[:, :count], np.eye(count), atol=1e-13)


def test_vectors_of_a_tridiagonal_matrix() -> None:
    """The Laplacian of a path, whose eigenvectors are sines."""
    n, k = 30, 7
    angles = np.pi * np.arange(n, n - k, -1) / (n + 1)
    values = 2 - 2 * np.cos(angles)
    path = np.full(n, 2.0), np.full(n - 1, -1.0)
    np.testing.assert_allclose(_native.tridiagonal_values(*path, k), values, atol=1e-14)
    vectors, residual = _native.tridiagonal_vectors(*path, values)
    assert residual < 1e-14
    sines = np.sin(np.outer(np.arange(1, n + 1), angles))
    sines /= np.linalg.norm(sines, axis=0)
    np.testing.assert_allclose(np.abs((vectors * sines).sum(axis=0)), 1, atol=1e-12)
    for wrong in ((np.ones(3), np.ones(3), np.ones(1)), (np.ones(3), np.ones(2), np.ones(0))):
        with pytest.raises(ValueError, match=r"tridiagonal|no eigenvalues"):
            _native.tridiagonal_vectors(*wrong)
    for count in (0, n + 1):
        with pytest.raises(ValueError, match="not so many"):
            _native.tridiagonal_values(*path, count)


@pytest.mark.parametrize("kind", ["fd", "rfd"])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_large_sketches_equal_the_papers_algorithm(kind: str, scale: float) -> None:
    m, random = 40, np.random.default_rng(3)
    A = scale * random.standard_normal((700, 200)) * np.arange(1, 201) ** -0.7
    sketch = {"fd": FrequentDirections, "rfd": RobustFrequentDirections}[kind](m).update(A)
    B, ridge, _ = frequent_directions(A, m, kind=kind, buffer=3 * m)
    whole = B.T @ B + ridge * np.eye(200)
    np.testing.assert_allclose(sketch.covariance(), whole, atol=1e-11 * np.abs(whole).max())
    parts = {"fd": FrequentDirections, "rfd": RobustFrequentDirections}[kind](m)
    for row in A:
        parts.update(row)
    np.testing.assert_allclose(parts.covariance(), sketch.covariance(), atol=1e-11 * np.abs(whole).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_certificate_of_large_sketches(dtype: str) -> None:
    """On rows in which directions come, stay and repeat; float32 loses a small multiple of eps·‖A‖²_F."""
    random = np.random.default_rng(5)
    m, d = 30, 150
    parts = [
        random.standard_normal((400, d)),
        np.repeat(3 * np.eye(d)[:60], 5, axis=0),
        random.standard_normal((300, 5)) @ random.standard_normal((5, d)),
        np.zeros((50, d)),
        random.standard_normal((300, d)) * np.geomspace(10, 1e-3, d),
    ]
    A = np.vstack(parts).astype(dtype).astype(float)
    sketch = FrequentDirections(m, dtype=dtype).update(A)
    gap = np.linalg.eigvalsh(A.T @ A - sketch.covariance())
    rounding = 10 * np.finfo(dtype).eps * sketch.squared_norm
    assert gap[0] >= -rounding
    assert gap[-1] <= sketch.error_bound + rounding
    tail = (np.linalg.svd(A, compute_uv=False) ** 2)[::-1].cumsum()[::-1]
    assert all(sketch.error_bound <= tail[k] / (m - k) + rounding for k in range(m))


def test_small_sketches_do_not_wait_for_scipy() -> None:
    code = (
        "import sys, numpy as np; from sketchnewton import FrequentDirections; "
        "FrequentDirections(10).update(np.random.default_rng(0).standard_normal((100, 40))).matrix; "
        "assert 'scipy.linalg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
