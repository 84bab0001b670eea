"""A model file with a correct checksum and impossible content is refused, or does no harm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sketchnewton import Learner, NewtonBank, SketchedAdaGrad, SketchedNewton
from sketchnewton.core import archive
from sketchnewton.core.types import Arrays, Header
from tests.contract.learners import sparse_stream
from tests.native.model_mutants import KINDS, mutant, trained, use


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_refused_or_work(kind: str) -> None:
    """A few; `make fuzz-models` tries thousands under sanitizers."""
    assert use(trained(kind, 40), kind)  # as it was saved
    for seed in range(12):
        use(mutant(kind, np.random.default_rng(seed)), kind)


def refused(learner: Learner, change: Callable[[Header, Arrays], None], rows: int = 203) -> None:
    X, y = sparse_stream(rows, d=60, non_zeros=6)
    learner.learn(X, y)
    header, arrays = archive.decode(learner.to_bytes())
    change(header, arrays)
    with pytest.raises(archive.ModelFileError):
        Learner.from_bytes(archive.encode(header, arrays))


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
def test_what_features_wait_for_is_checked(sketch: str) -> None:
    def negative(_: Header, arrays: Arrays) -> None:
        arrays["table"][np.flatnonzero(arrays["table"][:, 3])[0], 3] = -1

    def early(_: Header, arrays: Arrays) -> None:  # a member of the group that would join once more
        at = int(np.flatnonzero(arrays["features"] == arrays["group"][0])[0])
        arrays["table"][at, 2:4] = 16 * arrays["items"][1], 0

    def map_of_nothing(_: Header, arrays: Arrays) -> None:
        arrays["open"][...] = np.inf

    for change in (negative, early, map_of_nothing):
        refused(SketchedNewton(sketch, 5, alpha=1.0), change)


def test_infinite_directions_leave_what_features_wait_for() -> None:
    """Infinity times zero is NaN: maps change weights and directions, never the counters beside them."""
    learner = SketchedNewton("fd", 5, alpha=1.0)
    X, y = sparse_stream(203, d=60, non_zeros=6)
    learner.learn(X, y)
    learner._table.rows[learner._seen, 5:9] = np.inf
    with np.errstate(all="ignore"):
        learner.learn(X, y)
    rows = learner._table.rows[learner._seen, 2:5]
    assert np.isfinite(rows).all()
    assert not np.isfinite(learner._table.rows[learner._seen, 0]).all()


def test_features_of_the_bank_are_counted_once() -> None:
    def fraction(_: Header, arrays: Arrays) -> None:
        arrays["table"][0, -3] = 2.0**-26  # more than none, but one more makes it one

    refused(NewtonBank(), fraction)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 0.0])
def test_scales_whose_squares_leave_the_range_are_refused(scale: float) -> None:
    def change(_: Header, arrays: Arrays) -> None:
        arrays["table"][0, 1] = scale

    refused(SketchedNewton(diagonal=True, dtype="float64"), change)


@pytest.mark.parametrize("learner", [NewtonBank(), SketchedAdaGrad("fd", 5)])
def test_large_counts_cost_no_memory(learner: Learner) -> None:
    import tracemalloc

    def change(_: Header, arrays: Arrays) -> None:
        arrays["items"][...] = 2**30

    tracemalloc.start()
    try:
        refused(learner, change)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [SketchedNewton, NewtonBank, SketchedAdaGrad])
def test_sizes_that_the_arrays_contradict_are_refused_before_memory_is_taken(make: type[Learner]) -> None:
    def change(header: Header, _: Arrays) -> None:
        header["parameters"]["sketch_size"] = 2**40  # beyond any memory: nothing may have been asked for

    X, y = sparse_stream(50, d=60, non_zeros=6)
    learner = make()
    learner.learn(X, y)
    header, arrays = archive.decode(learner.to_bytes())
    change(header, arrays)
    with pytest.raises(archive.ModelFileError, match="contradicts its arrays"):
        Learner.from_bytes(archive.encode(header, arrays))


@pytest.mark.parametrize("kind", KINDS)
def test_counters_at_their_end_are_refused(kind: str) -> None:
    def change(_: Header, arrays: Arrays) -> None:
        for name in arrays:
            if name.endswith("counts"):
                arrays[name].flat[0] = 2**63 - 1

    header, arrays = archive.decode(trained(kind, 40))
    change(header, arrays)
    with pytest.raises(archive.ModelFileError):
        Learner.from_bytes(archive.encode(header, arrays))
