"""The three perturbations have the distributions that the regret bounds are proved for.

All samples are seeded. Every statistical test here compares a p-value with ALARM, so that a correct sampler fails
a test once in ten thousand seeds; for the seeds below none does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats
from threadpoolctl import threadpool_limits

from sketchnewton.eigen import FollowPerturbedLeader
from sketchnewton.eigen.noise import dimension, exponential, scale_for, spectral_ball, uniform

ALARM = 1e-4
SAMPLES = 2000


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


@functools.cache
def spectra(n: int, samples: int = SAMPLES, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.array([np.linalg.eigvalsh(spectral_ball(n, rng)) for _ in range(samples)])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
def test_the_norm_of_exponential_noise_is_gamma(n: int) -> None:
    rng = np.random.default_rng(n)
    norms = [np.linalg.norm(exponential(n, 0.5, rng), 2) for _ in range(SAMPLES if n < 30 else 500)]
    assert stats.kstest(norms, stats.gamma(dimension(n), scale=0.5).cdf).pvalue > ALARM


def test_the_papers_shape_would_be_noticed() -> None:
    rng = np.random.default_rng(0)
    norms = [np.linalg.norm(exponential(3, 1.0, rng), 2) for _ in range(SAMPLES)]
    assert stats.kstest(norms, stats.gamma(9).cdf).pvalue < 1e-100


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_ball_is_filled_uniformly(n: int) -> None:
    # The norm of a uniform point of a ball in d dimensions has the distribution function r^d.
    norms = np.abs(spectra(n)).max(axis=1)
    assert stats.kstest(norms ** dimension(n), "uniform").pvalue > ALARM


def test_spacings_of_two_eigenvalues() -> None:
    # From the density |λ₁ − λ₂| on [−1, 1]²: the spacing s has the density 3/4·s(2 − s) on [0, 2].
    values = spectra(2)
    assert stats.kstest(values[:, 1] - values[:, 0], lambda s: s**2 * (3 - s) / 4).pvalue > ALARM


def test_spacings_of_three_eigenvalues() -> None:
    """Both spacings of n = 3, against the density ∏|λᵢ − λⱼ| integrated over the place of the third."""
    values = spectra(3)

    def density(s: float) -> float:
        # Lower spacing s, upper spacing u, free position of length 2 − s − u.
        inner, _ = integrate.quad(lambda u: s * u * (s + u) * (2 - s - u), 0, 2 - s)
        return inner

    total, _ = integrate.quad(density, 0, 2)
    grid = np.linspace(0, 2, 201)
    table = np.array([integrate.quad(density, 0, s)[0] / total for s in grid])
    for spacing in (values[:, 1] - values[:, 0], values[:, 2] - values[:, 1]):
        assert stats.kstest(spacing, lambda s: np.interp(s, grid, table)).pvalue > ALARM


def test_independent_entries_would_be_noticed() -> None:
    """A matrix of independent normal entries, with its norm made right, has the wrong spacings."""
    rng = np.random.default_rng(0)
    entries = np.tril(rng.standard_normal((20_000, 2, 2)))
    values = np.linalg.eigvalsh(entries + np.tril(entries, -1).transpose(0, 2, 1))
    values *= (rng.random(20_000) ** (1 / 3) / np.abs(values).max(axis=1))[:, None]
    assert stats.kstest(values[:, 1] - values[:, 0], lambda s: s**2 * (3 - s) / 4).pvalue < 1e-8


@pytest.mark.parametrize("n", [2, 4, 12])
def test_moments_of_the_ball(n: int) -> None:
    """Aomoto's integral for weights 1 on [0, 1] and β = 1 gives E[y₁y₂] = n/(4n + 2) for y = (1 + λ)/2."""
    values = spectra(n)
    trace = values.sum(axis=1)
    pairs = (trace**2 - (values**2).sum(axis=1)) / (n * (n - 1))
    assert stats.ttest_1samp(pairs, 4 * n / (4 * n + 2) - 1).pvalue > ALARM
    assert stats.ttest_1samp(trace, 0.0).pvalue > ALARM
    assert stats.ttest_1samp((values**3).sum(axis=1), 0.0).pvalue > ALARM


def test_eigenvectors_are_haar() -> None:
    """For a Haar vector u in 5 dimensions u₁² is Beta(½, 2), for every eigenvector and every coordinate."""
    rng = np.random.default_rng(3)
    vectors = np.array([np.linalg.eigh(exponential(5, 1.0, rng))[1] for _ in range(SAMPLES)])
    law = stats.beta(0.5, 2.0).cdf
    for which in range(5):
        for coordinate in range(5):
            assert stats.kstest(vectors[:, coordinate, which] ** 2, law).pvalue > ALARM / 25


def test_the_density_is_invariant_under_rotation_of_entries() -> None:
    """Off-diagonal entries and (N₁₁ − N₂₂)/2 change places under a rotation by 45 degrees."""
    rng = np.random.default_rng(4)
    sample = np.array([exponential(3, 1.0, rng) for _ in range(2 * SAMPLES)])
    off = sample[:SAMPLES, 0, 1]
    difference = (sample[SAMPLES:, 0, 0] - sample[SAMPLES:, 1, 1]) / 2
    assert stats.ks_2samp(off, difference).pvalue > ALARM


def test_uniform_noise_is_uniform_entrywise_and_symmetric() -> None:
    rng = np.random.default_rng(5)
    sample = np.array([uniform(4, 3.0, rng) for _ in range(SAMPLES)])
    assert (sample == sample.transpose(0, 2, 1)).all()
    lower = sample[:, *np.tril_indices(4)]
    for entry in lower.T:
        assert stats.kstest(entry, stats.uniform(0, 3).cdf).pvalue > ALARM / 10
    correlations = np.corrcoef(lower.T)[np.triu_indices(10, 1)]
    assert np.abs(correlations).max() < stats.norm.isf(ALARM / 90) / np.sqrt(SAMPLES)


def test_rank_one_noise_is_c_times_a_square_of_a_normal_vector() -> None:
    entries = []
    for seed in range(300):
        learner = FollowPerturbedLeader(7, noise="rank_one", horizon=50, random_state=seed)
        c = np.sqrt(50 / 7 * np.log(50 / 7))
        assert learner.scale == pytest.approx(c)
        values, vectors = np.linalg.eigh(learner.perturbation)
        np.testing.assert_allclose(values[:-1], 0, atol=1e-12 * values[-1])
        entries.append(np.sqrt(values[-1] / c) * vectors[:, -1])
    squares = np.array(entries) ** 2
    assert stats.kstest(squares.ravel(), stats.chi2(1).cdf).pvalue > ALARM
    assert stats.kstest(squares.sum(axis=1), stats.chi2(7).cdf).pvalue > ALARM


@pytest.mark.parametrize(
    ("noise", "n", "horizon", "scale"),
    [
        ("rank_one", 10, 1000, np.sqrt(100 * np.log(100))),
        ("rank_one", 10, 20, np.sqrt(2)),  # max{1, ln(T/n)}
        ("uniform", 16, 50, 10.0),
        ("exponential", 4, 1000, 10.0),
    ],
)
def test_scales_are_those_of_the_theorems(noise: str, n: int, horizon: int, scale: float) -> None:
    assert scale_for(noise, n, horizon) == pytest.approx(scale)
    assert FollowPerturbedLeader(n, noise=noise, horizon=horizon).scale == pytest.approx(scale)
