"""The optimizers: one step, four ways to remember gradients."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np

from sketchnewton import _native
from sketchnewton.core.parameters import checked

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "sketchnewton.torch needs PyTorch: pip install 'sketchnewton[torch]'", name="torch"
    ) from None

__all__ = ["AdaFD", "AdaFull", "AdaGP", "RadaGrad"]

_State = dict[str, Any]
_Group = dict[str, Any]
_Shape = tuple[int, ...]  # of a gradient: its length, perhaps after the number of outputs that share nothing
_WIDEST_STREAM = 2**40  # steps of one parameter before its random numbers would meet the next one's


class _Adaptive(torch.optim.Optimizer, ABC):
    """The step that all share: what surrounds `_direction`, which says what H⁻¹g is."""

    def add_param_group(self, param_group: _Group) -> None:
        """Add parameters with options of their own; options not given are those of the constructor."""
        self._check_options({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], object] | None = None) -> Any:
        """Move every parameter that has a gradient; return the loss of `closure`, if there is one.

        All gradients are checked before anything changes, so an error leaves parameters and state as they were.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(i, p, group) for i, p, group in self._parameters() if p.grad is not None and p.numel()]
        for position, parameter, _ in moving:
            self._check_gradient(position, parameter.grad)
        for position, parameter, group in moving:
            state = self.state[parameter]
            if not state:
                state.update(self._fresh(parameter, group, position, parameter.device))
            g = _gradient(parameter, group, self._dtype(parameter, group))
            direction = (_diagonal_direction if group["diagonal"] else self._direction)(
                g.reshape(_shape(parameter, group)), state, group, position
            )
            state["step"] += 1
            # The product is rounded to the parameter's dtype once, also if that is narrower than the direction's.
            parameter.sub_(direction.view(parameter.shape), alpha=float(group["lr"]))
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken: bit for bit, if the parameters are also as they were then.

        A state that does not fit the parameters, or is of another optimizer, is refused whole.
        """
        saved = state_dict["state"]
        restored = {}
        ids = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        groups = chain.from_iterable([group] * len(group["params"]) for group in state_dict["param_groups"])
        # Should there be more of one than of the other, PyTorch's own method says so below.
        for (position, parameter, _), name, group in zip(self._parameters(), ids, groups, strict=False):
            if not (state := saved.get(name)):
                continue
            if missing := self.defaults.keys() - group.keys():
                raise ValueError(
                    f"the saved options of parameter {position} lack {', '.join(sorted(missing))}: "
                    f"were they saved by {type(self).__name__}?"
                )
            self._check_options(group)
            fresh = self._fresh(parameter, group, position, torch.device("meta"))
            if _shapes(state) != _shapes(fresh):
                raise ValueError(
                    f"the saved state of parameter {position} does not fit: expected {_shapes(fresh)}, "
                    f"got {_shapes(state)}; was it saved by {type(self).__name__}, for the same parameters?"
                )
            # PyTorch would round it to the parameter's dtype, which is narrower for bfloat16, and share memory.
            restored[parameter] = {
                key: value.to(parameter.device, fresh[key].dtype, copy=True)
                if torch.is_tensor(value)
                else value
                for key, value in state.items()
            }
        super().load_state_dict(state_dict)
        self.state.update(restored)

    # -- what an optimizer says of itself

    @abstractmethod
    def _memory(self, shape: _Shape, group: _Group, position: int) -> dict[str, torch.Tensor]:
        """What is remembered of gradients of that shape, before the first of them."""

    @abstractmethod
    def _direction(self, g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
        """Take g, one vector or several, into the memory and return H⁻¹g.

        g may be the parameter's own gradient: it stays as it is.
        """

    def _dtype(self, parameter: torch.Tensor, group: _Group) -> torch.dtype:
        """What state is kept and computed in: never less than float32, as linear algebra needs."""
        return torch.promote_types(parameter.dtype, torch.float32)

    def _check_options(self, group: _Group) -> None:
        for name in ("lr", "weight_decay", "sigma", "eps"):
            checked(name, group[name], positive=name == "sigma")
        for name in ("maximize", "diagonal", "per_output"):
            if not isinstance(group[name], bool):
                raise ValueError(f"{name}={group[name]!r} is invalid: must be True or False")
        if "sketch_size" in group:
            _check_integer("sketch_size", group["sketch_size"], self._smallest_sketch)
        if "seed" in group:
            _check_integer("seed", group["seed"], 0)

    _smallest_sketch = 1

    # -- what follows from it

    def _parameters(self) -> Iterable[tuple[int, torch.Tensor, _Group]]:
        """All parameters with their group, numbered in the order in which they were given."""
        pairs = ((parameter, group) for group in self.param_groups for parameter in group["params"])
        return ((position, parameter, group) for position, (parameter, group) in enumerate(pairs))

    def _fresh(
        self, parameter: torch.Tensor, group: _Group, position: int, device: torch.device
    ) -> dict[str, Any]:
        shape, dtype = _shape(parameter, group), self._dtype(parameter, group)
        with torch.device(device):
            memory = (
                {"squares": torch.zeros(shape)} if group["diagonal"] else self._memory(shape, group, position)
            )
        floating = {name: tensor.to(dtype) for name, tensor in memory.items() if tensor.is_floating_point()}
        return {"step": 0, **memory, **floating}

    def _check_gradient(self, position: int, gradient: torch.Tensor) -> None:
        where = f"parameter {position} has a"
        if gradient.layout is not torch.strided:
            kind = str(gradient.layout).removeprefix("torch.")
            raise RuntimeError(
                f"{where} {kind} gradient: {type(self).__name__} takes dense ones only (sparse=False in the layer)"
            )
        if gradient.is_complex():
            raise RuntimeError(f"{where} complex gradient: {type(self).__name__} takes real ones only")
        if not bool(gradient.isfinite().all()):
            raise ValueError(f"{where} gradient with NaN or infinity: not learned (is lr too large?)")


class AdaGP(_Adaptive):
    """ADA-GP: AdaGrad in the metric of a Gaussian random projection of the gradients (ADA Algorithm 1).

    S ← S + r gᵀ with r ~ N(0, I/τ), w ← w − η (σI + (SᵀS)^½)⁻¹ g. For a tensor of d entries a step costs O(τ²d)
    time, the state O(τd) memory.

    Parameters: `lr` is η; `sigma` is σ, the ridge of the metric: directions that the sketch does not know move by
    η/σ times the gradient; `sketch_size` is τ. `weight_decay` adds that much of the parameter to its gradient;
    `maximize` ascends. `diagonal` makes the metric AdaGrad's: `eps` + (Σg²)^½ for each entry; `sigma` and
    `sketch_size` then do not matter. With `per_output` a tensor has a metric for each index of its first
    dimension: for each filter of a convolution, each output of a linear layer, each entry of a bias. Random
    numbers depend on `seed`, the place of the parameter and its count of steps alone. All may differ between param
    groups.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaGP([w], lr=0.5, sigma=1.0, sketch_size=2)
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
        lr: float = 0.01,
        sigma: float = 0.1,
        sketch_size: int = 20,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(params, _options(locals()))

    def _memory(self, shape: _Shape, group: _Group, position: int) -> dict[str, torch.Tensor]:
        return {"projection": torch.zeros(*shape[:-1], group["sketch_size"], shape[-1])}

    def _direction(self, g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
        S = state["projection"]
        rows = S.shape[:-1]
        draws = _native.normal_row(group["seed"], position * _WIDEST_STREAM + state["step"], rows.numel())
        r = torch.from_numpy(draws / math.sqrt(rows[-1])).to(S.device, S.dtype)
        S.addcmul_(r.view(*rows, 1), g.unsqueeze(-2))
        V, singular_values = _right_singular(S)
        return _apply(V, 1 / (group["sigma"] + singular_values), 1 / group["sigma"], g)


class AdaFD(_Adaptive):
    """ADA-FD: AdaGrad in the metric of a Frequent Directions sketch of the gradients (ADA §3.2, Wan et al. 2018).

    As `AdaGP`, but nothing is random: S keeps the `sketch_size` − 1 strongest directions of the gradients; at each
    step their squared singular values lose the `sketch_size`-th. With more rows than the gradients' rank it equals
    `AdaFull`.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaFD([w], lr=0.5, sigma=1.0, sketch_size=2)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (0.5 * (w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w - 1).abs().max() < 0.01)
    True
    """

    _smallest_sketch = 2

    def __init__(
        self,
        params: object,
        lr: float = 0.01,
        sigma: float = 0.1,
        sketch_size: int = 20,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, _options(locals()))

    def _memory(self, shape: _Shape, group: _Group, position: int) -> dict[str, torch.Tensor]:
        return {"directions": torch.zeros(*shape[:-1], min(group["sketch_size"] - 1, shape[-1]), shape[-1])}

    def _direction(self, g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
        S = state["directions"]
        kept = S.shape[-2]
        V, s = _right_singular(torch.cat((S, g.unsqueeze(-2)), -2))
        if kept < g.shape[-1]:  # else all directions fit, and nothing is lost
            last = s[..., -1:]
            s = ((s - last) * (s + last)).clamp(min=0).sqrt()  # (s² − last²)^½ without cancellation
        torch.mul(s[..., :kept, None], V.mT[..., :kept, :], out=S)
        return _apply(V, 1 / (group["sigma"] + s), 1 / group["sigma"], g)


class AdaFull(_Adaptive):
    """ADA-FULL: AdaGrad with the full matrix H = σI + (Σ ggᵀ)^½ (ADA §2).

    The reference that the others approximate: O(d³) time and O(d²) memory for a tensor of d entries. Computed in
    float64 where the device has it, whatever the dtype of the parameter, because the square root would halve the
    digits of float32. Parameters as in `AdaGP`.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = AdaFull([w], lr=0.5, sigma=1.0)
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
        lr: float = 0.01,
        sigma: float = 0.1,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, _options(locals()))

    def _dtype(self, parameter: torch.Tensor, group: _Group) -> torch.dtype:
        if group["diagonal"] or parameter.device.type == "mps":
            return super()._dtype(parameter, group)
        return torch.float64

    def _memory(self, shape: _Shape, group: _Group, position: int) -> dict[str, torch.Tensor]:
        return {"outer_products": torch.zeros(*shape, shape[-1])}

    def _direction(self, g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
        G = state["outer_products"].addcmul_(g.unsqueeze(-1), g.unsqueeze(-2))
        eigenvalues, V = torch.linalg.eigh(G)
        return _apply(V, 1 / (group["sigma"] + eigenvalues.clamp(min=0).sqrt()), 1 / group["sigma"], g)


class RadaGrad(_Adaptive):
    """RADAGRAD: AdaGrad in the range that a subsampled randomised Hadamard transform finds.

    Krummenacher et al., *Scalable adaptive stochastic optimization using random projections*, 2016 (Algorithm 2).
    G̃ ← G̃ + g(Πg)ᵀ with Π of τ rows; with G̃ = QR and R = WΣUᵀ, the step is η V(Σ^½ + σI)⁻¹Vᵀg in the directions
    V = QW and, the correction, η(g − VVᵀg) outside of them. For a tensor of d entries a step costs O(τ²d) time,
    the state O(τd) memory. Π depends on `seed` and the place of the parameter. Other parameters as in `AdaGP`; but
    directions that the sketch does not know move by η times the gradient, whatever σ is.

    >>> w = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = RadaGrad([w], lr=0.5, sigma=1.0, sketch_size=2)
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
        lr: float = 0.01,
        sigma: float = 0.1,
        sketch_size: int = 20,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
        diagonal: bool = False,
        per_output: bool = False,
        eps: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(params, _options(locals()))

    def _memory(self, shape: _Shape, group: _Group, position: int) -> dict[str, torch.Tensor]:
        n = shape[-1]
        random = np.random.Generator(np.random.Philox(key=(group["seed"], position)))
        signs = 1 - 2 * random.integers(0, 2, n)
        rows = random.permutation(_power_of_two(n))[: min(group["sketch_size"], n)]
        return {
            "range": torch.zeros(*shape[:-1], len(rows), n),
            "signs": torch.tensor(signs.tolist(), dtype=torch.int8),
            "rows": torch.tensor(rows.tolist(), dtype=torch.int64),
        }

    def _direction(self, g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
        projected = _project(g, state["signs"], state["rows"])
        found = state["range"].addcmul_(projected.unsqueeze(-1), g.unsqueeze(-2))  # G̃ᵀ
        V, s = _right_singular(found)  # B = G̃ᵀQ of the paper is Rᵀ: its W and Σ make up G̃'s own decomposition
        known = s > 16 * torch.finfo(s.dtype).eps * s[..., :1]
        return _apply(V, torch.where(known, 1 / (group["sigma"] + s.sqrt()), 1.0), 1.0, g)


# -- linear algebra


def _right_singular(S: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The right singular vectors of a wide S, as columns, and the singular values, largest first.

    By QR, then an SVD of what is small: as accurate as the SVD of S, where the eigenvectors of SSᵀ would lose half
    of the digits.
    """
    Q, R = torch.linalg.qr(S.mT)
    W, singular_values, _ = torch.linalg.svd(R, full_matrices=False)
    return Q @ W, singular_values


def _apply(V: torch.Tensor, inside: torch.Tensor, outside: float, g: torch.Tensor) -> torch.Tensor:
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


def _diagonal_direction(g: torch.Tensor, state: _State, group: _Group, position: int) -> torch.Tensor:
    """AdaGrad's own H: eps + (Σg²)^½ for each entry."""
    return g / (state["squares"].addcmul_(g, g).sqrt() + group["eps"])


def _gradient(parameter: torch.Tensor, group: _Group, dtype: torch.dtype) -> torch.Tensor:
    """The gradient of what is minimised, as a vector; perhaps the memory of parameter.grad itself."""
    gradient = parameter.grad.to(dtype)
    if group["maximize"]:
        gradient = -gradient
    if group["weight_decay"]:
        gradient = gradient.add(parameter.to(dtype), alpha=group["weight_decay"])
    return gradient.reshape(-1)


# -- options and state


def _shape(parameter: torch.Tensor, group: _Group) -> _Shape:
    """How a gradient is looked at: as one vector, or as one for each output."""
    if group["per_output"] and not group["diagonal"] and parameter.dim() > 0:
        return len(parameter), parameter[0].numel()
    return (parameter.numel(),)


def _options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor that are options of a param group."""
    return {name: value for name, value in arguments.items() if name not in {"self", "params", "__class__"}}


def _shapes(state: _State) -> dict[str, tuple[int, ...]]:
    return {name: tuple(getattr(value, "shape", ())) for name, value in state.items()}


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} is invalid: must be an integer >= {least}")
