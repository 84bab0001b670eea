"""Arrays that another thread changes while kernels read them: an error or a result, never memory of others."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Array
from sketchnewton.learners import (
    AdaGrad,
    ClassBank,
    FullNewton,
    InvariantNewton,
    NewtonBank,
    OneVsAll,
    SharedNewton,
    SketchedAdaGrad,
    SketchedNewton,
)

REFUSED = "rows have changed since they were checked"
HUGE = 2**40  # far beyond any table: a kernel that used it would end the process


def csr(rows: int, d: int = 50, non_zeros: int = 6, index: type = np.int64, value: type = np.float64) -> Any:
    rng = np.random.default_rng(0)
    indices = np.stack([rng.permutation(d)[:non_zeros] for _ in range(rows)])
    indices.sort(axis=1)
    indptr = np.arange(0, rows * non_zeros + 1, non_zeros)
    data = rng.standard_normal(rows * non_zeros)
    return indptr, indices.reshape(-1).astype(index), data.astype(value)


def batch_of(arrays: Any, labels: Array) -> Batch:
    return Batch(*arrays, labels)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("wrong", [-1, 50, 2**30])
def test_indices_changed_after_they_were_checked_are_refused(index: type, value: type, wrong: int) -> None:
    arrays = csr(300, index=index, value=value)
    batch = batch_of(arrays, np.ones(300))
    learner = SketchedNewton("oja", 3)
    learner.learn(batch, batch.labels)
    arrays[1][6 * 290 + 5] = wrong
    with pytest.raises(RuntimeError, match=REFUSED):
        learner.learn(batch, batch.labels)
    with pytest.raises(RuntimeError, match=REFUSED):
        learner.predict(batch)
    assert np.isfinite(learner.predict(batch[:100])).all()


def test_rows_that_become_unsorted_are_sorted() -> None:
    arrays = csr(40)
    batch = batch_of(arrays, np.ones(40))
    batch.rows  # noqa: B018 - scanned: all rows are sorted
    expected = SketchedNewton("oja", 3).learn(batch_of([a.copy() for a in arrays], np.ones(40)), np.ones(40))
    for array in arrays[1:]:
        array[6:12] = array[6:12][::-1].copy()
    np.testing.assert_array_equal(SketchedNewton("oja", 3).learn(batch, np.ones(40)), expected)


def test_places_of_rows_are_copied() -> None:
    indptr, indices, data = csr(40)
    batch = batch_of((indptr, indices, data), np.ones(40))
    learner = AdaGrad()
    expected = learner.predict(batch)
    batch.rows  # noqa: B018
    indptr[:] = HUGE
    np.testing.assert_array_equal(learner.predict(batch), expected)


RACE = """
import sys, threading, time
import numpy as np
from tests.native.test_changing_arrays import KINDS, csr, HUGE
from sketchnewton.core.batch import Batch
make, classes = KINDS[sys.argv[1]]
indptr, indices, data = csr(2000)
good = [array.copy() for array in (indptr, indices, data)]
labels = np.arange(2000) % classes * 1.0 if classes else np.ones(2000)
correct = labels.copy()
stop = False
def change():
    rng = np.random.default_rng(1)
    while not stop:
        at = rng.integers(len(indices), size=20)
        indices[at] = rng.choice([-1, HUGE, -HUGE, 2**62, 10**7, 3])
        data[at[0]] = rng.choice([np.nan, np.inf, 0.0, 1e300])
        labels[at % 2000] = 1e18
        indptr[at % 2001] = HUGE
        time.sleep(0)
        indices[:], data[:], indptr[:], labels[:] = good[1], good[2], good[0], correct
thread = threading.Thread(target=change, daemon=True)
thread.start()
refused = learned = 0
until = time.monotonic() + 0.5
while time.monotonic() < until:
    learner = make()
    try:
        batch = Batch(indptr, indices, data, labels)
        learner.learn(batch, labels)
        learner.predict(batch)
        learned += 1
    except (RuntimeError, ValueError, MemoryError):
        refused += 1
stop = True
thread.join()
print("refused", refused, "learned", learned)
"""

KINDS: dict[str, tuple[Any, int]] = {
    "none": (lambda: SketchedNewton("none", 0), 0),
    "oja": (lambda: SketchedNewton("oja", 3), 0),
    "fd": (lambda: SketchedNewton("fd", 3), 0),
    "rp": (lambda: SketchedNewton("rp", 3), 0),
    "bank": (NewtonBank, 0),
    "adagrad": (AdaGrad, 0),
    "ada-fd": (lambda: SketchedAdaGrad("fd", 3), 0),
    "ada-classes": (lambda: SketchedAdaGrad("fd", 3, loss="logistic", classes=3), 3),
    "full": (FullNewton, 0),
    "invariant": (InvariantNewton, 0),
    "shared": (lambda: SharedNewton(3, 4), 3),
    "bank of classes": (lambda: ClassBank(3, 4), 3),
    "one against all": (lambda: OneVsAll(AdaGrad, 3), 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_that_changes_everything_does_no_harm(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(RACE), kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("refused")


def test_classes_that_learned_different_rows_are_not_saved() -> None:
    """Rows that change between two classes: no file that its loader would refuse."""
    learner = OneVsAll(AdaGrad, 3)
    rng = np.random.default_rng(0)
    learner.learn(rng.standard_normal((30, 20)), rng.integers(3, size=30))
    indices = np.tile(np.arange(20), 12)
    batch = Batch(
        np.arange(0, 241, 20), indices, rng.standard_normal(240), rng.integers(3, size=12).astype(float)
    )
    learner.predict(batch)
    indices[230] = 2**40
    with pytest.raises(RuntimeError, match="rows have changed"):
        learner.learn_batch(batch)
    assert len({part.rows_seen for part in learner.learners}) == 2
    with pytest.raises(ValueError, match="learned different rows"):
        learner.to_bytes()
