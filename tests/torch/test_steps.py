"""Each optimizer takes the steps of the paper's algorithm, as written out in tests/oracles/ada_metrics.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sketchnewton import torch as optimizers
from sketchnewton._native import normal_row
from sketchnewton.torch import AS_PUBLISHED

from ..oracles import ada_metrics as oracle
from .optimizers import made

# The papers' algorithms, not the defaults.
AdaGP, AdaFD, AdaFull, RadaGrad = (
    made(getattr(optimizers, name), **AS_PUBLISHED) for name in ("AdaGP", "AdaFD", "AdaFull", "RadaGrad")
)


def quadratic(seed: int, d: int, noise: float = 0.0):
    """Noisy gradient of ½(w − v)ᵀA(w − v) at step t, A rotated and of condition number 100; and where to start."""
    random = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(random.standard_normal((d, d)))
    A = (Q * np.geomspace(1, 0.01, d)) @ Q.T
    v, start = random.standard_normal((2, d))
    kicks = noise * random.standard_normal((100, d))
    return (lambda w, t: A @ (w - v) + kicks[t]), start


def path(make, gradient, start, steps: int, dtype=torch.float64):
    """All iterates, as `oracle.descend` returns them, and the optimizer's state."""
    w = torch.nn.Parameter(torch.tensor(start, dtype=dtype))
    optimizer = make([w])
    iterates = []
    for t in range(steps):
        w.grad = torch.from_numpy(gradient(w.detach().double().numpy(), t)).to(dtype)
        optimizer.step()
        iterates.append(w.detach().double().numpy().copy())
    return np.array(iterates), optimizer.state[w]


def projection(state) -> np.ndarray:
    """S, which is kept decomposed."""
    return (state["rotation"] @ (state["values"][:, None] * state["basis"])).numpy()


SHAPES = [(0, 5, 0.1), (1, 8, 1e-3), (2, 13, 1.0)]


@pytest.mark.parametrize(("seed", "d", "sigma"), SHAPES)
def test_ada_full(seed, d, sigma):
    gradient, start = quadratic(seed, d)
    expected = oracle.descend(oracle.full_step(d, sigma), gradient, start, 0.3, 60)
    found, _ = path(lambda w: AdaFull(w, lr=0.3, sigma=sigma), gradient, start, 60)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_ada_full_of_float32_parameters_is_off_by_their_rounding_alone():
    gradients = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32).astype(np.float64)
    given = lambda w, t: gradients[t]  # noqa: E731
    expected = oracle.descend(oracle.full_step(6, 1e-3), given, np.zeros(6), 0.1, 60)
    found, _ = path(lambda w: AdaFull(w, lr=0.1, sigma=1e-3), given, np.zeros(6), 60, torch.float32)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("m", [1, 3, 20])
@pytest.mark.parametrize(("seed", "d", "sigma"), SHAPES)
def test_ada_gp_fed_the_same_random_vectors(seed, d, sigma, m):
    eta = min(sigma, 0.05)  # outside of the sketch the step size is η/σ
    gradient, start = quadratic(seed, d, noise=0.1)
    step = oracle.projected_step(d, sigma, lambda t: normal_row(7, t, m) / math.sqrt(m))
    expected = oracle.descend(step, gradient, start, eta, 40)
    found, _ = path(lambda w: AdaGP(w, lr=eta, sigma=sigma, sketch_size=m, seed=7), gradient, start, 40)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("m", [2, 4, 9, 20])
@pytest.mark.parametrize(("seed", "d", "sigma"), SHAPES)
def test_ada_fd(seed, d, sigma, m):
    eta = min(sigma, 0.05)
    gradient, start = quadratic(seed, d, noise=0.1)
    expected = oracle.descend(oracle.frequent_step(d, sigma, m), gradient, start, eta, 40)
    found, _ = path(lambda w: AdaFD(w, lr=eta, sigma=sigma, sketch_size=m), gradient, start, 40)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("m", [1, 3, 20])
@pytest.mark.parametrize(("seed", "d", "sigma"), SHAPES)
def test_radagrad_with_the_same_projection(seed, d, sigma, m):
    eta = 0.05
    gradient, start = quadratic(seed, d, noise=0.1)
    found, state = path(lambda w: RadaGrad(w, lr=eta, sigma=sigma, sketch_size=m), gradient, start, 40)
    rows, signs = state["rows"].numpy(), state["signs"].numpy()
    Pi = oracle.hadamard(1 << (d - 1).bit_length())[rows, :d] * signs / math.sqrt(len(rows))
    expected = oracle.descend(oracle.radagrad_step(d, sigma, Pi), gradient, start, eta, 40)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("make", [AdaGP, AdaFD, AdaFull, RadaGrad])
def test_a_diagonal_group_is_adagrad(make):
    gradient, start = quadratic(0, 6)
    expected = oracle.descend(oracle.diagonal_step(6, 1e-8), gradient, start, 0.1, 30)
    found, _ = path(lambda w: make(w, lr=0.1, diagonal=True), gradient, start, 30)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    peer, _ = path(lambda w: torch.optim.Adagrad(w, lr=0.1, eps=1e-8), gradient, start, 30)
    np.testing.assert_allclose(found, peer, atol=1e-12)


def test_a_frequent_directions_sketch_with_room_for_all_is_the_full_matrix():
    gradient, start = quadratic(3, 7)
    full, _ = path(lambda w: AdaFull(w, lr=0.2, sigma=0.01), gradient, start, 50)
    for m in (8, 9, 30):
        found, _ = path(lambda w, m=m: AdaFD(w, lr=0.2, sigma=0.01, sketch_size=m), gradient, start, 50)
        np.testing.assert_allclose(found, full, atol=1e-6)
    small, _ = path(lambda w: AdaFD(w, lr=0.2, sigma=0.01, sketch_size=4), gradient, start, 50)
    assert abs(small - full).max() > 1e-3


def test_radagrad_with_an_orthogonal_projection_is_the_full_matrix():
    gradient, start = quadratic(4, 8)
    full, _ = path(lambda w: AdaFull(w, lr=0.2, sigma=0.01), gradient, start, 12)
    found, _ = path(lambda w: RadaGrad(w, lr=0.2, sigma=0.01, sketch_size=8), gradient, start, 12)
    np.testing.assert_allclose(found, full, atol=1e-6)


def test_the_projection_is_unbiased():
    """E[SᵀS] = Σ ggᵀ: each entry's mean of N draws lies within 5.5 standard errors, as estimated from the draws.

    False alarms: 21 entries at 4e-8 each if means were normal; skew as they are, still below 1e-4.
    """
    N, d, m = 1000, 6, 3
    gradients = np.random.default_rng(0).standard_normal((5, d))
    draws = []
    for seed in range(N):
        w = torch.nn.Parameter(torch.zeros(d, dtype=torch.float64))
        optimizer = AdaGP([w], lr=0.0, sketch_size=m, seed=seed)
        for g in gradients:
            w.grad = torch.from_numpy(g)
            optimizer.step()
        S = projection(optimizer.state[w])
        draws.append(S.T @ S)
    error = np.mean(draws, 0) - gradients.T @ gradients
    assert (abs(error) < 5.5 * np.std(draws, 0) / math.sqrt(N)).all()


def test_parameters_draw_different_numbers():
    a, b = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))
    optimizer = AdaGP([a, b], sketch_size=2)
    a.grad = b.grad = torch.ones(4)
    optimizer.step()
    S, T = (projection(optimizer.state[p]) for p in (a, b))
    assert not np.array_equal(S, T)
    # The first parameter's are those of the online learners with the same seed.
    np.testing.assert_allclose(S[:, 0], normal_row(0, 0, 2) / math.sqrt(2), rtol=1e-6)


OUTPUTS, INPUTS, SIGMA, TAU = 3, 5, 0.1, 2


def metric_of_one_output(name: str, row: int, state):
    """The oracle's step for the weights of one output, with the random numbers that it has."""
    if name == "AdaGP":
        draws = lambda t: normal_row(7, t, OUTPUTS * TAU).reshape(OUTPUTS, TAU)[row] / math.sqrt(TAU)  # noqa: E731
        return oracle.projected_step(INPUTS, SIGMA, draws)
    if name == "RadaGrad":
        rows, signs = state["rows"].numpy(), state["signs"].numpy()
        Pi = oracle.hadamard(8)[rows, :INPUTS] * signs / math.sqrt(len(rows))
        return oracle.radagrad_step(INPUTS, SIGMA, Pi)
    if name == "AdaFD":
        return oracle.frequent_step(INPUTS, SIGMA, TAU)
    return oracle.full_step(INPUTS, SIGMA)


@pytest.mark.parametrize("shape", [(OUTPUTS, INPUTS), (OUTPUTS, 1, INPUTS, 1)])
@pytest.mark.parametrize("name", ["AdaGP", "AdaFD", "AdaFull", "RadaGrad"])
def test_each_output_has_a_metric_of_its_own(name, shape):
    options = {"AdaGP": {"sketch_size": TAU, "seed": 7}, "AdaFull": {}}.get(name, {"sketch_size": TAU})
    make = {"AdaGP": AdaGP, "AdaFD": AdaFD, "AdaFull": AdaFull, "RadaGrad": RadaGrad}[name]
    gradients = np.random.default_rng(0).standard_normal((30, *shape))
    found, state = path(
        lambda w: make(w, lr=0.05, sigma=SIGMA, per_output=True, **options),
        lambda w, t: gradients[t],
        np.zeros(shape),
        30,
    )
    for row in range(OUTPUTS):
        step = metric_of_one_output(name, row, state)
        given = gradients[:, row].reshape(30, INPUTS)
        expected = oracle.descend(step, lambda w, t, given=given: given[t], np.zeros(INPUTS), 0.05, 30)
        np.testing.assert_allclose(found[:, row].reshape(30, INPUTS), expected, atol=1e-8)


@pytest.mark.parametrize("make", [AdaFD, AdaFull])
def test_the_outputs_of_a_vector_are_its_entries(make):
    """With a metric for each, the full matrix is the diagonal."""
    gradient, start = quadratic(0, 6)
    expected = oracle.descend(oracle.diagonal_step(6, 0.1), gradient, start, 0.05, 20)
    found, _ = path(lambda w: make(w, lr=0.05, sigma=0.1, per_output=True), gradient, start, 20)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("make", [AdaGP, AdaFD])
def test_float32_stays_near_float64(make):
    """Gradients of size 1000 and σ = 1e-4: the textbook form g/σ − V(…)Vᵀg would be off by ε·Σ/σ, more than 1."""
    gradients = 1e3 * np.random.default_rng(0).standard_normal((10, 30)).astype(np.float32).astype(np.float64)
    given = lambda w, t: gradients[t]  # noqa: E731
    wide, narrow = (
        path(lambda w: make(w, lr=0.1, sigma=1e-4, sketch_size=20), given, np.zeros(30), 10, dtype)[0]
        for dtype in (torch.float64, torch.float32)
    )
    np.testing.assert_allclose(narrow, wide, atol=1e-4)


@pytest.mark.parametrize("make", [AdaGP, AdaFD, RadaGrad])
def test_a_basis_stays_orthonormal(make):
    """A thousand rotations in float32: rounding alone would add up to more than a hundred ε."""
    gradients = np.random.default_rng(0).standard_normal((1000, 40)) * np.geomspace(1, 1e-4, 40)
    _, state = path(
        lambda w: make(w, lr=0.0, sketch_size=8, betas=(0.0, 0.9)),
        lambda w, t: gradients[t],
        np.zeros(40),
        1000,
        torch.float32,
    )
    basis = state["basis"].double()
    assert (basis @ basis.T - torch.eye(len(basis))).abs().max() < 16 * torch.finfo(torch.float32).eps
