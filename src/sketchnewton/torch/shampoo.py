"""Shampoo with sketched sides: the metric of a matrix from its rows' and its columns' covariance."""

from __future__ import annotations

import math

from sketchnewton.core.parameters import checked
from sketchnewton.torch.base import (
    Group,
    Optimizer,
    State,
    fresh_moments,
    grafted,
    moments,
    options,
    torch,
    total_weight,
    weight_of_new,
)

__all__ = ["SketchyShampoo"]


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
    gradient; `maximize` ascends. All may differ between param groups.

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
    ) -> None:
        super().__init__(params, options(locals()))

    _integers = (("sketch_size", 2), ("warmup", 0), ("block_size", 1))

    def error_bounds(self, parameter: torch.nn.Parameter) -> list[tuple[float, float]]:
        """How far the sketches of L and R may be off, at most, in spectral norm: a pair for each block.

        What shrinks have moved, and an allowance for rounding.
        """
        state = self.state[parameter]
        group = next(group for _, p, group in self._parameters() if p is parameter)
        if not state or _is_diagonal(parameter, group):
            return []
        return [
            (_error_bound(state, "left", i, group), _error_bound(state, "right", i, group))
            for i in range(len(_blocks(_matrix(parameter), group["block_size"])))
        ]

    # -- what the base asks for

    def _memory(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        diagonal = _is_diagonal(parameter, group)
        memory = fresh_moments(parameter.shape, group, adam=diagonal)
        for i, block in enumerate([] if diagonal else _blocks(_matrix(parameter), group["block_size"])):
            for side, length in zip(("left", "right"), block.shape, strict=True):
                kept = min(group["sketch_size"] - 1, length)
                memory[f"{side}_basis{i}"] = torch.zeros(length, kept)
                memory[f"{side}_values{i}"] = torch.zeros(kept)
                memory[f"{side}_ridge{i}"] = torch.zeros(())
        return memory

    def _direction(
        self, g: torch.Tensor, parameter: torch.Tensor, state: State, group: Group, position: int
    ) -> torch.Tensor:
        g = g.view(parameter.shape)
        mean, adam = moments(g, state, group)
        if _is_diagonal(parameter, group):
            return adam
        size = group["block_size"]
        if state["step"] % group["update_every"] == 0:
            for i, block in enumerate(_blocks(_matrix(g), size)):
                _update(state, "left", i, block, group)
                _update(state, "right", i, block.mT, group)
        if state["step"] < group["warmup"]:
            return mean if adam is None else adam
        direction = torch.empty_like(mean)
        pairs = zip(_blocks(_matrix(mean), size), _blocks(_matrix(direction), size), strict=True)
        for i, (block, into) in enumerate(pairs):
            half = _precondition(state, "left", i, group, block)
            into.copy_(_precondition(state, "right", i, group, half.mT).mT)
        return grafted(direction, mean, adam, group)

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        checked("ridge", group["ridge"])


# -- one side of a block: U diag(values) Uᵀ + ridge I, which is off by `ridge` at most


def _update(state: State, side: str, i: int, G: torch.Tensor, group: Group) -> None:
    """Take GGᵀ into the sketch: Robust Frequent Directions, one shrink for all columns of G."""
    U, values, ridge = _sketch(state, side, i)
    kept, beta = len(values), group["betas"][1]
    C = torch.cat((U * (beta * values).sqrt(), G * math.sqrt(weight_of_new(beta))), 1)
    found, vectors = _leading_eigenpairs(C, min(kept + 1, len(U)))
    lost = found[kept:].sum()  # of one eigenvalue, or of none
    ridge.mul_(beta).add_(lost / 2)
    values.copy_((found[:kept] - lost).clamp(min=0))
    U.copy_(vectors[:, :kept])


def _leading_eigenpairs(C: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` largest eigenvalues of CCᵀ and their eigenvectors, by way of the smaller Gram matrix."""
    if C.shape[0] <= C.shape[1]:
        eigenvalues, vectors = torch.linalg.eigh(C @ C.mT)
        return eigenvalues[-count:].flip(0).clamp(min=0), vectors[:, -count:].flip(1)
    eigenvalues, W = torch.linalg.eigh(C.mT @ C)
    eigenvalues, W = eigenvalues[-count:].flip(0).clamp(min=0), W[:, -count:].flip(1)
    vectors = C @ W
    # Directions that are rounding alone have no vector; the others get length 1.
    length = vectors.norm(dim=0)
    known = length > 8 * torch.finfo(C.dtype).eps ** 0.5 * length.max()
    return eigenvalues * known, torch.where(known, vectors / length.clamp(min=torch.finfo(C.dtype).tiny), 0)


def _precondition(state: State, side: str, i: int, group: Group, X: torch.Tensor) -> torch.Tensor:
    """(U diag(values) Uᵀ + (ridge + damping) I)^-¼ X."""
    U, values, ridge = _sketch(state, side, i)
    total = total_weight(group["betas"][1], 1 + state["step"] // group["update_every"])
    values, ridge = values / total, ridge / total
    tiny = torch.finfo(values.dtype).tiny
    outside = (ridge + group["ridge"] * (values.max() + ridge)).clamp(min=tiny)
    inside = values + outside
    return outside**-0.25 * X + U @ ((inside**-0.25 - outside**-0.25)[:, None] * (U.mT @ X))


def _error_bound(state: State, side: str, i: int, group: Group) -> float:
    U, values, ridge = _sketch(state, side, i)
    updates: int = 1 + (state["step"] - 1) // group["update_every"]
    beta: float = group["betas"][1]
    memory = min(updates, 1 / (1 - beta)) if beta < 1 else float(updates)
    rounding = 4 * len(U) ** 0.5 * torch.finfo(values.dtype).eps * float(values.max() + ridge)
    bound: float = float(ridge) + memory * rounding
    return bound


def _sketch(state: State, side: str, i: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(state[f"{side}_{name}{i}"] for name in ("basis", "values", "ridge"))


# -- shapes and weights


def _is_diagonal(parameter: torch.Tensor, group: Group) -> bool:
    """Vectors have no sides."""
    return bool(group["diagonal"]) or min(_matrix(parameter).shape) == 1


def _matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A row for each index of the first dimension: for each output of a layer, each filter of a convolution."""
    return tensor.reshape(len(tensor), -1) if tensor.dim() else tensor.reshape(1, 1)


def _blocks(matrix: torch.Tensor, size: int) -> list[torch.Tensor]:
    """Views of a matrix no longer than `size` on either side."""
    return [block for rows in matrix.split(size) for block in rows.split(size, dim=1)]
