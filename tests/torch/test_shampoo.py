"""`SketchyShampoo`: Shampoo itself where sketches have room, certified where they have not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sketchnewton.torch import AdaGP, SketchyShampoo, auto_groups

from ..oracles.shampoo import shampoo
from .optimizers import network, train

PLAIN = {"graft": None, "update_every": 1, "betas": (0.0, 1.0)}


def problem(a: int, b: int, seed: int = 0):
    """Noisy gradients of ½‖P(W − V)Q‖², and where to start."""
    random = np.random.default_rng(seed)
    P, Q = random.standard_normal((a, a)), random.standard_normal((b, b))
    V, start = random.standard_normal((2, a, b))
    noise = 0.1 * random.standard_normal((200, a, b))
    return (lambda W, t: P.T @ P @ (W - V) @ Q @ Q.T + noise[t]), start


def run(optimizer_of, gradient, start, steps: int, dtype=torch.float64):
    W = torch.nn.Parameter(torch.tensor(start, dtype=dtype))
    optimizer = optimizer_of([W])
    iterates = []
    for t in range(steps):
        W.grad = torch.from_numpy(gradient(W.detach().double().numpy(), t)).to(dtype)
        optimizer.step()
        iterates.append(W.detach().double().numpy().copy())
    return np.array(iterates), W, optimizer


@pytest.mark.parametrize(("beta", "every"), [(1.0, 1), (0.9, 1), (1.0, 4), (0.95, 3)])
@pytest.mark.parametrize(("a", "b"), [(5, 8), (9, 3), (6, 6), (2, 40)])
def test_sketches_as_large_as_the_sides_are_shampoo(a, b, beta, every):
    gradient, start = problem(a, b)
    expected, _, _ = shampoo(gradient, start, 0.05, 40, ridge=1e-3, beta=beta, every=every)
    options = {"lr": 0.05, "ridge": 1e-3, "graft": None, "update_every": every, "betas": (0.0, beta)}
    found, _, _ = run(lambda W: SketchyShampoo(W, sketch_size=max(a, b) + 1, **options), gradient, start, 40)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("beta", "every"), [(1.0, 1), (0.9, 1), (0.95, 3)])
@pytest.mark.parametrize(("a", "b"), [(12, 10), (7, 40), (40, 7)])
def test_sketches_as_large_as_the_rank_are_shampoo(a, b, beta, every):
    """All gradients lie in one space of rank 3 on either side."""
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.standard_normal((n, 3)))[0] for n in (a, b))
    G = left @ random.standard_normal((40, 3, 3)) @ right.T
    expected, _, _ = shampoo(lambda W, t: G[t], np.zeros((a, b)), 0.05, 40, 1e-2, beta=beta, every=every)
    options = {"lr": 0.05, "ridge": 1e-2, "graft": None, "update_every": every, "betas": (0.0, beta)}
    found, W, optimizer = run(
        lambda W: SketchyShampoo(W, sketch_size=4, **options), lambda W, t: G[t], np.zeros((a, b)), 40
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert optimizer.state[W]["left_ridge0"] < 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("beta", [1.0, 0.9])
@pytest.mark.parametrize("steps", [1, 60])
@pytest.mark.parametrize(("a", "b"), [(20, 30), (60, 4)])
@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_holds_on_both_sides(seed, a, b, steps, beta, dtype):
    random = np.random.default_rng(seed)
    least = 10.0 ** -random.integers(1, 6)  # sides are steep, so that a sketch of six rows can know them
    scales = np.geomspace(1, least, a)[:, None] * np.geomspace(1, least, b)
    G = (scales * random.standard_normal((steps, a, b))).astype(np.float32).astype(np.float64)
    _, W, optimizer = run(
        lambda W: SketchyShampoo(W, lr=0.0, sketch_size=6, **{**PLAIN, "betas": (0.0, beta)}),
        lambda W, t: G[t],
        np.zeros((a, b)),
        steps,
        dtype,
    )
    weights = (1 - beta if beta < 1 else 1.0) * beta ** np.arange(steps)[::-1]
    exact = {
        "left": np.einsum("t,tab,tcb->ac", weights, G, G),
        "right": np.einsum("t,tab,tac->bc", weights, G, G),
    }
    state = {name: value for name, value in optimizer.state[W].items() if name != "step"}
    (bounds,) = optimizer.error_bounds(W)
    for (side, matrix), bound in zip(exact.items(), bounds, strict=True):
        U, values, ridge = (
            state[f"{side}_{part}0"].double().numpy() for part in ("basis", "values", "ridge")
        )
        error = np.linalg.norm(matrix - (U * values) @ U.T - ridge * np.eye(len(U)), 2)
        assert error <= bound
        assert bound < np.linalg.norm(matrix, 2)  # it says something
        assert len(values) == min(5, len(U))
        known = U[:, np.linalg.norm(U, axis=0) > 0]
        eps = torch.finfo(dtype).eps
        assert abs(known.T @ known - np.eye(known.shape[1])).max() < 64 * eps


def last_layer(seed: int, steps: int = 60):
    """Gradients of three outputs in batches of four, over units that are mostly off: few directions."""
    random = np.random.default_rng(seed)
    weights = random.standard_normal((20, 64)) / 20**0.5
    for _ in range(steps):
        hidden = np.maximum(random.standard_normal((4, 20)) @ weights - 1, 0) / 8
        errors = random.dirichlet(np.ones(3), 4) - np.eye(3)[random.integers(0, 3, 4)]
        yield (errors.T @ hidden / 4).astype(np.float32)


@pytest.mark.parametrize("seed", range(12))
def test_sketches_that_fill_slowly_are_decomposed_in_float32(seed):
    """LAPACK's float32 answers NaN, or gives up, on two of three such Gram matrices as they are."""
    given = list(last_layer(seed))
    single, double = (
        run(SketchyShampoo, lambda W, t: given[t], np.zeros((3, 64)), len(given), dtype)[0]
        for dtype in (torch.float32, torch.float64)
    )
    np.testing.assert_allclose(single, double, atol=2e-5 * abs(double).max())


def test_blocks_are_tensors_of_their_own():
    gradient, start = problem(6, 7)
    given = [gradient(start, t) for t in range(10)]
    options = {"lr": 0.05, "sketch_size": 3, **PLAIN}
    whole, _, _ = run(lambda W: SketchyShampoo(W, block_size=4, **options), lambda W, t: given[t], start, 10)
    for rows in (slice(0, 4), slice(4, 6)):
        for columns in (slice(0, 4), slice(4, 7)):
            part, _, _ = run(
                lambda W: SketchyShampoo(W, **options),
                lambda W, t, where=(rows, columns): given[t][where],
                start[rows, columns],
                10,
            )
            np.testing.assert_allclose(whole[:, rows, columns], part, atol=1e-12)


def test_a_grafted_step_is_as_long_as_adams():
    gradient, start = problem(6, 7)
    given = [gradient(start, t) for t in range(12)]
    make = lambda W: SketchyShampoo(W, lr=0.1, betas=(0.8, 0.9), sketch_size=4)  # noqa: E731
    found, _, _ = run(make, lambda W, t: given[t], start, 12)
    adam, _, _ = run(
        lambda W: torch.optim.Adam(W, lr=0.1, betas=(0.8, 0.9)), lambda W, t: given[t], start, 12
    )
    for path in (found, adam):
        path[1:] -= path[:-1].copy()
        path[0] -= start
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=(1, 2)), np.linalg.norm(adam, axis=(1, 2)), rtol=1e-9
    )
    assert not np.allclose(found, adam)


@pytest.mark.parametrize("graft", ["adam", "sgd"])
def test_warm_up_follows_the_grafted_method(graft):
    gradient, start = problem(6, 7)
    given = [gradient(start, t) for t in range(8)]
    options = {"lr": 0.1, "betas": (0.0, 0.9), "graft": graft, "sketch_size": 4}
    found, _, _ = run(lambda W: SketchyShampoo(W, warmup=5, **options), lambda W, t: given[t], start, 8)
    peer = {"adam": lambda W: torch.optim.Adam(W, lr=0.1, betas=(0.0, 0.9)), "sgd": torch.optim.SGD}[graft]
    expected, _, _ = run(
        lambda W: peer(W) if graft == "adam" else peer(W, lr=0.1), lambda W, t: given[t], start, 8
    )
    np.testing.assert_allclose(found[:5], expected[:5], atol=1e-12)
    assert not np.allclose(found[5], expected[5])
    np.testing.assert_allclose(  # from then on it has the length alone
        np.linalg.norm(found[5] - found[4]), np.linalg.norm(expected[5] - expected[4]), rtol=1e-9
    )


@pytest.mark.parametrize("shape", [(), (5,), (1, 7), (7, 1), (1, 1, 3)])
def test_vectors_take_the_steps_of_adam(shape):
    given = [np.asarray(g) for g in np.random.default_rng(0).standard_normal((12, *shape))]
    start = np.ones(shape)
    found, _, _ = run(
        lambda W: SketchyShampoo(W, lr=0.1, betas=(0.9, 0.99)), lambda W, t: given[t], start, 12
    )
    adam, _, _ = run(
        lambda W: torch.optim.Adam(W, lr=0.1, betas=(0.9, 0.99)), lambda W, t: given[t], start, 12
    )
    np.testing.assert_allclose(found, adam, atol=1e-12)


def test_state_is_small():
    layer = torch.nn.Linear(784, 256)
    optimizer = SketchyShampoo(layer.parameters())
    layer(torch.randn(4, 784)).sum().backward()
    optimizer.step()
    numbers = sum(t.numel() for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t))
    adam = 2 * sum(p.numel() for p in layer.parameters())
    assert numbers <= 1.25 * adam


def test_automatic_groups():
    model = torch.nn.ModuleDict(
        {
            "words": torch.nn.Embedding(10, 4),
            "conv": torch.nn.Conv2d(1, 2, 3),
            "norm": torch.nn.LayerNorm(4),
            "dense": torch.nn.Linear(4, 3),
        }
    )
    model["dense"].bias.requires_grad_(False)
    groups = auto_groups(model)
    found = {id(p): (g["per_output"], g["diagonal"]) for g in groups for p in g["params"]}
    assert found == {
        id(model["dense"].weight): (False, False),
        id(model["conv"].weight): (True, False),
        id(model["words"].weight): (False, True),
        id(model["conv"].bias): (False, True),
        id(model["norm"].weight): (False, True),
        id(model["norm"].bias): (False, True),
    }
    for make in (AdaGP, SketchyShampoo):
        twin = network()
        train(twin, make(auto_groups(twin)), range(3))
