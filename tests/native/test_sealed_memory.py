"""Memory of parsed batches: nobody can write to it, so rows in it are used where they are."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.learners import SketchedNewton
from sketchnewton.streams import read_svmlight, read_vw

TEXT = "1 0:0.5 3:2\n-1 1:1\n1 0:-1 2:0.25 3:1\n"


def parsed(tmp_path: Path, text: str = TEXT) -> Batch:
    path = tmp_path / "rows.svm"
    path.write_text(text)
    return next(iter(read_svmlight(path)))


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "labels"])
def test_what_parsers_give_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    vw = tmp_path / "rows.vw"
    vw.write_text("1 | a:2 b\n")
    for batch in (parsed(tmp_path), next(iter(read_vw(vw)))):
        view: Any = getattr(batch.views, name)
        assert view.readonly
        with pytest.raises(TypeError):
            view[0] = 1
        with pytest.raises(TypeError, match="read-write"):
            io.BytesIO(bytes(1000)).readinto(view.cast("B"))
        for array in (np.asarray(view), np.asarray(view.obj), np.frombuffer(view.obj, np.uint8)):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                array.flags.writeable = True
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                array.setflags(write=True)


def test_memory_is_sealed_when_nobody_writes_to_it_any_more() -> None:
    memory = _native.Memory(16)
    view = memoryview(memory)
    part = view[8:]
    with pytest.raises(ValueError, match="being written to"):
        memory.seal()
    view.release()
    with pytest.raises(ValueError, match="being written to"):
        memory.seal()
    part[:] = b"12345678"
    array = np.frombuffer(memory, np.int64)
    part.release()
    with pytest.raises(ValueError, match="being written to"):
        memory.seal()
    assert array.flags.writeable
    del array
    memory.seal()
    memory.seal()
    with memoryview(memory) as sealed:
        assert sealed.readonly
        assert sealed[8:].tobytes() == b"12345678"
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(bytes(16)).readinto(memory)


def test_rows_in_sealed_memory_are_learned_like_any_others(tmp_path: Path) -> None:
    batch = parsed(tmp_path, TEXT * 50)
    copy = Batch(*(np.array(view) for view in batch.views[:4]))
    ours, others = SketchedNewton("oja", 3), SketchedNewton("oja", 3)
    for part in (batch, batch[3:20], batch[77:]):
        ours.learn_batch(part)
    for part in (copy, copy[3:20], copy[77:]):
        others.learn_batch(part)
    np.testing.assert_array_equal(ours.weights, others.weights)
    np.testing.assert_array_equal(ours.predict(batch), others.predict(copy))


@pytest.mark.parametrize("text", ["1 3:2 0:0.5\n", "1 0:1 0:2 3:1\n", "1 0:0 3:2\n", "1\n", "1 5:1\n"])
def test_rows_in_sealed_memory_are_tidied_where_they_must_be(tmp_path: Path, text: str) -> None:
    batch = parsed(tmp_path, TEXT + text)
    copy = Batch(*(np.array(view) for view in batch.views[:4]))
    ours, others = SketchedNewton("fd", 3), SketchedNewton("fd", 3)
    np.testing.assert_array_equal(ours.learn(batch, batch.labels), others.learn(copy, copy.labels))
    np.testing.assert_array_equal(ours.weights, others.weights)


def test_rows_outlive_the_batch(tmp_path: Path) -> None:
    rows = parsed(tmp_path, TEXT * 3000).rows  # large enough for memory that later batches get
    later = [parsed(tmp_path, "1 7:1 9:3\n" * 9000) for _ in range(3)]
    learner = SketchedNewton("none", 0)
    expected = learner.predict(parsed(tmp_path, TEXT * 3000))
    np.testing.assert_array_equal(learner.predict(rows), expected)
    assert len(later[0]) == 9000


def test_one_sealed_array_is_not_enough(tmp_path: Path) -> None:
    """Indices that can be written to are copied and checked, whatever the values are."""
    batch = parsed(tmp_path, TEXT * 100)
    indices = np.array(batch.views.indices)
    mixed = Batch(batch.views.indptr, indices, batch.views.data, batch.views.labels)
    learner = SketchedNewton("oja", 3)
    learner.learn(mixed, mixed.labels)
    indices[100] = 2**40
    with pytest.raises(RuntimeError, match="rows have changed"):
        learner.learn(mixed, mixed.labels)


@pytest.mark.parametrize("parts", [1, 7])
def test_unsorted_rows_are_those_of_arrays(tmp_path: Path, parts: int) -> None:
    """What a scan sorts, sums up and rids of zeros is what is read from arrays, which others may write to."""
    draw = np.random.default_rng(0)
    path = tmp_path / "rows.vw"
    with path.open("w") as file:
        for _ in range(200):
            names = draw.integers(0, 60, draw.choice([0, 1, 5, 40, 130, 300]))
            words = (f"n{name}" + draw.choice(["", "", ":0", ":-1", ":0.5"]) for name in names)
            file.write(f"{draw.choice([-1, 1])} | {' '.join(words)}\n")
    batch = next(iter(read_vw(path)))
    copied = Batch(*(np.array(getattr(batch, name)) for name in ("indptr", "indices", "data", "labels")))
    learners = [SketchedNewton("oja", 4), SketchedNewton("oja", 4), SketchedNewton("oja", 4)]
    edges = np.linspace(0, len(batch), parts + 1).astype(int).tolist()
    predictions = []
    unscanned = [batch[begin:end] for begin, end in itertools.pairwise(edges)]
    predictions.append(np.concatenate([learners[0].learn(part, part.labels) for part in unscanned]))
    assert batch.rows is batch.rows  # scanned as a whole
    scanned = [batch[begin:end] for begin, end in itertools.pairwise(edges)]
    predictions.append(np.concatenate([learners[1].learn(part, part.labels) for part in scanned]))
    predictions.append(learners[2].learn(copied, copied.labels))
    for k in (0, 1):
        np.testing.assert_array_equal(predictions[k], predictions[2])
        np.testing.assert_array_equal(learners[k].weights, learners[2].weights)
