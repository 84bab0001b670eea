"""Predictions that do not depend on the coordinates that rows come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import InvariantNewton, SketchedNewton
from tests.contract.learners import Floats, state
from tests.oracles.invariant import invariant_newton


def invertible(d: int, condition: float, rng: np.random.Generator) -> Floats:
    """A random matrix of this condition number."""
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1.0, condition, d)) @ right


def dense_stream(
    rounds: int, d: int, seed: int, rank: int | None = None, awkward: bool = True
) -> tuple[Floats, Floats]:
    """Gaussian rows, some repeated, combined or zero; of rank `rank` if that is given."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, d))
    if rank is not None:
        X = rng.standard_normal((rounds, rank)) @ rng.standard_normal((rank, d))
    if awkward:
        X[3], X[4], X[6] = 2 * X[1], X[0] - X[2], 0.0
    y = np.sign(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(rounds))
    return X, np.where(y == 0, 1.0, y)


LOSSES: dict[str, dict[str, Any]] = {
    "squared": {},
    "logistic": {"clip": 2.0},
    "hinge": {},
    "absolute": {"curvature_weight": "1/t"},
}


@pytest.mark.parametrize("loss", LOSSES)
def test_invariant_newton_is_the_mended_algorithm(loss: str) -> None:
    X, y = dense_stream(400, 12, seed=0)
    h = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(y))
    clip = LOSSES[loss].get("clip", 1.0)
    learner = InvariantNewton(loss=loss, clip=clip, curvature=0.1, curvature_weight="1/sqrt(t)")
    predictions, weights = invariant_newton(
        X, y, loss=loss, C=clip, sigma=0.1, eta=lambda t: 1 / np.sqrt(t), importance=h
    )
    np.testing.assert_allclose(learner.learn(X, y, h), predictions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-6)
    assert learner.rank == 12


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_invariant_newton_does_not_see_the_coordinates(condition: float, loss: str) -> None:
    for seed in range(8):
        d = 5 + 3 * seed
        X, y = dense_stream(600, d, seed)
        M = invertible(d, condition, np.random.default_rng(100 + seed))
        plain, mapped = (InvariantNewton(loss=loss, **LOSSES[loss]).learn(rows, y) for rows in (X, X @ M))
        np.testing.assert_allclose(mapped, plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_rows_that_never_span_the_space(condition: float) -> None:
    for seed in range(5):
        X, y = dense_stream(500, 30, seed, rank=12)
        M = invertible(30, condition, np.random.default_rng(seed))
        learners = InvariantNewton(), InvariantNewton()
        plain, mapped = (learner.learn(rows, y) for learner, rows in zip(learners, (X, X @ M), strict=True))
        np.testing.assert_allclose(mapped, plain, rtol=0, atol=1e-6)
        assert [learner.rank for learner in learners] == [12, 12]


def test_units_of_features_do_not_matter_however_far_apart() -> None:
    X, y = dense_stream(300, 10, seed=1)
    units = 10.0 ** np.linspace(-15, 15, 10)
    np.testing.assert_allclose(
        InvariantNewton().learn(X * units, y), InvariantNewton().learn(X, y), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e6, 1e8])
def test_a_huge_feature_that_is_mixed_with_others_costs_no_more_than_rounding(
    scale: float, loss: str
) -> None:
    """Rounding Mx is as if x had been changed by 2⁻⁵³ κ of its length: so much is lost before learning begins."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 12))
        X, y = dense_stream(200, d, seed, awkward=False)
        M = rng.standard_normal((d, d))
        M[rng.integers(d)] *= scale
        kappa = np.linalg.cond(M / np.abs(X @ M).mean(axis=0))

        def learned(rows: Floats, y: Floats = y) -> Floats:
            return InvariantNewton(loss=loss, **LOSSES[loss]).learn(rows, y)

        plain, lost = learned(X), 0.0
        for _ in range(4):
            change = rng.standard_normal(X.shape)
            change *= np.linalg.norm(X, axis=1, keepdims=True) / np.linalg.norm(change, axis=1, keepdims=True)
            lost = max(lost, np.abs(learned(X + 2.0**-53 * kappa * change) - plain).max())
        assert np.abs(learned(X @ M) - plain).max() < 10 * lost + 1e-11


def test_the_algorithm_as_printed_does_depend_on_them() -> None:
    """Why the amendment: the same comparison with the paper's projection differs in the first digit."""
    X, y = dense_stream(100, 8, seed=0, awkward=False)
    M = invertible(8, 10.0, np.random.default_rng(1))
    printed, mapped = (invariant_newton(rows, y, as_printed=True)[0] for rows in (X, X @ M))
    assert np.abs(printed - mapped).max() > 0.1
    mended, mapped = (invariant_newton(rows, y)[0] for rows in (X, X @ M))
    assert np.abs(mended - mapped).max() < 1e-6


def test_a_row_outside_the_span_is_predicted_as_zero() -> None:
    learner = InvariantNewton()
    learner.learn([[1.0, 1.0, 0.0]], [1.0])
    assert learner.rank == 1
    predicted = learner.predict([[2.0, 2.0, 0.0], [1.0, 0.0, 0.0], [-0.1, -0.1, 0.0], [2.0, 2.0, 5.0]])
    np.testing.assert_allclose(predicted, [1.0, 0.0, -0.4, 1.0])  # the third feature was never seen
    assert learner.learn([[1.0, 0.0, 0.0]], [1.0]).tolist() == [0.0]


def test_without_curvature_and_eta_there_is_nothing_to_learn_from() -> None:
    with pytest.raises(ValueError, match="curvature_weight=0 is invalid"):
        InvariantNewton(loss="hinge", curvature_weight=0)


# Robust Frequent Directions with α = 0: no parameter, so nothing that could have a unit.


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_robust_directions_do_not_see_rotations(m: int, loss: str) -> None:
    for seed in range(3):
        X, y = dense_stream(600, 25, seed)
        turned = X @ np.linalg.qr(np.random.default_rng(seed).standard_normal((25, 25)))[0]
        plain, rotated = (
            SketchedNewton("rfd", m, loss=loss, dtype="float64").learn(Z, y) for Z in (X, turned)
        )
        np.testing.assert_allclose(rotated, plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-15, 1e-3, 7.0, 1e15])
@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_robust_directions_do_not_see_a_common_unit(m: int, scale: float) -> None:
    X, y = dense_stream(600, 25, seed=4)
    for dtype, tolerance in (("float64", 1e-6), ("float32", 1e-3)):
        plain, scaled = (SketchedNewton("rfd", m, dtype=dtype).learn(Z, y) for Z in (X, X * scale))
        np.testing.assert_allclose(scaled, plain, rtol=0, atol=tolerance)


@pytest.mark.parametrize("power", [73, 82, 90, 95])
@pytest.mark.parametrize("sketch", ["none", "oja", "fd", "rfd", "pfd", "rp"])
def test_large_values_are_as_good_as_others_in_float32(sketch: str, power: int) -> None:
    """Up to 1e30 they are accepted; the steps that they take are of 1e-60."""
    X, y = dense_stream(300, 12, seed=5)
    X /= np.abs(X).max()
    plain, scaled = (SketchedNewton(sketch, 5).learn(Z, y) for Z in (X, X * 2.0**power))
    np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-4)


def few_rows(rng: np.random.Generator) -> Floats:
    return np.vstack([rng.standard_normal((4, 12)), np.zeros((3, 12))])


def mixed_units(rng: np.random.Generator) -> Floats:
    X = rng.standard_normal((300, 12))
    X[:, ::3] *= 1e15
    X[:, 1::3] *= 1e-15
    return X


DEGENERATE = {
    "rows of zeros": lambda rng: np.zeros((50, 12)),
    "zeros first": lambda rng: np.vstack([np.zeros((20, 12)), rng.standard_normal((100, 12))]),
    "one row, repeated": lambda rng: np.tile(rng.standard_normal((1, 12)), (200, 1)),
    "one row and its opposite": lambda rng: np.outer((-1.0) ** np.arange(200), rng.standard_normal(12)),
    "fewer rows than directions": few_rows,
    "rank one": lambda rng: np.outer(rng.standard_normal(300), rng.standard_normal(12)),
    "rank m - 1": lambda rng: rng.standard_normal((300, 7)) @ rng.standard_normal((7, 12)),
    "large": lambda rng: rng.standard_normal((300, 12)) * 1e15,
    "small": lambda rng: rng.standard_normal((300, 12)) * 1e-15,
    "units far apart": mixed_units,
    "rows of unlike length": lambda rng: (
        rng.standard_normal((300, 12)) * 10.0 ** rng.uniform(-15, 15, (300, 1))
    ),
    "one feature": lambda rng: rng.standard_normal((300, 1)),
}


@pytest.mark.parametrize("weight", [None, "1/t"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 2, 8])
@pytest.mark.parametrize("stream", DEGENERATE)
def test_robust_directions_never_divide_by_zero(stream: str, m: int, dtype: str, weight: str | None) -> None:
    rng = np.random.default_rng(0)
    X = DEGENERATE[stream](rng)
    y = rng.choice([-1.0, 1.0], len(X))
    for loss in ("squared", "logistic", "hinge"):
        learner = SketchedNewton("rfd", m, loss=loss, curvature_weight=weight, dtype=dtype, clip=0.8)
        with np.errstate(all="raise"):
            predictions = learner.learn(X, y)
        assert np.abs(predictions).max() <= 0.8
        assert all(np.isfinite(array).all() for array in state(learner).values())
        assert np.isfinite(learner.weights).all()
        assert np.isfinite(learner.predict(rng.standard_normal((5, X.shape[1])))).all()


@pytest.mark.parametrize("seed", range(8))
def test_near_copies_of_a_row_do_not_swing_the_weights(seed: int) -> None:
    """The diagonal moves the copies apart by ever less, until α and what is outside the span are both rounding."""
    rng = np.random.default_rng(seed)
    X, y = np.tile(rng.standard_normal((1, 7)), (800, 1)), rng.choice([-1.0, 1.0], 800)
    for loss in ("hinge", "absolute"):
        learner = SketchedNewton("rfd", 5, loss=loss, clip=0.3, diagonal=True)
        learner.learn(X, y)
        assert np.abs(learner.weights).max() < 1e6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_that_vanish_make_no_long_steps(dtype: str) -> None:
    """With α = 0 and no bound on scores a slope of exp(−score) asks for a step of exp(score)."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 40)) < 0.1, rng.standard_normal((400, 40)), 0.0)
    learner = SketchedNewton("rfd", 20, loss="logistic", clip=None, dtype=dtype)
    assert np.isfinite(learner.learn(X, rng.choice([-1.0, 1.0], 400))).all()
    assert np.isfinite(learner.weights).all()


@pytest.mark.parametrize("m", [2, 8])
def test_a_stream_of_rank_one_is_learned(m: int) -> None:
    """Not only finite: a single repeated row and label are predicted right soon."""
    X = np.tile([[3.0, -2.0, 1e-8]], (20, 1))
    predictions = SketchedNewton("rfd", m, dtype="float64").learn(X, np.full(20, 0.5))
    assert predictions[0] == 0
    np.testing.assert_allclose(predictions[10:], 0.5, atol=1e-3)
