"""What users of `torch.optim` expect of an optimizer, for every optimizer of the table."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from sketchnewton.torch import base

from .optimizers import OPTIMIZERS, backward, groups, network, same_bits, snapshot, train

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.fixture(params=OPTIMIZERS)
def make(request):
    return OPTIMIZERS[request.param]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_resuming_gives_the_bits_of_not_stopping(make, dtype, tmp_path):
    whole = network(dtype)
    train(whole, make(groups(whole), weight_decay=1e-3), range(12))

    half = network(dtype)
    optimizer = make(groups(half), weight_decay=1e-3)
    train(half, optimizer, range(5))
    torch.save({"model": half.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "half.pt")

    saved = torch.load(tmp_path / "half.pt", weights_only=True)
    resumed = network(dtype)
    resumed.load_state_dict(saved["model"])
    optimizer = make(
        [{"params": g["params"]} for g in groups(resumed)], lr=9.0
    )  # options come from the file, too
    optimizer.load_state_dict(saved["optimizer"])
    train(resumed, optimizer, range(5, 12))
    assert same_bits(resumed, whole)


@pytest.mark.parametrize("through", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_copies_continue_alike_and_apart(make, through):
    model = network()
    optimizer = make(groups(model))
    train(model, optimizer, range(4))
    twin, its_optimizer = through((model, optimizer))
    before = snapshot(model)
    train(twin, its_optimizer, range(4, 8))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    train(model, optimizer, range(4, 8))
    assert same_bits(model, twin)


def test_the_default_device_does_not_matter(make):
    models = network(), network()
    plain, other = (make(groups(model)) for model in models)
    for seed in range(6):
        for model in models:
            backward(model, seed)
        plain.step()
        with torch.device("meta"):  # of which nothing could be computed
            other.step()
    assert same_bits(*models)


def test_a_state_that_lies_otherwise_in_memory_continues_alike(make):
    """As tensors of other programs may: kernels that take memory for contiguous would mix up its numbers."""
    models = network(), network()
    states = []
    for model in models:
        optimizer = make(groups(model))
        train(model, optimizer, range(4))
        states.append(optimizer.state_dict())
    for state in states[1]["state"].values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.dim() > 1:
                state[name] = value.mT.contiguous().mT
    for model, state in zip(models, states, strict=True):
        optimizer = make(groups(model))
        optimizer.load_state_dict(state)
        train(model, optimizer, range(4, 8))
    assert same_bits(*models)


def test_steps_do_not_hang_on_the_kernel_of_adam(make, monkeypatch):
    """Devices without it take them in several operations."""
    fused, several = network(torch.float64), network(torch.float64)
    train(fused, make(fused.parameters(), betas=(0.8, 0.95)), range(8))
    monkeypatch.setattr(base, "_FUSED", frozenset())
    train(several, make(several.parameters(), betas=(0.8, 0.95)), range(8))
    for p, q in zip(fused.parameters(), several.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-9)


def test_a_loaded_state_shares_no_memory_with_its_source(make):
    model, other = network(), network()
    optimizer, its_optimizer = make(groups(model)), make(groups(other))
    train(model, optimizer, range(4))
    its_optimizer.load_state_dict(optimizer.state_dict())
    other.load_state_dict(model.state_dict())
    train(other, its_optimizer, range(4, 8))
    train(model, optimizer, range(4, 8))
    assert same_bits(model, other)


def test_training_reduces_the_loss(make):
    model = network()
    optimizer = make(model.parameters(), lr=0.1)
    first = backward(model, 0).item()
    for _ in range(60):
        optimizer.zero_grad()
        backward(model, 0)
        optimizer.step()
    assert backward(model, 0).item() < 0.7 * first


def test_gradients_are_never_modified(make):
    for options in ({}, {"maximize": True}, {"weight_decay": 0.1}, {"diagonal": True}):
        model = network()
        optimizer = make(model.parameters(), **options)
        for t in range(5):
            optimizer.zero_grad()
            backward(model, t)
            before = [p.grad.clone() for p in model.parameters()]
            optimizer.step()
            assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True))


def test_a_closure_is_called_with_gradients_on_and_its_loss_returned(make):
    model = network()
    optimizer = make(model.parameters())
    calls = []

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        return backward(model, 0)

    before = snapshot(model)
    with torch.no_grad():
        loss = optimizer.step(closure)
    assert calls == [True]
    assert loss.item() > 0
    assert not torch.equal(next(model.parameters()), before[0])
    assert optimizer.step() is None


def test_frozen_parameters_stay_and_may_thaw(make):
    model = network()
    model[0].requires_grad_(False)
    optimizer = make(model.parameters())
    before = snapshot(model)
    train(model, optimizer, range(3))
    assert torch.equal(model[0].weight, before[0])
    assert model[0].weight not in optimizer.state
    assert not torch.equal(model[2].weight, before[2])
    model[0].requires_grad_(True)
    train(model, optimizer, range(3, 6))
    assert not torch.equal(model[0].weight, before[0])
    assert optimizer.state[model[0].weight]["step"] == 3
    assert optimizer.state[model[2].weight]["step"] == 6


def test_zero_grad_with_and_without_set_to_none(make):
    models = []
    for set_to_none in (True, False):
        model = network()
        optimizer = make(model.parameters())
        for t in range(4):
            optimizer.zero_grad(set_to_none=set_to_none)
            backward(model, t)
            optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        assert (model[0].weight.grad is None) == set_to_none
        models.append(model)
    assert same_bits(*models)


def test_a_zero_gradient_moves_nothing(make):
    w = torch.nn.Parameter(torch.ones(3))
    optimizer = make([w])
    for _ in range(4):
        w.grad = torch.zeros(3)
        optimizer.step()
    assert torch.equal(w, torch.ones(3))


def test_a_layer_below_one_that_starts_at_zero_learns(make):
    """Its first gradient is zero, and with it all that a sketch has seen until it is updated again."""
    model = network()
    with torch.no_grad():
        model[2].weight.zero_()
    before = snapshot(model)
    optimizer = make(model.parameters(), lr=0.01)
    train(model, optimizer, range(1))
    assert torch.equal(model[0].weight, before[0])
    train(model, optimizer, range(1, 3))
    moved = (model[0].weight - before[0]).norm()
    assert 1e-5 < moved < 1


def test_maximize_ascends_what_minus_descends(make):
    up, down = network(), network()
    ascent, descent = make(up.parameters(), maximize=True), make(down.parameters())
    for t in range(5):
        for model, optimizer in ((up, ascent), (down, descent)):
            optimizer.zero_grad()
            backward(model, t)
        for p in up.parameters():
            p.grad.neg_()
        ascent.step()
        descent.step()
    assert same_bits(up, down)


def test_weight_decay_is_the_gradient_of_a_ridge(make):
    with_option, by_hand = network(torch.float64), network(torch.float64)
    a, b = make(with_option.parameters(), weight_decay=0.3), make(by_hand.parameters())
    train(with_option, a, range(6))
    for t in range(6):
        b.zero_grad()
        backward(by_hand, t)
        (0.15 * sum((p**2).sum() for p in by_hand.parameters())).backward()
        b.step()
    for p, q in zip(with_option.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-8)


def test_each_group_has_its_options(make):
    model, sketched, diagonal = network(), network(), network()
    optimizer = make(model[0].parameters(), lr=0.03)
    adagrad = {"diagonal": True, "betas": (0.0, 1.0), "lr": 0.01, "eps": 1e-6}
    optimizer.add_param_group({"params": model[2].parameters(), **adagrad})
    one = make(sketched.parameters(), lr=0.03)
    other = torch.optim.Adagrad(diagonal.parameters(), lr=0.01, eps=1e-6)
    for t in range(4):
        optimizer.zero_grad()
        backward(model, t)
        for twin in (sketched, diagonal):
            for p, q in zip(model.parameters(), twin.parameters(), strict=True):
                q.grad = p.grad.clone()
        for each in (optimizer, one, other):
            each.step()
    assert same_bits(model[0], sketched[0])
    torch.testing.assert_close(model[2].weight, diagonal[2].weight, rtol=0, atol=1e-6)


def test_schedulers_that_cycle_momentum(make):
    model = network()
    optimizer = make(model.parameters())
    one_cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=8)
    seen = []
    for t in range(8):
        train(model, optimizer, range(t, t + 1))
        seen.append(optimizer.param_groups[0]["betas"][0])
        if t < 7:
            one_cycle.step()
    assert seen[0] == pytest.approx(0.95)
    assert len({round(beta, 3) for beta in seen}) > 4
    assert all(0.85 <= beta <= 0.95 for beta in seen)
    cyclic = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.001, max_lr=0.1, step_size_up=2)
    train(model, optimizer, range(8, 9))
    cyclic.step()
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("number", [float, torch.tensor])
def test_schedulers_set_the_step_size(make, number):
    w = torch.nn.Parameter(torch.ones(4))
    optimizer = make([w], lr=number(0.1))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.0)
    w.grad = torch.ones(4)
    optimizer.step()
    scheduler.step()
    moved = w.detach().clone()
    assert not torch.equal(moved, torch.ones(4))
    optimizer.step()
    assert torch.equal(w, moved)


def test_a_scheduled_run_resumes(make):
    def start():
        model = network()
        optimizer = make(groups(model))
        return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def run(model, optimizer, scheduler, batches):
        for t in batches:
            train(model, optimizer, range(t, t + 1))
            scheduler.step()

    whole = start()
    run(*whole, range(8))
    half, resumed = start(), start()
    run(*half, range(3))
    for source, target in zip(half, resumed, strict=True):
        target.load_state_dict(copy.deepcopy(source.state_dict()))
    run(*resumed, range(3, 8))
    assert same_bits(whole[0], resumed[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_narrow_parameters_have_state_that_linear_algebra_can_use(make, dtype):
    model = network(dtype)
    optimizer = make(groups(model))
    before = snapshot(model)
    train(model, optimizer, range(3))
    for p, q in zip(model.parameters(), before, strict=True):
        assert p.dtype == dtype
        assert p.isfinite().all()
        assert not torch.equal(p, q)
        for value in optimizer.state[p].values():
            assert not torch.is_tensor(value) or not value.is_floating_point() or value.itemsize >= 4


def test_parameters_of_any_shape(make):
    torch.manual_seed(0)
    scalar = torch.nn.Parameter(torch.tensor(1.0))
    empty = torch.nn.Parameter(torch.empty(0, 3))
    kernel = torch.nn.Parameter(torch.randn(2, 3, 3, 3).to(memory_format=torch.channels_last))
    plain = torch.nn.Parameter(kernel.detach().contiguous())
    optimizer, its_twin = make([kernel, scalar, empty]), make([plain])
    for _ in range(4):
        optimizer.zero_grad()
        (scalar * 2 + empty.sum()).backward()
        gradient = torch.randn(2, 3, 3, 3)
        kernel.grad = gradient.to(memory_format=torch.channels_last)
        plain.grad = gradient
        optimizer.step()
        its_twin.step()
    assert scalar.item() < 1
    assert torch.equal(kernel, plain)


def test_changes_nothing_that_is_global(make):
    torch.manual_seed(3)
    state = torch.get_rng_state()
    model = network()
    torch.manual_seed(3)
    train(model, make(groups(model)), range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.empty(0).device.type == "cpu"
