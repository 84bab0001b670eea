"""Sparse rows stay sparse in Frequent Directions and its variants, and the sketch is that of the dense rows."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array, vstack
from threadpoolctl import threadpool_info, threadpool_limits

import sketchnewton
from sketchnewton import FrequentDirections, OjaSketch, ParameterizedFrequentDirections
from sketchnewton.core import archive
from sketchnewton.core.archive import ModelFileError
from sketchnewton.sketches import CenteredSketch
from sketchnewton.sketches.threads import one_blas_thread
from tests.contract.sketches import CERTIFIED

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def sparse_rows(seed: int, n: int = 90, d: int = 400, density: float = 0.01) -> csr_array:
    """Rows of which some are empty, some repeated, and columns of which some are common."""
    random = np.random.default_rng(seed)
    X = random_array((n, d), density=density, format="csr", rng=random)
    common = csr_array((np.ones(n), (np.arange(n), random.integers(0, 3, n))), shape=(n, d))
    X = csr_array(X + common)
    X.data[random.random(len(X.data)) < 0.1] = 0  # explicit zeros are allowed
    return csr_array(X[random.permutation(n) // 2])


def assert_same(one: Any, other: Any, slack: float) -> None:
    np.testing.assert_allclose(one.covariance(), other.covariance(), atol=slack)
    assert one.error_bound == pytest.approx(other.error_bound, abs=slack)
    assert one.squared_norm == pytest.approx(other.squared_norm, rel=1e-6)


@pytest.mark.parametrize("kind", CERTIFIED)
@pytest.mark.parametrize("more", [{}, {"decay": 0.9}, {"window": 40}, {"dtype": "float32"}])
@few
@given(seed=seeds, m=st.integers(1, 8), cuts=st.lists(st.integers(0, 90), max_size=4), turn=st.integers(0, 2))
def test_sparse_equals_dense(
    kind: str, more: dict[str, Any], seed: int, m: int, cuts: list[int], turn: int
) -> None:
    X = sparse_rows(seed)
    dense, sparse = CERTIFIED[kind](m, **more).update(X.toarray()), CERTIFIED[kind](m, **more)
    for at, (start, stop) in enumerate(zip([0, *sorted(cuts)], [*sorted(cuts), 90], strict=True)):
        part = csr_array(X[start:stop])
        sparse.update(part.toarray() if turn and at % 2 == turn - 1 else part)  # the two sorts may take turns
    assert_same(sparse, dense, 1e-4 if "dtype" in more else 1e-9)


@few
@given(seed=seeds, target=st.sampled_from([0.1, 0.01]))
def test_a_target_for_sparse_rows(seed: int, target: float) -> None:
    X = sparse_rows(seed)
    sparse, dense = (FrequentDirections(target_error=target).update(rows) for rows in (X, X.toarray()))
    assert sparse.size == dense.size
    assert_same(sparse, dense, 1e-9)
    assert sparse.error_bound <= target * sparse.squared_norm * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_tiny_and_huge_sparse_rows(scale: float) -> None:
    X = sparse_rows(0)
    sketch = FrequentDirections(5).update(scale * X)
    np.testing.assert_allclose(
        sketch.singular_values_ / scale, FrequentDirections(5).update(X).singular_values_, rtol=1e-9
    )


def test_sparse_rows_are_not_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    X, toarray = sparse_rows(0), csr_array.toarray

    def checked(self: csr_array) -> Any:
        assert self.shape[1] < X.shape[1], "sparse rows became dense"
        return toarray(self)

    def refuse(self: Any, *args: Any) -> None:
        raise AssertionError("sparse rows became dense")

    monkeypatch.setattr(csr_array, "toarray", checked)
    monkeypatch.setattr("sketchnewton.sketches.rows.Rows.copy_to", refuse)
    sketch, centered = FrequentDirections(5).update(X), CenteredSketch(ParameterizedFrequentDirections(5))
    centered.update(X)
    assert sketch.error_bound > 0
    assert centered.sketch.error_bound > 0


@pytest.mark.parametrize("shift", [0.0, 3.0])
@few
@given(seed=seeds, m=st.integers(1, 8), cuts=st.lists(st.integers(1, 90), max_size=4))
def test_centered_sparse_equals_centered_dense(shift: float, seed: int, m: int, cuts: list[int]) -> None:
    X = sparse_rows(seed)
    if shift:  # a large mean
        X = csr_array(X + csr_array((np.full(90, shift), (np.arange(90), np.zeros(90, int))), shape=X.shape))
    whole, parts = (CenteredSketch(FrequentDirections(m)) for _ in range(2))
    whole.update(X.toarray())
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 90], strict=True):
        parts.update(csr_array(X[start:stop]))
    np.testing.assert_allclose(parts.mean, whole.mean, atol=1e-12)
    assert_same(parts.sketch, whole.sketch, 1e-8)
    scatter = (X.toarray() - whole.mean).T @ (X.toarray() - whole.mean)
    assert np.linalg.norm(scatter - parts.sketch.covariance(), 2) <= parts.sketch.error_bound + 1e-8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stop", [3, 17, 40, 53, 71])
def test_saved_and_copied_between_shrinks(dtype: str, stop: int, tmp_path: Path) -> None:
    """Bit for bit, with sparse, dense and centered rows that wait in the buffer."""
    X = sparse_rows(3)
    centered = CenteredSketch(FrequentDirections(6, dtype=dtype))
    centered.update(X[:stop])
    plain = FrequentDirections(6, dtype=dtype).update(X[:2]).update(X[2:3].toarray()).update(X[3:stop])
    for sketch in (plain, centered.sketch):
        sketch.save(tmp_path / "s.skn")
        others = [
            sketchnewton.load(tmp_path / "s.skn"),
            copy.deepcopy(sketch),
            pickle.loads(pickle.dumps(sketch)),
        ]
        expected = sketch.update(X[stop:]).matrix
        for other in others:
            np.testing.assert_array_equal(other.update(X[stop:]).matrix, expected)
            assert other.error_bound == sketch.error_bound


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state0.indices", np.full(30, 400)),
        ("state0.indices", np.full(30, -1)),
        ("state0.indptr", np.array([0, 31])),
        ("state0.indptr", np.array([0, 20, 10])),
        ("state0.data", np.full(30, np.nan)),
        ("state0.data", None),
        ("state0.mix", np.zeros((3, 1))),
    ],
)
def test_files_with_impossible_sparse_rows(name: str, value: Any, tmp_path: Path) -> None:
    row = csr_array((np.ones(15), (np.zeros(15, int), np.arange(15))), shape=(1, 400))
    file = tmp_path / "s.skn"
    FrequentDirections(5).update(vstack([row, row], format="csr")).save(file)
    header, arrays = archive.read(file)
    arrays[name] = value
    archive.write(file, header, {key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(ModelFileError, match="not a usable FrequentDirections"):
        sketchnewton.load(file)


def test_the_callers_rows_may_change_afterwards() -> None:
    A = np.random.default_rng(0).standard_normal((20, 6))
    X = sparse_rows(0)
    for rows, values in ((A, A), (X, X.data)):
        kept = copy.deepcopy(rows)
        sketch = FrequentDirections(4).update(rows)
        values[:] = 1e9
        np.testing.assert_array_equal(sketch.matrix, FrequentDirections(4).update(kept).matrix)


@pytest.mark.parametrize("name", [*CERTIFIED, "oja"])
def test_columns_that_no_row_uses_cost_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hashed rows nearly all columns are empty: the SVD of low-rank ones looks at the others alone."""
    kind = {**CERTIFIED, "oja": OjaSketch}[name]
    few_columns = np.random.default_rng(3).standard_normal((200, 3))
    places = [17, 40_000, 99_999]
    hashed = csr_array(
        (few_columns.ravel(), np.tile(places, 200), np.arange(0, 601, 3)), shape=(200, 100_000)
    )
    narrow = kind(8).update(few_columns)
    widths: list[int] = []
    svd = np.linalg.svd
    monkeypatch.setattr(
        np.linalg, "svd", lambda A, *args, **options: (widths.append(A.shape[1]), svd(A, *args, **options))[1]
    )
    wide = kind(8).update(hashed)
    np.testing.assert_allclose(wide.singular_values_, narrow.singular_values_, rtol=1e-12)
    assert wide.error_bound <= 1e-12 * wide.squared_norm or name == "oja"
    np.testing.assert_allclose(
        wide.matrix[:, places].T @ wide.matrix[:, places], narrow.matrix.T @ narrow.matrix, atol=1e-9
    )
    assert np.count_nonzero((np.abs(wide.matrix) > 1e-12).any(axis=0)) == 3  # but for rounding in QR
    assert widths, "some SVD was needed"
    assert max(widths) <= 8
    empty = kind(8).update(csr_array((100, 100_000)))
    assert empty.singular_values_.tolist() == []
    assert empty.rows_seen == 100


def test_one_blas_thread_restores_what_was() -> None:
    def numbers() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert numbers() == {1}
            thread.start()
            inside.wait(60)
        assert numbers() == {2}
        leave.set()
        thread.join()
        assert numbers() == {2}
