"""Param groups chosen by what a parameter is."""

from __future__ import annotations

from typing import Any

from sketchnewton.torch.base import torch

__all__ = ["auto_groups"]


def auto_groups(model: torch.nn.Module) -> list[dict[str, Any]]:
    """The parameters of `model` as param groups, by shape.

    Matrices have the optimizer's own metric, convolutions one for each filter (`per_output`, which
    `SketchyShampoo` has no need of), vectors and embeddings a step size per entry (`diagonal`). Frozen parameters
    are left out, and so are empty groups.

    Parameters: `model` is the network.

    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.Flatten(), torch.nn.Linear(288, 10))
    >>> [(len(group["params"]), group["per_output"], group["diagonal"]) for group in auto_groups(model)]
    [(1, False, False), (1, True, False), (2, False, True)]
    """
    embeddings = {
        id(layer.weight)
        for layer in model.modules()
        if isinstance(layer, torch.nn.Embedding | torch.nn.EmbeddingBag)
    }
    matrices: list[torch.nn.Parameter] = []
    convolutions: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() < 2 or id(parameter) in embeddings:
            others.append(parameter)
        else:
            (matrices if parameter.dim() == 2 else convolutions).append(parameter)
    kinds = ((matrices, False, False), (convolutions, True, False), (others, False, True))
    return [
        {"params": parameters, "per_output": per_output, "diagonal": diagonal}
        for parameters, per_output, diagonal in kinds
        if parameters
    ]
