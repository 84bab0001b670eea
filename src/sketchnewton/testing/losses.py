"""What every loss promises, and a check for losses that are written elsewhere."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterable
from functools import partial

import numpy as np

from sketchnewton import _native
from sketchnewton.core.types import ArrayLike, Floats
from sketchnewton.losses import LOSSES, Loss, get_loss
from sketchnewton.testing.promises import (
    by_title,
    check,
    require,
    require_close,
    require_finite,
    require_refused,
    require_same,
)

__all__ = ["LOSS_PROMISES", "assert_subgradient", "check_loss", "labels_within"]

_BOUNDS = (0.01, 0.15, 0.5, 1.0, 1.7, 3.0, 6.0)


def labels_within(loss: Loss, bound: float) -> Floats:
    """The labels for which the constants of `bound` are promised, extremes included."""
    if not loss.takes(0.5):
        return np.array([-1.0, 1.0])
    if not loss.takes(-1.0):
        return np.linspace(0.0, math.exp(bound), 41)
    return np.linspace(-bound, bound, 41)


def the_derivative_is_the_slope_of_the_value(loss: Loss) -> None:
    """Where there is no kink."""
    step = 1e-5
    predictions = np.linspace(-3.0, 3.0, 242)[:, None]
    labels = labels_within(loss, 2.0)[None, :]
    before, after = predictions - step, predictions + step
    slope = (loss.value(after, labels) - loss.value(before, labels)) / (2 * step)
    smooth = np.abs(loss.derivative(before, labels) - loss.derivative(after, labels)) < 1e-2  # no kink
    require(smooth.mean() > 0.95, "kinks almost everywhere")
    derivative = loss.derivative(predictions, labels)[smooth]
    require_close(derivative, slope[smooth], "the derivative", rtol=1e-7, atol=2 * step)


def the_derivative_is_a_subgradient_everywhere(loss: Loss) -> None:
    """A tangent never lies above the loss, also at kinks and far away: the loss is convex."""
    random = np.random.default_rng(0)
    for reach in (1.0, 3.0, 30.0, 500.0):
        u, v = random.uniform(-reach, reach, (2, 2000))
        assert_subgradient(loss, u, v, random.choice(labels_within(loss, 3.0), 2000))
    labels = labels_within(loss, 3.0)
    assert_subgradient(loss, labels, labels + random.uniform(-1.0, 1.0, len(labels)), labels)


def assert_subgradient(loss: Loss, u: ArrayLike, v: ArrayLike, y: ArrayLike) -> None:
    """AssertionError if the tangent at u lies above the loss at v by more than rounding."""
    at, to = np.asarray(u, np.float64), np.asarray(v, np.float64)
    value, derivative, there = loss.value(at, y), loss.derivative(at, y), loss.value(to, y)
    tangent = value + derivative * (to - at)
    size = np.abs(value) + np.abs(there) + np.abs(derivative) * (1 + np.abs(at) + np.abs(to))
    above = tangent - there - 1e-12 * size
    require((above <= 0).all(), f"a tangent lies {above.max():g} above the loss")


def curvature_is_the_largest_constant_of_assumption_2(loss: Loss) -> None:
    """ℓ(v) ≥ ℓ(u) + ℓ'(u)(v−u) + σ/2·(ℓ'(u)(v−u))² holds with σ = `curvature(bound)`, not with 5% more."""
    for bound in _BOUNDS:
        gap, quadratic, rounding = _sides_of_assumption_2(loss, bound)
        sigma = loss.curvature(bound)
        require((gap >= sigma * quadratic - rounding).all(), f"curvature({bound})={sigma:g} is too large")
        larger = 1.05 * sigma if sigma > 0 else 1e-3
        require((gap < larger * quadratic - rounding).any(), f"curvature({bound})={sigma:g} is too small")


def _sides_of_assumption_2(loss: Loss, bound: float) -> tuple[Floats, Floats, Floats]:
    """ℓ(v) − ℓ(u) − ℓ'(u)(v−u), ½(ℓ'(u)(v−u))² and the rounding error of the first, over u, v and labels."""
    near = bound * np.geomspace(1e-3, 2.0, 60)
    u = np.linspace(-bound, bound, 101)[:, None, None]
    v = np.clip(u + np.concatenate([-near, near])[None, :, None], -bound, bound)
    y = labels_within(loss, bound)[None, None, :]
    linear = loss.derivative(u, y) * (v - u)
    gap = loss.value(v, y) - loss.value(u, y) - linear
    rounding = 1e-15 * (1 + np.abs(loss.value(v, y)) + np.abs(loss.value(u, y)) + np.abs(y) * bound)
    return gap, 0.5 * linear**2, rounding


def lipschitz_is_the_largest_slope(loss: Loss) -> None:
    """Of all predictions and labels within the bound."""
    for bound in _BOUNDS:
        predictions = np.linspace(-bound, bound, 201)[:, None]
        largest = np.abs(loss.derivative(predictions, labels_within(loss, bound))).max()
        claimed = loss.lipschitz(bound)
        require_close(largest, claimed, f"lipschitz({bound})", rtol=1e-12, atol=0.0)


def constants_without_a_bound_claim_nothing(loss: Loss) -> None:
    """Without a bound the curvature is 0, and the slope at least that of any bound."""
    for unbounded in (None, math.inf):
        sigma = loss.curvature(unbounded)
        require(sigma == 0.0, f"curvature({unbounded})={sigma:g}, not 0")
        require(
            loss.lipschitz(unbounded) >= loss.lipschitz(1e6), f"lipschitz({unbounded}) is less than of 1e6"
        )


def constants_are_monotone_up_to_extreme_bounds(loss: Loss) -> None:
    """A larger bound has no more curvature and no smaller slope; neither is ever NaN."""
    bounds = [1e-300, 1e-150, 1e-12, 1e-8, 1e-4, 1e-2, 0.124, 0.126, 1, 10, 300, 800, 1e5, 1e160, 1e308]
    curvatures = [loss.curvature(bound) for bound in bounds]
    slopes = [loss.lipschitz(bound) for bound in bounds]
    require(not np.isnan(curvatures + slopes).any(), "a constant is NaN")
    require(curvatures == sorted(curvatures, reverse=True), f"curvatures {curvatures} increase")
    require(slopes == sorted(slopes), f"slopes {slopes} decrease")


def a_bound_must_be_positive(loss: Loss) -> None:
    """Others are refused."""
    for bad in (0.0, -1.0, math.nan, -math.inf):
        require_refused(partial(loss.curvature, bad), "must be > 0", f"curvature({bad})")
        require_refused(partial(loss.lipschitz, bad), "must be > 0", f"lipschitz({bad})")


def wild_predictions_stay_finite(loss: Loss) -> None:
    """Value, derivative, its square and the link, without a warning of NumPy."""
    predictions = np.array([-1e4, -800.0, -300.0, 300.0, 800.0, 1e4])[:, None]
    labels = labels_within(loss, 2.0)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        derivatives = loss.derivative(predictions, labels)
        require_finite(loss.value(predictions, labels), "values")
        require_finite(derivatives, "derivatives")
        require_finite(derivatives**2, "squares of derivatives")
        require_finite(loss.link(predictions), "links")


def all_is_computed_in_float64(loss: Loss) -> None:
    """Also for float32 predictions and whole labels; shapes are broadcast."""
    predictions = np.array([[0.1], [0.7]], np.float32)
    result = loss.value(predictions, np.array([1, 1, 1]))
    require(result.shape == (2, 3), f"the shape is {result.shape}, not (2, 3)")
    require_same(
        result, loss.value(predictions.astype(np.float64), np.ones(3)), "values of float32 predictions"
    )


def labels_must_be_finite(loss: Loss) -> None:
    """The first label that is not fit is named, with its position; no label at all is fine."""
    loss.check_labels([])
    for bad in (math.nan, math.inf, -math.inf):
        pattern = f"^label {bad} at position 1 is invalid"
        require_refused(partial(loss.check_labels, [1.0, bad]), pattern, f"label {bad}")
        require(not loss.takes(bad), f"takes({bad})")


def a_loss_survives_its_spec_and_pickle(loss: Loss) -> None:
    """A copy is equal and hashes alike; the spec of a loss that has a name in `LOSSES` gives it back."""
    require(get_loss(loss) is loss, "get_loss gives another")
    copies = [pickle.loads(pickle.dumps(loss)), copy.copy(loss), copy.deepcopy(loss)]
    if loss.name in LOSSES:
        copies.append(get_loss(loss.spec))
    for twin in copies:
        require(twin == loss and hash(twin) == hash(loss), f"{twin!r} is not {loss!r}")


def the_kernels_compute_the_same_loss(loss: Loss) -> None:
    """For a loss that has a name in `LOSSES`: learners learn by the compiled one."""
    if loss.name not in LOSSES:
        return
    kinks = [-1.0, -0.3, 0.0, 0.3, 1.0]
    predictions = np.concatenate([np.linspace(-40, 40, 401), kinks, [-1e4, -300, 300, 301, 1e4]])
    grid = np.meshgrid(predictions, labels_within(loss, 2.0))
    p, y = grid[0].ravel(), grid[1].ravel()
    values, derivatives = _native.loss_values(loss.code, loss.parameter, p, y)
    # Only a sum that cancels may differ by more than the rounding of its result: exp(p) − yp.
    cancels = 1e-14 * np.abs(y) if loss.name == "poisson" else np.zeros(len(y))
    for what, ours, kernel, slack in (
        ("value", loss.value(p, y), values, cancels * np.abs(p)),
        ("derivative", loss.derivative(p, y), derivatives, cancels),
    ):
        differs = np.abs(ours - np.asarray(kernel)) > 1e-14 * np.abs(ours) + slack
        at = int(differs.argmax())
        require(not differs.any(), f"the {what} for prediction {p[at]:g} and label {y[at]:g} differs")


LOSS_PROMISES = by_title(
    the_derivative_is_the_slope_of_the_value,
    the_derivative_is_a_subgradient_everywhere,
    curvature_is_the_largest_constant_of_assumption_2,
    lipschitz_is_the_largest_slope,
    constants_without_a_bound_claim_nothing,
    constants_are_monotone_up_to_extreme_bounds,
    a_bound_must_be_positive,
    wild_predictions_stay_finite,
    all_is_computed_in_float64,
    labels_must_be_finite,
    a_loss_survives_its_spec_and_pickle,
    the_kernels_compute_the_same_loss,
)
"""What every loss promises, in words, and the check of each."""


def check_loss(loss: Loss, *, only: Iterable[str] | None = None) -> None:
    """Check that `loss` keeps what every loss promises.

    Raises AssertionError that names the first promise that is broken. `only` names some of the `LOSS_PROMISES`.

    >>> from sketchnewton.losses import get_loss
    >>> check_loss(get_loss("huber:0.5"))
    >>> Hinge = type(get_loss("hinge"))
    >>> class Mistaken(Hinge):
    ...     def _lipschitz(self, c):
    ...         return 2.0
    >>> check_loss(Mistaken(), only=["lipschitz is the largest slope"])
    Traceback (most recent call last):
    ...
    AssertionError: broken promise: lipschitz is the largest slope: ...
    """
    check(LOSS_PROMISES, loss, only)
