"""Losses of one real prediction: value, derivative, curvature, link.

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

To add a loss: write a class below with a new `name` and `code` and the four methods `_value`, `_derivative`,
`_curvature` and `_lipschitz`; add the class to `LOSSES`; add the same `code` with its two formulas to
`native/core/losses.hpp`. The tests run over `LOSSES`, so they check the new loss without a change.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sketchnewton.core.types import ArrayLike, Floats, NDArray, np

__all__ = ["LOSSES", "Loss", "get_loss"]


class Loss(ABC):
    """A convex loss of a prediction. Losses of the same class and `parameter` are equal and hash alike.

    `parameter` is the one number that some losses have (`parameter_name` says which: tau of the quantile
    loss, delta of the Huber loss), 0.0 otherwise. `code` names the same loss in the compiled kernels. All
    methods take scalars or arrays and compute in float64, elementwise.
    """

    name: ClassVar[str]
    code: ClassVar[int]
    parameter_name: ClassVar[str] = ""
    label_rule: ClassVar[str] = "finite numbers"
    smoothness: ClassVar[float] = math.inf
    """The largest second derivative, infinite at a kink: the scale at which the loss bends."""

    usual: ClassVar[float] = 0.0
    """The parameter of a loss to which none is given."""

    # Not a dataclass: importing what makes them would take longer than all the rest of this module.
    parameter: float

    def __init__(self, parameter: float | None = None) -> None:
        object.__setattr__(self, "parameter", float(self.usual if parameter is None else parameter))
        self._check()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a loss is not changed: make another with {name}={value!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a loss keeps its {name}")

    def __reduce__(self) -> tuple[Any, ...]:
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

    def value(self, prediction: ArrayLike, label: ArrayLike) -> Floats:
        """ℓ(p, y)."""
        return self._value(np.asarray(prediction, np.float64), np.asarray(label, np.float64))

    def derivative(self, prediction: ArrayLike, label: ArrayLike) -> Floats:
        """∂ℓ/∂p. At a kink it is 0, a subgradient there: a prediction that is already best is not moved."""
        return self._derivative(np.asarray(prediction, np.float64), np.asarray(label, np.float64))

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

    def link(self, prediction: ArrayLike) -> Floats:
        """The prediction on the scale of the answer.

        The probability of +1 for logistic, the expected count for poisson. For all other losses it is the
        prediction itself; for the hinge losses that is the margin, whose sign is the class.
        """
        return self._link(np.asarray(prediction, np.float64))

    def check_labels(self, labels: ArrayLike) -> None:
        """Raise ValueError that names the first label not fit for this loss and its position, from 0."""
        flat = np.asarray(labels, np.float64).ravel()
        bad = ~self.fits(flat)
        if bad.any():
            at = int(bad.argmax())
            need = f"{self.name} loss needs {self.label_rule}"
            raise ValueError(f"label {flat[at]:g} at position {at} is invalid: {need}")

    def fits(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """Which of the labels are fit for this loss."""
        y = np.asarray(labels, np.float64)
        return np.asarray(np.isfinite(y) & self._accepts(y))

    def takes(self, label: float) -> bool:
        """Is this one label fit for this loss?"""
        return math.isfinite(label) and bool(self._accepts(label))

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

    def _accepts(self, y: Any) -> Any:
        """Whether finite labels, one or an array of them, are fit."""
        return y == y  # noqa: PLR0124 - any number is


class _SignLoss(Loss):
    """What the losses of a margin y·p have in common: labels −1 and +1."""

    label_rule: ClassVar[str] = "labels -1 or +1"

    def _accepts(self, y: Any) -> Any:
        return abs(y) == 1.0


class Squared(Loss):
    """(p − y)²."""

    name: ClassVar[str] = "squared"
    smoothness: ClassVar[float] = 2.0
    code: ClassVar[int] = 0

    def _value(self, p: Floats, y: Floats) -> Floats:
        return (p - y) * (p - y)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return 2.0 * (p - y)

    def _curvature(self, c: float) -> float:
        return _inverse_square(c) / 8.0

    def _lipschitz(self, c: float) -> float:
        return 4.0 * c


class Logistic(_SignLoss):
    """log(1 + exp(−yp)), without overflow for any p."""

    name: ClassVar[str] = "logistic"
    smoothness: ClassVar[float] = 0.25
    code: ClassVar[int] = 1

    def _value(self, p: Floats, y: Floats) -> Floats:
        margin = y * p
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return -y * self._link(-y * p)

    def _curvature(self, c: float) -> float:
        # Where the margin is −C the loss is least curved for its slope: ℓ''/ℓ'² = exp(−C).
        return math.exp(-c)

    def _lipschitz(self, c: float) -> float:
        return 1.0 / (1.0 + math.exp(-c))

    def _link(self, p: Floats) -> Floats:
        e = np.exp(-np.abs(p))
        return np.where(p >= 0.0, 1.0, e) / (1.0 + e)


class Hinge(_SignLoss):
    """max(0, 1 − yp)."""

    name: ClassVar[str] = "hinge"
    code: ClassVar[int] = 2

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - y * p)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.where(y * p < 1.0, -y, 0.0)

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return 1.0


class SquaredHinge(_SignLoss):
    """max(0, 1 − yp)²."""

    name: ClassVar[str] = "squared_hinge"
    smoothness: ClassVar[float] = 2.0
    code: ClassVar[int] = 3

    def _value(self, p: Floats, y: Floats) -> Floats:
        short = np.maximum(0.0, 1.0 - y * p)
        return short * short

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * p)

    def _curvature(self, c: float) -> float:
        if c <= 1.0:  # the flat part is out of reach: squared loss with residuals up to 1 + C
            return 0.5 / ((1.0 + c) * (1.0 + c))
        # The worst pair of margins is u = −C and v = C, across the flat part: (3C − 1)/(8C²(1 + C)).
        return (3.0 - 1.0 / c) / (8.0 * c) / (1.0 + c)

    def _lipschitz(self, c: float) -> float:
        return 2.0 * (1.0 + c)


class Absolute(Loss):
    """|p − y|."""

    name: ClassVar[str] = "absolute"
    code: ClassVar[int] = 4

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.abs(p - y)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.sign(p - y)

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return 1.0


class Quantile(Loss):
    """tau·(y − p) below the label, (1 − tau)·(p − y) above it; the tau-quantile is the best constant."""

    name: ClassVar[str] = "quantile"
    code: ClassVar[int] = 5
    parameter_name: ClassVar[str] = "tau"

    usual: ClassVar[float] = 0.5

    def _check(self) -> None:
        if not 0.0 < self.parameter < 1.0:
            raise ValueError(f"tau={self.parameter!r} is invalid: quantile loss needs 0 < tau < 1")

    def _value(self, p: Floats, y: Floats) -> Floats:
        return np.where(y >= p, self.parameter * (y - p), (1.0 - self.parameter) * (p - y))

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.where(y > p, -self.parameter, np.where(y < p, 1.0 - self.parameter, 0.0))

    def _curvature(self, c: float) -> float:
        return 0.0

    def _lipschitz(self, c: float) -> float:
        return max(self.parameter, 1.0 - self.parameter)


class Huber(Loss):
    """½r² for a residual |r| ≤ delta, delta·(|r| − ½delta) beyond: outliers pull with bounded force."""

    name: ClassVar[str] = "huber"
    smoothness: ClassVar[float] = 1.0
    code: ClassVar[int] = 6
    parameter_name: ClassVar[str] = "delta"

    usual: ClassVar[float] = 1.0

    def _check(self) -> None:
        if not 0.0 < self.parameter < math.inf:
            raise ValueError(f"delta={self.parameter!r} is invalid: huber loss needs 0 < delta < inf")

    def _value(self, p: Floats, y: Floats) -> Floats:
        r = np.abs(p - y)
        near = np.minimum(r, self.parameter)
        return near * (r - 0.5 * near)

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return np.clip(p - y, -self.parameter, self.parameter)

    def _curvature(self, c: float) -> float:
        # One sloped straight piece within reach of |p − y| ≤ 2C and there is no curvature left.
        return 0.25 * _inverse_square(c) if 2.0 * c <= self.parameter else 0.0

    def _lipschitz(self, c: float) -> float:
        return min(2.0 * c, self.parameter)


class Poisson(Loss):
    """exp(p) − yp for counts y ≥ 0, predicted as exp(p).

    From p = 300 on, the exponential goes on as its tangent and the link stays at exp(300). The loss remains
    convex and finite, and so do the derivative and its square, however wild the prediction.
    """

    name: ClassVar[str] = "poisson"
    smoothness: ClassVar[float] = 1.0  # of a count of one; it grows with the count
    code: ClassVar[int] = 7
    label_rule: ClassVar[str] = "labels >= 0"

    _STRAIGHT_FROM: ClassVar[float] = 300.0

    def _value(self, p: Floats, y: Floats) -> Floats:
        return self._link(p) * (1.0 + np.maximum(p - self._STRAIGHT_FROM, 0.0)) - y * p

    def _derivative(self, p: Floats, y: Floats) -> Floats:
        return self._link(p) - y

    def _curvature(self, c: float) -> float:
        if c > self._STRAIGHT_FROM:
            return 0.0
        # Two extreme cases, each scaled by exp(−2C) so that nothing overflows:
        # y = 0, u = C, v = −C    (e^−C − e^C + 2C·e^C) / (2C²·e^2C) = e^−C·2(e^−x − 1 + x)/x² with x = 2C;
        # y = e^C, u = v = −C     e^−C / (e^C − e^−C)².
        across = math.exp(-c) * _second_order_of_exp(2.0 * c)
        at_edge = math.exp(-1.5 * c) / -math.expm1(-2.0 * c)
        return min(across, at_edge * at_edge)

    def _lipschitz(self, c: float) -> float:
        return math.exp(c) if c < 709.0 else math.inf

    def _link(self, p: Floats) -> Floats:
        return np.exp(np.minimum(p, self._STRAIGHT_FROM))

    def _accepts(self, y: Any) -> Any:
        return y >= 0.0


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Squared, Logistic, Hinge, SquaredHinge, Absolute, Quantile, Huber, Poisson)
}


def get_loss(loss: str | Loss) -> Loss:
    """The loss that a name such as `"logistic"` or `"huber:0.5"` stands for; a Loss is returned as it is.

    Without a parameter, quantile has tau = 0.5 (the median) and huber has delta = 1.

    >>> get_loss("huber") == get_loss("huber:1")
    True
    >>> get_loss("logistc")
    Traceback (most recent call last):
    ...
    ValueError: loss='logistc' is unknown: did you mean 'logistic'? The losses are squared, logistic, hinge, \
squared_hinge, absolute, quantile, huber, poisson
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} is invalid: must be a name or a Loss")
    name, colon, parameter = loss.partition(":")
    if name not in LOSSES:
        raise ValueError(f"loss={loss!r} is unknown: {_suggestion(name)}The losses are {', '.join(LOSSES)}")
    kind = LOSSES[name]
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


def _suggestion(name: str) -> str:
    import difflib  # only needed for this error

    nearest = difflib.get_close_matches(name.lower(), LOSSES, n=1, cutoff=0.4)
    return f"did you mean {nearest[0]!r}? " if nearest else ""


def _checked(bound: float | None) -> float:
    if bound is None:
        return math.inf
    if not bound > 0.0:  # NaN included
        raise ValueError(f"bound={bound!r} is invalid: must be > 0")
    return float(bound)


def _inverse_square(c: float) -> float:
    """1/c², where c·c may underflow to zero or overflow."""
    return (1.0 / c) * (1.0 / c)


def _second_order_of_exp(x: float) -> float:
    """2(e^−x − 1 + x)/x², which tends to 1 for x → 0; by its series where the difference would cancel."""
    if x >= 0.25:
        return 2.0 * ((math.expm1(-x) + x) / x) / x
    total = term = 1.0
    for k in range(3, 14):
        term *= -x / k
        total += term
    return total
