"""Bad rows, parameters and files: one clear error, and the sketch as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import sketchnewton
from sketchnewton import FrequentDirections, ParameterizedFrequentDirections, RandomProjection
from sketchnewton.core import archive
from sketchnewton.core.archive import ModelFileError
from tests.contract.sketches import ALL

BAD_ROWS: dict[str, tuple[Any, str]] = {
    "NaN": ([[0, 1, np.nan]], "row 0, column 2 is NaN"),
    "infinity": ([[0, 1, 2], [0, -np.inf, 1]], "row 1, column 1 is infinity"),
    "sparse NaN": (csr_array([[0, 1.0, 2.0], [0, 0, np.nan]]), "row 1, column 2 is NaN"),
    "too wide": (np.ones((2, 4)), "rows have 4 columns, but the sketch has 3"),
    "sparse too narrow": (csr_array(np.ones((2, 2))), "rows have 2 columns, but the sketch has 3"),
    "one number": (3.0, "expected two dimensions"),
    "three dimensions": (np.ones((1, 1, 3)), "expected two dimensions"),
    "strings": ([["a", "b", "c"]], "rows must be numbers"),
    "strings of digits": (np.array([["1", "2", "3"]], dtype=object), "rows must be numbers, got '1'"),
    "None": ([[1.0, None, 2.0]], "row 0, column 1 is NaN"),
    "a word": ("abc", "rows must be numbers"),
    "complex": (np.ones((1, 3), complex), "Complex data not supported"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0]], "different lengths"),
    "no columns": (np.ones((2, 0)), "0 columns"),
    "enormous": ([[1e200, 0, 0]], "could leave the range of float64"),
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_leave_the_sketch_as_it_was(kind: str, case: str) -> None:
    rows, words = BAD_ROWS[case]
    check(ALL[kind](2), rows, words)


@pytest.mark.parametrize("kind", ALL)
def test_bad_rows_undo_an_iterator(kind: str) -> None:
    items = iter([np.ones((50, 3)), np.full(3, np.nan)])
    check(ALL[kind](2), items, "item 1 of the iterator: row 0, column 0 is NaN")


def check(sketch: Any, rows: Any, words: str) -> None:
    sketch.update(np.arange(30.0).reshape(10, 3))
    before = sketch.matrix, sketch.rows_seen, sketch.squared_norm
    with pytest.raises(ValueError, match=words) as caught:
        sketch.update(rows)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(sketch.matrix, before[0])
    assert (sketch.rows_seen, sketch.squared_norm) == before[1:]
    sketch.update(np.ones(3))


def test_inconsistent_sparse_rows() -> None:
    for part, value in (("indptr", [0, 5]), ("indptr", [1, 2]), ("indices", [0, 9]), ("indices", [0, -1])):
        rows = csr_array(np.array([[1.0, 2.0, 0.0]]))
        setattr(rows, part, np.array(value))
        with pytest.raises(ValueError, match="sparse rows"):
            FrequentDirections(2).update(rows)


def test_float32_says_what_it_cannot_hold() -> None:
    with pytest.raises(ValueError, match=r'float32 sketch takes .* up to 1e\+30: use dtype="float64"'):
        FrequentDirections(2, dtype="float32").update([1e40])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FrequentDirections(0), "sketch_size=0 is invalid: must be a whole number >= 1"),
        (lambda: FrequentDirections(-3), "sketch_size=-3 is invalid"),
        (lambda: FrequentDirections(2.5), "sketch_size=2.5 is invalid"),
        (lambda: FrequentDirections("many"), "sketch_size='many' is invalid"),
        (lambda: FrequentDirections(True), "sketch_size=True is invalid"),
        (FrequentDirections, "give either sketch_size or target_error"),
        (lambda: FrequentDirections(5, target_error=0.1), "give either sketch_size or target_error"),
        (lambda: FrequentDirections(target_error=0), "target_error=0 is invalid: must be > 0 and <= 1"),
        (lambda: FrequentDirections(5, buffer_size=0), "buffer_size=0 is invalid"),
        (lambda: FrequentDirections(5, decay=1.5), "decay=1.5 is invalid"),
        (lambda: FrequentDirections(5, decay=float("nan")), "decay=nan is invalid"),
        (lambda: FrequentDirections(5, window=0), "window=0 is invalid"),
        (lambda: FrequentDirections(5, window=9, decay=0.5), "give one of them"),
        (lambda: FrequentDirections(5, dtype="float16"), "dtype='float16' is invalid"),
        (lambda: ParameterizedFrequentDirections(5, beta=-1), "beta=-1 is invalid"),
        (lambda: RandomProjection(5, random_state=-1), "random_state=-1 is invalid"),
        (lambda: FrequentDirections(5).update(np.eye(3)).solve(np.ones(3), -1), "alpha=-1 is invalid"),
        (lambda: FrequentDirections(5).update(np.eye(3)).solve(np.ones(4), 1), "expected 3 rows"),
    ],
)
def test_bad_parameters(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("kind", ALL)
def test_before_the_first_row(kind: str, tmp_path: Path) -> None:
    sketch = ALL[kind](3)
    assert sketch.matrix.shape[1] == 0
    assert sketch.rows_seen == sketch.n_features == 0
    assert sketch.squared_norm == 0
    sketch.save(tmp_path / "s.skn")
    assert type(sketch).load(tmp_path / "s.skn").update(np.eye(4)).rows_seen == 4
    assert (sketch + sketch).rows_seen == 0 if kind != "rp" else True


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_saved_sketch_goes_on_bit_for_bit(kind: str, dtype: str, tmp_path: Path) -> None:
    A = np.random.default_rng(0).standard_normal((100, 9))
    sketch = ALL[kind](4, dtype=dtype).update(A[:53])
    sketch.save(tmp_path / "s.skn")
    loaded = sketchnewton.load(tmp_path / "s.skn")
    assert type(loaded) is type(sketch)
    assert loaded.params == sketch.params
    np.testing.assert_array_equal(loaded.matrix, sketch.matrix)
    np.testing.assert_array_equal(loaded.update(A[53:]).matrix, sketch.update(A[53:]).matrix)
    assert (loaded.error_bound, loaded.rows_seen) == (sketch.error_bound, 100)


def test_a_saved_sketch_of_sparse_rows_goes_on_bit_for_bit(tmp_path: Path) -> None:
    X = random_array((200, 300), density=0.02, format="csr", rng=np.random.default_rng(0))
    sketch = FrequentDirections(5, dtype="float32").update(X[:153])
    sketch.save(tmp_path / "s.skn")
    loaded = FrequentDirections.load(tmp_path / "s.skn")
    np.testing.assert_array_equal(loaded.update(X[153:]).matrix, sketch.update(X[153:]).matrix)
    dense = FrequentDirections(5).update(X.toarray())
    np.testing.assert_allclose(sketch.covariance(), dense.covariance(), atol=1e-5)
    assert sketch.error_bound == pytest.approx(dense.error_bound, rel=1e-4)


@pytest.mark.parametrize("more", [{"window": 20}, {"decay": 0.9}, {"target_error": 0.1, "sketch_size": None}])
def test_forgetting_and_growing_sketches_are_saved_too(more: dict[str, Any], tmp_path: Path) -> None:
    A = np.random.default_rng(0).standard_normal((100, 9))
    sketch = FrequentDirections(**{"sketch_size": 4, **more}).update(A[:53])
    sketch.save(tmp_path / "s.skn")
    loaded = FrequentDirections.load(tmp_path / "s.skn")
    np.testing.assert_array_equal(loaded.update(A[53:]).matrix, sketch.update(A[53:]).matrix)
    assert loaded.error_bound == sketch.error_bound


@pytest.fixture
def file(tmp_path: Path) -> Path:
    FrequentDirections(3).update(np.eye(5)).save(tmp_path / "s.skn")
    return tmp_path / "s.skn"


def test_damaged_and_foreign_files(file: Path) -> None:
    whole = file.read_bytes()
    for content in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        b"PK\x03\x04" + whole,
        whole[:-1] + b"\x00\x01",
    ):
        file.write_bytes(content)
        for load in (sketchnewton.load, FrequentDirections.load):
            with pytest.raises(ModelFileError, match=r"s\.skn: "):
                load(file)
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ModelFileError):
            FrequentDirections.load(file)


def test_a_sketch_of_another_kind(file: Path) -> None:
    with pytest.raises(ModelFileError, match="holds a FrequentDirections, not a RandomProjection"):
        RandomProjection.load(file)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state0.rows", np.full((5, 5), np.nan)),
        ("state0.rows", np.zeros((5, 4))),
        ("state0.rows", np.zeros((50, 5))),
        ("state0.rows", np.zeros((5, 5), np.float32)),
        ("state0.counts", np.array([9, 0, 5, 0])),
        ("state0.counts", np.array([3, 6, 5, 0])),
        ("state0.counts", np.array([3, 0, 5, 6])),
        ("state0.lost", np.array([0.0, -1.0, 0.0])),
        ("state0.lost", np.zeros(2)),
        ("counts", np.array([-1, 5])),
        ("states", np.array([2])),
        ("peak", None),
    ],
)
def test_files_that_contradict_themselves(file: Path, name: str, value: Any) -> None:
    header, arrays = archive.read(file)
    arrays[name] = value
    archive.write(file, header, {key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(ModelFileError, match="not a usable FrequentDirections"):
        sketchnewton.load(file)
