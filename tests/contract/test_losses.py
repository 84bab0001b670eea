"""Every loss is what its formula says, and its constants σ and L are the best that are true."""

from __future__ import annotations

import copy
import math
import pickle
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchnewton import _native
from sketchnewton.losses.all import LOSSES, Huber, Loss, Quantile, get_loss

EVERY = [kind() for kind in LOSSES.values()] + [Quantile(0.9), Huber(0.3), Huber(20.0)]
BOUNDS = [0.01, 0.15, 0.5, 1.0, 1.7, 3.0, 6.0]

every_loss = pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.spec)
every_bound = pytest.mark.parametrize("bound", BOUNDS)


def accepts(loss: Loss, label: float) -> bool:
    try:
        loss.check_labels([label])
    except ValueError:
        return False
    return True


def labels_within(loss: Loss, bound: float) -> np.ndarray:
    """The labels for which the constants of `bound` are promised, extremes included."""
    if not accepts(loss, 0.5):
        return np.array([-1.0, 1.0])
    if not accepts(loss, -1.0):
        return np.linspace(0.0, math.exp(bound), 41)
    return np.linspace(-bound, bound, 41)


DEFINITIONS = {
    "squared": lambda p, y: (p - y) ** 2,
    "logistic": lambda p, y: math.log(1 + math.exp(-y * p)),
    "hinge": lambda p, y: max(0, 1 - y * p),
    "squared_hinge": lambda p, y: max(0, 1 - y * p) ** 2,
    "absolute": lambda p, y: abs(p - y),
    "quantile:0.9": lambda p, y: 0.9 * (y - p) if y >= p else 0.1 * (p - y),
    "huber:0.3": lambda p, y: 0.5 * (p - y) ** 2 if abs(p - y) <= 0.3 else 0.3 * (abs(p - y) - 0.15),
    "poisson": lambda p, y: math.exp(p) - y * p,
}


@pytest.mark.parametrize("spec", DEFINITIONS)
def test_value_is_the_definition(spec):
    loss = get_loss(spec)
    for label in labels_within(loss, 2.0):
        for prediction in np.linspace(-2.0, 2.0, 81):
            expected = DEFINITIONS[spec](prediction, label)
            assert loss.value(prediction, label) == pytest.approx(expected, rel=1e-13, abs=1e-14)


@every_loss
def test_derivative_is_the_slope_of_the_value(loss):
    step = 1e-5
    predictions = np.linspace(-3.0, 3.0, 242)[:, None]
    labels = labels_within(loss, 2.0)[None, :]
    before, after = predictions - step, predictions + step
    slope = (loss.value(after, labels) - loss.value(before, labels)) / (2 * step)
    smooth = np.abs(loss.derivative(before, labels) - loss.derivative(after, labels)) < 1e-2  # no kink
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(
        loss.derivative(predictions, labels)[smooth], slope[smooth], rtol=1e-7, atol=2 * step
    )


@every_loss
@given(u=st.floats(-500, 500), v=st.floats(-500, 500), which=st.integers(0, 40))
def test_derivative_is_a_subgradient_everywhere(loss, u, v, which):
    labels = labels_within(loss, 3.0)
    y = labels[which % len(labels)]
    tangent = loss.value(u, y) + loss.derivative(u, y) * (v - u)
    size = abs(loss.value(u, y)) + abs(loss.value(v, y)) + abs(loss.derivative(u, y)) * (1 + abs(u) + abs(v))
    assert loss.value(v, y) >= tangent - 1e-12 * size


@pytest.mark.parametrize(
    ("spec", "prediction", "label"),
    [("hinge", -1.0, -1.0), ("absolute", 2.0, 2.0), ("quantile:0.9", 2.0, 2.0)],
)
def test_derivative_at_a_kink_is_zero(spec, prediction, label):
    assert get_loss(spec).derivative(prediction, label) == 0.0


def sides_of_assumption_2(loss, bound):
    """ℓ(v) − ℓ(u) − ℓ'(u)(v−u), ½(ℓ'(u)(v−u))² and the rounding error of the first, over u, v and labels."""
    near = bound * np.geomspace(1e-3, 2.0, 60)
    u = np.linspace(-bound, bound, 101)[:, None, None]
    v = np.clip(u + np.concatenate([-near, near])[None, :, None], -bound, bound)
    y = labels_within(loss, bound)[None, None, :]
    linear = loss.derivative(u, y) * (v - u)
    gap = loss.value(v, y) - loss.value(u, y) - linear
    rounding = 1e-15 * (1 + np.abs(loss.value(v, y)) + np.abs(loss.value(u, y)) + np.abs(y) * bound)
    return gap, 0.5 * linear**2, rounding


@every_loss
@every_bound
def test_curvature_is_the_largest_constant_of_assumption_2(loss, bound):
    gap, quadratic, rounding = sides_of_assumption_2(loss, bound)
    sigma = loss.curvature(bound)
    assert (gap >= sigma * quadratic - rounding).all()
    larger = 1.05 * sigma if sigma > 0 else 1e-3
    assert (gap < larger * quadratic - rounding).any()


@every_loss
@every_bound
def test_lipschitz_is_the_largest_slope(loss, bound):
    predictions = np.linspace(-bound, bound, 201)[:, None]
    slopes = np.abs(loss.derivative(predictions, labels_within(loss, bound)))
    assert slopes.max() == pytest.approx(loss.lipschitz(bound), rel=1e-12)


@every_loss
def test_constants_without_a_bound(loss):
    for unbounded in (None, math.inf):
        assert loss.curvature(unbounded) == 0.0
        assert loss.lipschitz(unbounded) >= loss.lipschitz(1e6)
    assert math.isinf(get_loss("squared").lipschitz(None))
    assert get_loss("logistic").lipschitz(None) == 1.0


@every_loss
def test_constants_are_monotone_up_to_extreme_bounds(loss):
    bounds = [1e-300, 1e-150, 1e-12, 1e-8, 1e-4, 1e-2, 0.124, 0.126, 1, 10, 300, 800, 1e5, 1e160, 1e308]
    curvatures = [loss.curvature(bound) for bound in bounds]
    slopes = [loss.lipschitz(bound) for bound in bounds]
    assert not np.isnan(curvatures + slopes).any()
    assert curvatures == sorted(curvatures, reverse=True)
    assert slopes == sorted(slopes)


def test_poisson_curvature_of_small_bounds_does_not_cancel():
    poisson = get_loss("poisson")
    for bound in np.geomspace(1e-12, 1e-3, 19):
        assert poisson.curvature(bound) == pytest.approx(1 - 5 * bound / 3, abs=2 * bound**2 + 1e-15)
    just_below, just_above = math.nextafter(0.125, 0), 0.125  # where the series gives way to the closed form
    assert poisson.curvature(just_below) == pytest.approx(poisson.curvature(just_above), rel=1e-14)


@every_loss
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, -math.inf])
def test_bound_must_be_positive(loss, bad):
    with pytest.raises(ValueError, match="must be > 0"):
        loss.curvature(bad)
    with pytest.raises(ValueError, match="must be > 0"):
        loss.lipschitz(bad)


@every_loss
def test_wild_predictions_stay_finite(loss):
    predictions = np.array([-1e4, -800.0, -300.0, 300.0, 800.0, 1e4])[:, None]  # a warning fails the test too
    labels = labels_within(loss, 2.0)
    derivatives = loss.derivative(predictions, labels)
    for result in (loss.value(predictions, labels), derivatives, derivatives**2, loss.link(predictions)):
        assert np.isfinite(result).all()


def test_logistic_keeps_the_small_numbers_of_large_margins():
    logistic = get_loss("logistic")
    assert logistic.value(50.0, 1.0) == pytest.approx(math.exp(-50), rel=1e-14)
    assert logistic.derivative(50.0, 1.0) == pytest.approx(-math.exp(-50), rel=1e-14)
    assert logistic.value(-1e4, 1.0) == 1e4


def test_link():
    np.testing.assert_allclose(get_loss("logistic").link([-math.log(3), 0, 1e4]), [0.25, 0.5, 1.0])
    np.testing.assert_allclose(get_loss("poisson").link([0.0, 1.0]), [1.0, math.e])
    for spec in ("squared", "hinge", "squared_hinge", "absolute", "quantile", "huber"):
        assert get_loss(spec).link([-1.5, 2.0]).tolist() == [-1.5, 2.0]


@every_loss
def test_float32_and_mixed_shapes_compute_in_float64(loss):
    predictions = np.array([[0.1], [0.7]], np.float32)
    result = loss.value(predictions, np.array([1, 1, 1]))
    assert result.shape == (2, 3)
    assert result.dtype == np.float64
    assert np.array_equal(result, loss.value(predictions.astype(float), np.ones(3)))


@pytest.mark.parametrize("spec", ["logistic", "hinge", "squared_hinge"])
def test_labels_must_be_signs(spec):
    loss = get_loss(spec)
    loss.check_labels([1, -1, 1.0])
    with pytest.raises(ValueError, match=rf"^label 0 at position 2 .*{spec} loss needs labels -1 or \+1$"):
        loss.check_labels([1, -1, 0, 0.5])


def test_counts_must_not_be_negative():
    get_loss("poisson").check_labels([0, 2.5, 7])
    with pytest.raises(ValueError, match=r"^label -0.5 at position 1 .*labels >= 0$"):
        get_loss("poisson").check_labels([0, -0.5])


@every_loss
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_labels_must_be_finite(loss, bad):
    loss.check_labels([])
    with pytest.raises(ValueError, match=f"^label {bad} at position 1 is invalid"):
        loss.check_labels([1.0, bad])


@every_loss
def test_a_loss_survives_its_spec_and_pickle(loss):
    assert get_loss(loss.spec) == loss
    assert hash(get_loss(loss.spec)) == hash(loss)
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert get_loss(loss) is loss


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_every_parameter_survives_its_spec(number):
    for loss in (Quantile(number), Huber(number), Huber(np.float64(number))):
        assert get_loss(loss.spec).parameter == number


def test_losses_differ_by_class_and_parameter():
    assert len(set(EVERY)) == len(EVERY)
    assert len({loss.code for loss in LOSSES.values()}) == len(LOSSES)
    assert get_loss("huber") == Huber(1.0)
    assert get_loss("quantile") == Quantile(0.5)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("hinje", f"did you mean 'hinge'.*{', '.join(LOSSES)}"),
        ("Logistic", "did you mean 'logistic'"),
        ("", "loss='' is unknown: The losses are"),
        ("squared:2", "squared loss takes no parameter"),
        ("huber:", "delta after ':' must be a number"),
        ("quantile:high", "tau after ':' must be a number"),
        ("quantile:1", "needs 0 < tau < 1"),
        ("quantile:nan", "needs 0 < tau < 1"),
        ("huber:0", "needs 0 < delta < inf"),
        ("huber:inf", "needs 0 < delta < inf"),
    ],
)
def test_a_wrong_name_gets_one_helpful_line(bad, message):
    with pytest.raises(ValueError, match=message) as caught:
        get_loss(bad)
    assert "\n" not in str(caught.value)


def test_wrong_types_and_parameters_are_refused():
    with pytest.raises(TypeError, match="must be a name or a Loss"):
        get_loss(3)
    with pytest.raises(ValueError, match="takes no parameter"):
        LOSSES["squared"](2.0)


@every_loss
def test_the_kernels_compute_the_same_loss(loss):
    kinks = [-1.0, -0.3, 0.0, 0.3, 1.0]
    predictions = np.concatenate([np.linspace(-40, 40, 401), kinks, [-1e4, -300, 300, 301, 1e4]])
    grid = np.meshgrid(predictions, labels_within(loss, 2.0))
    p, y = grid[0].ravel(), grid[1].ravel()
    values, derivatives = _native.loss_values(loss.code, loss.parameter, p, y)
    # Only a sum that cancels may differ by more than the rounding of its result: exp(p) − yp.
    cancels = 1e-14 * np.abs(y) if loss.name == "poisson" else 0.0
    for ours, kernel, slack in (
        (loss.value(p, y), values, cancels * np.abs(p)),
        (loss.derivative(p, y), derivatives, cancels),
    ):
        assert (np.abs(ours - np.asarray(kernel)) <= 1e-14 * np.abs(ours) + slack).all()


def test_the_kernels_refuse_an_unknown_code():
    for code in (-1, 99):
        with pytest.raises(ValueError, match=f"loss code {code} is unknown"):
            _native.loss_values(code, 0.0, np.zeros(1), np.zeros(1))


def test_a_loss_does_not_change() -> None:
    loss = get_loss("huber:2")
    with pytest.raises(AttributeError):
        loss.parameter = 3.0
    with pytest.raises(AttributeError):
        del loss.parameter
    assert copy.deepcopy(loss) == pickle.loads(pickle.dumps(loss)) == loss
    assert hash(copy.copy(loss)) == hash(loss)
    assert loss != get_loss("huber:3")


def test_annotations_can_be_evaluated() -> None:
    assert typing.get_type_hints(type(get_loss("squared")).fits)
