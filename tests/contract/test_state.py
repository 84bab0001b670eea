"""A learner's state is native memory: arrays when asked for, never what kernels would have to convert."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sketchnewton import Learner
from sketchnewton.core.state import State, filled, zeros
from tests.contract.learners import LEARNERS, state

SHAPES = [(3,), (4, 2), (5, 2, 3), (0, 4)]
DTYPES = ["float32", "float64", "int64"]
# How to make each learner that has a feature table, and how many scores it has.
WITHOUT_NUMPY = {
    **{f"SketchedNewton('{sketch}', 3)": 1 for sketch in ("none", "oja", "fd", "rfd", "pfd", "rp")},
    "SketchedNewton('oja', 3, oja_rate=[1, 2, 3], block=4, diagonal=True, intercept=True)": 1,
    "SketchedNewton('rfd', 3, alpha='auto', loss='logistic', dtype='float64')": 1,
    "NewtonBank()": 1,
    "NewtonBank(4, loss='logistic', dtype='float64')": 1,
    "OnlineGradient()": 1,
    "AdaGrad(clip=1.0, intercept=True)": 1,
    "CompositeAdaGrad(penalty='elasticnet', form='dual_averaging')": 1,
    "CompositeAdaGrad(loss='logistic', classes=3)": 3,
    "SketchedAdaGrad('rp', 3)": 1,
    "SketchedAdaGrad('fd', 3, intercept=True)": 1,
    "SketchedAdaGrad('rfd', 3, of='data', loss='logistic', classes=3)": 3,
    "SharedNewton(3)": 3,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_is_a_view_of_the_memory(shape: tuple[int, ...], dtype: str) -> None:
    memory = State({"a": zeros(shape, dtype)})
    array = memory["a"]
    assert (array.dtype, array.shape) == (dtype, shape)
    assert (memory.dtype("a"), memory.shape("a")) == (dtype, shape)
    assert array.ctypes.data % 64 == 0
    assert not array.any()
    array += 1
    assert memory["a"] is array
    np.testing.assert_array_equal(np.asarray(memory.view("a")), array)
    for n in range(len(array) + 1):
        np.testing.assert_array_equal(np.asarray(memory.head("a", n)), array[:n])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_resized_array_keeps_the_rows_in_use(shape: tuple[int, ...], dtype: str) -> None:
    memory = State({"a": zeros(shape, dtype)})
    memory["a"][...] = np.arange(memory["a"].size).reshape(shape)
    old = memory["a"].copy()
    used = max(shape[0] - 1, 0)
    memory.resize("a", 7, used)
    assert memory.dtype("a") == dtype
    assert memory.shape("a") == (7, *shape[1:])
    np.testing.assert_array_equal(memory["a"][:used], old[:used])
    assert not memory["a"][used:].any()


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 2), (2, 0)])
def test_rows_cut_to_different_lengths(shape: tuple[int, ...]) -> None:
    memory = State({"a": zeros(shape)})
    memory["a"][...] = 1 + np.arange(memory["a"].size).reshape(shape)
    lengths = [min(row, shape[1]) for row in range(shape[0])]
    cut = np.asarray(memory.heads("a", lengths, 6))
    assert cut.shape == (shape[0], 6, *shape[2:])
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(cut[row, :length], memory["a"][row, :length])
        assert not cut[row, length:].any()


def test_an_array_that_kernels_can_use_is_not_copied() -> None:
    memory, given = State({"a": zeros(3)}), np.arange(4.0)
    memory["a"] = given
    given[2] = 9.0
    assert memory.view("a").tolist() == [0.0, 1.0, 9.0, 3.0]


def test_one_that_they_cannot_use_is() -> None:
    memory = State({"a": zeros((2, 2))})
    read_only = np.ones((2, 2))
    read_only.flags.writeable = False
    bytes_of = np.zeros(33, np.uint8)
    unaligned = bytes_of[1:].view(np.float64).reshape(2, 2)
    for given in (np.arange(4.0).reshape(2, 2).T, read_only, unaligned):
        memory["a"] = given
        np.testing.assert_array_equal(memory["a"], given)
        assert memory.view("a").c_contiguous
        assert not memory.view("a").readonly
        assert memory["a"].flags.aligned
        assert not np.shares_memory(memory["a"], given)


@pytest.mark.parametrize(
    "given",
    [np.zeros(3, np.float32), np.zeros(3, np.int64), np.zeros((3, 1)), np.zeros(3, ">f8"), np.zeros(3, bool)],
)
def test_an_array_of_another_kind_is_refused(given: np.ndarray) -> None:
    memory = State({"a": filled([1.0, 2.0, 3.0])})
    with pytest.raises(ValueError, match="array 'a' has the wrong type or shape"):
        memory["a"] = given
    assert memory["a"].tolist() == [1.0, 2.0, 3.0]


def test_memory_that_there_is_not() -> None:
    with pytest.raises(MemoryError):
        zeros((1 << 40, 1 << 40), "float32")


@pytest.mark.parametrize("name", LEARNERS)
def test_room_for_predictions(name: str) -> None:
    learner = LEARNERS[name]()
    assert np.asarray(learner.new_predictions(5)).shape == learner.predict(np.zeros((5, 2))).shape
    assert np.asarray(learner.new_predictions(0)).shape == learner.learn(np.zeros((0, 2)), []).shape


@pytest.mark.parametrize("make", WITHOUT_NUMPY)
def test_a_table_learner_learns_and_is_saved_without_numpy(make: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((300, 5)), rng.choice([-1.0, 1.0], 300)
    if WITHOUT_NUMPY[make] > 1:
        labels = rng.integers(0, WITHOUT_NUMPY[make], 300).astype(float)
    weights = rng.choice([0.0, 1.0, 2.0], 300)
    indices = np.sort(rng.integers(0, 3000, (300, 5)), axis=1)
    path = tmp_path / "model.skn"
    for name, array in {"X": X, "labels": labels, "weights": weights, "indices": indices}.items():
        (tmp_path / name).write_bytes(array.tobytes())
    code = f"""
import sys
from array import array
from sketchnewton import _native, learners
from sketchnewton.learners import *
def read(name, kind):
    return memoryview(array(kind, open({str(tmp_path)!r} + "/" + name, "rb").read()))
learner = {make}
indptr = memoryview(array("q", range(0, 1501, 5)))
rows = _native.csr_rows(indptr, read("indices", "q"), read("X", "d"))
learner.reserve(rows)
out = learner.new_predictions(len(rows))
learner.learn_into(out, rows, read("labels", "d"), read("weights", "d"))
learner.save({str(path)!r})
assert "numpy" not in sys.modules
open({str(tmp_path / "predictions")!r}, "wb").write(out)
"""
    imports = code.replace("import *", f"import {make.partition('(')[0]}")
    subprocess.run([sys.executable, "-c", imports], check=True)
    learned = Learner.load(path)
    fresh = type(learned)(**learned.params)
    rows = np.zeros((300, 3000))
    for row in range(300):
        np.add.at(rows[row], indices[row], X[row])
    predictions = fresh.learn(rows, labels, weights)
    assert predictions.tobytes() == (tmp_path / "predictions").read_bytes()
    for name, array in state(fresh).items():
        np.testing.assert_array_equal(array, state(learned)[name], err_msg=name)
