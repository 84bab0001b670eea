"""The exact oracles keep what the papers prove, so that they can judge the learners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

from .eigen import eigen, installed
from .linalg import dot, gram, minus, shifted, symmetric_eigen, times, vector
from .losses import LOSSES, absolute, hinge, named
from .newton import (
    NewtonRun,
    fd_newton,
    full_newton,
    invariant_newton,
    oja_newton,
    pfd_newton,
    rfd_newton,
)
from .streams import STREAMS, Stream, gaussian, near_copies, perturbed, rank_deficient, repeated, zero_rows

FREQUENT: dict[str, Callable[[Stream], NewtonRun]] = {
    "fd": lambda s: fd_newton(s.X, s.y, m=4, alpha=1.0),
    "fd, every row": lambda s: fd_newton(s.X, s.y, m=4, alpha=1.0, epoch="row"),
    "pfd": lambda s: pfd_newton(s.X, s.y, m=4, alpha=1.0, beta=0.5),
    "rfd": lambda s: rfd_newton(s.X, s.y, m=4),
    "rfd, 2m rows": lambda s: rfd_newton(s.X, s.y, m=4, epoch="2m"),
    "rfd, every row": lambda s: rfd_newton(s.X, s.y, m=4, epoch="row"),
}


def furthest(a: NewtonRun, b: NewtonRun) -> mpf:
    return max(abs(p - q) for p, q in zip(a.exact_predictions, b.exact_predictions, strict=True))


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("learner", FREQUENT)
def test_certificates_hold(kind: str, learner: str) -> None:
    """0 ⪯ Σĝĝᵀ − SᵀS ⪯ Σρ, and half of it with RFD's ridge (RFD Theorem 3)."""
    run = FREQUENT[learner](STREAMS[kind](1, n=30))
    with mp.workdps(run.digits):
        values, _ = symmetric_eigen(minus(run.curvature, run.sketch))
        slack = values and values[0] * mpf(10) ** -60
        scale = max(abs(value) for value in symmetric_eigen(run.curvature)[0]) * mpf(10) ** -60
        assert values[-1] >= -scale
        assert values[0] <= run.shrinks + max(slack, scale)
        if learner.startswith("rfd"):
            robust, _ = symmetric_eigen(shifted(minus(run.curvature, run.sketch), -run.alpha))
            assert max(abs(value) for value in robust) <= run.shrinks / 2 + scale


@pytest.mark.parametrize("learner", ["fd", "pfd", "rfd", "rfd, 2m rows"])
def test_a_sketch_that_holds_the_rank_is_exact(learner: str) -> None:
    """With m − 1 ≥ rank nothing is lost, and all are SON's full matrix."""
    stream = rank_deficient(3, n=40, d=6, rank=3)
    full = full_newton(stream.X, stream.y, alpha=0.5)
    run = {
        "fd": lambda: fd_newton(stream.X, stream.y, m=4, alpha=0.5),
        "pfd": lambda: pfd_newton(stream.X, stream.y, m=4, alpha=0.5, beta=0.5),
        "rfd": lambda: rfd_newton(stream.X, stream.y, m=4, alpha=0.5),
        "rfd, 2m rows": lambda: rfd_newton(stream.X, stream.y, m=4, alpha=0.5, epoch="2m"),
    }[learner]()
    assert furthest(run, full) < mpf(10) ** -30
    assert run.shrinks == 0


@pytest.mark.parametrize("kind", ["gaussian", "few_features", "repeated", "zero_rows"])
@pytest.mark.parametrize("learner", ["fd", "rfd", "rfd, 2m rows"])
def test_small_changes_of_rows_stay_small(kind: str, learner: str) -> None:
    """All with α > 0: where α = 0, a copy that is no longer one has a direction to itself (the next test)."""
    stream = STREAMS[kind](2, n=30)
    epoch = "2m" if "2m" in learner else "rounds"

    def run(s: Stream) -> NewtonRun:
        if learner == "fd":
            return fd_newton(s.X, s.y, m=4, alpha=1.0)
        return rfd_newton(s.X, s.y, m=4, alpha=1.0, epoch=epoch)

    assert furthest(run(stream), run(perturbed(stream, 1e-9))) < 1e-4


def test_without_alpha_copies_are_a_discontinuity() -> None:
    """RFD₀ itself jumps where a repeated row is moved out of the range of A: no implementation can do better."""
    stream = repeated(2, n=30)
    jump = furthest(FREQUENT["rfd"](stream), FREQUENT["rfd"](perturbed(stream, 1e-9)))
    assert jump > 0.1
    steady = gaussian(2, n=30)
    assert furthest(FREQUENT["rfd"](steady), FREQUENT["rfd"](perturbed(steady, 1e-9))) < 1e-4


def test_more_digits_change_nothing() -> None:
    stream = near_copies(4, n=30, size=1e-9)
    learners: list[Callable[[int], NewtonRun]] = [
        lambda digits: fd_newton(stream.X, stream.y, m=4, alpha=1e-6, digits=digits),
        lambda digits: rfd_newton(stream.X, stream.y, m=4, digits=digits),
        lambda digits: invariant_newton(stream.X, stream.y, digits=digits),
        lambda digits: oja_newton(stream.X, stream.y, m=4, alpha=1.0, digits=digits),
    ]
    for learner in learners:
        assert furthest(learner(100), learner(160)) < mpf(10) ** -25


def test_a_round_without_a_gradient_counts() -> None:
    """Zero rows have no gradient, but they end epochs: without them the shrinks come elsewhere."""
    stream = zero_rows(1, n=40)
    used = stream.X.any(axis=1)
    with_zeros = fd_newton(stream.X, stream.y, m=4, alpha=1.0)
    without = fd_newton(stream.X[used], stream.y[used], m=4, alpha=1.0)
    assert np.abs(with_zeros.predictions[used] - without.predictions).max() > 1e-3
    weightless = fd_newton(stream.X, stream.y, m=4, alpha=1.0, sample_weight=used.astype(float))
    assert np.array_equal(weightless.predictions[used], without.predictions)


def test_a_row_projected_to_its_label_has_no_gradient() -> None:
    """α = 0: the step goes beyond the label, the projection back to it, and nothing is left to learn."""
    X = np.repeat(np.random.default_rng(0).standard_normal((6, 6)), 3, axis=0)
    y = np.repeat([1.0, -1.0, 1.0, 1.0, -1.0, -1.0], 3)
    run = invariant_newton(X, y)
    assert run.slopes[1::3] == run.slopes[2::3] == [0] * 6
    assert np.array_equal(run.predictions[1::3], y[1::3])
    assert np.array_equal(run.predictions[::3], np.zeros(6))


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute", "quantile:0.3"])
@pytest.mark.parametrize("make", [gaussian, repeated])
def test_invariant_newton_is_invariant(loss: str, make: Callable[..., Stream]) -> None:
    stream = make(3, n=30, d=5, signs=True)
    M = np.random.default_rng(1).integers(-4, 5, (5, 5)).astype(float) / 4 + 2 * np.eye(5)
    X = np.round(stream.X * 2.0**20) / 2.0**20  # X @ M has no rounding
    sigma = 0.1 if loss == "logistic" else None
    run = invariant_newton(X, stream.y, loss=loss, sigma=sigma)
    assert furthest(run, invariant_newton(X @ M, stream.y, loss=loss, sigma=sigma)) < mpf(10) ** -30


def test_projection_keeps_predictions_within_the_clip() -> None:
    stream = gaussian(2, n=40)
    run = full_newton(stream.X, stream.y, alpha=0.01, clip=0.5)
    assert np.abs(run.predictions).max() == 0.5
    free = full_newton(stream.X, stream.y, alpha=0.01, clip=None, sigma=0.5)
    assert np.abs(free.predictions).max() > 0.5


def test_full_newton_is_a_dense_float_one() -> None:
    """A second transcription of SON Equations 1 and 2, in NumPy."""
    stream = gaussian(6, n=40, d=5)
    A, w, predictions = np.eye(5), np.zeros(5), []
    for x, y in zip(*stream, strict=True):
        Px = np.linalg.solve(A, x)
        w = w - (w @ x - np.clip(w @ x, -1, 1)) / (x @ Px) * Px
        predictions.append(w @ x)
        g = 2 * (w @ x - y) * x
        A = A + np.outer(g, g) / 8
        w = w - np.linalg.solve(A, g)
    run = full_newton(stream.X, stream.y, alpha=1.0)
    assert np.allclose(predictions, run.predictions, rtol=0, atol=1e-11)
    assert np.allclose(w, run.weights, rtol=0, atol=1e-11)
    assert np.allclose(A - np.eye(5), run.curvature_matrix, rtol=1e-11)


@pytest.mark.parametrize("rate", [1.0, "adaptive"])
def test_oja_keeps_the_energy_of_one_direction(rate: float | str) -> None:
    """One feature: the sketch is the full matrix, with every rate that adds up."""
    stream = STREAMS["single_feature"](1, n=30)
    run = oja_newton(stream.X, stream.y, m=3, alpha=1.0, rate=rate)
    assert furthest(run, full_newton(stream.X, stream.y, alpha=1.0)) < mpf(10) ** -60
    assert run.spectral_error < 1e-60


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_derivatives(name: str) -> None:
    loss = named(name)
    with mp.workdps(40):
        for p in (-1.7, -0.3, 0.4, 2.6):
            for y in (-1.0, 1.0) if name != "poisson" else (0.0, 3.0):
                slope = mp.diff(lambda q, y=y: loss.value(q, mpf(y)), mpf(p))
                assert abs(slope - loss.slope(mpf(p), mpf(y))) < mpf(10) ** -15


def test_slopes_at_kinks_are_chosen() -> None:
    near = 1 + mpf(10) ** -14
    with mp.workdps(100):
        assert absolute().slope(mpf(1), mpf(1)) == 0
        assert absolute(kink=1.0).slope(mpf(1), mpf(1)) == 1
        assert absolute().slope(near, mpf(1)) == 1
        assert hinge().slope(mpf(-1), mpf(-1)) == 0
        assert hinge(kink=1.0).slope(mpf(-1), mpf(-1)) == 1


@pytest.mark.parametrize(("size", "rank"), [(1, 1), (2, 1), (3, 3), (7, 3), (12, 12)])
def test_eigenvectors(size: int, rank: int) -> None:
    """By both kinds of numbers, to all digits, with scales of 16 decades and with eigenvalues of zero."""
    r = np.random.default_rng(size)
    with mp.workdps(100):
        rows = r.standard_normal((size, rank)) * 10.0 ** r.uniform(-8, 8, (size, 1))
        A = gram([vector(row) for row in rows])
        for numbers in {installed(), None}:
            values, vectors = eigen(A, numbers)
            tolerance = max(values) * mpf(10) ** -97
            for value, v in zip(values, vectors, strict=True):
                assert all(abs(a - value * b) < tolerance for a, b in zip(times(A, v), v, strict=True))
            for i, v in enumerate(vectors):
                assert all(abs(dot(v, u) - (i == j)) < mpf(10) ** -97 for j, u in enumerate(vectors))
