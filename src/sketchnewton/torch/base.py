"""What the optimizers share: the order of a step, checks before anything changes, options and exact resuming."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from sketchnewton.core.extras import needs
from sketchnewton.core.parameters import checked

with needs("torch", "sketchnewton.torch needs PyTorch", "torch"):
    import torch

__all__ = [
    "Batch",
    "Group",
    "Optimizer",
    "State",
    "adam",
    "grafted",
    "moments",
    "options",
    "torch",  # imported here alone, with the error that names the extra
    "total_weight",
    "weight_of_new",
]

_GRAFTS = ("adam", "sgd", None)
_FUSED = frozenset({"cpu"})  # devices on which the kernel of Adam(fused=True) is used

State = dict[str, Any]
Group = dict[str, Any]

# What torch.optim's optimizers take and these do not: said plainly, instead of an unexpected keyword.
_REFUSED = {
    "fused": "the fused kernel of processors is used by itself; foreach=True batches",
    "differentiable": "steps are taken without autograd",
    "capturable": "steps count on the host and decompose matrices, which a CUDA graph cannot hold",
}


class Batch(NamedTuple):
    """Parameters that move together: of one group, kind, dtype, device and number of steps."""

    group: Group
    diagonal: bool
    step: int
    positions: list[int]
    parameters: list[torch.Tensor]
    states: list[State]
    gradients: list[torch.Tensor]
    """Of what is minimised, contiguous; perhaps the memory of parameter.grad itself."""

    def memory(self, name: str) -> list[torch.Tensor]:
        """One tensor of each state."""
        return [state[name] for state in self.states]


class Optimizer(torch.optim.Optimizer, ABC):
    """A step that moves every parameter by −lr times a direction, which the subclass says.

    Parameters of all: `params` are parameters or param groups. `lr` is the step size; `betas` are the decay of the
    mean gradient and of the second moments; `graft` is the method whose step length each tensor takes;
    `update_every` is how many steps share one update of the sketches; `weight_decay` adds that much of the
    parameter to its gradient; `maximize` ascends; `diagonal` is a step size per entry, with Adam's `eps`;
    `foreach=False` works on one tensor at a time.
    """

    def __init__(self, params: object, defaults: dict[str, Any], unsupported: dict[str, object]) -> None:
        self._refuse(unsupported)
        if unknown := unsupported.keys() - _REFUSED.keys():
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own; options not given are those of the constructor."""
        self._refuse(param_group)
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
        self._check_gradients([(i, p.grad) for i, p, _ in moving])
        for batch in self._batches(moving):
            directions = _diagonal_directions(batch) if batch.diagonal else self._preconditioned(batch)
            lr = batch.group["lr"]
            if torch.is_tensor(lr):  # stays where it is: no wait for its value, no new trace for each value
                torch._foreach_mul_(directions, lr)
                lr = 1.0
            for state in batch.states:
                state["step"] += 1
            # Rounded to the parameter's dtype once, also if that is narrower than the direction's.
            torch._foreach_sub_(batch.parameters, directions, alpha=lr)
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
            if "graft" in group.keys() - self.defaults.keys():
                raise ValueError(
                    f"the saved options of parameter {position} have graft: were they saved by "
                    f"{type(self).__name__}?"
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
                key: value.to(parameter.device, fresh[key].dtype, copy=True).contiguous()
                if torch.is_tensor(value)
                else value
                for key, value in state.items()
            }
        super().load_state_dict(state_dict)
        self.state.update(restored)

    # -- what an optimizer says of itself

    @abstractmethod
    def _sketch(self, parameter: torch.Tensor, group: Group, position: int) -> dict[str, torch.Tensor]:
        """What is remembered of a parameter's gradients beside the moments, before the first of them."""

    @abstractmethod
    def _preconditioned(self, batch: Batch) -> list[torch.Tensor]:
        """Take the gradients into moments and sketches; the directions, perhaps grafted, as new tensors."""

    def _moments(self, group: Group) -> tuple[str, ...]:
        """The moments of a parameter with a sketch, which have its shape."""
        return ("mean", "squares") if group["graft"] == "adam" else ("mean",)

    def _diagonal(self, parameter: torch.Tensor, group: Group) -> bool:
        """Whether a parameter has a step size per entry and no sketch."""
        return bool(group["diagonal"])

    def _dtype(self, parameter: torch.Tensor, group: Group) -> torch.dtype:
        """What state is kept and computed in: never less than float32, as linear algebra needs."""
        return torch.promote_types(parameter.dtype, torch.float32)

    _flags: tuple[str, ...] = ("maximize", "diagonal")
    _integers: tuple[tuple[str, int], ...] = ()  # options that count something, and the least they may be

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay", "eps"):
            checked(name, group[name])
        for name in self._flags:
            if not isinstance(group[name], bool):
                raise ValueError(f"{name}={group[name]!r} is invalid: must be True or False")
        for name, least in (*self._integers, ("update_every", 1)):
            _check_integer(name, group[name], least)
        if group["foreach"] not in (None, True, False):
            raise ValueError(f"foreach={group['foreach']!r} is invalid: must be True, False or None")
        _check_betas(group["betas"])
        if "graft" in group and "graft" not in self.defaults:
            raise ValueError(f"{type(self).__name__} has no graft: leave it out")
        if group.get("graft") not in _GRAFTS:
            raise ValueError(f"graft={group['graft']!r} is invalid: must be 'adam', 'sgd' or None")

    # -- what follows from it

    def _refuse(self, options: dict[str, Any]) -> None:
        for name, reason in _REFUSED.items():
            if options.get(name):
                raise ValueError(f"{name}=True is not supported by {type(self).__name__}: {reason}")

    def _batches(self, moving: list[tuple[int, torch.Tensor, Group]]) -> Iterable[Batch]:
        """Parameters that can move together; with foreach=False each by itself."""
        batches: dict[object, Batch] = {}
        for position, parameter, group in moving:
            state = self.state[parameter]
            if not state:
                state.update(self._fresh(parameter, group, position, parameter.device))
            dtype = self._dtype(parameter, group)
            diagonal, step = self._diagonal(parameter, group), state["step"]
            alone = position if group["foreach"] is False else None
            key = (id(group), diagonal, step, dtype, parameter.device, alone)
            if key not in batches:
                batches[key] = Batch(group, diagonal, step, [], [], [], [])
            batch = batches[key]
            batch.positions.append(position)
            batch.parameters.append(parameter)
            batch.states.append(state)
            batch.gradients.append(_gradient(parameter, group, dtype))
        return batches.values()

    def _parameters(self) -> Iterable[tuple[int, torch.Tensor, Group]]:
        """All parameters with their group, numbered in the order in which they were given."""
        pairs = ((parameter, group) for group in self.param_groups for parameter in group["params"])
        return ((position, parameter, group) for position, (parameter, group) in enumerate(pairs))

    @torch._disable_dynamo  # made once: torch.compile has nothing to gain from it, and NumPy's generators to lose
    def _fresh(
        self, parameter: torch.Tensor, group: Group, position: int, device: torch.device
    ) -> dict[str, Any]:
        dtype = self._dtype(parameter, group)
        diagonal = self._diagonal(parameter, group)
        names = ("mean", "squares") if diagonal else self._moments(group)
        with torch.device(device):
            memory = {name: torch.zeros(parameter.shape) for name in names}
            if not diagonal:
                memory.update(self._sketch(parameter, group, position))
        floating = {name: tensor.to(dtype) for name, tensor in memory.items() if tensor.is_floating_point()}
        return {"step": 0, **memory, **floating}

    def _check_gradients(self, gradients: list[tuple[int, torch.Tensor]]) -> None:
        for position, gradient in gradients:
            where = f"parameter {position} has a"
            if gradient.layout is not torch.strided:
                kind = str(gradient.layout).removeprefix("torch.")
                raise RuntimeError(
                    f"{where} {kind} gradient: {type(self).__name__} takes dense ones only "
                    "(sparse=False in the layer)"
                )
            if gradient.is_complex():
                raise RuntimeError(f"{where} complex gradient: {type(self).__name__} takes real ones only")
        # One answer from each device for all of its tensors. A sum is finite only if all terms are: one pass,
        # where asking each term takes several. Finite terms may overflow, so the terms have the last word.
        devices: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
        for position, gradient in gradients:
            devices.setdefault(gradient.device, []).append((position, gradient))
        for found in devices.values():
            sums = [g.sum(dtype=torch.promote_types(g.dtype, torch.float32)) for _, g in found]
            if math.isfinite(torch.stack(sums).sum()):
                continue
            for position, gradient in found:
                if not bool(gradient.isfinite().all()):
                    raise ValueError(
                        f"parameter {position} has a gradient with NaN or infinity: "
                        "not learned (is lr too large?)"
                    )


# -- moments: what the metric is applied to, and whose step length is taken


def moments(batch: Batch) -> tuple[list[torch.Tensor], list[torch.Tensor] | None]:
    """Take the gradients into the moments. The mean gradients, and the directions of Adam if squares are kept."""
    group, count, means = batch.group, batch.step + 1, batch.memory("mean")
    beta1, directions = group["betas"][0], None
    if "squares" in batch.states[0]:
        directions = adam(
            means, batch.memory("squares"), batch.gradients, group["betas"], count, group["eps"]
        )
    else:
        torch._foreach_lerp_(means, batch.gradients, 1 - beta1)
    return list(torch._foreach_div(means, 1 - beta1**count)), directions


def _diagonal_directions(batch: Batch) -> list[torch.Tensor]:
    group, (means, squares) = batch.group, (batch.memory("mean"), batch.memory("squares"))
    return adam(means, squares, batch.gradients, group["betas"], batch.step + 1, group["eps"])


def adam(
    means: list[torch.Tensor],
    squares: list[torch.Tensor],
    gradients: list[torch.Tensor],
    betas: tuple[float, float],
    count: int,
    eps: float,
) -> list[torch.Tensor]:
    """Take the `count`-th gradients into the moments; the directions of Adam, as new tensors.

    With a second β of 1 squares are summed: with a first one of 0 that is AdaGrad's direction.
    """
    (beta1, beta2), total = betas, total_weight(betas[1], count)
    if beta2 < 1 and gradients[0].device.type in _FUSED:
        # One pass, where the operations below take eight. It takes memory for contiguous without a question.
        directions = [torch.zeros_like(g) for g in gradients]
        # In plain float32, whatever the defaults of PyTorch are: the kernel reads it as such.
        steps = [torch.full((), float(count), dtype=torch.float32, device=gradients[0].device)] * len(
            gradients
        )
        torch._fused_adam_(
            *(directions, gradients, means, squares, [], steps),
            **{"lr": -1.0, "beta1": beta1, "beta2": beta2, "weight_decay": 0.0, "eps": eps},
            **{"amsgrad": False, "maximize": False},
        )
        return directions
    torch._foreach_lerp_(means, gradients, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, gradients, gradients, weight_of_new(beta2))
    directions = list(torch._foreach_sqrt(squares))
    # In place from here on: a new tensor costs more than a pass.
    torch._foreach_div_(directions, total**0.5)
    torch._foreach_add_(directions, eps)
    torch._foreach_reciprocal_(directions)
    torch._foreach_mul_(directions, means)
    torch._foreach_div_(directions, 1 - beta1**count)
    return directions


def grafted(
    directions: list[torch.Tensor],
    means: list[torch.Tensor],
    adam: list[torch.Tensor] | None,
    graft: str | None,
) -> list[torch.Tensor]:
    """The directions, each with the length of another method's step, if `graft` names one."""
    if graft is None:
        return directions
    lengths = torch._foreach_norm(means if adam is None or graft == "sgd" else adam)
    own = torch._foreach_norm(directions)
    torch._foreach_clamp_min_(own, torch.finfo(own[0].dtype).tiny)
    torch._foreach_mul_(directions, torch._foreach_div(lengths, own))
    return directions


def weight_of_new(beta: float) -> float:
    """The weight of a new term beside terms that decay by `beta`: of a mean, or with β = 1 of a sum."""
    return 1 - beta if beta < 1 else 1.0


def total_weight(beta: float, count: int) -> float:
    """What `count` such weights add up to, if their sum is a mean; 1 if it is a sum."""
    return 1 - beta**count if beta < 1 else 1.0


# -- options and state


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} is invalid: must be an integer >= {least}")


def _check_betas(betas: object) -> None:
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(f"betas={betas!r} is invalid: must be two numbers")
    for i, beta in enumerate(betas):
        checked(f"betas[{i}]", beta, positive=i == 1)
    if betas[0] >= 1 or betas[1] > 1:
        raise ValueError(f"betas={betas!r} is invalid: the first must be below 1, the second at most 1")


def options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor that are options of a param group."""
    others = {"self", "params", "unsupported", "__class__"}
    return {name: value for name, value in arguments.items() if name not in others}


def _gradient(parameter: torch.Tensor, group: Group, dtype: torch.dtype) -> torch.Tensor:
    gradient = parameter.grad.to(dtype)
    if group["maximize"]:
        gradient = -gradient
    if group["weight_decay"]:
        gradient = gradient.add(parameter.to(dtype), alpha=group["weight_decay"])
    return gradient.contiguous()


def _shapes(state: State) -> dict[str, tuple[int, ...]]:
    return {name: tuple(getattr(value, "shape", ())) for name, value in state.items()}
