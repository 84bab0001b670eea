"""What a loss is, and where to find one by its name.

A loss ℓ(p, y) scores the prediction p = wᵀx against the label y. Learners need its derivative in p and two
constants over bounded predictions |p| ≤ C: the curvature σ(C) and the Lipschitz constant L(C) (Assumptions 2
and 1 of Luo, Agarwal, Cesa-Bianchi and Langford, "Efficient Second Order Online Learning by Sketching").

>>> loss = get_loss("quantile:0.75")
>>> loss.spec, loss.parameter
('quantile:0.75', 0.75)
>>> loss.value([0.0, 3.0], [1.0, 1.0]).tolist()
[0.75, 0.5]
>>> get_loss("squared").curvature(0.5)
0.5

To add a loss: write its class in a module of this package that has the loss's name (`squared_hinge.py` has
`SquaredHinge`), with the four methods `_value`, `_derivative`, `_curvature` and `_lipschitz` and the facts that
differ from those of its base class; add its formulas and its name to `native/core/losses.hpp`. Nothing else asks
which loss it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache

from sketchnewton import _native
from sketchnewton.core.batch import contiguous
from sketchnewton.core.hints import ClassVar, Literal, Self
from sketchnewton.core.names import LOSSES
from sketchnewton.core.spelling import closest
from sketchnewton.core.types import ArrayLike, Floats, np

__all__ = ["Line", "Loss", "MarginLoss", "ResidualLoss", "get_loss", "inverse_square", "loss_class"]

Line = tuple[Floats, Floats]
"""Slope and offset of a straight line for each label."""


class Loss(ABC):
    """A convex loss of a prediction. Losses of the same class and `parameter` are equal and hash alike.

    `parameter` is the one number that some losses have (`parameter_name` says which: tau of the quantile
    loss, delta of the Huber loss), 0.0 otherwise. All methods take scalars or arrays and compute in float64,
    elementwise.
    """

    name: ClassVar[str]
    parameter_name: ClassVar[str] = ""
    default_parameter: ClassVar[float] = 0.0

    # -- labels

    sign_labels: ClassVar[bool] = False
    """Are −1 and +1 the only labels?"""
    label_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """The least and the largest label, where they are numbers."""
    shift_invariant: ClassVar[bool] = False
    """Does it depend on p − y alone? Then the labels may have any origin and, with `in_unit`, any unit."""

    # -- predictions

    link_kind: ClassVar[Literal["identity", "logistic", "log"]] = "identity"
    """Of what the prediction is the identity, the log odds, the logarithm."""
    link_cap: ClassVar[float] = math.inf
    """The link of larger predictions is that of this one."""
    softmax: ClassVar[bool] = False
    """Is the cross-entropy of a softmax its form for several classes?"""
    class_bound: ClassVar[float] = 1.0
    """The bound C on predictions that suits labels −1 and +1."""

    # -- curvature

    smoothness: ClassVar[float] = math.inf
    """The largest second derivative, infinite at a kink: the scale at which the loss bends."""
    curved: ClassVar[bool] = False
    """Is σ(C) > 0 for every bound C?"""

    # Not a dataclass: importing what makes them would take longer than all the rest of this module.
    parameter: float
    labels: _native.LabelRule
    """Which labels it takes."""

    def __init__(self, parameter: float | None = None) -> None:
        number = float(self.default_parameter if parameter is None else parameter)
        rule = _native.LabelRule.signs() if self.sign_labels else _native.LabelRule.numbers(*self.label_range)
        object.__setattr__(self, "parameter", number)
        object.__setattr__(self, "labels", rule)
        self._check()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a loss is not changed: make another with {name}={value!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a loss keeps its {name}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.parameter,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.parameter == self.parameter

    def __hash__(self) -> int:
        return hash((type(self), self.parameter))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.parameter!r})"
            if self.parameter_name
            else f"{type(self).__name__}()"
        )

    @property
    def spec(self) -> str:
        """The text that `get_loss` turns back into this very loss, such as `"huber:0.5"`."""
        return f"{self.name}:{self.parameter!r}" if self.parameter_name else self.name

    @property
    def compiled(self) -> bool:
        """Do the kernels know it? They do not know a loss of somebody's own."""
        return self.name in LOSSES and type(self) is loss_class(self.name)

    @property
    def code(self) -> int:
        """Its place in the kernels' table of losses."""
        if self.name not in LOSSES:
            raise ValueError(f"loss={self.spec!r} is invalid: it is not compiled, so no learner can use it")
        return LOSSES.index(self.name)

    # -- value and slope

    def value(self, prediction: ArrayLike, label: ArrayLike) -> Floats:
        """ℓ(p, y)."""
        return self._value(np.asarray(prediction, np.float64), np.asarray(label, np.float64))

    def derivative(self, prediction: ArrayLike, label: ArrayLike) -> Floats:
        """∂ℓ/∂p. At a kink it is 0, a subgradient there: a prediction that is already best is not moved."""
        return self._derivative(np.asarray(prediction, np.float64), np.asarray(label, np.float64))

    def link(self, prediction: ArrayLike) -> Floats:
        """The prediction on the scale of the answer.

        The probability of +1 for logistic, the expected count for poisson. For all other losses it is the
        prediction itself; for the hinge losses that is the margin, whose sign is the class.
        """
        return self._link(np.asarray(prediction, np.float64))

    def lines(self, labels: Floats) -> tuple[Line, Line] | None:
        """The two straight lines of p whose larger value is the loss; None if it is no such loss."""
        return None

    # -- constants

    def curvature(self, bound: float | None) -> float:
        """σ(C), the largest σ ≥ 0 that Assumption 2 allows for all |u|, |v| ≤ C = `bound`.

        ℓ(v) ≥ ℓ(u) + ℓ'(u)(v − u) + σ/2·(ℓ'(u)(v − u))², for every label of the loss: −1 and +1, or |y| ≤ C
        in regression, or 0 ≤ y ≤ exp(C) for counts. Without a bound (None or infinity) it is 0, which merely
        states convexity.
        """
        bound = _checked(bound)
        return 0.0 if math.isinf(bound) else self._curvature(bound)

    def lipschitz(self, bound: float | None) -> float:
        """L(C), the largest |∂ℓ/∂p| for |p| ≤ C = `bound` and the labels of `curvature`; may be infinite."""
        return self._lipschitz(_checked(bound))

    @property
    def has_second_derivative(self) -> bool:
        """Is there a bounded one, whatever the label?"""
        return math.isfinite(self.smoothness)

    def smoothness_growth(self, bound: float) -> float:
        """How many times `smoothness` the second derivative is for the largest labels that `bound` allows."""
        return 1.0

    # -- labels

    @property
    def label_rule(self) -> str:
        """The labels it takes, in words."""
        low, high = self.label_range
        if self.sign_labels:
            return "labels -1 or +1"
        if math.isfinite(low) and math.isfinite(high):
            return f"labels from {low:g} to {high:g}"
        if math.isfinite(low):
            return f"labels >= {low:g}"
        return f"labels <= {high:g}" if math.isfinite(high) else "finite numbers"

    @property
    def central(self) -> bool:
        """Whether predictions lie in the middle of the labels, so that R² can judge them."""
        return True

    @property
    def takes_all_numbers(self) -> bool:
        """Whether every number is a valid label, as in regression."""
        return not self.sign_labels and self.label_range == (-math.inf, math.inf)

    def takes(self, label: float) -> bool:
        """Whether this label is valid for this loss."""
        return self.labels.takes(label)

    def check_labels(self, labels: ArrayLike) -> None:
        """Raise ValueError for the first invalid label, with its position from 0."""
        flat = contiguous(labels, np.float64).ravel()
        for at in self.labels.unfit(flat)[:1]:
            where = f"label {flat[at]:g} at position {at} is"
            if _native.LARGEST_VALUE < abs(flat[at]) < math.inf:
                raise ValueError(f"{where} beyond ±{_native.LARGEST_VALUE:g}: rescale the labels")
            raise ValueError(f"{where} invalid: {self.name} loss needs {self.label_rule}")

    def needed_bound(self, labels: Floats) -> Floats:
        """The bound C on predictions within which each label is answered best."""
        return np.abs(labels)

    def nearest_label(self, label: float, bound: float) -> float:
        """The label nearest to this one that needs no more than `bound`, which it is beyond."""
        return math.copysign(bound, label)

    def in_unit(self, unit: float) -> Self:
        """The loss of labels and predictions that are divided by `unit`, up to a constant factor."""
        return self

    # -- for losses

    def _check(self) -> None:
        if self.parameter != 0.0:
            raise ValueError(f"{self.name} loss takes no parameter, got {self.parameter!r}")

    @abstractmethod
    def _value(self, p: Floats, y: Floats) -> Floats: ...

    @abstractmethod
    def _derivative(self, p: Floats, y: Floats) -> Floats: ...

    @abstractmethod
    def _curvature(self, c: float) -> float:
        """σ(c) for finite c > 0."""

    @abstractmethod
    def _lipschitz(self, c: float) -> float:
        """L(c) for c > 0, infinity included."""

    def _link(self, p: Floats) -> Floats:
        return p


class MarginLoss(Loss):
    """A loss of the margin y·p, for labels −1 and +1."""

    sign_labels: ClassVar[bool] = True


class ResidualLoss(Loss):
    """A loss of the residual p − y."""

    shift_invariant: ClassVar[bool] = True


@cache
def loss_class(name: str) -> type[Loss]:
    """The class of the loss called `name`, one of `LOSSES`."""
    import importlib

    module = importlib.import_module(f"sketchnewton.losses.{name}")
    found: type[Loss] = getattr(module, "".join(word.capitalize() for word in name.split("_")))
    return found


def get_loss(loss: str | Loss) -> Loss:
    """The object for `loss`, a name such as `"logistic"` or `"huber:0.5"`; a Loss is returned unchanged.

    Without a parameter, quantile has tau = 0.5 (the median) and huber has delta = 1.

    >>> get_loss("huber") == get_loss("huber:1")
    True
    >>> get_loss("logistc")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: loss='logistc' is unknown: did you mean 'logistic'? The losses are squared, logistic, ...
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} is invalid: must be a name or a Loss")
    name, colon, parameter = loss.partition(":")
    if name not in LOSSES:
        raise ValueError(f"loss={loss!r} is unknown: {_suggestion(name)}The losses are {', '.join(LOSSES)}")
    kind = loss_class(name)
    if not colon:
        return kind()
    if not kind.parameter_name:
        raise ValueError(f"loss={loss!r} is invalid: {name} loss takes no parameter")
    try:
        number = float(parameter)
    except ValueError:
        message = f"loss={loss!r} is invalid: {kind.parameter_name} after ':' must be a number"
        raise ValueError(message) from None
    return kind(number)


def inverse_square(c: float) -> float:
    """1/c², where c·c may underflow to zero or overflow."""
    return (1.0 / c) * (1.0 / c)


_ELSEWHERE = {
    "log": "logistic",
    "log_loss": "logistic",
    "squared_error": "squared",
    "squared_loss": "squared",
    "absolute_error": "absolute",
    "epsilon_insensitive": "absolute",
    "modified_huber": "squared_hinge",
}
"""What scikit-learn and others call these losses, or the nearest to it."""


def _suggestion(name: str) -> str:
    meant = _ELSEWHERE.get(name) or closest(name, LOSSES)
    return "" if meant is None else f"did you mean {meant!r}? "


def _checked(bound: float | None) -> float:
    if bound is None:
        return math.inf
    if not bound > 0.0:  # NaN included
        raise ValueError(f"bound={bound!r} is invalid: must be > 0")
    return float(bound)
