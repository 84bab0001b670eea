"""How rows arrive does not matter, nor how sketches are merged; what is forgotten is what was promised."""

from __future__ import annotations

import copy
import pickle
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

from sketchnewton import (
    ExactCovariance,
    FrequentDirections,
    OjaSketch,
    RandomProjection,
    RobustFrequentDirections,
)
from tests.contract.sketches import ALL, CERTIFIED, Matrix, matrices, optimum, rounding, unit

few = settings(max_examples=40, deadline=None)


def assert_same(one: Any, other: Any, scale: float, slack: float) -> None:
    assert one.rows_seen == other.rows_seen
    a, b = one.matrix / scale, other.matrix / scale
    np.testing.assert_allclose(a.T @ a, b.T @ b, atol=slack)
    assert one.ridge / scale / scale == pytest.approx(other.ridge / scale / scale, abs=slack)
    if np.isfinite(one.error_bound):
        assert one.error_bound / scale / scale == pytest.approx(other.error_bound / scale / scale, abs=slack)
    assert one.squared_norm / scale / scale == pytest.approx(other.squared_norm / scale / scale, abs=slack)


class Table:
    """The one thing that sketches need of a data frame: that NumPy can read it."""

    def __init__(self, array: Matrix) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Matrix:
        return self.array.astype(dtype or float)


@pytest.mark.parametrize("kind", ALL)
@few
@given(
    A=matrices(),
    m=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    form=st.sampled_from([np.array, csr_array, csr_matrix, coo_array, Table, np.asfortranarray, list]),
)
def test_how_rows_arrive_does_not_matter(kind: str, A: Matrix, m: int, cuts: list[int], form: Any) -> None:
    whole, single, parts = ALL[kind](m).update(A), ALL[kind](m), ALL[kind](m)
    for row in A:
        single.update(row)
    for part in np.split(A, sorted(min(cut, len(A)) for cut in cuts)):
        if len(part):
            parts.update(form(part))
    iterated = ALL[kind](m).update(iter([csr_array(A[:7]), *A[7:]]))
    A, scale = unit(A)
    for sketch in (single, parts, iterated):
        assert_same(sketch, whole, scale, rounding(A) + (1e-9 * float((A**2).sum()) if kind == "oja" else 0))


@pytest.mark.parametrize("kind", CERTIFIED)
@few
@given(A=matrices(), m=st.integers(2, 6), data=st.data())
def test_merging_in_any_tree_keeps_the_bound(kind: str, A: Matrix, m: int, data: st.DataObject) -> None:
    pieces = [part for part in np.array_split(A, data.draw(st.integers(1, 6))) if len(part)]
    sketches = [CERTIFIED[kind](m).update(part) for part in pieces]
    while len(sketches) > 1:
        other = sketches.pop(data.draw(st.integers(0, len(sketches) - 1)))
        sketches[data.draw(st.integers(0, len(sketches) - 1))].merge(other)
    (sketch,) = sketches
    assert sketch.rows_seen == sketch.rows_covered == len(A)
    A, scale = unit(A)
    B = sketch.matrix / scale
    error = A.T @ A - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale)
    bound = sketch.error_bound / scale / scale
    assert np.linalg.norm(error, 2) <= bound + rounding(A)
    counted = {"pfd": max(1, m // 2), "greedy": 1}.get(kind, m)
    assert bound <= (0.5 if kind == "rfd" else 1.0) * optimum(A, counted) + rounding(A)
    assert sketch.squared_norm / scale / scale == pytest.approx((A**2).sum(), abs=rounding(A))


def test_plus_and_sum_leave_their_terms_alone() -> None:
    A = np.random.default_rng(0).standard_normal((90, 8))
    terms = [FrequentDirections(4).update(part) for part in np.split(A, 3)]
    before = [term.matrix for term in terms]
    total = sum(terms)
    np.testing.assert_allclose(total.matrix, (terms[0] + terms[1] + terms[2]).matrix)
    np.testing.assert_allclose(
        total.matrix, reduce(lambda a, b: a.merge(b), terms, FrequentDirections(4)).matrix
    )
    for term, matrix in zip(terms, before, strict=True):
        np.testing.assert_array_equal(term.matrix, matrix)
    assert (terms[0] + terms[0]).rows_seen == 60


def test_sketches_that_cannot_be_merged() -> None:
    A = np.eye(3)
    fd = FrequentDirections(2).update(A)
    before = fd.matrix
    for other, words in (
        (
            RobustFrequentDirections(2).update(A),
            "a RobustFrequentDirections into a FrequentDirections",
        ),
        (FrequentDirections(2).update(np.eye(4)), "of 3 and 4 features"),
        (FrequentDirections(2, decay=0.5).update(A), "decay=1.0 and decay=0.5"),
        (fd, "into itself"),
    ):
        with pytest.raises(ValueError, match=words):
            fd.merge(other)
        np.testing.assert_array_equal(fd.matrix, before)
    with pytest.raises(TypeError):
        fd + 3
    with pytest.raises(ValueError, match="windows"):
        FrequentDirections(2, window=5).merge(FrequentDirections(2, window=5))
    two = RandomProjection(2, random_state=1).update(A) + RandomProjection(2).update(A)
    with pytest.raises(ValueError, match="share random_state=0"):
        RandomProjection(2).update(A).merge(two)
    with pytest.raises(ValueError, match="size 2 and 3"):
        RandomProjection(2).merge(RandomProjection(3, random_state=1))
    with pytest.raises(ValueError, match="size 2 and 3"):
        OjaSketch(2).merge(OjaSketch(3))


def test_random_projections_merge_to_one_of_all_rows() -> None:
    A = np.random.default_rng(0).standard_normal((400, 5))
    mean = np.zeros((5, 5))
    for s in range(0, 200, 2):
        halves = (RandomProjection(50, random_state=s + at).update(A[at::2]) for at in (0, 1))
        mean += sum(halves).covariance() / 100
    np.testing.assert_allclose(mean, A.T @ A, atol=0.05 * 400)


def test_exact_and_oja_merge() -> None:
    A = np.random.default_rng(0).standard_normal((400, 6)) * np.geomspace(5, 0.1, 6)
    exact = ExactCovariance().update(A[:100]) + ExactCovariance().update(1e-9 * A[100:])
    np.testing.assert_allclose(
        exact.covariance(), A[:100].T @ A[:100] + 1e-18 * A[100:].T @ A[100:], atol=1e-12
    )
    oja = OjaSketch(3).update(A[:200]) + OjaSketch(3).update(A[200:])
    np.testing.assert_allclose(oja.singular_values_, np.linalg.svd(A, compute_uv=False)[:3], rtol=0.05)
    assert len(oja.matrix) == 3


@pytest.mark.parametrize("kind", CERTIFIED)
@few
@given(A=matrices(), m=st.integers(1, 6), decay=st.sampled_from([0.99, 0.7, 0.1]))
def test_decay_weighs_rows_by_their_age(kind: str, A: Matrix, m: int, decay: float) -> None:
    sketch = CERTIFIED[kind](m, decay=decay)
    for part in np.array_split(A, 3):
        if len(part):
            sketch.update(part)
    A, scale = unit(A)
    W = A * decay ** (np.arange(len(A))[::-1, None] / 2)
    B = sketch.matrix / scale
    error = W.T @ W - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale)
    bound = sketch.error_bound / scale / scale
    assert np.linalg.norm(error, 2) <= bound + rounding(A)
    counted = {"pfd": max(1, m // 2), "greedy": 1}.get(kind, m)
    assert bound <= (0.5 if kind == "rfd" else 1.0) * optimum(W, counted) + rounding(A)
    assert sketch.squared_norm / scale / scale == pytest.approx((W**2).sum(), abs=rounding(A))


@pytest.mark.parametrize("kind", CERTIFIED)
@few
@given(A=matrices(), m=st.integers(1, 6), window=st.integers(1, 70), step=st.integers(1, 60))
def test_a_window_covers_the_last_rows(kind: str, A: Matrix, m: int, window: int, step: int) -> None:
    sketch = CERTIFIED[kind](m, window=window)
    for at in range(0, len(A), step):
        sketch.update(A[at : at + step])
    covered = sketch.rows_covered
    assert min(len(A), window) <= covered <= min(len(A), window + -(-window // 8) - 1)
    A, scale = unit(A)
    W = A[len(A) - covered :]
    B = sketch.matrix / scale
    error = W.T @ W - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale)
    bound = sketch.error_bound / scale / scale
    assert np.linalg.norm(error, 2) <= bound + rounding(A)
    counted = {"pfd": max(1, m // 2), "greedy": 1}.get(kind, m)
    assert bound <= (0.5 if kind == "rfd" else 1.0) * optimum(W, counted) + rounding(A)


@pytest.mark.parametrize("kind", CERTIFIED)
@few
@given(A=matrices(), target=st.sampled_from([0.5, 0.1, 0.01, 1e-4]))
def test_a_target_is_reached_after_every_row(kind: str, A: Matrix, target: float) -> None:
    sketch = CERTIFIED[kind](None, target_error=target)
    for end in range(len(A)):
        sketch.update(A[end])
        assert sketch.error_bound <= target * sketch.squared_norm * (1 + 1e-9)
    A, scale = unit(A)
    B = sketch.matrix / scale
    error = A.T @ A - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale)
    assert np.linalg.norm(error, 2) <= target * (A**2).sum() + rounding(A)


def test_a_target_needs_few_rows_where_few_directions_matter() -> None:
    random = np.random.default_rng(0)
    A = random.standard_normal((3000, 100)) * np.geomspace(1, 1e-3, 100)
    sizes = [FrequentDirections(target_error=target).update(A).size for target in (0.1, 0.01, 0.001)]
    assert sizes[0] < sizes[1] < sizes[2] < 80


@pytest.mark.parametrize("kind", ALL)
def test_reading_changes_nothing(kind: str) -> None:
    A = np.random.default_rng(0).standard_normal((100, 7))
    read, unread = ALL[kind](3), ALL[kind](3)
    for part in np.split(A, 10):
        read.update(part)
        unread.update(part)
        _ = read.matrix, read.error_bound, read.covariance(), read.squared_norm, read.solve(A[0], 1.0)
        read.matrix[:] = 7
        read.components_[:] = 7
    np.testing.assert_array_equal(read.matrix, unread.matrix)


@pytest.mark.parametrize("kind", ALL)
def test_copies_are_their_own(kind: str) -> None:
    A = np.random.default_rng(0).standard_normal((100, 7))
    sketch = ALL[kind](3).update(A[:50])
    for twin in (copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))):
        before = sketch.matrix
        twin.update(A[50:])
        np.testing.assert_array_equal(sketch.matrix, before)
        np.testing.assert_allclose(twin.covariance(), ALL[kind](3).update(A).covariance(), atol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_new_columns_are_zero(kind: str) -> None:
    A = np.random.default_rng(0).standard_normal((60, 5))
    wide = np.hstack([A, np.zeros((60, 2))])
    sketch = ALL[kind](4).update(A)
    sketch.widen(7)
    expected = ALL[kind](4).update(wide).covariance()
    np.testing.assert_allclose(sketch.covariance()[:5, :5], expected[:5, :5], atol=1e-9)
    assert not sketch.matrix[:, 5:].any()
    sketch.update(wide)
    with pytest.raises(ValueError, match="the sketch has 7"):
        sketch.widen(6)
    if np.isfinite(sketch.error_bound):
        error = 2 * wide.T @ wide - sketch.covariance()
        assert np.linalg.norm(error, 2) <= sketch.error_bound + 1e-9


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1.0])
def test_solve_inverts_the_covariance(kind: str, alpha: float) -> None:
    random = np.random.default_rng(0)
    A, v = random.standard_normal((40, 12)), random.standard_normal((12, 3))
    sketch = ALL[kind](5).update(A)
    C = sketch.covariance() + alpha * np.eye(12)
    expected = np.linalg.pinv(C, rcond=1e-13) @ v if sketch.ridge + alpha == 0 else np.linalg.solve(C, v)
    np.testing.assert_allclose(
        sketch.solve(v, alpha), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()
    )
    np.testing.assert_allclose(sketch.solve(v[:, 0], alpha), sketch.solve(v, alpha)[:, 0])


@pytest.mark.parametrize("kind", ALL)
def test_transform_and_back(kind: str) -> None:
    A = np.random.default_rng(0).standard_normal((40, 3)) @ np.random.default_rng(1).standard_normal((3, 9))
    sketch = ALL[kind](5).update(A)
    Z = sketch.transform(A)
    np.testing.assert_allclose(Z, sketch.transform(csr_array(A)), atol=1e-9)
    if kind != "greedy":
        np.testing.assert_allclose(sketch.inverse_transform(Z), A, atol=1e-6)
    with pytest.raises(ValueError, match="columns"):
        sketch.inverse_transform(np.ones((2, 30)))
