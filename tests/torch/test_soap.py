"""`SketchySOAP`: SOAP itself where sketches have room, Adam where they know nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sketchnewton.torch import SketchyShampoo, SketchySOAP
from sketchnewton.torch.soap import _back, _into

from ..oracles.shampoo import soap
from .test_shampoo import problem, run


@pytest.mark.parametrize(("betas", "every"), [((0.0, 0.9), 1), ((0.9, 0.99), 1), ((0.8, 0.95), 4)])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_sketches_as_large_as_the_sides_are_soap(n, betas, every):
    """Of square matrices: one gradient of another leaves an eigenspace in which any basis will do."""
    gradient, start = problem(n, n)
    expected = soap(gradient, start, 0.05, 40, betas, every)
    options = {"lr": 0.05, "betas": betas, "update_every": every, "sketch_size": n + 1}
    found, _, _ = run(lambda W: SketchySOAP(W, **options), gradient, start, 40)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("a", "b"), [(5, 8), (9, 3), (40, 30)])
def test_the_first_step_is_adams(a, b):
    gradient, start = problem(a, b)
    found, adam = (
        run(lambda W, make=make: make(W, lr=0.1, betas=(0.9, 0.99)), gradient, start, 1)[0]
        for make in (SketchySOAP, torch.optim.Adam)
    )
    np.testing.assert_allclose(found, adam, atol=1e-12)


@pytest.mark.parametrize(("left", "right"), [(6, 7), (6, 2), (3, 7), (3, 2), (0, 0)])
def test_coordinates_say_all_and_say_it_once(left, right):
    random = torch.Generator().manual_seed(0)
    X = torch.randn(2, 6, 7, generator=random, dtype=torch.float64)
    U, V = (
        torch.linalg.qr(torch.randn(2, n, n, generator=random, dtype=torch.float64))[0][..., :kept]
        for n, kept in ((6, left), (7, right))
    )
    Y = _into(X, U, V)
    torch.testing.assert_close(_back(Y.clone(), U, V), X)
    torch.testing.assert_close(_back(Y.clone(), U, V, orthogonal=True), X)
    torch.testing.assert_close(Y.norm(), X.norm())


@pytest.mark.parametrize(("a", "b"), [(12, 9), (3, 9), (12, 3), (3, 2)])
def test_steps_are_those_of_a_mean_in_the_entries(a, b):
    """The definition, with bases written out: the optimizer's mean is in coordinates and must follow the basis."""
    random = np.random.default_rng(0)
    W = torch.nn.Parameter(torch.zeros(a, b, dtype=torch.float64))
    optimizer = SketchySOAP([W], lr=0.1, sketch_size=4, update_every=3)
    left, right = (np.eye(n) if n <= 3 else np.eye(n, n + 3, 3) for n in (a, b))
    mean, squares, expected = np.zeros((a, b)), 0.0, np.zeros((a, b))
    for t in range(20):
        beta = 0.7 if t % 2 else 0.9  # as schedules cycle it
        optimizer.param_groups[0]["betas"] = (beta, 0.99)
        G = random.standard_normal((a, b))
        W.grad = torch.from_numpy(G)
        optimizer.step()
        mean = beta * mean + (1 - beta) * G
        squares = 0.99 * squares + 0.01 * (left.T @ G @ right) ** 2
        lengths = np.sqrt(squares / (1 - 0.99 ** (t + 1))) + 1e-8
        directions = np.clip(left.T @ mean @ right / (1 - beta ** (t + 1)) / lengths, -1, 1)
        expected -= 0.1 * left @ directions @ right.T
        np.testing.assert_allclose(W.detach(), expected, atol=1e-9)
        left, right = (
            U if len(U) <= 3 else np.hstack((U, np.eye(len(U)) - U @ U.T))
            for U in (optimizer.state[W][f"{side}_basis0"].numpy().copy() for side in ("left", "right"))
        )


def test_rotated_gradients_rotate_the_steps():
    """What Adam lacks: gradients along the sketch's directions have step sizes of their own in any basis."""
    random = np.random.default_rng(0)
    Q, P = (np.linalg.qr(random.standard_normal((n, n)))[0] for n in (12, 10))
    # Two directions on either side, of unlike sizes; a sketch of four rows knows them from the second step on.
    small = np.zeros((60, 12, 10))
    small[:, :2, :2] = random.standard_normal((60, 2, 2)) * [[1, 0.1], [0.01, 0.001]]
    # With this eps what is rounding alone does not move.
    options = {"lr": 0.1, "betas": (0.9, 0.99), "update_every": 1, "sketch_size": 4, "eps": 1e-6}
    ends = []
    for left, right in ((np.eye(12), np.eye(10)), (Q, P)):
        given = left @ small @ right.T
        found, _, _ = run(
            lambda W: SketchySOAP(W, **options), lambda W, t, g=given: g[t], np.zeros((12, 10)), 60
        )
        ends.append(left.T @ (found[-1] - found[0]) @ right)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)


def test_directions_that_are_rounding_alone_decide_nothing():
    """Gradients of rank one, as of a network with two classes: other directions of the sketch would be any."""
    random = np.random.default_rng(0)
    left, right = (random.standard_normal(n) + 0.1 * random.standard_normal((20, n)) for n in (6, 5))
    exact = np.einsum("ti,tj->tij", left, right)
    rounded = exact * (1 + 1e-15 * random.standard_normal(exact.shape))
    ends = [
        run(
            lambda W: SketchySOAP(W, lr=0.1, sketch_size=4, update_every=3),
            lambda W, t, g=g: g[t],
            np.zeros((6, 5)),
            20,
        )[0][-1]
        for g in (exact, rounded)
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


def test_a_direction_that_is_new_moves_no_further_than_adam_would():
    """After a thousand steps along one direction another one comes: its squares are those of an empty slot."""
    G = np.zeros((1003, 6, 5))
    G[:1000, 0, 0] = 1.0
    G[1000:, 1, 1] = 1.0
    found, _, _ = run(
        lambda W: SketchySOAP(W, lr=1.0, betas=(0.0, 0.999), update_every=1, sketch_size=4),
        lambda W, t: G[t],
        np.zeros((6, 5)),
        1003,
    )
    moves = abs(np.diff(found[999:], axis=0))
    assert moves.max() <= 1 + 1e-9


def test_certificates_are_those_of_shampoo():
    gradient, start = problem(12, 9)
    given = [gradient(start, t) for t in range(15)]
    bounds = []
    for make in (SketchySOAP, SketchyShampoo):
        _, W, optimizer = run(
            lambda W, make=make: make(W, update_every=2, sketch_size=4), lambda W, t: given[t], start, 15
        )
        bounds.append(optimizer.error_bounds(W))
    assert bounds[0] == bounds[1]


def test_state_is_small():
    layer = torch.nn.Linear(784, 256)
    optimizer = SketchySOAP(layer.parameters())
    layer(torch.randn(4, 784)).sum().backward()
    optimizer.step()
    numbers = sum(t.numel() for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t))
    adam = 2 * sum(p.numel() for p in layer.parameters())
    assert numbers <= 1.25 * adam


@pytest.mark.parametrize("gradient", ["random", "zero"])
def test_without_eps_coordinates_of_no_gradient_stay_zero(gradient):
    weights = torch.nn.Parameter(torch.ones(12, 9))
    optimizer = SketchySOAP([weights], eps=0.0, sketch_size=4, update_every=1)
    for _ in range(3):
        weights.grad = torch.randn(12, 9) if gradient == "random" else torch.zeros(12, 9)
        optimizer.step()
        assert weights.isfinite().all()


def test_groups_have_no_graft():
    with pytest.raises(ValueError, match="SketchySOAP has no graft"):
        SketchySOAP([{"params": [torch.nn.Parameter(torch.ones(3, 2))], "graft": "adam"}])
