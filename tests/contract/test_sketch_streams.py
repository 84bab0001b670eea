"""Merging, targets and coordinates of single sketches; what all of them promise is in test_sketches.py."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from sketchnewton import (
    ExactCovariance,
    FrequentDirections,
    OjaSketch,
    RandomProjection,
    RobustFrequentDirections,
)
from tests.contract.sketches import ALL


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


def test_a_target_needs_few_rows_where_few_directions_matter() -> None:
    random = np.random.default_rng(0)
    A = random.standard_normal((3000, 100)) * np.geomspace(1, 1e-3, 100)
    sizes = [FrequentDirections(target_error=target).update(A).size for target in (0.1, 0.01, 0.001)]
    assert sizes[0] < sizes[1] < sizes[2] < 80


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "greedy"])
def test_rows_of_low_rank_come_back(kind: str) -> None:
    A = np.random.default_rng(0).standard_normal((40, 3)) @ np.random.default_rng(1).standard_normal((3, 9))
    sketch = ALL[kind](5).update(A)
    np.testing.assert_allclose(sketch.inverse_transform(sketch.transform(A)), A, atol=1e-6)
