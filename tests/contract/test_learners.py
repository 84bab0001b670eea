"""Promises that every learner keeps: batches, formats, files, copies, bad input."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

from sketchnewton import (
    AdaGrad,
    FullNewton,
    Learner,
    NewtonBank,
    OnlineGradient,
    Sketch,
    SketchedNewton,
    load,
)
from sketchnewton.core.archive import ModelFileError, read, write
from tests.contract.learners import (
    DENSE,
    LEARNERS,
    Floats,
    assert_same_state,
    batches,
    sparse_stream,
    state,
)


@pytest.fixture(params=LEARNERS, name="kind")
def _kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stream(kind: str) -> tuple[Floats, Floats]:
    return sparse_stream(300 if kind in DENSE else 1500, d=80, non_zeros=12)


def learned(kind: str, rows: int | None = None) -> tuple[Learner, np.ndarray[Any, Any]]:
    learner = LEARNERS[kind]()
    X, y = stream(kind) if rows is None else sparse_stream(rows, d=80, non_zeros=12)
    return learner, learner.learn(csr_array(X), y)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_do_not_matter(kind: str, size: int) -> None:
    whole, predictions = learned(kind)
    parts = LEARNERS[kind]()
    X, y = stream(kind)
    seen = np.concatenate([parts.learn(rows, labels) for rows, labels in batches(X, y, size)])
    np.testing.assert_array_equal(seen, predictions)
    assert_same_state(whole, parts)


def test_scores_are_those_of_a_copy_whenever_asked(kind: str) -> None:
    """What was looked up for earlier scores must not outlive the state that it was looked up in."""
    X, y = stream(kind)
    learner = LEARNERS[kind]()
    for start in range(0, 300, 7):
        learner.learn(X[start : start + 7], y[start : start + 7])
        np.testing.assert_array_equal(learner.score(X[:20]), copy.deepcopy(learner).score(X[:20]))


def test_features_that_come_late_do_not_matter(kind: str) -> None:
    """A batch that holds a large index makes room early; the bits must not depend on it."""
    d = 60 if kind in DENSE else 1200
    X, y = sparse_stream(1300, d=d, non_zeros=12)
    X[:1200, d * 5 // 6 :] = 0
    whole, parts = LEARNERS[kind](), LEARNERS[kind]()
    predictions = whole.learn(csr_array(X), y)
    seen = np.concatenate([parts.learn(rows, labels) for rows, labels in batches(X, y, 100)])
    np.testing.assert_array_equal(seen, predictions)
    assert_same_state(whole, parts)


def test_all_formats_give_the_same(kind: str) -> None:
    X, y = sparse_stream(300, d=80, non_zeros=12)
    _, predictions = LEARNERS[kind](), LEARNERS[kind]().learn(X, y)
    shuffled = csr_array(X)
    for r in range(300):  # unsorted, with an explicit zero
        part = slice(shuffled.indptr[r], shuffled.indptr[r + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    halves = csr_array((np.tile(X / 2, 2).ravel(), np.tile(np.arange(80), 600), np.arange(301) * 160))
    wide = csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for rows in (
        csr_array(X),
        csc_array(X),
        coo_array(X),
        X.tolist(),
        np.asfortranarray(X),
        shuffled,
        halves,
        wide,
    ):
        np.testing.assert_array_equal(LEARNERS[kind]().learn(rows, y), predictions)


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


def test_float32_rows(kind: str) -> None:
    X, y = sparse_stream(300, d=80, non_zeros=12)
    X = X.astype(np.float32)
    expected = LEARNERS[kind]().learn(X.astype(np.float64), y)
    np.testing.assert_array_equal(LEARNERS[kind]().learn(X, y), expected)
    np.testing.assert_array_equal(LEARNERS[kind]().learn(csr_array(X), y), expected)


@pytest.mark.parametrize("stop", [0, 1, 2, 3, 750])
def test_save_load_continue(kind: str, stop: int, tmp_path: Path) -> None:
    whole, predictions = learned(kind)
    X, y = stream(kind)
    stop = min(stop, len(y) // 2)
    first = LEARNERS[kind]()
    first.learn(X[:stop], y[:stop])
    first.save(tmp_path / "model.skn")
    second = load(tmp_path / "model.skn")
    assert type(second) is type(first)
    assert second.params == first.params
    np.testing.assert_array_equal(second.learn(X[stop:], y[stop:]), predictions[stop:])
    assert_same_state(whole, second)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_independent(kind: str, duplicate: Any) -> None:
    learner, _ = learned(kind, 100)
    twin = duplicate(learner)
    assert_same_state(learner, twin)
    X, y = sparse_stream(50, d=80, non_zeros=12, seed=5)
    twin.learn(X, y)
    assert twin.rows_seen == 150
    assert learner.rows_seen == 100
    np.testing.assert_array_equal(learner.learn(X, y), duplicate(learned(kind, 100)[0]).learn(X, y))


def test_notes_travel_with_the_model(tmp_path: Path) -> None:
    learner = AdaGrad()
    learner.notes["origin"] = {"day": "monday", "files": [1, 2]}
    learner.save(tmp_path / "model.skn")
    twins = [copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    learner.notes["origin"]["files"].append(3)
    for twin in [*twins, load(tmp_path / "model.skn"), AdaGrad.load(tmp_path / "model.skn")]:
        assert twin.notes == {"origin": {"day": "monday", "files": [1, 2]}}
    assert AdaGrad().notes == {}


def test_predict_is_the_next_prediction_and_changes_nothing(kind: str) -> None:
    learner, _ = learned(kind, 400)
    before = copy.deepcopy(learner)
    X, y = sparse_stream(50, d=80, non_zeros=12, seed=5)
    predictions = learner.predict(X)
    assert_same_state(learner, before)
    assert learner.learn(X[:1], y[:1])[0] == pytest.approx(predictions[0], abs=1e-6)
    if isinstance(before, NewtonBank):  # not linear: tests/contract/test_bank.py
        return
    score = X @ before.weights + before.intercept_
    clip = np.inf if before.params["clip"] is None else before.params["clip"]
    np.testing.assert_allclose(predictions, np.clip(score, -clip, clip), rtol=0, atol=1e-5)


def test_unknown_features_count_as_zero(kind: str) -> None:
    learner, _ = learned(kind, 100)
    X, _ = sparse_stream(5, d=80, non_zeros=12, seed=5)
    wide = np.hstack([X, np.full((5, 5000), 7.0)])
    np.testing.assert_array_equal(learner.predict(csr_array(wide)), learner.predict(X))


def test_weight_zero_leaves_no_trace(kind: str) -> None:
    X, y = sparse_stream(200, d=80, non_zeros=12)
    h = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    some, rest = LEARNERS[kind](), LEARNERS[kind]()
    predictions = some.learn(X, y, h)
    np.testing.assert_array_equal(predictions[h > 0], rest.learn(X[h > 0], y[h > 0]))
    assert_same_state(some, rest)


def test_rows_of_zeros(kind: str) -> None:
    learner = LEARNERS[kind]()
    predictions = learner.learn(np.zeros((20, 5)), np.tile([1.0, -1.0], 10))
    assert np.isfinite(predictions).all()
    assert learner.rows_seen == 20
    assert not learner.weights.any()
    X, y = sparse_stream(100, d=80, non_zeros=12)
    assert np.isfinite(learner.learn(X, y)).all()


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_features_of_any_scale_stay_finite(kind: str, scale: float) -> None:
    X, y = sparse_stream(500, d=80, non_zeros=12)
    X[:, ::3] *= scale
    X[:, 1] = X[:, 4]  # twins
    learner = LEARNERS[kind]()
    assert np.isfinite(learner.learn(X, y)).all()
    assert all(np.isfinite(array).all() for array in state(learner).values())


BAD = {
    "NaN": (np.array([[1.0, np.nan]]), [1.0], None, "X contains NaN: row 0, feature 1"),
    "infinity": (
        np.array([[1.0, 0.0], [-np.inf, 0.0]]),
        [1.0, 1.0],
        None,
        "X contains infinity: row 1, feature 0",
    ),
    "too large": (np.array([[1e31]]), [1.0], None, "beyond"),
    "one dimension": (np.array([1.0]), [1.0], None, "expected two dimensions"),
    "complex": (np.array([[1j]]), [1.0], None, "Complex"),
    "text": ([["a"]], [1.0], None, "could not convert"),
    "short labels": (np.ones((2, 1)), [1.0], None, "y has shape"),
    "NaN label": (np.ones((2, 1)), [1.0, np.nan], None, "label nan"),
    "short weights": (np.ones((2, 1)), [1.0, 1.0], [1.0], "sample_weight has shape"),
    "negative weight": (np.ones((2, 1)), [1.0, 1.0], [1.0, -1.0], "sample_weight=-1 at row 1"),
    "negative index": (csr_array(([1.0], [0], [0, 1]), shape=(1, 2)), [1.0], None, "negative feature index"),
}
BAD["negative index"][0].indices[0] = -1


@pytest.mark.parametrize("case", BAD)
def test_bad_input_changes_nothing(kind: str, case: str) -> None:
    X, y, weights, message = BAD[case]
    learner, _ = learned(kind, 50)
    before = copy.deepcopy(learner)
    with pytest.raises(ValueError, match=message):
        learner.learn(X, y, weights)
    assert_same_state(learner, before)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SketchedNewton(sketch="sign"), "sketch='sign' is invalid"),
        (lambda: SketchedNewton(sketch_size=-1), "sketch_size=-1 is invalid"),
        (lambda: SketchedNewton(sketch_size=2.5), "sketch_size=2.5 is invalid"),  # type: ignore[arg-type]
        (lambda: SketchedNewton(alpha=-1), "alpha=-1 is invalid: must be > 0"),
        (lambda: SketchedNewton(clip=0), "clip=0 is invalid"),
        (lambda: SketchedNewton(curvature=float("nan")), "curvature=nan is invalid"),
        (lambda: SketchedNewton(eta="1/2"), "eta='1/2' is invalid"),
        (lambda: SketchedNewton(oja_rate="fast"), "oja_rate='fast' is invalid"),
        (lambda: SketchedNewton(oja_rate=[1.0, 2.0]), "oja_rate=.* is invalid"),
        (lambda: SketchedNewton(block=0), "block=0 is invalid"),
        (lambda: SketchedNewton(dtype="int8"), "dtype='int8' is invalid"),
        (lambda: SketchedNewton(loss="squard"), "squared"),
        (lambda: NewtonBank(sketch_size=-1), "sketch_size=-1 is invalid"),
        (lambda: NewtonBank(loss="hinge"), "loss='hinge' is invalid"),
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


def test_largest_weights(kind: str) -> None:
    learner, _ = learned(kind)
    features, values = learner.largest_weights()
    assert learner.features_seen == len(features) == len(set(features.tolist())) == 80
    np.testing.assert_array_equal(values, learner.weights[features])
    assert (np.diff(np.abs(values)) <= 0).all()
    some, largest = learner.largest_weights(3)
    np.testing.assert_array_equal(some, features[:3])
    np.testing.assert_array_equal(largest, values[:3])
    assert LEARNERS[kind]().largest_weights()[0].shape == (0,)


def test_alpha_is_that_in_force() -> None:
    assert SketchedNewton(alpha=3.0).alpha_ == 3.0
    learner = SketchedNewton()
    assert learner.alpha_ == 0.0
    learner.learn([[3.0, 4.0]], [1.0])
    alpha = learner.alpha_
    assert alpha == pytest.approx(25 * learner.loss.smoothness)
    learner.learn([[300.0, 4.0]], [1.0])
    assert learner.alpha_ == alpha


def test_a_loaded_file_must_fit_its_class(kind: str, tmp_path: Path) -> None:
    learner, _ = learned(kind, 50)
    path = tmp_path / "model.skn"
    learner.save(path)
    header, arrays = read(path)
    broken = {
        "array missing": (header, {k: v for k, v in arrays.items() if k != "counts"}),
        "array of another shape": (header, {**arrays, "counts": arrays["counts"][:-1]}),
        "counter beyond its array": (header, {**arrays, "counts": arrays["counts"] + 10**9}),
        "parameter unknown": ({**header, "parameters": {**header["parameters"], "zeal": 3}}, arrays),
        "notes of another kind": ({**header, "notes": "none"}, arrays),
        "parameter wrong": ({**header, "parameters": {**header["parameters"], "loss": "none"}}, arrays),
    }
    for new_header, new_arrays in broken.values():
        write(path, new_header, new_arrays)
        with pytest.raises(ModelFileError, match="not a usable"):
            load(path)
    learner.save(path)
    assert type(Learner.load(path)) is type(learner)
    with pytest.raises(ModelFileError, match=f"holds a {header['class']}, not a sketch"):
        Sketch.load(path)
    write(path, {**header, "class": "Oracle"}, arrays)
    with pytest.raises(ModelFileError, match="Oracle"):
        load(path)


def test_repr_shows_what_was_chosen() -> None:
    assert repr(SketchedNewton("oja", 5, loss="hinge")) == "SketchedNewton(sketch_size=5, loss='hinge')"
    assert repr(OnlineGradient(alpha=2.0)) == "OnlineGradient(alpha=2.0)"


def test_a_crafted_file_cannot_reach_beyond_its_arrays(tmp_path: Path) -> None:
    """A checksum protects against accidents only: counters that kernels trust are checked as well."""
    path = tmp_path / "model.skn"
    learned("fd", 53)[0].save(path)
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


def test_one_learner_in_several_threads(kind: str) -> None:
    """Each call is whole: no row is lost, and nothing is torn by growth of the table or by a look inside."""
    learner = LEARNERS[kind]()
    X, y = sparse_stream(600, d=300, non_zeros=12)
    failures: list[BaseException] = []

    def work(part: int) -> None:
        try:
            for i in range(part * 200, part * 200 + 200, 20):
                width = 100 + i // 3
                learner.learn(csr_array(X[i : i + 20, :width]), y[i : i + 20])
                assert np.isfinite(learner.predict(X[:5])).all()
                assert np.isfinite(learner.weights).all()
                copy.deepcopy(learner)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert learner.rows_seen == 600


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
