"""Properties of Frequent Directions and Oja's sketch in SketchedNewton over random streams, judged by many digits.

`make properties SEEDS=300` draws that many streams of every kind; the suite has a few of each.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.oracles.exact.streams import STREAMS, Stream
from tests.oracles.newton_cases import Case, curvature, draw, furthest, true_error

FIRST = int(os.environ.get("SKN_FIRST_SEED", "0"))
SEEDS = int(os.environ.get("SKN_SEEDS", "0"))
NARROW = range(FIRST, FIRST + (SEEDS or 2))
WIDE = range(FIRST, FIRST + (SEEDS or 1))
PRECISE = 1e-6
FLOAT64 = 15  # digits: mpmath takes 53 bits for them, and 56 for 16
STABLE = 1e-4
# Sparse time keeps float32 numbers: where rows of that precision decide, so do their roundings.
SINGLE = 1e-3

pytestmark = pytest.mark.slow


def cases(name: str, wide: bool) -> list[Case]:
    return [draw(name, seed, wide) for seed in (WIDE if wide else NARROW)]


@pytest.mark.parametrize("wide", [False, True], ids=["few", "wide"])
@pytest.mark.parametrize("name", STREAMS)
def test_predictions_are_exact_where_floats_can_be(name: str, wide: bool) -> None:
    """Within 1e-6, unless the dense algorithm in float64 is not; and certified."""
    for case in cases(name, wide):
        expected = case.exact().predictions
        for dtype, tolerance in (("float64", PRECISE), ("float32", SINGLE)):
            made = case.learner(dtype)
            predictions = made.learn(*case.stream)
            error = furthest(predictions, expected)
            reachable = error < tolerance or furthest(in_floats(case), expected) > PRECISE
            assert reachable or not steady(case, dtype), (case, dtype, error)
            bound = made.error_bound
            assert bound is not None
            total = curvature(case, predictions)
            assert true_error(made, total, case.alpha) <= bound, (case, dtype)


@pytest.mark.parametrize("name", STREAMS)
def test_oja_of_many_features_is_exact_where_floats_can_be(name: str) -> None:
    """Of few features test_rounding.py asks the same."""
    for seed in WIDE:
        case = draw(name, seed, True, frequent=False)
        try:
            expected = case.exact().predictions
        except (ArithmeticError, TypeError):  # directions have become dependent (SON, footnote 4)
            continue
        error = furthest(case.learner().learn(*case.stream), expected)
        assert error < PRECISE or furthest(in_floats(case), expected) > PRECISE, (case, error)


@pytest.mark.parametrize("seed", [8235, 9000, 9006])
def test_oja_leaves_out_what_is_rounding_alone(seed: int) -> None:
    """Scales from 1e-8 to 1e8: of a row that opened a direction nothing is outside, and 1/α of rounding was .1."""
    case = draw("feature_scales", seed, True, frequent=False)
    assert furthest(case.learner().learn(*case.stream), case.exact().predictions) < PRECISE


def in_floats(case: Case) -> np.ndarray:
    try:
        return case.exact(FLOAT64).predictions
    except (ArithmeticError, TypeError):
        return np.full(len(case.stream.y), np.inf)


def steady(case: Case, dtype: str) -> bool:
    """Does rounding the rows to float32 change nothing in exact arithmetic?"""
    if dtype == "float64":
        return True
    rounded = Stream(case.stream.X.astype(np.float32).astype(float), case.stream.y)
    return furthest(case.exact(stream=rounded).predictions, case.exact().predictions) < SINGLE


def test_certificates_allow_for_the_rounding_of_their_sums() -> None:
    """Robust FD without a direction, α = 0, values of 10⁷: the sum of shrinks is all that the bound has."""
    case = draw("one_huge_feature", 7005, True)
    assert (case.kind, case.m, case.alpha) == ("rfd", 1, 0.0)
    made = case.learner("float64")
    total = curvature(case, made.learn(*case.stream))
    bound = made.error_bound
    assert bound is not None
    assert true_error(made, total, case.alpha) <= bound < 1.001 * np.linalg.norm(total, 2)


def test_vectors_stay_written_out_while_rows_have_no_gradient() -> None:
    """Rows met many times, α = 0, float32: an epoch without a gradient does not say that sparse time would do."""
    case = draw("repeated_often", 8102, True)
    assert (case.kind, case.m, case.alpha, case.stream.X.shape[1]) == ("rfd", 3, 0.0, 91)
    assert furthest(case.learner("float32").learn(*case.stream), case.exact().predictions) < PRECISE


@pytest.mark.parametrize("wide", [False, True], ids=["few", "wide"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_small_change_of_rows_is_a_small_change_of_predictions(name: str, wide: bool) -> None:
    """Rows moved by 1e-9 move predictions by 1e-4 at most, where exact arithmetic is that stable."""
    for case in cases(name, wide)[-1:] if not SEEDS else cases(name, wide):
        moved = case.moved(1e-9)
        if furthest(case.exact().predictions, moved.exact().predictions) > STABLE / 10:
            continue
        for dtype in ("float64", "float32"):
            first, second = (side.learner(dtype).learn(*side.stream) for side in (case, moved))
            assert furthest(first, second) < STABLE or not steady(case, dtype), (case, dtype)


@pytest.mark.parametrize("frequent", [True, False], ids=["frequent", "oja"])
@pytest.mark.parametrize("name", STREAMS)
def test_merged_learners_are_exact_where_floats_can_be(name: str, frequent: bool) -> None:
    """Two thirds of a stream learned apart and merged, then the last third; and certified."""
    for seed in NARROW if SEEDS else NARROW[:1]:
        case = draw(name, seed, seed % 4 == 3, frequent)
        n = len(case.stream.y) // 3
        parts = [
            Stream(case.stream.X[i * n : (i + 1) * n], case.stream.y[i * n : (i + 1) * n]) for i in range(3)
        ]
        try:
            expected = case.exact_merged(parts).predictions
            dense = case.exact_merged(parts, FLOAT64).predictions
        except (ArithmeticError, TypeError):  # Oja's directions have become dependent (SON, footnote 4)
            continue
        made, other = case.learner(), case.learner()
        predictions = [made.learn(*parts[0]), other.learn(*parts[1])]
        made.merge(other)
        if frequent and not case.diagonal:
            total = sum(curvature(case, p, part) for p, part in zip(predictions, parts, strict=False))
            bound = made.error_bound
            assert bound is not None
            assert true_error(made, total, case.alpha) <= bound, case
        error = furthest(made.learn(*parts[2]), expected)
        assert error < PRECISE or furthest(dense, expected) > PRECISE, (case, error)
