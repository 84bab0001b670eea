"""Sides of matrices, sketched: what the optimizers that precondition rows and columns share."""

from __future__ import annotations

import math
from typing import NamedTuple

from sketchnewton.torch.base import Batch, Group, Optimizer, State, torch, weight_of_new

__all__ = [
    "Places",
    "Side",
    "SidedOptimizer",
    "add_product_",
    "apart",
    "blocks_of",
    "joined",
    "plus_product",
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
        if super()._diagonal(parameter, group) or parameter.dim() < 2:
            return True
        return len(parameter) == 1 or parameter.numel() == len(parameter)

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
    """The blocks of all tensors, those of one shape `together`."""
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
    """One tensor of all, with a dimension in front if there are several: a lone one, as most are, is itself."""
    return tensors[0] if len(tensors) == 1 else torch.stack(tensors)


def apart(tensors: torch.Tensor, places: Places) -> tuple[torch.Tensor, ...]:
    """Those that are `together`, one by one."""
    return (tensors,) if len(places.blocks) == 1 else tensors.unbind()


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


def plus_product(
    X: torch.Tensor, A: torch.Tensor, B: torch.Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> torch.Tensor:
    """beta X + alpha A B, of matrices that may be `together`."""
    return (torch.addmm if X.dim() == 2 else torch.baddbmm)(X, A, B, beta=beta, alpha=alpha)


def add_product_(X: torch.Tensor, A: torch.Tensor, B: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """X + alpha A B in place of X."""
    return (X.addmm_ if X.dim() == 2 else X.baddbmm_)(A, B, alpha=alpha)


class Side:
    """One side of blocks of one shape, for each U diag(values) Uᵀ + ridge I, which is off by `ridge` at most."""

    def __init__(self, places: Places, side: str) -> None:
        self._places = places
        self._kept = [remembered(places, f"{side}_{name}") for name in ("basis", "values", "ridge")]
        self.U, self.values, self.ridge = map(together, self._kept)

    def wide(self, G: torch.Tensor) -> bool:
        """Whether directions and columns of G are as many as the side is long: then it takes GGᵀ, else GᵀG."""
        return bool(self.U.shape[-2] <= self.U.shape[-1] + G.shape[-1])

    def take(self, G: torch.Tensor, gram: torch.Tensor, beta: float) -> None:
        """Take GGᵀ into the sketch: Robust Frequent Directions, one shrink for all columns of G."""
        length, kept = self.U.shape[-2:]
        weight, old = weight_of_new(beta), beta * self.values
        if self.wide(G):
            values = old.unsqueeze(-2)
            found, vectors = _eigh(plus_product(gram, self.U * values, self.U.mT, beta=-weight, alpha=-1))
            if kept == length:  # nothing is lost
                self._keep(vectors, found.clamp_(min=0), beta * self.ridge)
                return
            found = _known(found[..., : kept + 1], length)
            vectors = vectors[..., :kept] * (found[..., :kept] > 0).unsqueeze(-2)
        else:
            found, vectors = _leading_by_columns(self.U, old, G, gram, weight)
        lost = found[..., kept:]
        shrunk = (found[..., :kept] - lost).clamp_(min=0)
        self._keep(vectors, shrunk, torch.add(beta * self.ridge, lost.squeeze(-1), alpha=0.5))

    def _keep(self, U: torch.Tensor, values: torch.Tensor, ridge: torch.Tensor) -> None:
        self.U, self.values, self.ridge = U, values, ridge
        new = [tensor for part in (U, values, ridge) for tensor in apart(part, self._places)]
        torch._foreach_copy_([tensor for parts in self._kept for tensor in parts], new)


def update(left: Side, right: Side, G: torch.Tensor, beta: float) -> None:
    """Take GGᵀ into the sketch of the left side and GᵀG into that of the right one."""
    sides = ((left, G), (right, G.mT))
    grams = [X @ X.mT if side.wide(X) else None for side, X in sides]
    # A side that is longer than wide goes by the Gram matrix of the other, which is shorter.
    for (side, X), own, other in zip(sides, grams, reversed(grams), strict=True):
        side.take(X, other if own is None else own, beta)


def _leading_by_columns(
    U: torch.Tensor, values: torch.Tensor, G: torch.Tensor, gram: torch.Tensor, weight: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest eigenvalues of U diag(values) Uᵀ + weight GGᵀ, one more than U has columns, and their vectors.

    That is CCᵀ with C = (U diag(values)^½, weight^½ G), which is decomposed by way of CᵀC; `gram` is GᵀG. The last
    eigenvalue has no vector.
    """
    kept, roots, root = U.shape[-1], values.sqrt().unsqueeze(-1), math.sqrt(weight)
    across = (U.mT @ G).mul_(roots * -root)
    upper = torch.cat((torch.diag_embed(-values), across), -1)  # as the columns of U are orthonormal
    found, W = _eigh(torch.cat((upper, torch.cat((across.mT, -weight * gram), -1)), -2))
    found = _known(found[..., : kept + 1], W.shape[-1])
    known = found[..., :kept]  # of directions that are not nothing is left
    W = W[..., :kept] * torch.where(known > 0, known, torch.inf).rsqrt_().unsqueeze(-2)
    of_old, of_new = W.split((kept, G.shape[-1]), -2)
    # As rows: few long ones times a long matrix are quicker than a long matrix times a few columns.
    rows = add_product_((roots * of_old).mT @ U.mT, of_new.mT, G.mT, alpha=root)
    return found, _orthonormal(rows).mT


def _known(eigenvalues: torch.Tensor, length: int) -> torch.Tensor:
    """Those that are rounding alone as zeros: such directions have no vector, for it would be any."""
    rounding = _ROUNDING / 2 * torch.finfo(eigenvalues.dtype).eps * length**0.5 * eigenvalues[..., :1]
    return eigenvalues * (eigenvalues > rounding.clamp_(min=0))


def _eigh(negated: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The eigenvalues, largest first, and the eigenvectors of Gram matrices, also of singular ones.

    They are given with all signs turned, for LAPACK has the smallest first; their diagonals are overwritten. On
    singular ones, as sketches have while they fill, LAPACK in float32 underflows: it gives up, or answers NaN
    without a word. A multiple of the identity mends that; an eighth of the largest entry costs only digits that
    the decomposition loses anyway.
    """
    diagonal = negated.diagonal(dim1=-2, dim2=-1)
    shift = diagonal.amin(-1, keepdim=True).div_(8)
    diagonal.add_(shift)
    eigenvalues, vectors = torch.linalg.eigh(negated)
    return shift - eigenvalues, vectors


def _orthonormal(rows: torch.Tensor) -> torch.Tensor:
    """The nearest orthonormal rows (VVᵀ)^-½V; those that are zero stay so.

    Eigenvectors by way of a Gram matrix have lost half of their digits where eigenvalues are small.
    """
    found, W = _eigh((rows @ rows.mT).neg_())
    roots = torch.where(found > 0.25, found, torch.inf).rsqrt_()
    return (W * roots.unsqueeze(-2)) @ W.mT @ rows


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
    size, matrix = group["block_size"], _matrix(tensor)
    if max(matrix.shape) <= size:
        return [matrix]
    return [block for rows in matrix.split(size) for block in rows.split(size, dim=1)]
