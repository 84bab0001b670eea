"""Shampoo with sketched sides: the metric of a matrix from its rows' and its columns' covariance."""

from __future__ import annotations

import math
from typing import NamedTuple

from sketchnewton.core.parameters import checked
from sketchnewton.torch.base import (
    Batch,
    Group,
    Optimizer,
    State,
    grafted,
    options,
    torch,
    total_weight,
    weight_of_new,
)

__all__ = ["SketchyShampoo"]

_ROUNDING = 4.0  # of one update, in units of ε · √length · largest eigenvalue: what a certificate allows


class SketchyShampoo(Optimizer):
    """Shampoo whose two covariances are Robust Frequent Directions sketches.

    For a weight matrix W (a × b) with gradient G the step is W ← W − η L^-¼ G R^-¼ with L = Σ GGᵀ and R = Σ GᵀG
    (Gupta, Koren and Singer, *Shampoo*, 2018). L and R are each kept as at most `sketch_size` − 1 directions and
    a multiple of the identity: a sketch drops its smallest direction and adds half of what the shrink takes from
    the others to the ridge (Luo et al., *Robust Frequent Directions*, 2019; Feinberg et al., *Sketchy*, 2023).
    State: O((a + b) m) numbers beside the moments. Time: O(abm) per step, and an eigendecomposition of each side's
    smaller Gram matrix in every `update_every`-th. A side no longer than m − 1 is exact. `error_bounds` certifies
    what the sketches have lost.

    Convolutions are matrices with a row per filter. Vectors, and groups with `diagonal=True`, take steps of Adam.

    `params` are the parameters to optimize, or groups of them.

    Parameters: `lr` is η. `betas` are the decay of the mean gradient, to which the metric is applied, and the
    decay of the second moments, of the sketches and of Adam; with a second β of 1 both sum. `sketch_size` is m.
    `graft` is the method whose step length each tensor takes: "adam", "sgd" (the length of the mean gradient), or
    None, Shampoo's own. `update_every` is how many steps share one update of the sketches, which take the gradient
    of the first of them. `warmup` is how many steps follow the grafted method alone. `ridge` is added to the
    eigenvalues of both sides, as a share of the largest. `block_size` is the longest side: longer ones are cut
    into blocks with sketches of their own. `eps` is Adam's. `weight_decay` adds that much of the parameter to its
    gradient; `maximize` ascends. `foreach=False` works on one tensor at a time, which takes less memory. All may
    differ between param groups. `unsupported` is what other optimizers take and this one refuses: `fused`,
    `capturable`, `differentiable`.

    >>> w = torch.nn.Parameter(torch.zeros(3, 2))
    >>> optimizer = SketchyShampoo([w], lr=0.1)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.05)
    True
    """

    def __init__(
        self,
        params: object,
        lr: float = 0.002,
        betas: tuple[float, float] = (0.9, 0.99),
        sketch_size: int = 32,
        *,
        graft: str | None = "adam",
        update_every: int = 10,
        warmup: int = 0,
        ridge: float = 1e-4,
        block_size: int = 2048,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    _integers = (("sketch_size", 2), ("warmup", 0), ("block_size", 1))

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
            for i in range(len(_blocks(parameter, group)))
        ]

    # -- what the base asks for

    def _diagonal(self, parameter: torch.Tensor, group: Group) -> bool:
        """Vectors have no sides."""
        return super()._diagonal(parameter, group) or min(_matrix(parameter).shape) == 1

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        memory = {}
        for i, block in enumerate(_blocks(parameter, group)):
            for side, length in zip(("left", "right"), block.shape, strict=True):
                kept = min(group["sketch_size"] - 1, length)
                memory[f"{side}_basis{i}"] = torch.zeros(length, kept)
                memory[f"{side}_values{i}"] = torch.zeros(kept)
                memory[f"{side}_ridge{i}"] = torch.zeros(())
        return memory

    def _preconditioned(
        self, batch: Batch, means: list[torch.Tensor], adam: list[torch.Tensor] | None
    ) -> list[torch.Tensor]:
        group = batch.group
        if batch.step % group["update_every"] == 0:
            for places, G in _stacked(batch, batch.gradients):
                _update(_Side(places, "left"), G, group["betas"][1])
                _update(_Side(places, "right"), G.mT, group["betas"][1])
        if batch.step < group["warmup"]:
            return means if adam is None else adam
        total = total_weight(group["betas"][1], 1 + batch.step // group["update_every"])
        stacks = _stacked(batch, means)
        sides = [_Side(places, name) for places, _ in stacks for name in ("left", "right")]
        # Sketches of zeros alone take the mean gradient for what they should have seen.
        unknown = [M.norm(dim=(-2, -1)).square() for _, M in stacks for _ in ("left", "right")]
        roots = _roots(sides, torch.cat(unknown), group["ridge"], total)
        steps: dict[tuple[int, int], torch.Tensor] = {}
        for (places, M), left, right in zip(stacks, roots[::2], roots[1::2], strict=True):
            steps.update(zip(places.blocks, _precondition(left, right, M).unbind(), strict=True))
        directions = [_joined(steps, which, mean, group) for which, mean in enumerate(means)]
        return grafted(directions, means, adam, group["graft"])

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        checked("ridge", group["ridge"])


# -- blocks of one shape, of whatever parameters, which are worked on together


class _Places(NamedTuple):
    """Where blocks come from."""

    states: list[State]  # of each block's parameter
    blocks: list[tuple[int, int]]  # the parameter's place in the batch, and the block's in the parameter


def _stacked(batch: Batch, tensors: list[torch.Tensor]) -> list[tuple[_Places, torch.Tensor]]:
    """The blocks of all tensors, those of one shape as one tensor."""
    found: dict[tuple[int, ...], tuple[_Places, list[torch.Tensor]]] = {}
    for which, (tensor, state) in enumerate(zip(tensors, batch.states, strict=True)):
        for i, block in enumerate(_blocks(tensor, batch.group)):
            places, blocks = found.setdefault(tuple(block.shape), (_Places([], []), []))
            places.states.append(state)
            places.blocks.append((which, i))
            blocks.append(block)
    return [(places, _together(blocks)) for places, blocks in found.values()]


def _together(tensors: list[torch.Tensor]) -> torch.Tensor:
    """One tensor of all, for reading: a lone one, as most are, is not copied."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(tensors)


def _joined(
    steps: dict[tuple[int, int], torch.Tensor], which: int, like: torch.Tensor, group: Group
) -> torch.Tensor:
    """The parameter's blocks as one tensor, in its shape."""
    whole = torch.empty_like(like)
    blocks = _blocks(whole, group)
    if len(blocks) == 1:
        return steps[which, 0].view(like.shape)
    for i, block in enumerate(blocks):
        block.copy_(steps[which, i])
    return whole


class _Side:
    """One side of blocks of one shape, for each U diag(values) Uᵀ + ridge I, which is off by `ridge` at most."""

    def __init__(self, places: _Places, side: str) -> None:
        self._kept = [
            [state[f"{side}_{name}{i}"] for state, (_, i) in zip(*places, strict=True)]
            for name in ("basis", "values", "ridge")
        ]
        self.U, self.values, self.ridge = (_together(parts) for parts in self._kept)

    def keep(self, U: torch.Tensor, values: torch.Tensor, ridge: torch.Tensor) -> None:
        for parts, new in zip(self._kept, (U, values, ridge), strict=True):
            torch._foreach_copy_(parts, list(new.unbind()))


def _update(side: _Side, G: torch.Tensor, beta: float) -> None:
    """Take GGᵀ into the sketch: Robust Frequent Directions, one shrink for all columns of G."""
    length, kept = side.U.shape[-2:]
    old = side.U * (beta * side.values).sqrt().unsqueeze(-2)
    C = torch.cat((old, G * math.sqrt(weight_of_new(beta))), -1)
    found, vectors = _leading_eigenpairs(C, min(kept + 1, length))
    lost = found[:, kept:].sum(-1)  # one eigenvalue, or none
    values = (found[:, :kept] - lost.unsqueeze(-1)).clamp(min=0)
    side.keep(vectors[..., :kept], values, beta * side.ridge + lost / 2)


def _leading_eigenpairs(C: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` largest eigenvalues of CCᵀ and their eigenvectors, by way of the smaller Gram matrix."""
    wide = C.shape[-2] <= C.shape[-1]
    eigenvalues, W = _eigh(C @ C.mT if wide else C.mT @ C)
    eigenvalues, W = eigenvalues[..., -count:].flip(-1).clamp(min=0), W[..., -count:].flip(-1)
    if wide:
        return eigenvalues, W
    # Directions that are rounding alone have no vector.
    known = eigenvalues > _ROUNDING / 2 * torch.finfo(C.dtype).eps * len(W[0]) ** 0.5 * eigenvalues[..., :1]
    eigenvalues = eigenvalues * known
    vectors = (C @ W) * torch.where(known, eigenvalues, torch.inf).rsqrt().unsqueeze(-2)
    return eigenvalues, _orthonormal(vectors)


def _eigh(gram: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The eigenvalues and eigenvectors of Gram matrices, also of singular ones.

    On those, as sketches have while they fill, LAPACK in float32 underflows: it gives up, or answers NaN without a
    word. A multiple of the identity mends that; an eighth of the largest entry costs only digits
    that the decomposition loses anyway.
    """
    shift = gram.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True) / 8
    eigenvalues, vectors = torch.linalg.eigh(gram + torch.diag_embed(shift.expand(gram.shape[:-1])))
    return eigenvalues - shift, vectors


def _orthonormal(vectors: torch.Tensor) -> torch.Tensor:
    """The nearest orthonormal columns V(VᵀV)^-½; those that are zero stay so.

    Eigenvectors by way of a Gram matrix have lost half of their digits where eigenvalues are small.
    """
    eigenvalues, W = _eigh(vectors.mT @ vectors)
    roots = torch.where(eigenvalues > 0.25, eigenvalues, torch.inf).rsqrt()
    return vectors @ ((W * roots.unsqueeze(-2)) @ W.mT)


class _Root(NamedTuple):
    """outside · (I + U diag(inside) Uᵀ), for each block."""

    U: torch.Tensor
    inside: torch.Tensor
    outside: torch.Tensor


def _roots(sides: list[_Side], unknown: torch.Tensor, ridge: float, total: float) -> list[_Root]:
    """(U diag(values) Uᵀ + (ridge + damping) I)^-¼ of each side.

    All of them at once: they have so few numbers that each operation costs no more than its call.
    """
    most = max(side.values.shape[-1] for side in sides)
    padded = [torch.nn.functional.pad(side.values, (0, most - side.values.shape[-1])) for side in sides]
    values, own = torch.cat(padded) / total, torch.cat([side.ridge for side in sides]) / total
    largest = values.amax(-1) + own
    largest = torch.where(largest > 0, largest, unknown)
    base = (own + ridge * largest).clamp(min=torch.finfo(values.dtype).tiny)
    counts = [len(side.values) for side in sides]
    inside = ((1 + values / base.unsqueeze(-1)) ** -0.25 - 1).split(counts)
    parts = zip(sides, inside, (base**-0.25).split(counts), strict=True)
    return [_Root(side.U, within[:, : side.values.shape[-1]], outside) for side, within, outside in parts]


def _precondition(left: _Root, right: _Root, X: torch.Tensor) -> torch.Tensor:
    """L^-¼ X R^-¼, by matrices of low rank alone."""
    half = torch.baddbmm(X, left.U, left.inside.unsqueeze(-1) * (left.U.mT @ X))
    whole = torch.baddbmm(half, (half @ right.U) * right.inside.unsqueeze(-2), right.U.mT)
    return whole.mul_((left.outside * right.outside)[:, None, None])


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


def _blocks(tensor: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """Views of a tensor's matrix, no longer than `block_size` on either side."""
    size = group["block_size"]
    return [block for rows in _matrix(tensor).split(size) for block in rows.split(size, dim=1)]
