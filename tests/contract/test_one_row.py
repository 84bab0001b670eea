"""A row at a time, as arrays or lists, is learned as in a batch, and refused as in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import NewtonBank, SketchedNewton
from sketchnewton.testing.rows import sparse_stream
from tests.contract.learners import LEARNERS, assert_same_state

LABELS: dict[str, Any] = {
    "array": lambda y: np.array([y]),
    "part of an array": lambda y: np.array([0.0, y, 0.0])[1:2],
    "list": lambda y: [float(y)],
    "list of NumPy's": lambda y: [np.float64(y)],
    "whole numbers": lambda y: [int(y)],
    "tuple": lambda y: (float(y),),
    "number": float,
}


@pytest.mark.parametrize("kind", LEARNERS)
def test_rows_one_by_one_give_the_same_bits(kind: str) -> None:
    whole, single = LEARNERS[kind](), LEARNERS[kind]()
    X, y = sparse_stream(60, d=30, non_zeros=5)
    y = np.abs(y) if not whole.loss.takes(-1.0) else y
    expected = whole.learn(X, y)
    kinds = list(LABELS.values())
    seen = [single.learn(X[i : i + 1], kinds[i % len(kinds)](y[i])) for i in range(len(y))]
    assert all(one.shape == expected[:1].shape and one.dtype == np.float64 for one in seen)
    np.testing.assert_array_equal(np.concatenate(seen), expected)
    assert_same_state(single, whole)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, ">f8"])
def test_whatever_the_form(labels: str, dtype: Any) -> None:
    x = np.array([[3.0, 0.0, -2.0, 1.0]]).astype(dtype)
    bank, plain = NewtonBank(), NewtonBank()
    for y in (1.0, -1.0, 1.0):
        seen = bank.learn(x, LABELS[labels](y))
        np.testing.assert_array_equal(seen, plain.learn(np.repeat(x, 2, axis=0)[:1].copy(), np.array([y])))
    strided = np.repeat(x, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(bank.learn(strided, LABELS[labels](1.0)), plain.learn(x, np.array([1.0])))
    assert_same_state(bank, plain)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[np.nan, 1.0]], [1.0], "X contains NaN: row 0, feature 0"),
        ([[1.0, np.inf]], [1.0], "X contains infinity: row 0, feature 1"),
        ([[1e31, 1.0]], [1.0], "beyond"),
        ([[1.0, 1.0]], [2.0], "label 2 at position 0"),
        ([[1.0, 1.0]], [np.nan], "label nan at position 0"),
        ([[1.0, 1.0]], [1.0, -1.0], "y has shape"),
        ([[1.0, 1.0]], [], "y has shape"),
        ([[1.0, 1.0]], [[1.0]], "y has shape"),
        ([1.0], [1.0], "two dimensions"),
    ],
)
@pytest.mark.parametrize("form", [np.array, list])
def test_refused_as_in_a_batch(x: Any, y: Any, message: str, form: Any) -> None:
    learner = SketchedNewton("oja", 3, loss="logistic")
    learner.learn(np.eye(2), [1.0, -1.0])
    before = {name: np.array(array) for name, array in learner._all_arrays().items()}
    with pytest.raises(ValueError, match=message):
        learner.learn(np.array(x), form(y))
    for name, array in learner._all_arrays().items():
        np.testing.assert_array_equal(np.asarray(array), before[name])
