"""Sides of matrices, sketched: what the optimizers that precondition rows and columns share."""

from __future__ import annotations

import math
from typing import NamedTuple

from sketchnewton.torch.base import Batch, Group, Optimizer, State, torch, weight_of_new

__all__ = [
    "Places",
    "Side",
    "SidedOptimizer",
    "blocks_of",
    "joined",
    "remembered",
    "stacked",
    "together",
    "update",
]

_ROUNDING = 4.0  # of one update, in units of ε · √length · largest eigenvalue: what a certificate allows


class SidedOptimizer(Optimizer):
    """For each matrix a Robust Frequent Directions sketch of its rows' and one of its columns' covariance.

    Parameters of all: `sketch_size` is how many rows a sketch has; `block_size` is the longest side, longer ones
    are cut into blocks with sketches of their own.
    """

    _integers: tuple[tuple[str, int], ...] = (("sketch_size", 2), ("block_size", 1))

    def error_bounds(self, parameter: torch.nn.Parameter) -> list[tuple[float, float]]:
        """How far the sketches of L and R may be off, at most, in spectral norm: a pair for each block.

        What shrinks have moved, and an allowance for rounding.
        """
        state = self.state[parameter]
        group = next(group for _, p, group in self._parameters() if p is parameter)
        if not state or self._diagonal(parameter, group):
            return []
        return [
            (_error_bound(state, "left", i, group), _error_bound(state, "right", i, group))
            for i in range(len(blocks_of(parameter, group)))
        ]

    # -- what the base asks for

    def _diagonal(self, parameter: torch.Tensor, group: Group) -> bool:
        """Vectors have no sides."""
        return super()._diagonal(parameter, group) or min(_matrix(parameter).shape) == 1

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        memory = {}
        for i, block in enumerate(blocks_of(parameter, group)):
            for side, length in zip(("left", "right"), block.shape, strict=True):
                kept = min(group["sketch_size"] - 1, length)
                memory[f"{side}_basis{i}"] = torch.zeros(length, kept)
                memory[f"{side}_values{i}"] = torch.zeros(kept)
                memory[f"{side}_ridge{i}"] = torch.zeros(())
        return memory


# -- blocks of one shape, of whatever parameters, which are worked on together


class Places(NamedTuple):
    """Where blocks come from."""

    states: list[State]  # of each block's parameter
    blocks: list[tuple[int, int]]  # the parameter's place in the batch, and the block's in the parameter


def stacked(batch: Batch, tensors: list[torch.Tensor]) -> list[tuple[Places, torch.Tensor]]:
    """The blocks of all tensors, those of one shape as one tensor."""
    found: dict[tuple[int, ...], tuple[Places, list[torch.Tensor]]] = {}
    for which, (tensor, state) in enumerate(zip(tensors, batch.states, strict=True)):
        for i, block in enumerate(blocks_of(tensor, batch.group)):
            places, blocks = found.setdefault(tuple(block.shape), (Places([], []), []))
            places.states.append(state)
            places.blocks.append((which, i))
            blocks.append(block)
    return [(places, together(blocks)) for places, blocks in found.values()]


def remembered(places: Places, name: str) -> list[torch.Tensor]:
    """What is remembered of each block by that name."""
    return [state[f"{name}{i}"] for state, (_, i) in zip(*places, strict=True)]


def together(tensors: list[torch.Tensor]) -> torch.Tensor:
    """One tensor of all, for reading: a lone one, as most are, is not copied."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(tensors)


def joined(
    steps: dict[tuple[int, int], torch.Tensor], which: int, like: torch.Tensor, group: Group
) -> torch.Tensor:
    """The parameter's blocks as one tensor, in its shape."""
    if (which, 1) not in steps:
        return steps[which, 0].view(like.shape)
    whole = torch.empty_like(like)
    for i, block in enumerate(blocks_of(whole, group)):
        block.copy_(steps[which, i])
    return whole


class Side:
    """One side of blocks of one shape, for each U diag(values) Uᵀ + ridge I, which is off by `ridge` at most."""

    def __init__(self, places: Places, side: str) -> None:
        self._kept = [remembered(places, f"{side}_{name}") for name in ("basis", "values", "ridge")]
        self.U, self.values, self.ridge = (together(parts) for parts in self._kept)

    def wide(self, G: torch.Tensor) -> bool:
        """Whether directions and columns of G are as many as the side is long: then it takes GGᵀ, else GᵀG."""
        return bool(self.U.shape[-2] <= self.U.shape[-1] + G.shape[-1])

    def take(self, G: torch.Tensor, gram: torch.Tensor, beta: float) -> None:
        """Take GGᵀ into the sketch: Robust Frequent Directions, one shrink for all columns of G."""
        length, kept = self.U.shape[-2:]
        old = self.U * (beta * self.values).sqrt().unsqueeze(-2)
        weight, count = weight_of_new(beta), min(kept + 1, length)
        if self.wide(G):
            found, vectors = _leading(torch.baddbmm(gram, old, old.mT, beta=weight), count)
            if kept < length:  # else they are a whole basis, which needs them all
                found = _known(found, length)
                vectors = vectors * (found > 0).unsqueeze(-2)
        else:
            found, vectors = _leading_by_columns(old, G, gram, weight, count)
        lost = found[:, kept:].sum(-1)  # one eigenvalue, or none
        values = (found[:, :kept] - lost.unsqueeze(-1)).clamp(min=0)
        new = (vectors[..., :kept], values, beta * self.ridge + lost / 2)
        self.U, self.values, self.ridge = new
        for parts, part in zip(self._kept, new, strict=True):
            torch._foreach_copy_(parts, list(part.unbind()))


def update(left: Side, right: Side, G: torch.Tensor, beta: float) -> None:
    """Take GGᵀ into the sketch of the left side and GᵀG into that of the right one."""
    sides = ((left, G), (right, G.mT))
    grams = [X @ X.mT if side.wide(X) else None for side, X in sides]
    # A side that is longer than wide goes by the Gram matrix of the other, which is shorter.
    for (side, X), own, other in zip(sides, grams, reversed(grams), strict=True):
        side.take(X, other if own is None else own, beta)


def _leading(gram: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` largest eigenvalues and their eigenvectors."""
    eigenvalues, W = _eigh(gram)
    return eigenvalues[..., -count:].flip(-1).clamp(min=0), W[..., -count:].flip(-1)


def _leading_by_columns(
    old: torch.Tensor, G: torch.Tensor, gram: torch.Tensor, weight: float, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of CCᵀ with C = (old, weight^½ G), by way of CᵀC; `gram` is GᵀG."""
    root = math.sqrt(weight)
    across = (old.mT @ G) * root
    upper, lower = torch.cat((old.mT @ old, across), -1), torch.cat((across.mT, weight * gram), -1)
    eigenvalues, W = _leading(torch.cat((upper, lower), -2), count)
    eigenvalues = _known(eigenvalues, len(W[0]))
    of_old, of_new = W.split((old.shape[-1], G.shape[-1]), -2)
    vectors = torch.baddbmm(old @ of_old, G, of_new, alpha=root)
    vectors *= torch.where(eigenvalues > 0, eigenvalues, torch.inf).rsqrt().unsqueeze(-2)
    return eigenvalues, _orthonormal(vectors)


def _known(eigenvalues: torch.Tensor, length: int) -> torch.Tensor:
    """Those that are rounding alone as zeros: such directions have no vector, for it would be any."""
    rounding = _ROUNDING / 2 * torch.finfo(eigenvalues.dtype).eps * length**0.5 * eigenvalues[..., :1]
    return eigenvalues * (eigenvalues > rounding)


def _eigh(gram: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The eigenvalues and eigenvectors of Gram matrices, also of singular ones; their diagonals are overwritten.

    On those, as sketches have while they fill, LAPACK in float32 underflows: it gives up, or answers NaN without a
    word. A multiple of the identity mends that; an eighth of the largest entry costs only digits
    that the decomposition loses anyway.
    """
    shift = gram.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True) / 8
    gram.diagonal(dim1=-2, dim2=-1).add_(shift)
    eigenvalues, vectors = torch.linalg.eigh(gram)
    return eigenvalues - shift, vectors


def _orthonormal(vectors: torch.Tensor) -> torch.Tensor:
    """The nearest orthonormal columns V(VᵀV)^-½; those that are zero stay so.

    Eigenvectors by way of a Gram matrix have lost half of their digits where eigenvalues are small.
    """
    eigenvalues, W = _eigh(vectors.mT @ vectors)
    roots = torch.where(eigenvalues > 0.25, eigenvalues, torch.inf).rsqrt()
    return vectors @ ((W * roots.unsqueeze(-2)) @ W.mT)


def _error_bound(state: State, side: str, i: int, group: Group) -> float:
    values, ridge = state[f"{side}_values{i}"], float(state[f"{side}_ridge{i}"])
    updates: int = 1 + (state["step"] - 1) // group["update_every"]
    beta: float = group["betas"][1]
    memory = min(updates, 1 / (1 - beta)) if beta < 1 else float(updates)
    lengths = sum(len(state[f"{which}_basis{i}"]) for which in ("left", "right"))
    rounding = _ROUNDING * lengths**0.5 * torch.finfo(values.dtype).eps * (float(values.max()) + ridge)
    bound: float = ridge + memory * rounding
    return bound


# -- shapes


def _matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A row for each index of the first dimension: for each output of a layer, each filter of a convolution."""
    return tensor.reshape(len(tensor), -1) if tensor.dim() else tensor.reshape(1, 1)


def blocks_of(tensor: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """Views of a tensor's matrix, no longer than `block_size` on either side."""
    size = group["block_size"]
    return [block for rows in _matrix(tensor).split(size) for block in rows.split(size, dim=1)]
