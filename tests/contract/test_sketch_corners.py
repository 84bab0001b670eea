"""Sketches of awkward input: nothing is lost, misread or refused too late."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton import (
    CompensativeFrequentDirections,
    ExactCovariance,
    FrequentDirections,
    GreedyDirections,
    Model,
    NewtonBank,
    OjaSketch,
    ParameterizedFrequentDirections,
    RandomProjection,
    RobustFrequentDirections,
    SketchedNewtonRegressor,
    SketchedPCA,
)
from sketchnewton.sketches import CenteredSketch

KINDS: dict[str, Callable[..., Any]] = {
    "fd": lambda **more: FrequentDirections(4, **more),
    "rfd": lambda **more: RobustFrequentDirections(4, **more),
    "pfd": lambda **more: ParameterizedFrequentDirections(4, **more),
    "cfd": lambda **more: CompensativeFrequentDirections(4, **more),
    "greedy": lambda **more: GreedyDirections(4, **more),
    "oja": lambda **more: OjaSketch(4, **more),
    "rp": lambda **more: RandomProjection(4, **more),
    "exact": ExactCovariance,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
A = np.random.default_rng(0).standard_normal((40, 6))


def another(kind: str, **more: object) -> Any:
    """A sketch to be merged: random projections must differ."""
    return KINDS[kind](**more, **({"random_state": 1} if kind == "rp" else {}))


@every_kind
@pytest.mark.parametrize(("dtype", "scale"), [("float64", 1e-150), ("float32", 1e-25), ("float32", 1e-30)])
def test_merging_rows_of_zeros_loses_nothing(kind: str, dtype: str, scale: float) -> None:
    """Whatever the scale of the others: the same as at scale 1."""

    def merged(scale: float, *, zeros_first: bool) -> Any:
        rows = KINDS[kind](dtype=dtype).update(A * scale)
        zeros = another(kind, dtype=dtype).update(np.zeros((3, 6)))
        return (zeros.merge(rows) if zeros_first else rows.merge(zeros)).singular_values_

    for zeros_first in (False, True):
        usual = merged(1.0, zeros_first=zeros_first)
        assert usual[0] > 1.0
        found = merged(scale, zeros_first=zeros_first)
        np.testing.assert_allclose(found / scale, usual, rtol=1e-4)


@every_kind
@pytest.mark.parametrize("scale", [1e-170, 1e-300, 5e-324])
def test_rows_whose_squares_vanish(kind: str, scale: float) -> None:
    """Singular values may, too, where energies are kept; nothing is divided by them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketch = KINDS[kind]().update(A * scale)
        values = sketch.singular_values_
        assert np.isfinite(sketch.matrix).all()
        assert np.isfinite(sketch.covariance()).all()
        assert sketch.error_bound == 0.0 or kind in ("oja", "rp")
    if kind != "oja" and scale > 1e-310:
        exact = np.linalg.svd(A, compute_uv=False)[0] * scale
        assert values[0] == pytest.approx(exact, rel=0.9)


@every_kind
def test_a_sketch_that_the_type_cannot_hold_is_not_merged(kind: str) -> None:
    sketch = KINDS[kind](dtype="float32").update(A)
    before = sketch.matrix
    with pytest.raises(ValueError, match=r"cannot merge a sketch of entries up to .* into one of float32"):
        sketch.merge(another(kind).update(A * 1e60))
    np.testing.assert_array_equal(sketch.matrix, before)
    assert np.isfinite(sketch.merge(another(kind).update(A * 1e20)).matrix).all()


@every_kind
def test_masked_entries_are_refused(kind: str) -> None:
    """NumPy would take what is behind the mask."""
    with pytest.raises(ValueError, match="the array of rows has masked entries"):
        KINDS[kind]().update(np.ma.masked_array(A, mask=A > 1))
    unmasked = KINDS[kind]().update(np.ma.masked_array(A, mask=False))
    np.testing.assert_array_equal(unmasked.matrix, KINDS[kind]().update(A).matrix)


MASKED = np.ma.masked_array(A, mask=A > 1)


@pytest.mark.parametrize(
    ("learn", "what"),
    [
        (lambda: NewtonBank().learn(MASKED, A[:, 0]), "X has masked"),
        (lambda: NewtonBank().learn(A, MASKED[:, 0]), "y has masked"),
        (lambda: NewtonBank().learn(A, A[:, 0], MASKED[:, 0] ** 2), "sample_weight has masked"),
        (lambda: NewtonBank().predict(MASKED), "X has masked"),
        (lambda: Model().learn(MASKED, A[:, 0]), "the array of records has masked"),
        (lambda: Model().learn(A, MASKED[:, 0]), "has no label"),
        (lambda: Model().learn(A, A[:, 0], MASKED[:, 0] ** 2), "masked entries"),
        (lambda: SketchedNewtonRegressor().fit(MASKED, A[:, 0]), "X has masked"),
        (lambda: SketchedNewtonRegressor().fit(A, MASKED[:, 0]), "y has masked"),
        (lambda: SketchedNewtonRegressor().fit(A, A[:, 0], MASKED[:, 0] ** 2), "sample_weight has masked"),
        (lambda: SketchedNewtonRegressor().fit(A, A[:, 0]).predict(MASKED), "X has masked"),
        (lambda: SketchedPCA().fit(MASKED), "X has masked"),
    ],
)
def test_masked_entries_are_not_learned_either(learn: Callable[[], object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        learn()


@every_kind
@pytest.mark.parametrize("width", [6.5, True, "8", None, -1, 3])
def test_widths_that_mean_nothing(kind: str, width: object) -> None:
    sketch = KINDS[kind]().update(A)
    with pytest.raises(ValueError, match=r"n_features=.* is invalid"):
        sketch.widen(width)
    assert sketch.n_features == 6
    sketch.widen(np.int64(8))
    assert sketch.update(np.ones(8)).n_features == 8


@every_kind
def test_what_cannot_be_solved(kind: str) -> None:
    sketch = KINDS[kind]().update(A)
    for alpha in (True, -1.0, math.nan, math.inf, "much", None):
        with pytest.raises(ValueError, match=r"alpha=.* is invalid"):
            sketch.solve(np.ones(6), alpha)
    with pytest.raises(ValueError, match="Complex data not supported"):
        sketch.solve(np.full(6, 1j))


@every_kind
def test_sparse_rows_that_mean_nothing(kind: str) -> None:
    class Parts:
        indptr, indices, data, shape = np.array([0, 1]), np.array([0.0]), np.array([1.0]), (1, 6)

    with pytest.raises(ValueError, match="indices of dtype float64: expected integers"):
        KINDS[kind]().update(Parts())
    # A thousand entries of one place: each may be squared, their sum may not.
    twice = csr_array((np.full(1000, 3e152), np.zeros(1000, int), [0, 1000]), shape=(1, 6))
    with pytest.raises(ValueError, match=r"entries up to 3e\+155: their squares could leave the range"):
        KINDS[kind]().update(twice)
    with pytest.raises(ValueError, match=r"add up to 9e\+32, beyond 1e\+30"):
        KINDS[kind](dtype="float32").update(twice * 3e-123)


def test_centered_rows_that_are_refused_decide_nothing() -> None:
    centered = CenteredSketch(FrequentDirections(8))
    with pytest.raises(ValueError, match="leave the range of float64"):
        centered.update(np.full((2, 4), 1e200))
    centered.update(A)
    np.testing.assert_allclose(centered.sketch.covariance(), 39 * np.cov(A.T))
