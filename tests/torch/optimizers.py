"""The table of optimizers over which the promises are tested, and small things to train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sketchnewton.torch import AdaFD, AdaFull, AdaGP, RadaGrad

# Small sketches, so that they overflow and shrink within a few steps.
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "AdaGP": lambda params, **options: AdaGP(params, **{"sketch_size": 3, **options}),
    "AdaFD": lambda params, **options: AdaFD(params, **{"sketch_size": 3, **options}),
    "AdaFull": AdaFull,
    "RadaGrad": lambda params, **options: RadaGrad(params, **{"sketch_size": 3, **options}),
    "AdaGP per output": lambda params, **options: AdaGP(
        params, **{"sketch_size": 3, "per_output": True, **options}
    ),
}


def network(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).to(dtype)


def groups(model: torch.nn.Module) -> list[dict[str, Any]]:
    """Sketched with an lr of its own for the first layer, diagonal for the last."""
    return [
        {"params": list(model[0].parameters()), "lr": 0.05},
        {"params": list(model[2].parameters()), "diagonal": True},
    ]


def backward(model: torch.nn.Module, t: int) -> torch.Tensor:
    """The loss on the t-th batch; its gradient is in the parameters."""
    random = torch.Generator().manual_seed(t)
    dtype = next(model.parameters()).dtype
    x = torch.randn(8, 4, generator=random).to(dtype)
    y = torch.randint(0, 2, (8,), generator=random)
    loss = torch.nn.functional.cross_entropy(model(x).float(), y)
    loss.backward()
    return loss


def train(model: torch.nn.Module, optimizer: Any, batches: range) -> None:
    for t in batches:
        optimizer.zero_grad()
        backward(model, t)
        optimizer.step()


def same_bits(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def snapshot(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]
