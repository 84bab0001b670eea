"""AdaGrad with more than a diagonal: one step, four ways to remember gradients."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from sketchnewton import _native
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

__all__ = ["AS_PUBLISHED", "AdaFD", "AdaFull", "AdaGP", "RadaGrad"]

# The options with which the optimizers take the papers' steps: AdaGP(parameters, lr=0.01, **AS_PUBLISHED).
AS_PUBLISHED = {"betas": (0.0, 1.0), "graft": None, "update_every": 1, "sigma": 0.1}

_Shape = tuple[int, ...]  # of a gradient: its length, perhaps after the number of outputs that share nothing
_WIDEST_STREAM = 2**40  # steps of one parameter before its random numbers would meet the next one's
_DEFAULT_RIDGE = 0.1  # σ of sigma=None, as a share of the largest singular value


class _Adaptive(Optimizer):
    """The step (σI + G^½)⁻¹ times the mean gradient. What is remembered of G: `basis`, its rows, and `values`."""

    _flags = ("maximize", "diagonal", "per_output")

    def _memory(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        shape = _shape(parameter, group)
        memory = fresh_moments(shape, group, adam=group["diagonal"])
        return memory if group["diagonal"] else {**memory, **self._sketch(shape, group, position)}

    def _direction(
        self, g: torch.Tensor, parameter: torch.Tensor, state: State, group: Group, position: int
    ) -> torch.Tensor:
        g = g.view(_shape(parameter, group))
        mean, adam = moments(g, state, group)
        if group["diagonal"]:
            return adam
        if state["step"] % group["update_every"] == 0:
            self._update(g, state, group, position)
        updates = 1 + state["step"] // group["update_every"]
        lengths = self._lengths(state["values"], total_weight(group["betas"][1], updates))
        sigma = group["sigma"]
        if sigma is None:
            sigma = (_DEFAULT_RIDGE * lengths.amax(-1, keepdim=True)).clamp(min=torch.finfo(g.dtype).tiny)
        inside, outside = self._factors(lengths, sigma, group)
        return grafted(_apply(state["basis"].mT, inside, outside, mean), mean, adam, group)

    @abstractmethod
    def _sketch(self, shape: _Shape, group: Group, position: int) -> dict[str, torch.Tensor]:
        """What is remembered of gradients of that shape, before the first of them."""

    @abstractmethod
    def _update(self, g: torch.Tensor, state: State, group: Group, position: int) -> None:
        """Take g, one vector or several, into `basis` and `values`."""

    def _lengths(self, values: torch.Tensor, total: float) -> torch.Tensor:
        """The singular values of G^½ along the basis, from `values`, those of S, and the rows' total weight."""
        return values / math.sqrt(total)

    def _factors(
        self, lengths: torch.Tensor, sigma: float | torch.Tensor, group: Group
    ) -> tuple[torch.Tensor, float | torch.Tensor]:
        """What the step multiplies components along the basis by, and what it multiplies the rest by."""
        return 1 / (sigma + lengths), 1 / sigma

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        if group["sigma"] is not None:
            checked("sigma", group["sigma"], positive=True)


class AdaGP(_Adaptive):
    """ADA-GP: AdaGrad in the metric of a Gaussian random projection of the gradients (ADA Algorithm 1).

    S ← S + r gᵀ with r ~ N(0, I/τ), w ← w − η (σI + (SᵀS)^½)⁻¹ g. For a tensor of d entries an update of the
    sketch costs O(τ²d) time, a step O(τd), the state O(τd) memory. The paper's steps are those of
    `AdaGP(…, **AS_PUBLISHED)`: no mean of gradients, nothing forgotten, an update in every step, η and σ to tune.
    The defaults need no tuning.

    `params` are the parameters to optimize, or groups of them.

    Parameters: `lr` is η. `sigma` is σ, the ridge of the metric: directions that the sketch does not know move by
    η/σ times the gradient; None is a tenth of the metric's largest singular value. `sketch_size` is τ. `betas`
    are the decay of the mean gradient, to which the metric is applied, and the decay of the sketch; with a second
    β of 1 the sketch sums. `graft` is the method whose step length each tensor takes: "adam", "sgd" (the length
    of the mean gradient), or None, the metric's own. `update_every` is how many steps share one update of the
    sketch, which takes the gradient of the first of them. `weight_decay` adds that much of the parameter to its
    gradient; `maximize` ascends. `diagonal` makes the metric the diagonal of Adam (with betas=(0, 1), of
    AdaGrad), with its `eps`. With `per_output` a tensor has a metric for each index of its first dimension: for
    each filter of a convolution, each output of a linear layer, each entry of a bias. Random numbers depend on
    `seed`, the place of the parameter and its count of steps alone. All may differ between param groups.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaGP([w], lr=0.5, sigma=1.0, sketch_size=2, graft=None)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.01)
    True
    """

    _integers = (("sketch_size", 1), ("seed", 0))

    def __init__(
        self,
        params: object,
        lr: float = 0.002,
        sigma: float | None = None,
        sketch_size: int = 20,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        graft: str | None = "adam",
        update_every: int = 10,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(params, options(locals()))

    def _sketch(self, shape: _Shape, group: Group, position: int) -> dict[str, torch.Tensor]:
        return _fresh_projection(shape, group["sketch_size"])

    def _update(self, g: torch.Tensor, state: State, group: Group, position: int) -> None:
        beta = group["betas"][1]
        rows = state["rotation"].shape[:-1]
        draws = _native.normal_row(group["seed"], position * _WIDEST_STREAM + state["step"], rows.numel())
        r = torch.from_numpy(draws / math.sqrt(rows[-1])).to(g.device, g.dtype).view(rows)
        _add_outer(state, r * math.sqrt(weight_of_new(beta)), g, decay=math.sqrt(beta))


class AdaFD(_Adaptive):
    """ADA-FD: AdaGrad in the metric of a Frequent Directions sketch of the gradients (ADA §3.2, Wan et al. 2018).

    As `AdaGP`, but nothing is random: the `sketch_size` − 1 strongest directions of the gradients are kept; at
    each update their squared singular values lose the `sketch_size`-th. With more rows than the gradients' rank
    it equals `AdaFull`. Parameters as in `AdaGP`.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaFD([w], lr=0.5, sigma=1.0, sketch_size=2, graft=None)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.01)
    True
    """

    _integers = (("sketch_size", 2),)

    def __init__(
        self,
        params: object,
        lr: float = 0.002,
        sigma: float | None = None,
        sketch_size: int = 20,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        graft: str | None = "adam",
        update_every: int = 10,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, options(locals()))

    def _sketch(self, shape: _Shape, group: Group, position: int) -> dict[str, torch.Tensor]:
        kept = min(group["sketch_size"] - 1, shape[-1])
        return {"basis": torch.zeros(*shape[:-1], kept, shape[-1]), "values": torch.zeros(*shape[:-1], kept)}

    def _update(self, g: torch.Tensor, state: State, group: Group, position: int) -> None:
        basis, values, beta = state["basis"], state["values"], group["betas"][1]
        kept = values.shape[-1]
        rows = (
            math.sqrt(beta) * values.unsqueeze(-1) * basis,
            math.sqrt(weight_of_new(beta)) * g.unsqueeze(-2),
        )
        V, s, _ = _right_singular(torch.cat(rows, -2))
        if kept < g.shape[-1]:  # else all directions fit, and nothing is lost
            last = s[..., -1:]
            s = ((s - last) * (s + last)).clamp(min=0).sqrt()  # (s² − last²)^½ without cancellation
        basis.copy_(V.mT[..., :kept, :])
        values.copy_(s[..., :kept])


class AdaFull(_Adaptive):
    """ADA-FULL: AdaGrad with the full matrix H = σI + (Σ ggᵀ)^½ (ADA §2).

    The reference that the others approximate: O(d³) time and O(d²) memory for a tensor of d entries. Computed in
    float64 where the device has it, whatever the dtype of the parameter, because the square root would halve the
    digits of float32. Parameters as in `AdaGP`.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaFull([w], lr=0.5, sigma=1.0, graft=None)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.01)
    True
    """

    def __init__(
        self,
        params: object,
        lr: float = 0.002,
        sigma: float | None = None,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        graft: str | None = "adam",
        update_every: int = 10,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, options(locals()))

    def _dtype(self, parameter: torch.Tensor, group: Group) -> torch.dtype:
        if group["diagonal"] or parameter.device.type == "mps":
            return super()._dtype(parameter, group)
        return torch.float64

    def _sketch(self, shape: _Shape, group: Group, position: int) -> dict[str, torch.Tensor]:
        return {"basis": torch.zeros(*shape, shape[-1]), "values": torch.zeros(shape)}

    def _update(self, g: torch.Tensor, state: State, group: Group, position: int) -> None:
        basis, values, beta = state["basis"], state["values"], group["betas"][1]
        G = basis.mT @ (beta * values.unsqueeze(-1) * basis)
        G.addcmul_(g.unsqueeze(-1), g.unsqueeze(-2), value=weight_of_new(beta))
        eigenvalues, V = torch.linalg.eigh(G)
        basis.copy_(V.mT)
        values.copy_(eigenvalues.clamp(min=0))

    def _lengths(self, values: torch.Tensor, total: float) -> torch.Tensor:
        return (values / total).sqrt()


class RadaGrad(_Adaptive):
    """RADAGRAD: AdaGrad in the range that a subsampled randomised Hadamard transform finds.

    Krummenacher et al., *Scalable adaptive stochastic optimization using random projections*, 2016 (Algorithm 2).
    G̃ ← G̃ + g(Πg)ᵀ with Π of τ rows; with G̃ = QR and R = WΣUᵀ, the step is η V(Σ^½ + σI)⁻¹Vᵀg in the directions
    V = QW and, the correction, η(g − VVᵀg) outside of them; with sigma=None the correction is that divided by σ.
    For a tensor of d entries an update of the sketch costs O(τ²d) time, a step O(τd), the state O(τd) memory. Π
    depends on `seed` and the place of the parameter. Other parameters as in `AdaGP`; but directions that the
    sketch does not know move by η times the gradient, whatever number σ is.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = RadaGrad([w], lr=0.5, sigma=1.0, sketch_size=2, graft=None)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.01)
    True
    """

    _integers = (("sketch_size", 1), ("seed", 0))

    def __init__(
        self,
        params: object,
        lr: float = 0.002,
        sigma: float | None = None,
        sketch_size: int = 20,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        graft: str | None = "adam",
        update_every: int = 10,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(params, options(locals()))

    def _sketch(self, shape: _Shape, group: Group, position: int) -> dict[str, torch.Tensor]:
        n = shape[-1]
        random = np.random.Generator(np.random.Philox(key=(group["seed"], position)))
        signs = 1 - 2 * random.integers(0, 2, n)
        rows = random.permutation(_power_of_two(n))[: min(group["sketch_size"], n)]
        return {
            **_fresh_projection(shape, len(rows)),
            "signs": torch.tensor(signs.tolist(), dtype=torch.int8),
            "rows": torch.tensor(rows.tolist(), dtype=torch.int64),
        }

    def _update(self, g: torch.Tensor, state: State, group: Group, position: int) -> None:
        # B = G̃ᵀQ of the paper is Rᵀ: its W and Σ make up G̃'s own decomposition.
        beta = group["betas"][1]
        projected = _project(g, state["signs"], state["rows"])
        _add_outer(state, weight_of_new(beta) * projected, g, decay=beta)

    def _lengths(self, values: torch.Tensor, total: float) -> torch.Tensor:
        return (values / total).sqrt()

    def _factors(
        self, lengths: torch.Tensor, sigma: float | torch.Tensor, group: Group
    ) -> tuple[torch.Tensor, float | torch.Tensor]:
        outside = 1.0 if group["sigma"] is not None else 1 / sigma
        known = lengths > (16 * torch.finfo(lengths.dtype).eps) ** 0.5 * lengths[..., :1]
        return torch.where(known, 1 / (sigma + lengths), outside), outside


# -- linear algebra


def _fresh_projection(shape: _Shape, rows: int) -> dict[str, torch.Tensor]:
    """S = 0, kept as rotation · diag(values) · basis, so that its decomposition is at hand between updates."""
    kept = min(rows, shape[-1])
    return {
        "basis": torch.zeros(*shape[:-1], kept, shape[-1]),
        "values": torch.zeros(*shape[:-1], kept),
        "rotation": torch.eye(rows)[:, :kept].repeat(*shape[:-1], 1, 1),
    }


def _add_outer(state: State, r: torch.Tensor, g: torch.Tensor, decay: float) -> None:
    """S ← decay · S + r gᵀ."""
    basis, values, rotation = state["basis"], state["values"], state["rotation"]
    S = rotation @ (decay * values.unsqueeze(-1) * basis)
    S.addcmul_(r.unsqueeze(-1), g.unsqueeze(-2))
    V, s, U = _right_singular(S)
    basis.copy_(V.mT)
    values.copy_(s)
    rotation.copy_(U)


def _right_singular(S: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """S = U diag(s) Vᵀ: V, as columns, the singular values, largest first, and U.

    By QR, then an SVD of what is small: as accurate as the SVD of S, where the eigenvectors of SSᵀ would lose half
    of the digits.
    """
    Q, R = torch.linalg.qr(S.mT)
    W, singular_values, Ut = torch.linalg.svd(R, full_matrices=False)
    return Q @ W, singular_values, Ut.mT


def _apply(
    V: torch.Tensor, inside: torch.Tensor, outside: float | torch.Tensor, g: torch.Tensor
) -> torch.Tensor:
    """V diag(inside) Vᵀg + outside (g − VVᵀg), for V with orthonormal columns.

    Not as g/σ − V(…)Vᵀg, which cancels once the metric is large against σ. What is left of g outside V is made
    orthogonal twice; components no larger than rounding count as zero, since 1/σ would blow them up.
    """
    inner = _times(V.mT, g)
    rest = g - _times(V, inner)
    rest = rest - _times(V, _times(V.mT, rest))
    rounding = 16 * torch.finfo(g.dtype).eps * g.norm(dim=-1, keepdim=True)
    inner = torch.where(inner.abs() > rounding, inner, 0)
    rest = torch.where(rest.norm(dim=-1, keepdim=True) > rounding, rest, 0)
    return _times(V, inside * inner) + outside * rest


def _times(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """The product of a matrix and a vector, or of as many matrices as vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _project(g: torch.Tensor, signs: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Πg for Π = τ^-½ (rows of a Hadamard matrix) diag(signs), so that E[ΠᵀΠ] = I, in O(d log d) time."""
    n = g.shape[-1]
    x = torch.nn.functional.pad(signs * g, (0, _power_of_two(n) - n))
    width = 1
    while width < x.shape[-1]:
        left, right = x.view(*x.shape[:-1], -1, 2, width).unbind(-2)
        x = torch.stack((left + right, left - right), -2).view(x.shape)
        width *= 2
    return x[..., rows] / math.sqrt(len(rows))


def _power_of_two(n: int) -> int:
    """The smallest one that is not below n."""
    return 1 << (n - 1).bit_length()


def _shape(parameter: torch.Tensor, group: Group) -> _Shape:
    """How a gradient is looked at: as one vector, or as one for each output."""
    if group["per_output"] and not group["diagonal"] and parameter.dim() > 0:
        return len(parameter), parameter[0].numel()
    return (parameter.numel(),)
