"""SOAP with sketched sides: Adam along the directions that matter to a matrix's rows and columns."""

from __future__ import annotations

from sketchnewton.torch.base import Batch, Group, options, torch, total_weight, weight_of_new
from sketchnewton.torch.sides import (
    Places,
    Side,
    SidedOptimizer,
    blocks_of,
    joined,
    remembered,
    stacked,
    together,
    update,
)

__all__ = ["SketchySOAP"]


class SketchySOAP(SidedOptimizer):
    """Adam in the eigenbasis of Shampoo's two covariances, which are Robust Frequent Directions sketches.

    For a weight matrix (a × b) with gradients G, the columns of U and V are the leading eigenvectors of Σ GGᵀ and
    Σ GᵀG, as in `SketchyShampoo`. Adam works on UᵀGV (Vyas et al., *SOAP*, 2024); what a sketch does not know,
    (I − UUᵀ)G, it takes entry by entry. A side no longer than `sketch_size` − 1 is exact, so that with sketches
    as large as the sides this is SOAP. State: Adam's, and O((a + b) m) numbers. Time: O(abm) per step, and an
    eigendecomposition of each side's smaller Gram matrix in every `update_every`-th. `error_bounds` certifies
    what the sketches have lost.

    Convolutions are matrices with a row per filter. Vectors, and groups with `diagonal=True`, take steps of Adam.

    `params` are the parameters to optimize, or groups of them.

    Parameters: `lr` is η. `betas` are the decay of the mean gradient and of the second moments, of the sketches
    and of Adam; with a second β of 1 both sum. `sketch_size` is m. `update_every` is how many steps share one
    update of the sketches, which take the gradient of the first of them. `block_size` is the longest side: longer
    ones are cut into blocks with sketches of their own. `eps` is Adam's. `weight_decay` adds that much of the
    parameter to its gradient; `maximize` ascends. `foreach=False` works on one tensor at a time, which takes less
    memory. All may differ between param groups. `unsupported` is what other optimizers take and this one refuses:
    `fused`, `capturable`, `differentiable`.

    >>> w = torch.nn.Parameter(torch.zeros(3, 2))
    >>> optimizer = SketchySOAP([w], lr=0.1)
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
        lr: float = 0.003,
        betas: tuple[float, float] = (0.9, 0.99),
        sketch_size: int = 32,
        *,
        update_every: int = 10,
        block_size: int = 2048,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    # -- what the base asks for

    def _moments(self, group: Group) -> tuple[str, ...]:
        """None: those of its coordinates are with the sketches."""
        return ()

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        """Before the first gradient the basis is that of the entries: the first step is Adam's."""
        memory = super()._sketch(parameter, group, position)
        for i in range(len(blocks_of(parameter, group))):
            U, V = memory[f"left_basis{i}"], memory[f"right_basis{i}"]
            for moment in ("mean", "squares"):
                memory[f"{moment}{i}"] = torch.zeros(_coordinates(U), _coordinates(V))
            for basis in (U, V):
                if _complete(basis):
                    basis.fill_diagonal_(1)
        return memory

    def _preconditioned(self, batch: Batch) -> list[torch.Tensor]:
        group = batch.group
        steps: dict[tuple[int, int], torch.Tensor] = {}
        for places, G in stacked(batch, batch.gradients):
            left, right = Side(places, "left"), Side(places, "right")
            directions = _adam(batch, places, _into(G, left.U, right.U))
            steps.update(zip(places.blocks, _back_(directions, left.U, right.U).unbind(), strict=True))
            # After the step: in the basis of its own gradient alone, the first one has entries that are rounding
            # alone, and Adam would give them the length of the others.
            if batch.step % group["update_every"] == 0:
                # Means are in coordinates, so that a step projects its gradient alone: they follow the basis.
                means = remembered(places, "mean")
                M = _back(together(means), left.U, right.U)
                update(left, right, G, group["betas"][1])
                torch._foreach_copy_(means, list(_into(M, left.U, right.U).unbind()))
        return [joined(steps, which, gradient, group) for which, gradient in enumerate(batch.gradients)]


def _adam(batch: Batch, places: Places, g: torch.Tensor) -> torch.Tensor:
    """Take gradients in coordinates into the moments; Adam's directions, in the gradients' memory."""
    (beta1, beta2), count, each = batch.group["betas"], batch.step + 1, list(g.unbind())
    means, squares = remembered(places, "mean"), remembered(places, "squares")
    torch._foreach_lerp_(means, each, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, each, each, weight_of_new(beta2))
    torch._foreach_copy_(each, squares)
    unbiased = 1 - beta1**count
    g.sqrt_().mul_(unbiased / total_weight(beta2, count) ** 0.5).add_(unbiased * batch.group["eps"])
    g.clamp_min_(torch.finfo(g.dtype).tiny)  # with eps=0, coordinates that no gradient had stay 0
    g.reciprocal_()
    torch._foreach_mul_(each, means)
    # Squares stay with their number when the basis moves, as in SOAP. Those of a direction that is new to the
    # sketch have not seen it: steps would be ten times as long as any of Adam's.
    return g.clamp_(-1, 1)


# -- coordinates of a side: along the sketch's directions U, and, if those are not all, the entries of the rest.
# [U, I − UUᵀ] times its transpose is I, so that nothing is lost or counted twice.


def _complete(U: torch.Tensor) -> bool:
    return bool(U.shape[-2] == U.shape[-1])


def _coordinates(U: torch.Tensor) -> int:
    length: int = U.shape[-2]
    return length if _complete(U) else length + U.shape[-1]


def _into(X: torch.Tensor, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """[U, I − UUᵀ]ᵀ X [V, I − VVᵀ]."""
    Y = X.new_empty(len(X), _coordinates(U), _coordinates(V))
    rows = Y[:, -X.shape[-2] :]
    rows[..., -X.shape[-1] :] = X
    _split_(rows.mT, V)  # first, as columns tend to be more than rows
    _split_(Y, U)
    return Y


def _back(Y: torch.Tensor, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """[U, I − UUᵀ] Y [V, I − VVᵀ]ᵀ."""
    return _back_(Y.clone(), U, V)


def _back_(Y: torch.Tensor, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """The same in Y's own memory."""
    return _join_(_join_(Y, U).mT, V).mT


def _split_(Y: torch.Tensor, U: torch.Tensor) -> None:
    """[U, I − UUᵀ]ᵀ times the last rows of Y, in place."""
    known, rest = _parts(Y, U)
    along = U.mT @ rest
    if _complete(U):
        rest.copy_(along)
    else:
        known.copy_(along)
        rest.baddbmm_(U, along, alpha=-1)


def _join_(Y: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
    """[U, I − UUᵀ] Y, in place of the last rows of Y."""
    known, rest = _parts(Y, U)
    return rest.copy_(U @ rest) if _complete(U) else rest.baddbmm_(U, known - U.mT @ rest)


def _parts(Y: torch.Tensor, U: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of coordinates along U, if there are others, and the rest."""
    length = U.shape[-2]
    known, rest = Y.split_with_sizes((Y.shape[-2] - length, length), -2)
    return known, rest
