"""A model file with a correct checksum and impossible content is refused, or does no harm."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import numpy as np
import pytest

from sketchnewton import AdaGrad, Learner, NewtonBank, Sketch, SketchedAdaGrad, SketchedNewton
from sketchnewton.core import archive
from sketchnewton.core.persistence import Persistent
from sketchnewton.core.types import Arrays, Header
from sketchnewton.features.names import Names
from tests.contract.learners import sparse_stream
from tests.native.model_mutants import ALL, KINDS, mutant, trained, use


@pytest.mark.parametrize("kind", ALL)
def test_mutants_are_refused_or_work(kind: str) -> None:
    """A few; `make fuzz-models` tries thousands under sanitizers."""
    assert use(trained(kind, 40), kind) == "used"  # as it was saved
    for seed in range(12):
        use(mutant(kind, np.random.default_rng(seed)), kind)


def refused(
    learner: Learner, change: Callable[[Header, Arrays], None], rows: int = 203, features: int = 60
) -> None:
    X, y = sparse_stream(rows, d=features, non_zeros=6)
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

    def negative_zero(_: Header, arrays: Arrays) -> None:  # an epoch that kernels, by its bits, read as late
        epoch, kind = arrays["table"][:, 2:4].T
        epoch[np.flatnonzero((kind == 0) & (epoch <= 16 * arrays["items"][1]))[0]] = -0.0

    for change in (negative, early, map_of_nothing, negative_zero):
        refused(SketchedNewton(sketch, 5, alpha=1.0), change, features=100)


def test_a_negative_zero_is_no_epoch_of_a_bank() -> None:
    def negative_zero(_: Header, arrays: Arrays) -> None:
        arrays["table"][np.flatnonzero(arrays["table"][:, -1] >= 0)[0], -1] = -0.0

    refused(NewtonBank(), negative_zero)


@pytest.mark.parametrize("sketch", ["fd", "rfd", "pfd"])
def test_directions_that_are_written_out_are_checked(sketch: str) -> None:
    def other_place(_: Header, arrays: Arrays) -> None:
        arrays["table"][0, 2] = 1

    def far_place(_: Header, arrays: Arrays) -> None:
        arrays["table"][0, 2] = 1e6

    def no_scale(_: Header, arrays: Arrays) -> None:
        arrays["few"][3, 1] = 0

    def singular(_: Header, arrays: Arrays) -> None:
        arrays["H"][1, 1] = 0

    def waiting(_: Header, arrays: Arrays) -> None:
        arrays["items"][0] = 1

    def rows(_: Header, arrays: Arrays) -> None:
        arrays["few"] = np.zeros((65, arrays["few"].shape[1]))

    for change in (other_place, far_place, no_scale, singular, waiting, rows):
        refused(SketchedNewton(sketch, 5, alpha=1.0), change)


def test_infinite_directions_leave_what_features_wait_for() -> None:
    """Infinity times zero is NaN: maps change weights and directions, never the counters beside them."""
    learner = SketchedNewton("fd", 5, alpha=1.0)
    X, y = sparse_stream(203, d=100, non_zeros=6)
    learner.learn(X, y)
    learner._table.rows[learner._seen, 5:9] = np.inf
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="not finite"):
        learner.learn(X, y)
    rows = learner._table.rows[learner._seen, 2:5]
    assert np.isfinite(rows).all()
    assert not np.isfinite(learner._table.rows[learner._seen, 0]).all()


def test_features_of_the_bank_are_counted_once() -> None:
    def fraction(_: Header, arrays: Arrays) -> None:
        arrays["table"][0, -3] = 2.0**-26  # more than none, but one more makes it one

    refused(NewtonBank(), fraction)

    def beyond_all_counters(_: Header, arrays: Arrays) -> None:  # merging would have to add them up
        arrays["table"][:, -3] *= 1e15

    refused(NewtonBank(), beyond_all_counters)
    refused(NewtonBank(dtype="float64", loss="logistic"), beyond_all_counters)


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


@pytest.mark.parametrize(
    "kind", ["fd", "bank", "ada-fd", "ada-gp", "invariant", "full", "sketch fd", "sketch oja"]
)
def test_what_has_counted_too_far_is_not_saved(kind: str) -> None:
    """Else the file could not be loaded again."""
    header, arrays = archive.decode(trained(kind, 40))
    arrays["counts"].flat[0] = 2**53
    made = Persistent.from_bytes(archive.encode(header, arrays))
    X, y = sparse_stream(3, d=20, non_zeros=6)
    if isinstance(made, Learner):
        made.learn(X, y)
    else:
        assert isinstance(made, Sketch)
        made.update(X)
    with pytest.raises(ValueError, match="that has counted beyond"):
        made.to_bytes()


@pytest.mark.parametrize("kind", ["adagrad", "none", "oja", "bank"])
def test_no_table_is_made_for_features_that_were_not_counted(kind: str) -> None:
    header, arrays = archive.decode(trained(kind, 40))
    arrays["features"][0] = 2**52  # no memory has room for it
    with pytest.raises(archive.ModelFileError, match="counters contradict"):
        Learner.from_bytes(archive.encode(header, arrays))


def test_names_that_name_each_other_are_refused() -> None:
    """An interaction joins features and n-grams, never interactions: each level would double the text."""
    names = Names(exact=False)
    names.indices_of(["a"])
    table = names.table
    assert table.restore(b"x" + (0).to_bytes(8, "little") * 2, 5)
    assert not table.restore(b"x" + (1).to_bytes(8, "little") * 2, 6)
    assert not table.restore(b"g" + (1).to_bytes(8, "little") * 2, 6)
    state = names.state()
    keys = [b"na"] + [b"x" + (2 * max(k - 1, 0) + (k > 0)).to_bytes(8, "little") * 2 for k in range(120_000)]
    state["keys"] = np.frombuffer(b"".join(keys), np.uint8)
    state["ends"] = np.cumsum([len(key) for key in keys])
    state["indices"] = np.arange(len(keys))
    with pytest.raises(ValueError, match="entry 2 is not a name"):
        Names.from_state(state, exact=False)


def test_what_is_shown_of_joined_names_is_bounded() -> None:
    names = Names(exact=False)
    names.indices_of(["long" * 100_000, "b"])
    for k in range(2, 2000):
        assert names.table.restore(b"x" + (0).to_bytes(8, "little") * k, k)
    shown = names.readable()
    assert len(shown) == 2000
    assert max(len(name) for name in list(shown.values())[2:]) <= 1001


@pytest.mark.parametrize("noise", ["exponential noise", "uniform noise", "Oja", "Frank-Wolfe"])
def test_a_size_that_eigenvectors_contradict_is_refused_at_once(noise: str) -> None:
    header, arrays = archive.decode(trained(f"eigen {noise}", 7))
    header["parameters"]["n"] = 20_000
    started = time.process_time()
    with pytest.raises(archive.ModelFileError, match="contradicts its arrays"):
        Persistent.from_bytes(archive.encode(header, arrays))
    assert time.process_time() - started < 2.0


def test_sketches_of_numbers_beyond_all_squares_are_not_saved() -> None:
    header, arrays = archive.decode(trained("sketch fd", 40))
    name = next(name for name in arrays if arrays[name].ndim == 2)
    arrays[name][...] = 1e300
    with np.errstate(all="ignore"):
        sketch = Persistent.from_bytes(archive.encode(header, arrays))
        assert isinstance(sketch, Sketch)
        with contextlib.suppress(ValueError):
            sketch.update(sparse_stream(30, d=20, non_zeros=6)[0])
        with pytest.raises(ValueError, match="not finite"):
            sketch.to_bytes()


@pytest.mark.parametrize(
    ("name", "value"), [("active", 2**40), ("active", -1), ("recent", 2**40), ("group", -5)]
)
def test_kernels_look_at_lists_of_features_themselves(name: str, value: int) -> None:
    """Whoever made the arrays: a list leads nowhere but into the table."""
    learner = SketchedNewton("fd", 3, alpha=1.0)
    learner.learn(*sparse_stream(50, d=30, non_zeros=6))
    views = learner._views()
    views[name][0] = value
    with pytest.raises(ValueError, match="features that the table has not"):
        learner._bind()


def test_kernels_look_at_the_number_of_features_themselves() -> None:
    learner = AdaGrad()
    learner.learn(*sparse_stream(50, d=30, non_zeros=6))
    learner._views()["counts"][1] = 10**6
    with pytest.raises(ValueError, match="more features than the table has room for"):
        learner._bind()


@pytest.mark.parametrize(
    ("kind", "name"), [("sketch cfd", "counts"), ("sketch rp", "position"), ("sketch fd", "counts")]
)
def test_counts_of_sketches_at_their_end_are_refused(kind: str, name: str) -> None:
    header, arrays = archive.decode(trained(kind, 40))
    for key in (key for key in arrays if key.endswith(name)):
        changed = {**arrays, key: np.full_like(arrays[key], 2**63 - 1)}
        with pytest.raises(archive.ModelFileError, match="holds impossible counts"):
            Persistent.from_bytes(archive.encode(header, changed))
