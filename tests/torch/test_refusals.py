"""What an optimizer refuses, and that it then leaves everything as it was."""

from __future__ import annotations

import copy

import pytest
import torch

from sketchnewton.torch import AdaFD, AdaFull, AdaGP, RadaGrad, SketchyShampoo, SketchySOAP

from .optimizers import OPTIMIZERS, backward, groups, network, same_bits, snapshot, train


@pytest.fixture(params=OPTIMIZERS)
def make(request):
    return OPTIMIZERS[request.param]


def sparse(parameter):
    return torch.eye(*parameter.shape).to_sparse()


def with_nan(parameter):
    return torch.full_like(parameter, torch.nan)


def with_infinity(parameter):
    gradient = torch.zeros_like(parameter)
    gradient.view(-1)[1] = -torch.inf
    return gradient


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (sparse, RuntimeError, "parameter 2 has a sparse_coo gradient: .* takes dense ones only"),
        (with_nan, ValueError, "parameter 2 has a gradient with NaN or infinity"),
        (with_infinity, ValueError, "parameter 2 has a gradient with NaN or infinity"),
    ],
)
def test_a_gradient_it_cannot_use_is_refused_before_anything_changes(make, spoil, error, message):
    model, clean = network(), network()
    optimizer, its_optimizer = make(groups(model)), make(groups(clean))
    train(model, optimizer, range(3))
    train(clean, its_optimizer, range(4))
    optimizer.zero_grad()
    backward(model, 3)
    good = model[2].weight.grad
    model[2].weight.grad = spoil(model[2].weight)
    before = snapshot(model)
    with pytest.raises(error, match=message):
        optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    model[2].weight.grad = good  # and the run goes on as if nothing had happened
    optimizer.step()
    assert same_bits(model, clean)


def test_a_finite_gradient_whose_sum_overflows_is_learned(make):
    w = torch.nn.Parameter(torch.zeros(4, 3))
    w.grad = torch.full((4, 3), 2e38)
    optimizer = make([w], diagonal=True, betas=(0.0, 0.9), eps=1e30, lr=1e-9)
    optimizer.step()
    assert optimizer.state[w]["step"] == 1


def test_a_real_sparse_layer_is_refused(make):
    layer = torch.nn.Embedding(10, 3, sparse=True)
    layer(torch.tensor([1, 4])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        make(layer.parameters()).step()


@pytest.mark.parametrize("diagonal", [False, True])
def test_complex_gradients_are_refused(make, diagonal):
    w = torch.nn.Parameter(torch.ones(3, dtype=torch.complex64))
    w.grad = torch.ones_like(w)
    with pytest.raises(RuntimeError, match=r"parameter 0 has a complex gradient: .* takes real ones only"):
        make([w], diagonal=diagonal).step()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("lr", -1.0, "lr=-1.0 is invalid: must be >= 0"),
        ("lr", "fast", "lr='fast' is invalid: must be a number"),
        ("weight_decay", -0.1, "weight_decay=-0.1 is invalid: must be >= 0"),
        ("eps", -1e-8, "eps=-1e-08 is invalid: must be >= 0"),
        ("maximize", 1, "maximize=1 is invalid: must be True or False"),
        ("diagonal", "yes", "diagonal='yes' is invalid: must be True or False"),
        ("betas", 0.9, "betas=0.9 is invalid: must be two numbers"),
        ("betas", (1.0, 0.9), "the first must be below 1, the second at most 1"),
        ("betas", (0.9, 0.0), r"betas\[1\]=0.0 is invalid: must be > 0"),
        ("update_every", 0, "update_every=0 is invalid: must be an integer >= 1"),
    ],
)
def test_options_out_of_range(make, option, value, message):
    w = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match=message):
        make([w], **{option: value})
    optimizer = make([w])
    with pytest.raises(ValueError, match=message):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))], option: value})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("maker", "option", "value", "message"),
    [
        (AdaGP, "sketch_size", 0, "sketch_size=0 is invalid: must be an integer >= 1"),
        (AdaGP, "sketch_size", 2.5, "sketch_size=2.5 is invalid"),
        (AdaFD, "sketch_size", 1, "sketch_size=1 is invalid: must be an integer >= 2"),
        (RadaGrad, "sketch_size", True, "sketch_size=True is invalid"),
        (AdaGP, "sigma", 0.0, "sigma=0.0 is invalid: must be > 0"),
        (RadaGrad, "sigma", float("nan"), "sigma=nan is invalid: must be > 0"),
        (AdaFull, "per_output", 2, "per_output=2 is invalid: must be True or False"),
        (SketchyShampoo, "sketch_size", 1, "sketch_size=1 is invalid: must be an integer >= 2"),
        (SketchyShampoo, "block_size", 0, "block_size=0 is invalid: must be an integer >= 1"),
        (SketchyShampoo, "ridge", -1.0, "ridge=-1.0 is invalid: must be >= 0"),
        (SketchyShampoo, "graft", "lamb", "graft='lamb' is invalid: must be 'adam', 'sgd' or None"),
        (AdaGP, "graft", "lamb", "graft='lamb' is invalid: must be 'adam', 'sgd' or None"),
        (SketchySOAP, "sketch_size", 1, "sketch_size=1 is invalid: must be an integer >= 2"),
        (SketchySOAP, "block_size", 0, "block_size=0 is invalid: must be an integer >= 1"),
        (RadaGrad, "seed", -1, "seed=-1 is invalid: must be an integer >= 0"),
    ],
)
def test_options_of_some_out_of_range(maker, option, value, message):
    w = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match=message):
        maker([w], **{option: value})
    with pytest.raises(ValueError, match=message):
        maker([{"params": [w], option: value}])


MAKERS = [AdaGP, AdaFD, AdaFull, RadaGrad, SketchyShampoo, SketchySOAP]


@pytest.mark.parametrize("saver", MAKERS)
@pytest.mark.parametrize("loader", MAKERS)
def test_the_state_of_another_optimizer_is_refused(saver, loader):
    source, target = network(), network()
    saved = saver(source.parameters())
    optimizer = loader(target.parameters())
    train(source, saved, range(2))
    train(target, optimizer, range(2))
    if saver is loader:
        optimizer.load_state_dict(saved.state_dict())
        return
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError, match=f"parameter 0.*{loader.__name__}"):
        optimizer.load_state_dict(saved.state_dict())
    assert str(optimizer.state_dict()) == str(before)


def test_the_state_of_other_parameters_is_refused(make):
    small, large = (torch.nn.Parameter(torch.ones(n)) for n in (3, 4))
    small.grad = torch.ones(3)
    saved = make([small])
    saved.step()
    with pytest.raises(ValueError, match="the saved state of parameter 0 does not fit"):
        make([large]).load_state_dict(saved.state_dict())
    with pytest.raises(ValueError, match="parameter group"):
        make([small, large]).load_state_dict(saved.state_dict())
