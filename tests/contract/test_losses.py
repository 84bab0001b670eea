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
from sketchnewton.core.names import LOSS_PARAMETERS, LOSSES
from sketchnewton.losses import get_loss, loss_class
from sketchnewton.losses.huber import Huber
from sketchnewton.losses.quantile import Quantile
from sketchnewton.testing.losses import LOSS_PROMISES, assert_subgradient, check_loss, labels_within

EVERY = [get_loss(name) for name in LOSSES] + [Quantile(0.9), Huber(0.3), Huber(20.0)]
every_loss = pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.spec)


@every_loss
@pytest.mark.parametrize("promise", LOSS_PROMISES)
def test_promise(loss, promise):
    check_loss(loss, only=[promise])


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
@given(u=st.floats(-500, 500), v=st.floats(-500, 500), which=st.integers(0, 40))
def test_derivative_is_a_subgradient_everywhere(loss, u, v, which):
    labels = labels_within(loss, 3.0)
    assert_subgradient(loss, u, v, labels[which % len(labels)])


@pytest.mark.parametrize(
    ("spec", "prediction", "label"),
    [("hinge", -1.0, -1.0), ("absolute", 2.0, 2.0), ("quantile:0.9", 2.0, 2.0)],
)
def test_derivative_at_a_kink_is_zero(spec, prediction, label):
    assert get_loss(spec).derivative(prediction, label) == 0.0


def test_slopes_without_a_bound():
    assert math.isinf(get_loss("squared").lipschitz(None))
    assert get_loss("logistic").lipschitz(None) == 1.0


def test_poisson_curvature_of_small_bounds_does_not_cancel():
    poisson = get_loss("poisson")
    for bound in np.geomspace(1e-12, 1e-3, 19):
        assert poisson.curvature(bound) == pytest.approx(1 - 5 * bound / 3, abs=2 * bound**2 + 1e-15)
    just_below, just_above = math.nextafter(0.125, 0), 0.125  # where the series gives way to the closed form
    assert poisson.curvature(just_below) == pytest.approx(poisson.curvature(just_above), rel=1e-14)


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


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_every_parameter_survives_its_spec(number):
    for loss in (Quantile(number), Huber(number), Huber(np.float64(number))):
        assert get_loss(loss.spec).parameter == number


@every_loss
def test_the_compiled_table_has_the_name_and_the_parameter(loss):
    assert loss.compiled
    assert type(loss) is loss_class(loss.name)
    assert LOSS_PARAMETERS.get(loss.name, "") == loss.parameter_name


def test_losses_differ_by_class_and_parameter():
    assert len(set(EVERY)) == len(EVERY)
    assert [get_loss(name).code for name in LOSSES] == list(range(len(LOSSES)))
    assert get_loss("huber") == Huber(1.0)
    assert get_loss("quantile") == Quantile(0.5)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("hinje", f"did you mean 'hinge'.*{', '.join(LOSSES)}"),
        ("Logistic", "did you mean 'logistic'"),
        ("", "loss='' is unknown: The losses are"),
        ("log_loss", "loss='log_loss' is unknown: did you mean 'logistic'"),
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
        loss_class("squared")(2.0)


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
    assert typing.get_type_hints(type(get_loss("squared")).check_labels)
