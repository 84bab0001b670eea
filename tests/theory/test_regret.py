"""Regret is measured against the true optimum, and stays below what the theorems allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from sketchnewton import (
    AdaGrad,
    FullNewton,
    InvariantNewton,
    Learner,
    OnlineGradient,
    SketchedAdaGrad,
    SketchedNewton,
)
from sketchnewton.evaluation import best_fixed, regret, regret_bound
from sketchnewton.losses import LOSSES, get_loss
from tests.contract.learners import Floats, assert_same_state

Stream = tuple[Floats, Floats]


# -- the comparator


def labels_for(name: str, scores: Floats, rng: np.random.Generator) -> Floats:
    if name in ("logistic", "hinge", "squared_hinge"):
        return np.where(scores + 0.5 * rng.standard_normal(len(scores)) > 0, 1.0, -1.0)
    if name == "poisson":
        return rng.poisson(np.exp(np.clip(scores, -1, 1))).astype(float)
    return np.clip(scores + 0.3 * rng.standard_normal(len(scores)), -0.8, 0.8)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_the_comparator_is_optimal(name: str, bounded: bool) -> None:
    """Against a general-purpose solver, with constraints that bind and with none that do."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = labels_for(name, X @ [0.5, -0.3, 0.1], rng)
    C = 0.4 if bounded else 8.0
    loss = get_loss(name)
    best = best_fixed(loss, X, y, C)
    assert np.abs(X @ best.weights).max() <= C * (1 + 1e-12)
    assert (np.abs(X @ best.weights).max() > 0.999 * C) == bounded
    assert best.total_loss == pytest.approx(loss.value(X @ best.weights, y).sum())
    for start in (np.zeros(3), best.weights):
        rival = minimize(
            lambda w: loss.value(X @ w, y).sum(),
            start,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda w: np.concatenate([C - X @ w, C + X @ w])},
            options={"maxiter": 500, "ftol": 1e-12},
        )
        feasible = rival.x * min(1, C / np.abs(X @ rival.x).max())
        assert best.total_loss <= loss.value(X @ feasible, y).sum() + 1e-6


def test_the_comparator_on_awkward_rows() -> None:
    """Of rank one, in units far apart, with rows of zeros; and the answer is known."""
    x = np.array([1e-8, 3.0, 1e8])
    X = np.outer([1.0, -1.0, 0.0, 2.0], x)
    best = best_fixed("squared", X, [0.2, -0.2, 0.7, 0.4], 1.0)
    np.testing.assert_allclose(X @ best.weights, [0.2, -0.2, 0, 0.4], atol=1e-4)
    assert best.total_loss == pytest.approx(0.49, abs=1e-7)
    np.testing.assert_allclose(best.weights, 0.2 * x / (x @ x), rtol=1e-3)  # the shortest
    assert best_fixed("absolute", np.zeros((2, 2)), [1.0, 0.5], 1.0).total_loss == 1.5


# -- regret


def test_regret_is_the_difference_and_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5))
    y = np.sign(X[:, 0])
    for learner in (
        FullNewton(alpha=2.0),
        AdaGrad(eta=0.1, intercept=True),
        SketchedNewton("oja", 3, alpha=2.0),
    ):
        fresh = type(learner)(**learner.params)
        measured = regret(learner, csr_array(X), y, clip=1.0)
        assert_same_state(learner, fresh)
        rows = np.hstack([X, np.ones((200, 1))]) if learner.params["intercept"] else X
        expected = ((learner.learn(X, y) - y) ** 2).sum() - best_fixed("squared", rows, y, 1.0).total_loss
        assert measured == pytest.approx(expected)


def test_regret_needs_a_bound() -> None:
    with pytest.raises(ValueError, match="clip=None is invalid"):
        regret(AdaGrad(), np.eye(2), [1.0, 1.0])


# -- upper bounds


def gaussian(rng: np.random.Generator, T: int, d: int) -> Stream:
    X = rng.standard_normal((T, d)) * np.geomspace(1, rng.uniform(1, 30), d)
    return X, X @ (rng.standard_normal(d) / np.geomspace(1, 30, d)) + 0.3 * rng.standard_normal(T)


def basis_vectors(rng: np.random.Generator, T: int, d: int) -> Stream:
    return np.eye(d)[np.arange(T) % d], rng.choice([-1.0, 1.0], T)


def alternating(rng: np.random.Generator, T: int, d: int) -> Stream:
    """One direction, labels that flip: the answer is always the opposite of the last one."""
    X = np.tile(rng.standard_normal(d), (T, 1)) + 1e-3 * rng.standard_normal((T, d))
    return X, (-1.0) ** np.arange(T)


def turning(rng: np.random.Generator, T: int, d: int) -> Stream:
    """The direction that matters changes in blocks, and so does its sign."""
    X = np.zeros((T, d))
    block = max(T // (2 * d), 1)
    X[np.arange(T), (np.arange(T) // block) % d] = rng.uniform(0.5, 3, T)
    return X, np.where((np.arange(T) // (block * d)) % 2 == 0, 1.0, -1.0)


STREAMS = (gaussian, basis_vectors, alternating, turning)


def against(learner: Callable[[], Learner], X: Floats, y: Floats) -> Floats:
    """Labels from an adversary who sees each prediction first and contradicts it."""
    victim, labels = learner(), np.empty(len(y))
    for t in range(len(y)):
        labels[t] = -1.0 if victim.predict(X[t : t + 1])[0] >= 0 else 1.0
        victim.learn(X[t : t + 1], labels[t : t + 1])
    return labels


def sequences(make: Callable[[], Learner], signs: bool) -> list[Stream]:
    """50 streams: random, oblivious adversaries, and one that plays against the learner itself."""
    streams: list[Stream] = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        T, d = int(rng.integers(40, 160)), int(rng.integers(2, 9))
        for stream in STREAMS:
            X, scores = stream(rng, T, d)
            y = np.where(scores >= 0, 1.0, -1.0) if signs else np.clip(scores, -1, 1)
            streams.append((X, y))
        X, _ = gaussian(rng, T, d)
        streams.append((X, against(make, X, np.empty(T))))
    return streams


PROBLEMS: list[dict[str, Any]] = [
    {"loss": "squared"},
    {"loss": "logistic"},
    {"loss": "hinge"},
    {"loss": "absolute", "curvature_weight": "sqrt(d/(C^2 L^2 t))"},
    {"loss": "squared", "curvature_weight": "1/t"},
]

THEOREMS: dict[str, Callable[..., Learner]] = {
    "SON 2": lambda alpha, **options: FullNewton(alpha=alpha, **options),
    "SON 3": lambda alpha, **options: SketchedNewton("fd", 3, alpha=alpha, **options, dtype="float64"),
    "RFD 5": lambda alpha, **options: SketchedNewton("rfd", 3, alpha=alpha, **options, dtype="float64"),
    "SON Corollary 1": lambda alpha, **options: InvariantNewton(**options),
    "RFD 6 and 7": lambda alpha, **options: SketchedNewton("rfd", 3, **options, dtype="float64"),
    "RFD 5, every row": lambda alpha, **options: SketchedNewton(
        "rfd", 3, alpha=alpha, shrink="row", **options, dtype="float64"
    ),
    "RFD 6 and 7, every row": lambda alpha, **options: SketchedNewton(
        "rfd", 3, shrink="row", **options, dtype="float64"
    ),
    "RFD 7, 2m rows": lambda alpha, **options: SketchedNewton(
        "rfd", 3, shrink="2m", **options, dtype="float64"
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: "-".join(map(str, problem.values())))
@pytest.mark.parametrize("theorem", THEOREMS)
def test_regret_is_below_the_bound(theorem: str, problem: dict[str, Any]) -> None:
    streams = sequences(
        lambda: THEOREMS[theorem](1.0, **problem), signs=problem["loss"] in ("logistic", "hinge")
    )
    assert len(streams) == 50
    for i, (X, y) in enumerate(streams):
        learner = THEOREMS[theorem]((0.1, 1.0, 10.0)[i % 3], **problem)
        assert regret(learner, X, y) <= regret_bound(learner, X, y)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute"])
@pytest.mark.parametrize("tau", [1, 5, 20])
def test_regret_of_projected_data_is_below_the_bound(tau: int, loss: str) -> None:
    """ADA Theorems 1 and 2: sketches that are too small, about right and large, with and without projection."""

    def make(i: int) -> Learner:
        eta, sigma = ((0.1, 1.0), (1.0, 0.01), (0.02, 10.0))[i % 3]
        options: dict[str, Any] = {"eta": eta, "sigma": sigma, "clip": (1.0, None)[i % 2], "random_state": i}
        return SketchedAdaGrad("rp", tau, of="data", loss=loss, **options, dtype="float64")

    streams = sequences(lambda: make(0), signs=loss in ("logistic", "hinge"))[::2]
    finite = 0
    for i, (X, y) in enumerate(streams):
        bound = regret_bound(make(i), X, y, clip=1.0)
        if bound < 1e100:  # without projection, steps may be too long for the squared loss
            assert regret(make(i), X, y, clip=1.0) <= bound
            finite += 1
    assert finite >= (15 if loss == "squared" else 25)


def test_the_bounds_are_what_the_theorems_say() -> None:
    """By hand on a stream of two rows, where every quantity is known."""
    X, y, C, L, alpha = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0]), 1.0, 4.0, 5.0
    sigma, etas = 1 / 8, np.array([1.0, 0.5])
    w = np.array([1.0, 0.5])
    g_squares = np.array([4.0, 16.0])  # both rows are predicted as 0
    common = alpha / 2 * (w @ w) + 2 * (C * L) ** 2 * etas.sum()
    s = sigma + etas[-1]
    second = common + 2 / (2 * s) * np.log(1 + s * g_squares.sum() / (2 * alpha))
    # Their Gram matrix is diagonal: nothing is lost at m = 3, where Ω_2 = 0.
    trace = ((sigma + etas) * g_squares).sum()
    third = common + 3 / (2 * s) * np.log(1 + trace / (3 * alpha))
    assert regret_bound(FullNewton(alpha=alpha, curvature_weight="1/t"), X, y) == pytest.approx(
        second, rel=1e-4
    )
    for kind in (
        "fd",
        "rfd",
    ):  # no shrink yet, so no ridge: Theorem 5 is Theorem 3 with d − m = 0 more logarithms
        learner = SketchedNewton(kind, 3, alpha=alpha, curvature_weight="1/t", dtype="float64")
        assert regret_bound(learner, X, y) == pytest.approx(third, rel=1e-4)


@pytest.mark.parametrize(
    "learner",
    [
        FullNewton(),
        InvariantNewton(),
        SketchedNewton("fd", 3, alpha=1.0),
        SketchedNewton("rfd", 3),
        SketchedNewton("rfd", 3, alpha=1.0),
        SketchedAdaGrad("rp", 3, of="data", clip=1.0),
    ],
    ids=lambda learner: learner.title,
)
def test_rows_of_zeros_allow_no_regret(learner: Learner) -> None:
    """Nothing is learned."""
    assert regret(learner, np.zeros((3, 2)), [1.0, -1.0, 0.5]) == 0
    assert regret_bound(learner, np.zeros((3, 2)), [1.0, -1.0, 0.5]) == 0


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (SketchedNewton("oja", 3), "no regret bound is known"),
        (SketchedNewton("rfd", 3, alpha="auto"), "no regret bound is known for rfd with alpha='auto'"),
        (SketchedNewton("fd", 3), "no regret bound is known for fd with alpha=None: give a number"),
        (SketchedNewton("rfd", 0), "where sketch_size or σ \\+ η_t is 0"),
        (InvariantNewton(clip=None), "clip=None is invalid"),
        (SketchedAdaGrad("rp", 3), "no regret bound is known"),
        (SketchedAdaGrad("rp", 3, of="data"), "clip=None is invalid"),
        (SketchedAdaGrad("rp", 3, of="data", penalty="l2"), "no regret bound is known with penalty='l2'"),
        (SketchedAdaGrad("rp", 3, of="data", form="dual_averaging"), "with form='dual_averaging'"),
        (SketchedAdaGrad("rp", 3, of="data", clip=1.0, intercept=True), "with intercept=True"),
        (FullNewton(clip=None), "clip=None is invalid"),
        (FullNewton(clip=0.5), "labels must be within the clip C=0.5"),
        (FullNewton(curvature=3.0), "curvature=3.0 is more than the 0.125"),
        (FullNewton(intercept=True), "no regret bound is known with intercept=True"),
        (SketchedNewton("fd", 3, alpha=1.0, diagonal=True), "no regret bound is known with diagonal=True"),
    ],
)
def test_assumptions_are_checked(learner: Learner, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regret_bound(learner, np.eye(2), [1.0, 1.0])


def test_a_learner_that_has_begun_has_no_bound() -> None:
    learner = FullNewton()
    learner.learn(np.eye(2), [1.0, 1.0])
    with pytest.raises(ValueError, match="has seen 2 rows"):
        regret_bound(learner, np.eye(2), [1.0, 1.0])


# -- the lower bound

EVERYONE: dict[str, Callable[[], Learner]] = {
    **{
        sketch: lambda sketch=sketch: SketchedNewton(sketch, 4, alpha=2.0, loss="hinge", random_state=3)
        for sketch in ("none", "oja", "fd", "rfd", "pfd", "rp")
    },
    "rfd without a parameter": lambda: SketchedNewton("rfd", 4, loss="hinge"),
    "diagonal": lambda: SketchedNewton("oja", 4, loss="hinge", diagonal=True),
    "theory": lambda: FullNewton(alpha=1.0, loss="hinge", curvature_weight="sqrt(d/(C^2 L^2 t))"),
    "full": lambda: FullNewton(alpha=1.0, loss="hinge"),
    "invariant": lambda: InvariantNewton(loss="hinge"),
    "adagrad": lambda: AdaGrad(eta=0.3, loss="hinge", clip=1.0),
    "online gradient": lambda: OnlineGradient(alpha=3.0, loss="hinge"),
}


@pytest.mark.parametrize("name", EVERYONE)
def test_nobody_escapes_random_signs(name: str) -> None:
    """SON Theorem 1: basis vectors in turn, signs by coin. On |p| ≤ 1 the hinge loss is linear, and L = 1."""
    d, T, games = 8, 800, 40
    X = np.eye(d)[np.arange(T) % d]
    total = 0.0
    for seed in range(games):
        y = np.random.default_rng(seed).choice([-1.0, 1.0], T)
        best = T - np.abs(X.T @ y).sum()  # w = sign of each coordinate's sum, clip 1
        if seed == 0:
            assert best_fixed("hinge", X, y, 1.0).total_loss == pytest.approx(best)
        total += np.maximum(1 - y * EVERYONE[name]().learn(X, y), 0).sum() - best
    assert total / games >= 0.8 * np.sqrt(d * T / 2)
