"""Promises that every learner keeps (`sketchnewton.testing`), and some of single learners."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import (
    AdaGrad,
    FullNewton,
    NewtonBank,
    OnlineGradient,
    SketchedNewton,
    load,
)
from sketchnewton.core.archive import ModelFileError, read, write
from sketchnewton.testing import LEARNER_PROMISES, check_learner
from tests.contract.learners import DENSE, LEARNERS, sparse_stream, state


@pytest.mark.parametrize("promise", LEARNER_PROMISES)
@pytest.mark.parametrize("kind", LEARNERS)
def test_promise(kind: str, promise: str) -> None:
    check_learner(LEARNERS[kind], dense=kind in DENSE, only=[promise])


@pytest.mark.parametrize("kind", LEARNERS)
def test_parameters_are_named(kind: str) -> None:
    """All but the sketch and its size; η is a step size or a weight of curvature, each under its own name."""
    make = type(LEARNERS[kind]())
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(make).parameters
    assert {name for name, p in parameters.items() if p.kind != named} <= {"sketch", "sketch_size"}
    assert ("eta" in parameters) == ("sigma" in parameters)
    assert not {"eta", "curvature_weight"} <= parameters.keys()


@pytest.mark.parametrize("kind", LEARNERS)
def test_every_feature_is_learned_from(kind: str) -> None:
    learner = LEARNERS[kind]()
    X, y = sparse_stream(300 if kind in DENSE else 1500, d=80, non_zeros=12)
    learner.learn(X, y if learner.takes(-1.0) else y + 1)
    assert learner.features_seen == 80


@pytest.mark.parametrize("odd", ["reversed", "twice", "zero"])
@pytest.mark.parametrize("at", [0, 1, 30, 59])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_one_odd_row_among_others(odd: str, at: int, index: type) -> None:
    """Rows are looked over a batch at a time: what is true of all but one must not be taken for true."""
    X, y = sparse_stream(60, d=20, non_zeros=2)
    X[1:3] = 0  # empty rows, then one that begins where the last one before it ends
    X[0, 5] = X[3, 5] = 1.0
    X[at, [3, 7]] = 0.5, -0.25
    rows = [[(j, X[r, j]) for j in np.flatnonzero(X[r])] for r in range(60)]
    if odd == "reversed":
        rows[at].reverse()
    elif odd == "twice":
        rows[at] = [part for j, value in rows[at] for part in ((j, value / 2), (j, value / 2))]
    else:
        rows[at].append((19, 0.0)) if X[at, 19] == 0 else rows[at].insert(0, (0, 0.0))
    entries = [entry for row in rows for entry in row]
    bounds = np.cumsum([0, *map(len, rows)])
    stored = csr_array(
        ([v for _, v in entries], np.array([j for j, _ in entries]).astype(index), bounds.astype(index)),
        shape=(60, 20),
    )
    for kind in ("oja", "fd", "bank"):
        whole = LEARNERS[kind]()
        np.testing.assert_array_equal(whole.learn(stored, y), LEARNERS[kind]().learn(X, y))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SketchedNewton(sketch="sign"), "sketch='sign' is invalid"),
        (lambda: SketchedNewton(sketch_size=-1), "sketch_size=-1 is invalid"),
        (lambda: SketchedNewton(sketch_size=2.5), "sketch_size=2.5 is invalid"),  # type: ignore[arg-type]
        (lambda: SketchedNewton(alpha=-1), "alpha=-1 is invalid: must be > 0"),
        (lambda: SketchedNewton(clip=0), "clip=0 is invalid"),
        (lambda: SketchedNewton(curvature=float("nan")), "curvature=nan is invalid"),
        (lambda: SketchedNewton(curvature_weight="1/2"), "curvature_weight='1/2' is invalid"),
        (lambda: SketchedNewton(oja_rate="fast"), "oja_rate='fast' is invalid"),
        (lambda: SketchedNewton(oja_rate=[1.0, 2.0]), "oja_rate=.* is invalid"),
        (lambda: SketchedNewton(block=0), "block=0 is invalid"),
        (lambda: SketchedNewton(dtype="int8"), "dtype='int8' is invalid"),
        (lambda: SketchedNewton(loss="squard"), "squared"),
        (lambda: NewtonBank(sketch_size=-1), "sketch_size=-1 is invalid"),
        (lambda: NewtonBank(clip=0.0), "clip=0.0 is invalid"),
        (lambda: FullNewton(alpha=0), "alpha=0 is invalid"),
        (lambda: AdaGrad(eta=0), "eta=0 is invalid"),
        (lambda: OnlineGradient(alpha=0), "alpha=0 is invalid"),
    ],
)
def test_parameters_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_table_too_large_is_one_clear_line() -> None:
    learner = SketchedNewton()
    row = csr_array(([1.0], [2**55], [0, 1]), shape=(1, 2**56))
    with pytest.raises(MemoryError, match=f"feature index {2**55} needs a table of .* GB"):
        learner.learn(row, [1.0])
    assert learner.rows_seen == 0


def test_large_indices_cost_no_memory() -> None:
    """Zero pages: a table of 2 GB of addresses, of which two pages are used."""
    learner = SketchedNewton("oja", 10)
    row = csr_array(([1.0, 1.0], [5, 2**25], [0, 2]), shape=(1, 2**25 + 1))
    learner.learn(row, [1.0])
    assert set(state(learner)["features"]) == {5, 2**25}


def test_alpha_is_that_in_force() -> None:
    assert SketchedNewton(alpha=3.0).alpha_ == 3.0
    learner = SketchedNewton()
    assert learner.alpha_ == 0.0
    learner.learn([[3.0, 4.0]], [1.0])
    alpha = learner.alpha_
    assert alpha == pytest.approx(25 * learner.loss.smoothness)
    learner.learn([[4.0, 5.0]], [1.0])
    assert learner.alpha_ == alpha
    learner.learn([[30.0, 40.0]], [1.0])
    assert learner.alpha_ == pytest.approx((25 + 41 + 2500) / 3 * learner.loss.smoothness)


@pytest.mark.parametrize("sketch", ["none", "oja", "fd", "pfd", "rp"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_short_first_row_does_no_harm(sketch: str, loss: str) -> None:
    """Rows of text differ in length by factors of a hundred; α by the first alone made steps as much too long."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((600, 20)), rng.standard_normal(20)
    X[0] *= 0.1
    y = np.sign(X @ w)
    rest = [
        np.mean(np.sign(SketchedNewton(sketch, loss=loss).learn(rows, labels)[-300:]) != y[-300:])
        for rows, labels in ((X, y), (X[1:], y[1:]))
    ]
    assert rest[0] < rest[1] + 0.13
    short = SketchedNewton(sketch, loss=loss)
    short.learn(X, y)
    longer = short.loss.smoothness * np.mean((X**2).sum(axis=1))
    assert 0.5 * longer <= short.alpha_ <= 2 * longer


def test_repr_shows_what_was_chosen() -> None:
    assert repr(SketchedNewton("oja", 5, loss="hinge")) == "SketchedNewton(sketch_size=5, loss='hinge')"
    assert repr(OnlineGradient(alpha=2.0)) == "OnlineGradient(alpha=2.0)"


def test_a_crafted_file_cannot_reach_beyond_its_arrays(tmp_path: Path) -> None:
    """A checksum protects against accidents only: counters that kernels trust are checked as well."""
    path = tmp_path / "model.skn"
    learner = LEARNERS["fd"]()
    learner.learn(*sparse_stream(53, d=80, non_zeros=12))
    learner.save(path)
    header, arrays = read(path)
    table = arrays["table"]

    def altered(column: int, value: float) -> np.ndarray[Any, Any]:
        new = table.copy()
        new[0, column] = value
        return new

    sleeper = {
        "epoch to come": altered(2, 10**6),
        "epoch before the first": altered(2, -1),
        "no epoch": altered(2, 0.5),
    }
    for new in (*sleeper.values(), altered(1, 0.0), altered(0, np.nan)):
        write(path, header, {**arrays, "table": new})
        with pytest.raises(ModelFileError, match="not a usable"):
            load(path)
    write(path, header, {**arrays, "counts": arrays["counts"] + [0, 0, 5]})
    with pytest.raises(ModelFileError, match="not a usable"):
        load(path)
    # A list of slots that no feature stands in must not be believed, let alone written beyond its end.
    known = np.resize(arrays["features"], len(arrays["recent"]))
    counts = arrays["sketch_counts"].copy()
    counts[-1] = len(known)
    counts[-1] += 1
    write(path, header, {**arrays, "recent": known, "sketch_counts": counts})
    with pytest.raises(ModelFileError, match="not a usable"):
        load(path)


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("sketch", ["none", "oja", "fd", "rfd", "pfd", "rp"])
def test_the_unit_of_the_features_does_not_matter(sketch: str, scale: float) -> None:
    X, y = sparse_stream(400, d=30, non_zeros=8)
    expected = SketchedNewton(sketch, 5).learn(X, y)
    np.testing.assert_allclose(SketchedNewton(sketch, 5).learn(X * scale, y), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_tiny_alpha_does_not_let_rounding_grow(seed: int) -> None:
    """Outside of a full sketch there is nothing but rounding, and steps there must not feed on themselves."""
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((10, 10)) * np.geomspace(1, 200, 10)
    X = rng.standard_normal((8000, 10)) @ M + 100 * rng.standard_normal(10)
    y = np.sign(X @ np.linalg.solve(M, rng.standard_normal(10)) + rng.standard_normal(8000))
    learner = SketchedNewton("oja", 10, alpha=0.1)
    assert np.isfinite(learner.learn(X, y)).all()
    assert np.abs(learner.weights).max() < 1e3
