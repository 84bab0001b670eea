"""Shampoo with sketched sides: the metric of a matrix from its rows' and its columns' covariance."""

from __future__ import annotations

from typing import NamedTuple

from sketchnewton.core.parameters import checked
from sketchnewton.torch.base import Batch, Group, grafted, moments, options, torch, total_weight
from sketchnewton.torch.sides import (
    Side,
    SidedOptimizer,
    add_product_,
    apart,
    joined,
    plus_product,
    stacked,
    update,
)

__all__ = ["SketchyShampoo"]


class SketchyShampoo(SidedOptimizer):
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

    _integers = (*SidedOptimizer._integers, ("warmup", 0))

    # -- what the base asks for

    def _preconditioned(self, batch: Batch) -> list[torch.Tensor]:
        group, (means, adam) = batch.group, moments(batch)
        if batch.step % group["update_every"] == 0:
            for places, G in stacked(batch, batch.gradients):
                update(Side(places, "left"), Side(places, "right"), G, group["betas"][1])
        if batch.step < group["warmup"]:
            return means if adam is None else adam
        total = total_weight(group["betas"][1], 1 + batch.step // group["update_every"])
        stacks = stacked(batch, means)
        sides = [Side(places, name) for places, _ in stacks for name in ("left", "right")]
        # Sketches of zeros alone take the mean gradient for what they should have seen.
        unknown = [M.norm(dim=(-2, -1)).square().view(-1) for _, M in stacks for _ in ("left", "right")]
        roots = _roots(sides, torch.cat(unknown), group["ridge"], total)
        steps: dict[tuple[int, int], torch.Tensor] = {}
        for (places, M), left, right in zip(stacks, roots[::2], roots[1::2], strict=True):
            steps.update(zip(places.blocks, apart(_precondition(left, right, M), places), strict=True))
        directions = [joined(steps, which, mean, group) for which, mean in enumerate(means)]
        return grafted(directions, means, adam, group["graft"])

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        checked("ridge", group["ridge"])


class _Root(NamedTuple):
    """outside · (I + U diag(inside) Uᵀ), for each block."""

    U: torch.Tensor
    inside: torch.Tensor
    outside: torch.Tensor


def _roots(sides: list[Side], unknown: torch.Tensor, ridge: float, total: float) -> list[_Root]:
    """(U diag(values) Uᵀ + (ridge + damping) I)^-¼ of each side.

    All of them at once: they have so few numbers that each operation costs no more than its call.
    """
    most = max(side.values.shape[-1] for side in sides)
    padded = [torch.nn.functional.pad(side.values, (0, most - side.values.shape[-1])) for side in sides]
    values = torch.cat([part.view(-1, most) for part in padded]) / total
    own = torch.cat([side.ridge.view(-1) for side in sides]) / total
    largest = values.amax(-1) + own
    largest = torch.where(largest > 0, largest, unknown)
    base = (own + ridge * largest).clamp(min=torch.finfo(values.dtype).tiny)
    # By square roots, which are rounded alike wherever they stand; powers are not, so that one parameter's step
    # would hang on the others.
    inside = (1 + values / base.unsqueeze(-1)).sqrt_().rsqrt_() - 1
    outside = base.sqrt().rsqrt_()
    counts = [side.ridge.numel() for side in sides]
    return [
        _Root(side.U, within[:, : side.values.shape[-1]].view_as(side.values), without.view_as(side.ridge))
        for side, within, without in zip(sides, inside.split(counts), outside.split(counts), strict=True)
    ]


def _precondition(left: _Root, right: _Root, X: torch.Tensor) -> torch.Tensor:
    """L^-¼ X R^-¼, by matrices of low rank alone."""
    half = plus_product(X, left.U, left.inside.unsqueeze(-1) * (left.U.mT @ X))
    whole = add_product_(half, (half @ right.U) * right.inside.unsqueeze(-2), right.U.mT)
    return whole.mul_((left.outside * right.outside)[..., None, None])
