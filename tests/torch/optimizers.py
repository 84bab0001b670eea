"""The table of optimizers over which the promises are tested, and small things to train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sketchnewton.torch import AS_PUBLISHED, AdaFD, AdaFull, AdaGP, RadaGrad, SketchyShampoo, SketchySOAP


def made(optimizer: Callable[..., Any], **usual: Any) -> Callable[..., Any]:
    """The optimizer with other defaults."""
    return lambda params, **options: optimizer(params, **{**usual, **options})


# Small sketches, so that they overflow and shrink within a few steps; sketches that some steps share.
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "AdaGP": made(AdaGP, sketch_size=3, **AS_PUBLISHED),
    "AdaFD": made(AdaFD, sketch_size=3, **AS_PUBLISHED),
    "AdaFull": made(AdaFull, **AS_PUBLISHED),
    "RadaGrad": made(RadaGrad, sketch_size=3, **AS_PUBLISHED),
    "AdaGP per output": made(AdaGP, sketch_size=3, per_output=True, **AS_PUBLISHED),
    "AdaGP untuned": made(AdaGP, sketch_size=3, update_every=3),
    "AdaFD untuned": made(AdaFD, sketch_size=3, update_every=3),
    "AdaFull untuned": made(AdaFull, update_every=3),
    "RadaGrad untuned": made(RadaGrad, sketch_size=3, update_every=3, per_output=True),
    "SketchyShampoo": made(SketchyShampoo, sketch_size=3, update_every=3),
    "SketchyShampoo in blocks": made(
        SketchyShampoo, sketch_size=2, update_every=1, block_size=2, graft=None, betas=(0.0, 1.0)
    ),
    "SketchyShampoo, length of SGD": made(SketchyShampoo, sketch_size=3, graft="sgd", warmup=2),
    "SketchySOAP": made(SketchySOAP, sketch_size=3, update_every=3),
    "SketchySOAP in blocks": made(SketchySOAP, sketch_size=2, update_every=1, block_size=2),
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
