"""Matrices of few rows, S = W diag(s) V, kept decomposed: adding a row or an outer product, applying the metric.

V, the basis, is as long as the parameter, and is multiplied by small matrices only. All functions take one matrix,
or as many as there are outputs, in front.
"""

from __future__ import annotations

from sketchnewton.torch.base import Batch, State, torch

__all__ = ["add_outer", "apply", "apply_with_small_ridge", "decomposed", "fresh", "resolve", "rotate", "wide"]

_PART = 2**14  # columns that are rotated at once: small enough for a cache, large enough for a matrix product


def fresh(shape: tuple[int, ...], rows: int) -> dict[str, torch.Tensor]:
    """S = rotation · [diag(values); 0] · basis = 0, with `rows` rows, for gradients of `shape`."""
    kept = min(rows, shape[-1])
    return {
        "basis": torch.zeros(*shape[:-1], kept, shape[-1]),
        "values": torch.zeros(*shape[:-1], kept),
        "rotation": torch.eye(rows).repeat(*shape[:-1], 1, 1),
    }


def add_outer(batch: Batch, left: list[torch.Tensor], gradients: list[torch.Tensor], decay: float) -> None:
    """S ← decay · S + r gᵀ, for each r of `left` and its gradient."""
    found = [resolve(basis, g) for basis, g in zip(batch.memory("basis"), gradients, strict=True)]
    small = []
    for state, r, (coordinates, _) in zip(batch.states, left, found, strict=True):
        along = _combined(wide(state["rotation"]), wide(r))
        K = along.unsqueeze(-1) * wide(coordinates).unsqueeze(-2)
        kept = state["values"].shape[-1]
        K.diagonal(dim1=-2, dim2=-1)[..., :kept] += decay * state["values"]
        small.append(K)
    for state, (_, new), (U, s, Zt) in zip(batch.states, found, decomposed(small), strict=True):
        state["rotation"].copy_(wide(state["rotation"]) @ U)
        rotate(state, new, s, Zt, s)


def resolve(basis: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """g = coordinates · [basis; new]: the coordinates, and a unit vector orthogonal to the basis.

    Made orthogonal twice. If what is left of g is only rounding, its coordinate and the vector are zero.
    """
    inner = _coordinates(basis, g)
    rest = g - _combined(basis, inner)
    again = _coordinates(basis, rest)
    rest = rest - _combined(basis, again)
    length = rest.norm(dim=-1, keepdim=True)
    known = length > 16 * torch.finfo(g.dtype).eps * g.norm(dim=-1, keepdim=True)
    new = torch.where(known, rest / length.clamp(min=torch.finfo(g.dtype).tiny), 0)
    return torch.cat((inner + again, torch.where(known, length, 0)), -1), new


def decomposed(small: list[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The singular value decomposition of each matrix; those of one size together."""
    places: dict[tuple[int, ...], list[int]] = {}
    for i, K in enumerate(small):
        places.setdefault(tuple(K.shape[-2:]), []).append(i)
    found: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    for shape, alike in places.items():
        stacked = torch.cat([small[i].reshape(-1, *shape) for i in alike])
        counts = [small[i].shape[:-2].numel() for i in alike]
        parts = zip(*(part.split(counts) for part in torch.linalg.svd(stacked)), strict=True)
        for i, (U, s, Zt) in zip(alike, parts, strict=True):
            outer = small[i].shape[:-2]
            found[i] = tuple(part.reshape(*outer, *part.shape[1:]) for part in (U, s, Zt))
    return [found[i] for i in range(len(small))]


def rotate(state: State, new: torch.Tensor, s: torch.Tensor, Zt: torch.Tensor, values: torch.Tensor) -> None:
    """basis ← Zt · [basis; new], with `values`, as many as there are rows.

    Of rows whose singular value s is only rounding nothing is kept. On the way the basis, which has gathered
    rounding, is made orthonormal again by a step of Newton and Schulz's iteration, V ← (3I − VVᵀ)V/2.
    """
    basis = state["basis"]
    kept = basis.shape[-2]
    known = s[..., :kept] > 16 * torch.finfo(basis.dtype).eps * s[..., :1]
    Zt = torch.where(known.unsqueeze(-1), Zt[..., :kept, :], 0).to(basis.dtype)
    old, fresh = Zt[..., :kept], Zt[..., kept:]
    old = 1.5 * old - 0.5 * old @ (basis @ basis.mT)
    # In place, a part at a time: a second basis would cost more than the product.
    for part, direction in zip(basis.split(_PART, -1), new.split(_PART, -1), strict=True):
        part.copy_(old @ part + fresh * direction.unsqueeze(-2))
    state["values"].copy_(torch.where(known, values[..., :kept], 0))


def apply(
    basis: torch.Tensor, inside: torch.Tensor, outside: float | torch.Tensor, g: torch.Tensor
) -> torch.Tensor:
    """V diag(inside) Vᵀg + outside (g − VVᵀg), where V has the rows of `basis` as columns."""
    return outside * g + _combined(basis, (inside - outside) * _coordinates(basis, g))


def apply_with_small_ridge(
    basis: torch.Tensor, inside: torch.Tensor, outside: float | torch.Tensor, g: torch.Tensor
) -> torch.Tensor:
    """The same where `inside` may be far below `outside`, so that the form of `apply` would cancel.

    Components no larger than rounding count as zero, since `outside` would blow them up.
    """
    coordinates, new = resolve(basis, g)
    inner, rest = coordinates[..., :-1], coordinates[..., -1:]
    rounding = 16 * torch.finfo(g.dtype).eps * g.norm(dim=-1, keepdim=True)
    inner = torch.where(inner.abs() > rounding, inner, 0)
    return _combined(basis, inside * inner) + outside * rest * new


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In float64, where the device has it: what is small is computed in more digits than it is kept in."""
    return tensor if tensor.device.type == "mps" else tensor.double()


def _coordinates(rows: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """The product of each row with the vector."""
    return (vector.unsqueeze(-2) @ rows.mT).squeeze(-2)


def _combined(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The sum of the rows, with weights."""
    return (weights.unsqueeze(-2) @ rows).squeeze(-2)
