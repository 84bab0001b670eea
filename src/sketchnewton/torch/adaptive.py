"""AdaGrad with more than a diagonal: one step, four ways to remember gradients."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from sketchnewton import _native
from sketchnewton.core.parameters import checked
from sketchnewton.torch import low_rank
from sketchnewton.torch.base import (
    Batch,
    Group,
    Optimizer,
    State,
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

_WIDEST_STREAM = 2**40  # steps of one parameter before its random numbers would meet the next one's
_DEFAULT_RIDGE = 0.1  # σ of sigma=None, as a share of the largest singular value


class _Adaptive(Optimizer):
    """The step (σI + G^½)⁻¹ times the mean gradient. What is remembered of G: `basis`, its rows, and `values`.

    Parameters of all: `sigma` is σ; with `per_output` there is a G for each index of a tensor's first dimension.
    """

    _flags = ("maximize", "diagonal", "per_output")

    def _preconditioned(self, batch: Batch) -> list[torch.Tensor]:
        group, (means, adam) = batch.group, moments(batch)
        if batch.step % group["update_every"] == 0:
            self._update(batch, [_vectors(g, group) for g in batch.gradients])
        total = total_weight(group["betas"][1], 1 + batch.step // group["update_every"])
        directions = [
            self._direction(_vectors(mean, group), state, group, total).view(mean.shape)
            for mean, state in zip(means, batch.states, strict=True)
        ]
        return grafted(directions, means, adam, group["graft"])

    def _direction(self, mean: torch.Tensor, state: State, group: Group, total: float) -> torch.Tensor:
        lengths = self._lengths(state["values"], total)
        if group["sigma"] is not None:
            return low_rank.apply_with_small_ridge(
                state["basis"], *self._factors(lengths, group["sigma"], group), mean
            )
        # The mean of ggᵀ is at least that of g times its transpose. The sketch may know less: nothing, if its
        # gradient was zero, as a layer's is at first if the layer above it starts at zero.
        largest = torch.maximum(lengths.amax(-1, keepdim=True), mean.norm(dim=-1, keepdim=True))
        sigma = (_DEFAULT_RIDGE * largest).clamp(min=torch.finfo(mean.dtype).tiny)
        return low_rank.apply(state["basis"], *self._factors(lengths, sigma, group), mean)

    @abstractmethod
    def _update(self, batch: Batch, gradients: list[torch.Tensor]) -> None:
        """Take each gradient, one vector or several, into its `basis` and `values`."""

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
    each filter of a convolution, each output of a linear layer, each entry of a bias. `foreach=False` works on one
    tensor at a time, which takes less memory. Random numbers depend on `seed`, the place of the parameter and its
    count of steps alone. All may differ between param groups. `unsupported` is what other optimizers take and
    these refuse: `fused`, `capturable`, `differentiable`.

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
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        shape = _vectors(parameter, group).shape
        return low_rank.fresh(shape, group["sketch_size"])

    def _update(self, batch: Batch, gradients: list[torch.Tensor]) -> None:
        beta, seed = batch.group["betas"][1], batch.group["seed"]
        projected = []
        for position, rotation in zip(batch.positions, batch.memory("rotation"), strict=True):
            rows = rotation.shape[:-1]
            draws = _native.normal_row(seed, position * _WIDEST_STREAM + batch.step, rows.numel())
            draws *= math.sqrt(weight_of_new(beta) / rows[-1])
            projected.append(torch.from_numpy(draws).to(rotation).view(rows))
        low_rank.add_outer(batch, projected, gradients, decay=math.sqrt(beta))


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
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        shape = _vectors(parameter, group).shape
        kept = min(group["sketch_size"] - 1, shape[-1])
        return {"basis": torch.zeros(*shape[:-1], kept, shape[-1]), "values": torch.zeros(*shape[:-1], kept)}

    def _update(self, batch: Batch, gradients: list[torch.Tensor]) -> None:
        beta = batch.group["betas"][1]
        found = [
            low_rank.resolve(basis, g) for basis, g in zip(batch.memory("basis"), gradients, strict=True)
        ]
        small = []
        for values, (coordinates, _) in zip(batch.memory("values"), found, strict=True):
            old = torch.nn.functional.pad(low_rank.wide(math.sqrt(beta) * values).diag_embed(), (0, 1))
            new = math.sqrt(weight_of_new(beta)) * low_rank.wide(coordinates).unsqueeze(-2)
            small.append(torch.cat((old, new), -2))
        parts = zip(batch.states, found, low_rank.decomposed(small), strict=True)
        for state, (_, direction), (_, s, Zt) in parts:
            lost = 0.0
            if s.shape[-1] <= direction.shape[-1]:  # else all directions fit, and nothing is lost
                lost = s[..., -1:]
            shrunk = ((s - lost) * (s + lost)).clamp(min=0).sqrt()  # (s² − lost²)^½ without cancellation
            low_rank.rotate(state, direction, s, Zt, shrunk)


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
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    def _dtype(self, parameter: torch.Tensor, group: Group) -> torch.dtype:
        if group["diagonal"] or parameter.device.type == "mps":
            return super()._dtype(parameter, group)
        return torch.float64

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        shape = _vectors(parameter, group).shape
        return {"basis": torch.zeros(*shape, shape[-1]), "values": torch.zeros(shape)}

    def _update(self, batch: Batch, gradients: list[torch.Tensor]) -> None:
        beta = batch.group["betas"][1]
        for state, g in zip(batch.states, gradients, strict=True):
            basis, values = state["basis"], state["values"]
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
        foreach: bool | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__(params, options(locals()), unsupported)

    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        shape = _vectors(parameter, group).shape
        n = shape[-1]
        random = np.random.Generator(np.random.Philox(key=(group["seed"], position)))
        signs = 1 - 2 * random.integers(0, 2, n)
        rows = random.permutation(_power_of_two(n))[: min(group["sketch_size"], n)]
        return {
            **low_rank.fresh(shape, len(rows)),
            "signs": torch.tensor(signs.tolist(), dtype=torch.int8),
            "rows": torch.tensor(rows.tolist(), dtype=torch.int64),
        }

    def _update(self, batch: Batch, gradients: list[torch.Tensor]) -> None:
        # B = G̃ᵀQ of the paper is Rᵀ: its W and Σ make up G̃'s own decomposition.
        beta = batch.group["betas"][1]
        projected = [
            weight_of_new(beta) * _project(g, state["signs"], state["rows"])
            for g, state in zip(gradients, batch.states, strict=True)
        ]
        low_rank.add_outer(batch, projected, gradients, decay=beta)

    def _lengths(self, values: torch.Tensor, total: float) -> torch.Tensor:
        return (values / total).sqrt()

    def _factors(
        self, lengths: torch.Tensor, sigma: float | torch.Tensor, group: Group
    ) -> tuple[torch.Tensor, float | torch.Tensor]:
        return 1 / (sigma + lengths), 1.0 if group["sigma"] is not None else 1 / sigma


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


def _vectors(tensor: torch.Tensor, group: Group) -> torch.Tensor:
    """How a gradient is looked at: as one vector, or as one for each output."""
    return tensor.reshape(len(tensor), -1) if group["per_output"] and tensor.dim() else tensor.reshape(-1)
