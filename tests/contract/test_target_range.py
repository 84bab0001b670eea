"""`clip="auto"`: the range of targets is learned, in order, and no target is seen before its row is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import AdaGrad, SketchedNewton
from tests.contract.learners import assert_same_state

LEARNERS: dict[str, dict[str, Any]] = {
    "oja": {"sketch": "oja", "sketch_size": 4},
    "oja, diagonal, absolute": {"sketch": "oja", "sketch_size": 4, "diagonal": True, "loss": "absolute"},
    "rfd": {"sketch": "rfd", "sketch_size": 3},
    "rp, huber": {"sketch": "rp", "sketch_size": 3, "loss": "huber:1e9"},
    "none, no intercept": {"sketch": "none", "intercept": False},
    "oja, diagonal": {"sketch": "oja", "sketch_size": 4, "diagonal": True},
    "fd, diagonal": {"sketch": "fd", "sketch_size": 4, "diagonal": True},
    "rfd, diagonal": {"sketch": "rfd", "sketch_size": 3, "diagonal": True, "alpha": "auto"},
    "rp, diagonal": {"sketch": "rp", "sketch_size": 3, "diagonal": True},
    "none, diagonal": {"sketch": "none", "diagonal": True},
    "adagrad": {"eta": 0.3},
}


def learner(name: str, unit: float = 1.0) -> Any:
    """A learner of targets in this unit, which Huber's delta has too."""
    options = {"clip": "auto", "intercept": True, "dtype": "float64", **LEARNERS[name]}
    if "huber" in name:
        options["loss"] = f"huber:{1e9 * unit!r}"
    return (SketchedNewton if "sketch" in options else AdaGrad)(**options)


def stream(n: int = 400, scale: float = 1.0, shift: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, 6)) * np.geomspace(0.2, 5, 6)
    return X, scale * (X @ rng.standard_normal(6) + rng.standard_normal(n) + shift)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_prediction_does_not_depend_on_its_own_target(name: str) -> None:
    X, y = stream(120)
    expected = learner(name).learn(X, y)
    for row in (0, 1, 7, 119):
        changed = y.copy()
        changed[row] = 1e4
        np.testing.assert_array_equal(learner(name).learn(X, changed)[: row + 1], expected[: row + 1])


@pytest.mark.parametrize("name", LEARNERS)
def test_predictions_stay_in_the_range_seen(name: str) -> None:
    X, y = stream(300)
    predictions = learner(name).learn(X, y)
    first = y[0] if LEARNERS[name].get("intercept", True) else 0.0
    reach = np.maximum.accumulate(np.abs(y - first))
    assert predictions[0] == 0
    assert (np.abs(predictions[1:] - first) <= reach[:-1] * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_the_unit_of_targets_does_not_matter(name: str, scale: float) -> None:
    X, y = stream()
    plain, scaled = learner(name), learner(name, scale)
    np.testing.assert_allclose(scaled.learn(X, scale * y) / scale, plain.learn(X, y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaled.weights / scale, plain.weights, rtol=1e-9, atol=1e-9)
    assert scaled.intercept_ / scale == pytest.approx(plain.intercept_, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", LEARNERS)
def test_weights_and_scores_are_those_of_predictions(name: str) -> None:
    X, y = stream(scale=1e3, shift=50.0)
    model = learner(name)
    model.learn(X, y)
    linear = X @ model.weights + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), linear, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(
        model.predict(X), np.clip(linear, *model.prediction_bounds), rtol=1e-6, atol=1e-3
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_batches_and_single_rows_give_the_same_bits(name: str, tmp_path: Any) -> None:
    X, y = stream(200, scale=1e-3)
    y[50] = 100.0  # a record in the middle of a batch
    weights = np.where(np.arange(200) % 7 == 0, 0.0, 1.0)
    whole, parts = learner(name), learner(name)
    expected = whole.learn(X, y, weights)
    kept = weights > 0
    for begin, end in [(0, 3), (3, 60), (60, 61), (61, 200)]:
        np.testing.assert_array_equal(
            parts.learn(X[begin:end], y[begin:end], weights[begin:end]), expected[begin:end]
        )
    assert_same_state(whole, parts)
    without = learner(name)
    np.testing.assert_array_equal(without.learn(X[kept], y[kept]), expected[kept])
    parts.save(tmp_path / "m.skn")
    loaded = type(parts).load(tmp_path / "m.skn")
    np.testing.assert_array_equal(loaded.learn(X, y), parts.learn(X, y))
    assert_same_state(loaded, parts)


@pytest.mark.parametrize("gap", [1e-3, 1e-2, 1e-1, 1.0])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_first_two_targets_do_not_decide(name: str, gap: float) -> None:
    """Their distance is the unit in which the kernel counts, whatever the others are."""
    X, y = stream(4000)
    y[1] = y[0] + gap
    model = learner(name)
    model.learn(X[:2000], y[:2000])
    late, truth = model.predict(X[2000:]), y[2000:]
    assert np.mean((late - truth) ** 2) < 0.25 * np.var(truth)


def test_steps_with_a_diagonal_follow_the_range() -> None:
    """Gradient descent with D = 0.1 + Σg² and α = 1/C², C in units of the range that the first rows have.

    Of these, a target beyond twice the unit is a new beginning, with that unit or four times the range so far.
    """
    rng = np.random.default_rng(7)
    X, noise = rng.standard_normal((200, 5)) * np.geomspace(0.1, 10, 5), rng.standard_normal(200)
    y = X @ rng.standard_normal(5) + noise
    y[0] = 1e-4
    unit = bound = abs(y[0])
    w, D, expected = np.zeros(5), np.full(5, 0.1), []
    for row, label in zip(X, y, strict=True):
        target = label
        answer = np.clip(w @ (row / np.sqrt(D)), -bound / unit, bound / unit) * unit
        if abs(target) > 2 * unit and len(expected) < 8:
            unit = bound = min(abs(target), 4 * bound)
            target = np.clip(target, -bound, bound)
            w, D = np.zeros(5), np.full(5, 0.1)
        C, x = bound / unit, row / np.sqrt(D)
        alpha = 1 / C**2
        score = w @ x
        prediction = np.clip(score, -C, C)
        w = w - (score - prediction) / (x @ x) * x
        slope = 2 * (prediction - np.clip(target / unit, -C, C))
        D = D + (slope * row) ** 2
        w = w - slope / alpha * row / np.sqrt(D)
        expected.append(answer)
        if abs(target) > bound:
            bound = min(abs(target), bound * 2 if len(expected) > 8 else np.inf)
    model = SketchedNewton("none", clip="auto", diagonal=True, dtype="float64")
    np.testing.assert_allclose(model.learn(X, y), expected, rtol=1e-9, atol=1e-9)
    assert model.alpha_ == pytest.approx(alpha, rel=1e-12)


def test_a_wild_target_does_no_lasting_damage() -> None:
    X, y = stream(2000)
    wild = y.copy()
    wild[1000] = 1e6
    clean, hit = learner("oja").learn(X, y), learner("oja").learn(X, wild)
    later = slice(1500, 2000)
    assert np.mean((hit[later] - y[later]) ** 2) < 1e3 * np.mean((clean[later] - y[later]) ** 2)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber:1", "quantile:0.6"])
@pytest.mark.parametrize("row", [2, 3, 5, 7, 8])
def test_a_wild_target_among_the_first_does_none(loss: str, row: int) -> None:
    """Where steps are as long as the range is wide."""
    X, y = stream(4000)
    y[row] = 1e5
    model = SketchedNewton("oja", 4, clip="auto", intercept=True, diagonal=True, loss=loss)
    model.learn(X[:3000], y[:3000])
    late, truth = model.predict(X[3000:]), y[3000:]
    assert np.mean((late - truth) ** 2) < 0.25 * np.var(truth)


def test_what_auto_cannot_mean() -> None:
    with pytest.raises(ValueError, match="logistic loss has no targets to learn a range from"):
        SketchedNewton(loss="logistic", clip="auto")
    with pytest.raises(ValueError, match="clip='wide' is invalid: must be a number, 'auto' or None"):
        SketchedNewton(clip="wide")


def test_counts() -> None:
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((3000, 4))
    rate = np.exp(X @ np.array([1.0, -1.0, 0.5, 0.0]) + 1.0)
    y = rng.poisson(rate).astype(float)
    model = SketchedNewton(loss="poisson", clip="auto", intercept=True, diagonal=True)
    predictions = model.loss.link(model.learn(X, y))
    assert np.mean((predictions[1500:] - rate[1500:]) ** 2) < 0.6 * np.var(rate)
