"""What every learner promises, and a check for learners that are written elsewhere."""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sketchnewton.core.archive import ModelFileError, read, write
from sketchnewton.core.persistence import HOMES
from sketchnewton.core.types import Arrays, Floats, Path
from sketchnewton.learners import Learner
from sketchnewton.sketches import Sketch
from sketchnewton.testing.promises import (
    by_title,
    check,
    require,
    require_close,
    require_finite,
    require_refused,
    require_same,
)
from sketchnewton.testing.rows import batches, sparse_stream

__all__ = ["LEARNER_PROMISES", "assert_same_state", "check_learner", "state"]


@dataclass(frozen=True)
class Case:
    """How to make the learner, and on what streams it is tried."""

    make: Callable[[], Learner]
    dense: bool

    def stream(self, rounds: int | None = None, seed: int = 0, d: int = 80) -> tuple[Floats, Floats]:
        """Sparse rows and labels that the learner takes."""
        rounds = (300 if self.dense else 1500) if rounds is None else rounds
        X, y = sparse_stream(rounds, d=d, non_zeros=12, seed=seed)
        return X, self.labels(y)

    def labels(self, signs: Floats) -> Floats:
        """Labels that the learner takes: ±1, the numbers of classes, or counts."""
        learner = self.make()
        if learner.classes is not None:
            return np.where(signs > 0, np.arange(len(signs)) % learner.classes, 0.0)
        return signs if learner.takes(-1.0) else signs + 1.0

    def learned(self, rounds: int) -> Learner:
        """A learner that has learned so many rows."""
        learner = self.make()
        learner.learn(*self.stream(rounds))
        return learner


def state(learner: Learner) -> Arrays:
    """Copies of all arrays of a learner, as a model file would hold them."""
    return {name: np.array(array) for name, array in learner.to_archive()[1].items()}


def assert_same_state(a: Learner, b: Learner) -> None:
    """AssertionError unless model files of both would hold the same bits."""
    left, right = state(a), state(b)
    require(left.keys() == right.keys(), f"arrays {sorted(left)} and {sorted(right)}")
    for name, array in left.items():
        part, _, last = name.rpartition("/")
        counts = f"{part}/sketch_counts" if part else "sketch_counts"
        if last == "recent" and counts in left:  # room for the rows of a block, as much as was needed
            used = left[counts][-1]
            require(used == right[counts][-1], f"array {counts!r} differs")
            require_same(array[:used], right[name][:used], f"array {name!r} differs")
        else:
            require_same(array, right[name], f"array {name!r} differs")


# -- how rows arrive


def batches_do_not_matter(case: Case) -> None:
    """Batches of any size give the same predictions and the same state, bit for bit."""
    from scipy.sparse import csr_array

    X, y = case.stream()
    whole = case.make()
    predictions = whole.learn(csr_array(X), y)
    for size in (1, 7, 1000):
        parts = case.make()
        seen = np.concatenate([parts.learn(rows, labels) for rows, labels in batches(X, y, size)])
        require_same(seen, predictions, f"predictions in batches of {size}")
        assert_same_state(whole, parts)


def features_that_come_late_do_not_matter(case: Case) -> None:
    """A batch that holds a large index makes room early; the bits must not depend on it."""
    from scipy.sparse import csr_array

    d = 60 if case.dense else 1200
    X, y = case.stream(1300, d=d)
    X[:1200, d * 5 // 6 :] = 0
    whole, parts = case.make(), case.make()
    predictions = whole.learn(csr_array(X), y)
    seen = np.concatenate([parts.learn(rows, labels) for rows, labels in batches(X, y, 100)])
    require_same(seen, predictions, "predictions in batches of 100, late features in the last")
    assert_same_state(whole, parts)


def all_array_formats_give_the_same(case: Case) -> None:
    """Dense or sparse, sorted or not, entries that add up, indices of 32 or 64 bits."""
    X, y = case.stream(300)
    predictions = case.make().learn(X, y)
    for name, rows in _formats(X).items():
        require_same(case.make().learn(rows, y), predictions, f"predictions of rows as {name}")


def _formats(X: Floats) -> dict[str, object]:
    from scipy.sparse import coo_array, csc_array, csr_array

    n, d = X.shape
    shuffled = csr_array(X)
    for r in range(n):
        part = slice(shuffled.indptr[r], shuffled.indptr[r + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    halves = csr_array((np.tile(X / 2, 2).ravel(), np.tile(np.arange(d), 2 * n), np.arange(n + 1) * 2 * d))
    wide = csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {
        "CSR": csr_array(X),
        "CSC": csc_array(X),
        "COO": coo_array(X),
        "lists": X.tolist(),
        "an array in Fortran order": np.asfortranarray(X),
        "CSR, unsorted": shuffled,
        "CSR, each entry in two halves, zeros included": halves,
        "CSR with indices of 64 bits": wide,
    }


def float32_rows_are_learned_as_they_are(case: Case) -> None:
    """Rows of float32 give what the same numbers in float64 give."""
    from scipy.sparse import csr_array

    X, y = case.stream(300)
    narrow = X.astype(np.float32)
    expected = case.make().learn(narrow.astype(np.float64), y)
    require_same(case.make().learn(narrow, y), expected, "predictions of dense float32 rows")
    require_same(case.make().learn(csr_array(narrow), y), expected, "predictions of sparse float32 rows")


# -- files and copies


def saving_loading_and_continuing_equals_never_stopping(case: Case) -> None:
    """At any time, also before the first row."""
    X, y = case.stream()
    whole = case.make()
    predictions = whole.learn(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.skn")
        for stop in (0, 1, 2, 3, min(750, len(y) // 2)):
            first = case.make()
            first.learn(X[:stop], y[:stop])
            first.save(path)
            second = _loader(first)(path)
            require(type(second) is type(first), f"loading gives a {type(second).__name__}")
            require(second.params == first.params, "loading gives other parameters")
            require_same(
                second.learn(X[stop:], y[stop:]),
                predictions[stop:],
                f"predictions after {stop} rows and a file",
            )
            assert_same_state(whole, second)


def _loader(learner: Learner) -> Callable[[Path], Learner]:
    """Any learner's `load` knows the classes of this package; one of somebody else loads its own."""
    return Learner.load if type(learner).__name__ in HOMES else type(learner).load


def bytes_come_back_whole(case: Case) -> None:
    """`from_bytes` undoes `to_bytes`, and the bytes are those of the file."""
    learner = case.learned(100)
    data = learner.to_bytes()
    back = type(learner).from_bytes(data)
    assert_same_state(learner, back)
    require(back.to_bytes() == data, "the bytes of what came back differ")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.skn")
        learner.save(path)
        with open(path, "rb") as file:
            require(file.read() == data, "the file's bytes differ")


def copies_are_independent(case: Case) -> None:
    """What a copy learns does not change the original, and both continue alike."""
    X, y = case.stream(50, seed=5)
    ways: dict[str, Callable[[Learner], Learner]] = {
        "copy.copy": copy.copy,
        "copy.deepcopy": copy.deepcopy,
        "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
    }
    for name, duplicate in ways.items():
        learner = case.learned(100)
        twin = duplicate(learner)
        assert_same_state(learner, twin)
        seen = twin.learn(X, y)
        require(twin.rows_seen == 150, f"{name}: {twin.rows_seen} rows seen by the copy, not 150")
        require(learner.rows_seen == 100, f"{name}: {learner.rows_seen} rows seen by the original, not 100")
        require_same(learner.learn(X, y), seen, f"{name}: predictions of original and copy")
        assert_same_state(learner, twin)


def a_file_must_fit_its_class(case: Case) -> None:
    """A file with a valid checksum that contradicts itself is refused in one line."""
    learner = case.learned(50)
    name, load = type(learner).__name__, _loader(learner)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.skn")
        learner.save(path)
        header, arrays = read(path)
        parameters = header["parameters"]
        counts = next((key for key in arrays if key.rpartition("/")[2] == "counts"), "")
        require(counts, "there is no array 'counts'")
        broken = {
            "an array missing": (header, {k: v for k, v in arrays.items() if k != counts}),
            "an array of another shape": (header, {**arrays, counts: arrays[counts][:-1]}),
            "a counter beyond its array": (header, {**arrays, counts: arrays[counts] + 10**9}),
            "an unknown parameter": ({**header, "parameters": {**parameters, "zeal": 3}}, arrays),
        }
        if "loss" in parameters:
            broken["an unknown loss"] = ({**header, "parameters": {**parameters, "loss": "none"}}, arrays)
        for what, content in broken.items():
            write(path, *content)
            require_refused(lambda: load(path), "not a usable", f"a file with {what}", ModelFileError)
        learner.save(path)
        require(type(load(path)) is type(learner), "the whole file gives another class")
        other = f"holds a {name}, not a sketch" if name in HOMES else name
        require_refused(lambda: Sketch.load(path), other, "a sketch of a learner's file", ModelFileError)
        write(path, {**header, "class": "Oracle"}, arrays)
        require_refused(lambda: load(path), "Oracle", "a file of another class", ModelFileError)


# -- predictions


def predict_is_the_next_prediction_and_changes_nothing(case: Case) -> None:
    """`predict` gives what `learn` returns for the next row; a linear learner's is w·x + b, clipped."""
    learner = case.learned(400)
    before = copy.deepcopy(learner)
    X, y = case.stream(50, seed=5)
    predictions = learner.predict(X)
    assert_same_state(learner, before)
    require_close(learner.learn(X[:1], y[:1])[0], predictions[0], "the next prediction", atol=1e-6)
    if before.experts:  # a mixture is not linear in the row
        return
    offset = before.intercept_ if before.classes is None else before.intercepts
    expected = np.clip(X @ before.weights + offset, *before.prediction_bounds)
    require_close(predictions, expected, "predictions are not w·x + b within their bounds", atol=1e-5)


def scores_depend_on_the_state_alone(case: Case) -> None:
    """What was looked up for earlier scores must not outlive the state that it was looked up in."""
    X, y = case.stream()
    learner = case.make()
    for start in range(0, 300, 7):
        learner.learn(X[start : start + 7], y[start : start + 7])
        require_same(
            learner.decision_function(X[:20]),
            copy.deepcopy(learner).decision_function(X[:20]),
            f"scores after {start + 7} rows",
        )


def unknown_features_count_as_zero(case: Case) -> None:
    """Features that were never learned from do not change a prediction."""
    from scipy.sparse import csr_array

    learner = case.learned(100)
    X, _ = case.stream(5, seed=5)
    wide = np.hstack([X, np.full((5, 5000), 7.0)])
    require_same(learner.predict(csr_array(wide)), learner.predict(X), "predictions with features never seen")


def weight_zero_leaves_no_trace(case: Case) -> None:
    """A row of weight 0 is predicted and not learned."""
    X, y = case.stream(200)
    h = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    some, rest = case.make(), case.make()
    predictions = some.learn(X, y, h)
    require_same(predictions[h > 0], rest.learn(X[h > 0], y[h > 0]), "predictions of rows that have a weight")
    assert_same_state(some, rest)


def rows_of_zeros_are_rows(case: Case) -> None:
    """They count, move no weight and break nothing."""
    learner = case.make()
    predictions = learner.learn(np.zeros((20, 5)), case.labels(np.tile([1.0, -1.0], 10)))
    require_finite(predictions, "predictions of rows of zeros")
    require(learner.rows_seen == 20, f"{learner.rows_seen} rows seen, not 20")
    require(not learner.weights.any(), "a row of zeros moved a weight")
    require_finite(learner.learn(*case.stream(100)), "predictions after rows of zeros")


def features_of_any_scale_stay_finite(case: Case) -> None:
    """Some features 10¹⁵ times as large or as small as others, two of them equal."""
    for scale in (1e-15, 1e15):
        X, y = case.stream(500)
        X[:, ::3] *= scale
        X[:, 1] = X[:, 4]
        learner = case.make()
        require_finite(learner.learn(X, y), f"predictions with features of scale {scale:g}")
        for name, array in state(learner).items():
            require_finite(array, f"array {name!r} with features of scale {scale:g}")


def the_largest_weights_come_first(case: Case) -> None:
    """`largest_weights` lists each feature learned from once, by the size of its weight."""
    learner = case.make()
    require(learner.largest_weights()[0].shape == (0,), "a fresh learner has weights")
    learner.learn(*case.stream())
    features, values = learner.largest_weights()
    unique = len(set(features.tolist()))
    require(learner.features_seen == len(features) == unique, f"{learner.features_seen} features seen")
    require_same(values, learner.weights[features], "the weights listed")
    sizes = np.abs(values) if values.ndim == 1 else np.abs(values).max(axis=1)
    require((np.diff(sizes) <= 0).all(), "a larger weight comes after a smaller one")
    some, largest = learner.largest_weights(3)
    require_same(some, features[:3], "the features of the largest three")
    require_same(largest, values[:3], "the weights of the largest three")


# -- bad input, threads


def bad_input_changes_nothing(case: Case) -> None:
    """It is refused with ValueError, which says what is wrong, and the learner stays as it was."""
    learner = case.learned(50)
    before = copy.deepcopy(learner)
    for name, (X, y, weights, message) in _bad_input().items():
        require_refused(partial(learner.learn, X, y, weights), message, name)
        assert_same_state(learner, before)


def _bad_input() -> dict[str, tuple[object, list[float], list[float] | None, str]]:
    from scipy.sparse import csr_array

    negative = csr_array(([1.0], [0], [0, 1]), shape=(1, 2))
    negative.indices[0] = -1
    infinite = np.array([[1.0, 0.0], [-np.inf, 0.0]])
    two = np.ones((2, 1))
    return {
        "NaN": (np.array([[1.0, np.nan]]), [1.0], None, "X contains NaN: row 0, feature 1"),
        "infinity": (infinite, [1.0, 1.0], None, "X contains infinity: row 1, feature 0"),
        "a value too large": (np.array([[1e31]]), [1.0], None, "beyond"),
        "one dimension": (np.array([1.0]), [1.0], None, "expected two dimensions"),
        "complex numbers": (np.array([[1j]]), [1.0], None, "Complex"),
        "text": ([["a"]], [1.0], None, "could not convert"),
        "too few labels": (two, [1.0], None, "y has shape"),
        "a label that is NaN": (two, [1.0, np.nan], None, "label nan"),
        "too few weights": (two, [1.0, 1.0], [1.0], "sample_weight has shape"),
        "a negative weight": (two, [1.0, 1.0], [1.0, -1.0], "sample_weight=-1 at row 1"),
        "a negative index": (negative, [1.0], None, "negative feature index"),
    }


def one_learner_serves_several_threads(case: Case) -> None:
    """Each call is whole: no row is lost, and nothing is torn by growth of the table or by a look inside."""
    from scipy.sparse import csr_array

    learner = case.make()
    X, y = case.stream(600, d=300)
    failures: list[BaseException] = []

    def work(part: int) -> None:
        try:
            for i in range(part * 200, part * 200 + 200, 20):
                width = 100 + i // 3
                learner.learn(csr_array(X[i : i + 20, :width]), y[i : i + 20])
                require_finite(learner.predict(X[:5]), "predictions in a thread")
                require_finite(learner.weights, "weights seen by a thread")
                copy.deepcopy(learner)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    require(learner.rows_seen == 600, f"{learner.rows_seen} rows seen, not 600")


LEARNER_PROMISES = by_title(
    batches_do_not_matter,
    features_that_come_late_do_not_matter,
    all_array_formats_give_the_same,
    float32_rows_are_learned_as_they_are,
    saving_loading_and_continuing_equals_never_stopping,
    bytes_come_back_whole,
    copies_are_independent,
    a_file_must_fit_its_class,
    predict_is_the_next_prediction_and_changes_nothing,
    scores_depend_on_the_state_alone,
    unknown_features_count_as_zero,
    weight_zero_leaves_no_trace,
    rows_of_zeros_are_rows,
    features_of_any_scale_stay_finite,
    the_largest_weights_come_first,
    bad_input_changes_nothing,
    one_learner_serves_several_threads,
)
"""What every learner promises, in words, and the check of each."""


def check_learner(
    make: Callable[[], Learner], *, dense: bool = False, only: Iterable[str] | None = None
) -> None:
    """Check that learners which `make` returns keep what every learner promises.

    Raises AssertionError that names the first promise that is broken. `dense` gives shorter streams with fewer
    features, for learners whose cost per row grows with the dimension. `only` names some of the
    `LEARNER_PROMISES`, so that a test framework can run and report one at a time.

    >>> from sketchnewton import SketchedNewton
    >>> check_learner(lambda: SketchedNewton("fd", 4), only=["weight zero leaves no trace"])
    >>> class Forgetful(SketchedNewton):
    ...     def learn(self, X, y, sample_weight=None):
    ...         return super().learn(X, y)
    >>> check_learner(Forgetful, only=["weight zero leaves no trace"])
    Traceback (most recent call last):
    ...
    AssertionError: broken promise: weight zero leaves no trace: ...
    """
    check(LEARNER_PROMISES, Case(make, dense), only)
