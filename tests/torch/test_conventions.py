"""The parts of PyTorch around an optimizer: foreach, torch.compile, other devices, sharding, checkpoints."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

from sketchnewton.torch import AdaFD, AdaGP, RadaGrad, SketchyShampoo, SketchySOAP

from .optimizers import OPTIMIZERS, backward, groups, network, same_bits, train

FEW = {kind.__name__: kind for kind in (SketchyShampoo, SketchySOAP, AdaGP, AdaFD, RadaGrad)}


@pytest.fixture(params=OPTIMIZERS)
def make(request):
    return OPTIMIZERS[request.param]


@pytest.fixture(params=FEW)
def kind(request):
    return FEW[request.param]


@pytest.fixture
def one_process(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def deep(dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """Layers of one shape, and others."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 5), *(torch.nn.Linear(5, 5) for _ in range(3)), torch.nn.Linear(5, 2)]
    return torch.nn.Sequential(*layers).to(dtype)


def test_foreach_takes_the_same_steps(make):
    together, apart = deep(), deep()
    train(together, make(together.parameters(), lr=0.01, foreach=True), range(12))
    train(apart, make(apart.parameters(), lr=0.01, foreach=False), range(12))
    for p, q in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-8)


def test_foreach_decomposes_matrices_of_one_size_at_once(monkeypatch):
    calls = []
    for name in ("eigh", "svd"):
        real = getattr(torch.linalg, name)
        monkeypatch.setattr(
            torch.linalg, name, lambda A, real=real, **k: calls.append(tuple(A.shape)) or real(A, **k)
        )
    sides = {(3, 5, 5), (5, 5)}
    for make, expected in ((AdaGP, {(9, 3, 4), (1, 3, 3)}), (SketchyShampoo, sides), (SketchySOAP, sides)):
        calls.clear()
        model = deep()
        backward(model, 0)
        make(model.parameters(), sketch_size=3).step()
        assert expected <= set(calls)


@pytest.mark.parametrize("option", ["fused", "differentiable", "capturable"])
def test_options_of_other_optimizers(make, option):
    w = torch.nn.Parameter(torch.ones(2, 2))
    with pytest.raises(ValueError, match=f"{option}=True is not supported by"):
        make([w], **{option: True})
    with pytest.raises(ValueError, match=f"{option}=True is not supported by"):
        make([{"params": [w], option: True}])
    make([w], **{option: False})
    with pytest.raises(TypeError, match="has no option momentum"):
        make([w], momentum=0.9)
    with pytest.raises(ValueError, match="foreach='yes' is invalid"):
        make([w], foreach="yes")


def test_a_compiled_step_is_the_step(kind):
    """Traced by torch.compile, run by PyTorch's own kernels: no new trace for each count of steps or rate."""
    torch._dynamo.reset()
    plain, traced = network(), network()
    optimizer, its_optimizer = (
        kind(m.parameters(), sketch_size=3, lr=torch.tensor(0.01)) for m in (plain, traced)
    )
    step = torch.compile(its_optimizer.step, backend="eager")
    for t in range(24):
        rate = 0.01 / (1 + t)
        for each in (optimizer, its_optimizer):
            each.param_groups[0]["lr"].fill_(rate)
        train(plain, optimizer, range(t, t + 1))
        its_optimizer.zero_grad()
        backward(traced, t)
        step()
    for p, q in zip(plain.parameters(), traced.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-6)


def test_state_follows_the_parameters_to_their_device(make):
    """The meta device stands for any other: state that was saved here arrives there, whole."""
    model = network()
    optimizer = make(groups(model))
    train(model, optimizer, range(3))
    elsewhere = network().to("meta")
    its_optimizer = make(groups(elsewhere))
    its_optimizer.load_state_dict(optimizer.state_dict())
    for p, q in zip(model.parameters(), elsewhere.parameters(), strict=True):
        here, there = optimizer.state[p], its_optimizer.state[q]
        assert here.keys() == there.keys()
        for name, value in here.items():
            if torch.is_tensor(value):
                assert there[name].device.type == "meta"
                assert (there[name].shape, there[name].dtype) == (value.shape, value.dtype)
            else:
                assert there[name] == value


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_sharded_by_zero(kind, one_process):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    sharded, whole = network(), network()
    optimizer = ZeroRedundancyOptimizer(sharded.parameters(), optimizer_class=kind, sketch_size=3)
    # It orders parameters by size, and random numbers depend on their place.
    twins = {id(p): q for p, q in zip(sharded.parameters(), whole.parameters(), strict=True)}
    order = [twins[id(p)] for p in optimizer.optim.param_groups[0]["params"]]
    train(sharded, optimizer, range(6))
    train(whole, kind(order, sketch_size=3), range(6))
    assert same_bits(whole, sharded)


def test_distributed_checkpoints_continue_bit_for_bit(kind):
    whole, resumed = network(), network()
    optimizer = kind(whole.parameters(), sketch_size=3)
    train(whole, optimizer, range(4))
    saved = copy.deepcopy(get_optimizer_state_dict(whole, optimizer))
    resumed.load_state_dict(whole.state_dict())
    its_optimizer = kind(resumed.parameters(), sketch_size=3)
    set_optimizer_state_dict(resumed, its_optimizer, saved)
    train(whole, optimizer, range(4, 8))
    train(resumed, its_optimizer, range(4, 8))
    assert same_bits(whole, resumed)
