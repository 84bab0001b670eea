"""The guarantees of the sketches, as theory states them, on matrices of every awkward sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sketchnewton import (
    FrequentDirections,
    GreedyDirections,
    ParameterizedFrequentDirections,
    RobustFrequentDirections,
)
from sketchnewton.testing.sketches import ROW_PROMISES, SKETCH_PROMISES, check_sketch
from tests.contract.sketches import ALL, CERTIFIED, THEORY, Matrix, matrices, rounding, trials, unit
from tests.oracles.frequent_directions import frequent_directions

sizes = st.integers(1, 9)
few = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("promise", ROW_PROMISES)
@pytest.mark.parametrize("kind", ALL)
@few
@given(data=st.data())
def test_promise_for_rows_of_any_sort(kind: str, promise: str, data: st.DataObject) -> None:
    ROW_PROMISES[promise](data.draw(trials(kind)))


@pytest.mark.parametrize("promise", [name for name in SKETCH_PROMISES if name not in ROW_PROMISES])
@pytest.mark.parametrize("kind", ALL)
def test_promise(kind: str, promise: str) -> None:
    check_sketch(ALL[kind], theory=THEORY[kind], trials=1, only=[promise])


@pytest.mark.parametrize("kind", ALL)
def test_only_these_have_a_certificate(kind: str) -> None:
    assert np.isfinite(ALL[kind](3).update(np.eye(5)).error_bound) == (kind in {*CERTIFIED, "exact"})


@pytest.mark.parametrize("kind", CERTIFIED)
@few
@given(A=matrices(), m=sizes, buffer=st.sampled_from([1, 2, 5, 40]), decay=st.sampled_from([1.0, 0.9, 0.3]))
def test_equals_the_papers_algorithm(kind: str, A: Matrix, m: int, buffer: int, decay: float) -> None:
    sketch = CERTIFIED[kind](m, buffer_size=buffer, decay=decay).update(A)
    A, scale = unit(A)
    B, ridge, total = frequent_directions(A, m, kind=kind, beta=0.5, buffer=buffer, decay=decay)
    ours = sketch.matrix / scale
    np.testing.assert_allclose(ours.T @ ours, B.T @ B, atol=rounding(A))
    if kind == "rfd" and buffer + m - 1 >= A.shape[1]:  # spans the space: Theorem 1's ridge instead
        assert sketch.ridge / scale / scale >= ridge - rounding(A)
        assert sketch.error_bound / scale / scale <= total / 2 + rounding(A)
    else:
        assert sketch.ridge / scale / scale == pytest.approx(ridge, abs=rounding(A))
        assert sketch.error_bound / scale / scale == pytest.approx(
            total / 2 if kind == "rfd" else total, abs=rounding(A)
        )


@few
@given(A=matrices(), m=st.integers(1, 5), buffer=st.sampled_from([1, 3, 20]))
def test_every_rfd_step_is_optimal(A: Matrix, m: int, buffer: int) -> None:
    """RFD Theorem 2, by the closed form of Theorem 1: no rank m − 1 matrix plus a multiple of I comes closer."""
    A = unit(A)[0]
    d = A.shape[1]
    sketch = RobustFrequentDirections(m, buffer_size=buffer).update(A[: m - 1 + buffer])
    if len(A) < m - 1 + buffer:
        return
    M = A[: m - 1 + buffer].T @ A[: m - 1 + buffer]
    values = np.append(np.linalg.eigvalsh(M)[::-1], 0)
    best = (values[m - 1] - values[d - 1]) / 2 if m <= d else 0.0
    assert np.linalg.norm(M - sketch.covariance(), 2) == pytest.approx(best, abs=rounding(A))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_optimiser_beats_an_rfd_step(seed: int) -> None:
    """RFD Theorem 2 against a numerical optimiser, for a step that starts with a ridge."""
    random = np.random.default_rng(seed)
    d, m = 5, 3
    sketch = RobustFrequentDirections(m, buffer_size=1).update(random.standard_normal((6, d)))
    row = random.standard_normal(d)
    M = sketch.covariance() + np.outer(row, row)
    sketch.update(row)
    error = np.linalg.norm(M - sketch.covariance(), 2)

    def objective(x: Matrix) -> float:
        C = x[:-1].reshape(m - 1, d)
        return float(np.linalg.norm(M - C.T @ C - x[-1] * np.eye(d), 2))

    ours = np.append(sketch.matrix, sketch.ridge)
    assert objective(ours) == pytest.approx(error)
    starts = [ours + 0.1 * random.standard_normal(ours.shape), *random.standard_normal((3, len(ours)))]
    options = {"maxiter": 20_000, "maxfev": 20_000, "adaptive": True}
    found = min(minimize(objective, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert error <= found + 1e-9
    assert found <= 1.2 * error  # the optimiser does come close: the comparison means something
    fd = FrequentDirections(m, buffer_size=1).update(random.standard_normal((6, d)))
    before = fd.covariance() + np.outer(row, row)
    assert np.linalg.norm(before - fd.update(row).covariance(), 2) > 0


@few
@given(A=matrices(max_rows=30, max_columns=40), m=sizes, power=st.integers(-6, 2))
def test_rfd_is_better_conditioned(A: Matrix, m: int, power: int) -> None:
    """RFD Theorem 4, where its proof applies: AᵀA singular, or else κ(M) is not (σ_max + α₀)/α₀."""
    A = unit(A)[0]
    alpha = 10.0**power
    rfd, fd = (kind(m).update(A) for kind in (RobustFrequentDirections, FrequentDirections))
    eye = np.eye(A.shape[1])
    conditions = [np.linalg.cond(C + alpha * eye) for C in (rfd.covariance(), fd.covariance(), A.T @ A)]
    if len(rfd.matrix) < A.shape[1]:
        assert conditions[0] <= conditions[1] * (1 + 1e-6)
    if np.linalg.matrix_rank(A) < A.shape[1]:
        assert conditions[0] <= conditions[2] * (1 + 1e-6)


def test_theorem_4_needs_a_singular_matrix() -> None:
    """Three orthogonal rows are perfectly conditioned; the sketch of them is not."""
    sketch = RobustFrequentDirections(2, buffer_size=1).update(np.eye(3))
    assert np.linalg.cond(sketch.covariance()) == pytest.approx(3.0)


def test_greedy_loses_what_frequent_directions_keep() -> None:
    """RFD Appendix F: s ≫ m rows, each a little shorter than what is kept, orthogonal to it."""
    m, s, d = 10, 1000, 30
    A = np.vstack([np.eye(d)[: m - 1], np.tile(0.99 * np.eye(d)[m], (s, 1))])
    exact = A.T @ A
    errors = {}
    for kind in (GreedyDirections, FrequentDirections, RobustFrequentDirections):
        sketch = kind(m, buffer_size=1).update(A)
        errors[kind] = np.linalg.norm(exact - sketch.covariance(), 2) / np.linalg.norm(exact, 2)
    assert errors[GreedyDirections] == pytest.approx(1.0)
    assert errors[FrequentDirections] < 0.002
    assert errors[RobustFrequentDirections] < 0.001


@few
@given(A=matrices(), m=sizes)
def test_pfd_is_fd_at_one_and_greedy_at_the_other_end(A: Matrix, m: int) -> None:
    def same(one: object, other: object) -> None:
        np.testing.assert_array_equal(one.update(A).matrix, other.update(A).matrix)

    same(ParameterizedFrequentDirections(m, beta=1.0), FrequentDirections(m))
    same(ParameterizedFrequentDirections(m, beta=1e-9), GreedyDirections(m))


def test_the_largest_value_of_a_float32_sketch_is_what_float32_makes_of_it() -> None:
    """1e30 as a float32 is above 1e30: it was neither taken nor refused, but an IndexError."""
    for row in (np.array([[1e30, 1.0]], np.float32), np.array([[1e30, 1.0]])):
        assert FrequentDirections(2, dtype="float32").update(row).rows_seen == 1
        with pytest.raises(ValueError, match=r'row 0, column 0 is 1.1e\+30.* use dtype="float64"'):
            FrequentDirections(2, dtype="float32").update(row * np.float32(1.1))
