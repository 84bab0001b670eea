"""SOAP with sketched sides: Adam along the directions that matter to a matrix's rows and columns."""

from __future__ import annotations

from sketchnewton.torch.base import Batch, Group, adam, options, torch
from sketchnewton.torch.sides import (
    Places,
    Side,
    SidedOptimizer,
    add_product_,
    apart,
    blocks_of,
    joined,
    plus_product,
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
        stacks = [(places, G, *_bases(places)) for places, G in stacked(batch, batch.gradients)]
        directions = _adam(
            batch, [places for places, *_ in stacks], [_into(G, U, V) for _, G, U, V in stacks]
        )
        steps: dict[tuple[int, int], torch.Tensor] = {}
        for (places, _, U, V), coordinates in zip(stacks, directions, strict=True):
            steps.update(zip(places.blocks, apart(_back(coordinates, U, V), places), strict=True))
        # After the step: in the basis of its own gradient alone, the first one has entries that are rounding
        # alone, and Adam would give them the length of the others.
        if batch.step % group["update_every"] == 0:
            for places, G, U, V in stacks:
                # Means are in coordinates, so that a step projects its gradient alone: they follow the basis.
                means = remembered(places, "mean")
                M = _back(together(means).clone(), U, V, orthogonal=True)
                update(Side(places, "left"), Side(places, "right"), G, group["betas"][1])
                torch._foreach_copy_(means, apart(_into(M, *_bases(places)), places))
        return [joined(steps, which, gradient, group) for which, gradient in enumerate(batch.gradients)]


def _bases(places: Places) -> tuple[torch.Tensor, torch.Tensor]:
    """The directions of both sides."""
    return together(remembered(places, "left_basis")), together(remembered(places, "right_basis"))


def _adam(batch: Batch, stacks: list[Places], coordinates: list[torch.Tensor]) -> list[torch.Tensor]:
    """Take gradients in coordinates into the moments; Adam's directions in the same coordinates."""
    means, squares = (
        [t for places in stacks for t in remembered(places, name)] for name in ("mean", "squares")
    )
    g = [each for places, stack in zip(stacks, coordinates, strict=True) for each in apart(stack, places)]
    # With eps=0, coordinates that no gradient had stay 0.
    eps = max(batch.group["eps"], torch.finfo(g[0].dtype).tiny)
    directions = adam(means, squares, g, batch.group["betas"], batch.step + 1, eps)
    # Squares stay with their number when the basis moves, as in SOAP. Those of a direction that is new to the
    # sketch have not seen it: steps would be ten times as long as any of Adam's.
    each = iter(directions)
    return [together([next(each) for _ in places.blocks]).clamp_(-1, 1) for places in stacks]


# -- coordinates of a side: along the sketch's directions U, and, if those are not all, the entries of the rest.
# [U, I − UUᵀ] times its transpose is I, so that nothing is lost or counted twice.


def _complete(U: torch.Tensor) -> bool:
    return bool(U.shape[-2] == U.shape[-1])


def _coordinates(U: torch.Tensor) -> int:
    length: int = U.shape[-2]
    return length if _complete(U) else length + U.shape[-1]


def _into(X: torch.Tensor, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """[U, I − UUᵀ]ᵀ X [V, I − VVᵀ], as a new tensor."""
    rotated = U.mT @ X if _complete(U) else X
    rotated = rotated @ V if _complete(V) else rotated
    if _complete(U) and _complete(V):
        return rotated
    Y = X.new_empty((*X.shape[:-2], _coordinates(U), _coordinates(V)))
    rows = Y[..., -X.shape[-2] :, :]
    rows[..., -X.shape[-1] :] = rotated
    if not _complete(V):  # first, as columns tend to be more than rows
        _split_(rows.mT, V)
    if not _complete(U):
        _split_(Y, U)
    return Y


def _back(Y: torch.Tensor, U: torch.Tensor, V: torch.Tensor, *, orthogonal: bool = False) -> torch.Tensor:
    """[U, I − UUᵀ] Y [V, I − VVᵀ]ᵀ; Y is overwritten.

    With `orthogonal` rests are known to have nothing along the directions, as those of a projection have.
    """
    if not _complete(U):
        Y = _join_(Y, U, orthogonal)
    if not _complete(V):
        Y = _join_(Y.mT, V, orthogonal).mT
    Y = U @ Y if _complete(U) else Y
    return Y @ V.mT if _complete(V) else Y


def _split_(Y: torch.Tensor, U: torch.Tensor) -> None:
    """[U, I − UUᵀ]ᵀ times the last rows of Y, in place of all."""
    known, rest = _parts(Y, U)
    along = U.mT @ rest
    known.copy_(along)
    add_product_(rest, U, along, alpha=-1)


def _join_(Y: torch.Tensor, U: torch.Tensor, orthogonal: bool) -> torch.Tensor:
    """[U, I − UUᵀ] Y, in place of the last rows of Y."""
    known, rest = _parts(Y, U)
    return add_product_(rest, U, known if orthogonal else plus_product(known, U.mT, rest, alpha=-1))


def _parts(Y: torch.Tensor, U: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of coordinates along U, and the rest."""
    known, rest = Y.split_with_sizes((U.shape[-1], U.shape[-2]), -2)
    return known, rest
