"""Losses and their derivatives in many digits.

A label and a score that are equal in exact arithmetic meet here to rounding, so a score within 10^(-digits/2) of a
kink is at the kink, and which subgradient is taken there is said by `kink`, a share in [0, 1] of the way from the
flat or lower side to the other: see each loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpmath import mp, mpf

from .linalg import Number

Function = Callable[[Number, Number], Number]


@dataclass(frozen=True)
class Loss:
    """`value(p, y)` and `slope(p, y)`, the derivative by the score p."""

    value: Function
    slope: Function
    #: The largest |slope| there is (SON's L); None where it depends on the bound on scores and labels.
    lipschitz: float | None
    #: A kinked loss is linear on both sides: σ = 0.
    kinked: bool = False
    kind: str = ""


def at(p: Number, point: Number) -> bool:
    """Are they equal in exact arithmetic?"""
    return bool(abs(p - point) <= mpf(10) ** (-mp.dps // 2) * max(1, abs(point)))


def squared() -> Loss:
    """(p − y)²."""
    return Loss(lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), None, kind="squared")


def logistic() -> Loss:
    """log(1 + e^(−yp)), y = ±1."""
    return Loss(lambda p, y: mp.log1p(mp.exp(-y * p)), lambda p, y: -y / (1 + mp.exp(y * p)), 1.0)


def hinge(kink: float = 0.0) -> Loss:
    """max(0, 1 − yp), y = ±1; at yp = 1 the slope is −kink·y: 0 by default, as where nothing is lost."""

    def slope(p: Number, y: Number) -> Number:
        if at(y * p, mpf(1)):
            return -kink * y
        return -y if y * p < 1 else mpf(0)

    return Loss(lambda p, y: max(mpf(0), 1 - y * p), slope, 1.0, kinked=True)


def squared_hinge() -> Loss:
    """max(0, 1 − yp)², y = ±1; it has no kink."""
    return Loss(lambda p, y: max(mpf(0), 1 - y * p) ** 2, lambda p, y: -2 * y * max(mpf(0), 1 - y * p), None)


def quantile(share: float = 0.5, kink: float | None = None) -> Loss:
    """share·(y − p) below the label, (1 − share)·(p − y) above it.

    At p = y the slope is −share + kink, with kink from 0 to 1; by default it is 0, as where nothing is lost.
    """
    q = mpf(repr(share))

    def slope(p: Number, y: Number) -> Number:
        if at(p, y):
            return mpf(0) if kink is None else kink - q
        return -q if p < y else 1 - q

    return Loss(
        lambda p, y: q * (y - p) if p < y else (1 - q) * (p - y), slope, max(share, 1 - share), kinked=True
    )


def absolute(kink: float = 0.5) -> Loss:
    """|p − y|; at p = y the slope is 2·kink − 1, from −1 to 1: 0 by default."""

    def slope(p: Number, y: Number) -> Number:
        if at(p, y):
            return mpf(2 * kink - 1)
        return mpf(-1) if p < y else mpf(1)

    return Loss(lambda p, y: abs(p - y), slope, 1.0, kinked=True)


def huber(width: float = 1.0) -> Loss:
    """½(p − y)² up to |p − y| = width, width·(|p − y| − ½ width) beyond; it has no kink."""
    h = mpf(width)

    def value(p: Number, y: Number) -> Number:
        r = abs(p - y)
        return r * r / 2 if r <= h else h * (r - h / 2)

    return Loss(value, lambda p, y: max(-h, min(h, p - y)), width)


def poisson() -> Loss:
    """e^p − yp, y ≥ 0: the negative log-likelihood of a count whose mean is e^p, up to what p does not change."""
    return Loss(lambda p, y: mp.exp(p) - y * p, lambda p, y: mp.exp(p) - y, None)


LOSSES: dict[str, Callable[..., Loss]] = {
    "squared": squared,
    "logistic": logistic,
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "absolute": absolute,
    "quantile": quantile,
    "huber": huber,
    "poisson": poisson,
}


def named(name: str | Loss) -> Loss:
    """A loss by the name the package uses; a parameter follows a colon, as in "quantile:0.9"."""
    if isinstance(name, Loss):
        return name
    kind, _, parameter = name.partition(":")
    return LOSSES[kind](float(parameter)) if parameter else LOSSES[kind]()
