"""A batch is the same rows to whoever looks: NumPy's arrays, raw buffers, kernels; whole or in parts."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton.core.batch import Batch
from sketchnewton.learners import SketchedNewton
from sketchnewton.streams import open_stream
from tests.streams.format_support import make_rows, rows_of


def some_batch(kind: str, folder: Path) -> Batch:
    if kind == "arrays":
        batch = make_rows(3, 12, weights=True, tags=True)
        return batch.replace(data=np.arange(1.0, 1 + len(batch.data)))
    path = folder / "rows.vw"
    path.write_text("".join(f"{i} {i + 0.5} {i / 8} 't{i}| {i}:2 {i * 7}:{i + 1}\n" for i in range(12)))
    (batch,) = open_stream(path)
    assert isinstance(batch.views.data, memoryview)
    return batch


@pytest.fixture(params=["arrays", "memory of a parser"])
def batch(request: pytest.FixtureRequest, tmp_path: Path) -> Batch:
    return some_batch(request.param, tmp_path)


def without_views(batch: Batch) -> Batch:
    """The same rows, all arrays NumPy's and on their own."""
    arrays = (batch.indptr, batch.indices, batch.data, batch.labels)
    weights, base = (None if a is None else np.array(a) for a in (batch.weights, batch.base))
    return Batch(*map(np.array, arrays), weights, tags=batch.tags, base=base)


ENDS = st.none() | st.integers(-15, 15)


@settings(deadline=None)
@given(begin=ENDS, end=ENDS, inner_begin=ENDS, inner_end=ENDS, scanned=st.booleans())
@pytest.mark.parametrize("kind", ["arrays", "memory of a parser"])
def test_parts_are_those_of_a_list(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    begin: int | None,
    end: int | None,
    inner_begin: int | None,
    inner_end: int | None,
    scanned: bool,
) -> None:
    batch = some_batch(kind, tmp_path_factory.getbasetemp())
    if scanned:
        assert len(batch.rows) == 12
    part = batch[begin:end][inner_begin:inner_end]
    expected = rows_of([batch])[begin:end][inner_begin:inner_end]
    assert rows_of([part]) == expected
    assert len(part) == len(expected) == part.shape[0] == len(part.rows)
    assert part.indptr[0] == 0
    assert part.indptr[-1] == len(part.indices) == len(part.data)
    learners = SketchedNewton(), SketchedNewton()
    for learner, rows in zip(learners, (part, without_views(part)), strict=True):
        learner.learn(rows, rows.labels, rows.weights)
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)


def test_a_part_has_no_copy(batch: Batch) -> None:
    part = batch[2:9]
    assert np.shares_memory(part.data, batch.data)
    assert np.shares_memory(part.indices, batch.indices)
    assert np.shares_memory(part.labels, batch.labels)
    assert part.views.data is batch.views.data
    with pytest.raises(ValueError, match="leave out the step"):
        batch[::2]


@settings(deadline=None)
@given(mask=st.lists(st.booleans(), min_size=7, max_size=7))
def test_rows_are_kept_by_a_mask(mask: list[bool], tmp_path_factory: pytest.TempPathFactory) -> None:
    for kind in ("arrays", "memory of a parser"):
        part = some_batch(kind, tmp_path_factory.getbasetemp())[3:10]
        expected = [row for row, stays in zip(rows_of([part]), mask, strict=True) if stays]
        assert rows_of([part.keep(np.array(mask))]) == expected


def test_arrays_are_made_once_without_a_copy_and_cannot_be_written(batch: Batch) -> None:
    for name in ("indptr", "indices", "data", "labels", "weights"):
        array = getattr(batch, name)
        assert getattr(batch, name) is array
        assert np.shares_memory(array, np.asarray(getattr(batch.views, name)))
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
        with pytest.raises(AttributeError):
            setattr(batch, name, array)


def test_new_labels_keep_the_scan_and_new_entries_do_not(batch: Batch) -> None:
    rows = batch.rows
    assert batch.rows is rows
    assert batch.replace(labels=np.zeros(12)).rows is rows
    part = batch[4:8]
    doubled = part.replace(data=2 * part.data)
    assert doubled.rows is not rows
    np.testing.assert_array_equal(doubled.indices, part.indices)
    np.testing.assert_array_equal(doubled.indptr, part.indptr)


def test_a_bad_row_is_found_in_the_parts_that_have_it() -> None:
    data = np.array([1.0, np.nan, 2.0])
    batch = Batch(np.arange(4), np.arange(3), data, np.ones(3))
    assert batch.rows.scan()[2] == 1
    assert batch[:1].rows.scan()[2] == -1
    assert batch[1:].rows.scan()[2] == 0


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("values", ["float32", "float16", "int64", "bool"])
def test_other_types_become_those_of_kernels(dtype: str, values: str) -> None:
    indices = np.array([3, 200], dtype)
    batch = Batch(np.array([0, 1, 2], dtype), indices, np.array([1, 1], values), np.ones(2))
    plain = Batch(np.arange(3), indices.astype(np.int64), np.ones(2), np.ones(2))
    assert batch.rows.scan() == plain.rows.scan()
    assert batch[1:].rows.scan()[:3] == (200, 1, -1)


def test_large_indices_beside_unusual_values_keep_all_bits() -> None:
    batch = Batch(np.array([0, 1]), np.array([1 << 40]), np.array([1.0], np.float16), np.ones(1))
    assert batch.rows.scan()[0] == 1 << 40


@pytest.mark.parametrize("indptr", [[], [0, 3], [2, 1], [-1, 1]])
def test_arrays_that_do_not_belong_together_are_refused(indptr: list[int]) -> None:
    batch = Batch(np.array(indptr, np.int64), np.arange(2), np.ones(2), np.ones(1))
    with pytest.raises(ValueError, match="indptr"):
        _ = batch.rows


def test_a_batch_can_be_pickled(batch: Batch) -> None:
    for part in (batch, batch[2:5]):
        assert rows_of([pickle.loads(pickle.dumps(part))]) == rows_of([part])


def test_a_batch_in_parts_takes_no_numpy(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 0:1 3:4\n-1 2:1\n1 0:2 7:1\n")
    code = f"""
import sys
from sketchnewton.streams import open_stream
(batch,) = open_stream({str(path)!r})
part = batch[1:]
assert len(part) == len(part.rows) == 2, part
assert list(part.views.labels) == [-1.0, 1.0]
assert part.rows.scan()[2] == -1
assert "numpy" not in sys.modules
assert part.indices.tolist() == [2, 0, 7]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
