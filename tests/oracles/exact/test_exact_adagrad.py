"""The exact oracles of ADA's learners agree with each other where theory says so, and with plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mpf

from .adagrad import diagonal_adagrad, fd_adagrad, full_adagrad, low_rank_adagrad, projected_adagrad
from .run import Run
from .streams import STREAMS, few_features, gaussian, perturbed, rank_deficient


def furthest(a: Run, b: Run) -> mpf:
    return max(abs(p - q) for p, q in zip(a.exact_predictions, b.exact_predictions, strict=True))


def dense(
    X: np.ndarray, y: np.ndarray, eta: float, sigma: float, form: str = "mirror_descent", l2: float = 0.0
) -> list[float]:
    """ADA-FULL once more, in NumPy, by the equations that its argmin solves."""
    d = X.shape[1]
    beta, G, total, predictions = np.zeros(d), np.zeros((d, d)), np.zeros(d), []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        predictions.append(beta @ x)
        g = 2 * (beta @ x - label) * x
        G, total = G + np.outer(g, g), total + g
        values, V = np.linalg.eigh(G)
        H = sigma * np.eye(d) + V @ np.diag(np.sqrt(np.maximum(values, 0))) @ V.T
        if form == "mirror_descent":
            beta = np.linalg.solve(H + eta * l2 * np.eye(d), H @ beta - eta * g)
        else:
            beta = np.linalg.solve(H + eta * t * l2 * np.eye(d), -eta * total)
    return predictions


@pytest.mark.parametrize("form", ["mirror_descent", "dual_averaging"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_full_matrix_is_a_dense_float_one(form: str, l2: float) -> None:
    stream = gaussian(1, n=30, d=5)
    run = full_adagrad(stream.X, stream.y, eta=0.3, sigma=1.0, form=form, l2=l2)
    expected = dense(stream.X, stream.y, 0.3, 1.0, form, l2)
    assert np.allclose(run.predictions, expected, rtol=0, atol=1e-6)  # eigh halves the digits of small values
    frequent = fd_adagrad(stream.X, stream.y, m=6, eta=0.3, sigma=1.0, form=form, l2=l2)
    assert furthest(frequent, run) < mpf(10) ** -25


@pytest.mark.parametrize("robust", [False, True])
def test_frequent_directions_hold_what_fits(robust: bool) -> None:
    stream = rank_deficient(2, n=30, d=6, rank=3)
    run = fd_adagrad(stream.X, stream.y, m=4, eta=0.1, sigma=1.0, robust=robust)
    assert furthest(run, full_adagrad(stream.X, stream.y, eta=0.1, sigma=1.0)) < mpf(10) ** -20
    assert run.shrinks == 0


@pytest.mark.parametrize("kind", ["few_features", "gaussian", "zero_rows", "repeated"])
def test_the_certificate_holds(kind: str) -> None:
    stream = STREAMS[kind](3, n=30)
    run = fd_adagrad(stream.X, stream.y, m=3, eta=0.1, sigma=1.0)
    assert 0 < run.spectral_error <= float(run.shrinks) * (1 + 1e-12)


def test_few_features_do_not_explode_or_jump() -> None:
    """A wide sketch of a small space, where directions of rounding would."""
    stream = few_features(5, n=40)
    run = fd_adagrad(stream.X, stream.y, m=10, eta=0.3, sigma=1.0)
    moved = perturbed(stream, 1e-9)
    assert np.abs(run.predictions).max() < 1.5
    assert furthest(run, fd_adagrad(moved.X, moved.y, m=10, eta=0.3, sigma=1.0)) < 1e-6


@pytest.mark.parametrize("of", ["gradients", "data"])
def test_projections_that_keep_everything_are_the_full_matrix(of: str) -> None:
    """r_t = e_t: S is all gradients, or all rows; absolute loss has g = ±x, so both are one."""
    stream = gaussian(4, n=20, d=4)
    run = projected_adagrad(stream.X, stream.y, R=np.eye(20), eta=0.2, sigma=1.0, of=of, loss="absolute")
    full = full_adagrad(stream.X, stream.y, eta=0.2, sigma=1.0, loss="absolute")
    assert furthest(run, full) < mpf(10) ** -20


def test_a_range_finder_that_finds_everything_is_the_full_matrix() -> None:
    """g is in the range of G: the directions that ADA-LR leaves out do not matter."""
    stream = gaussian(5, n=20, d=4)
    full = full_adagrad(stream.X, stream.y, eta=0.2, sigma=1.0)
    for width in (4, 6):
        projection = np.random.default_rng(1).standard_normal((4, width))
        run = low_rank_adagrad(stream.X, stream.y, projection=projection, eta=0.2, sigma=1.0)
        assert furthest(run, full) < mpf(10) ** -20


def test_one_feature_is_diagonal() -> None:
    stream = STREAMS["single_feature"](1, n=30)
    run = diagonal_adagrad(stream.X, stream.y, eta=0.2, sigma=1.0)
    assert furthest(run, full_adagrad(stream.X, stream.y, eta=0.2, sigma=1.0)) < mpf(10) ** -50
