"""A learner that gets no memory for more features is what it was: it learns on, and its file is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from sketchnewton import ClassBank, Learner, NewtonBank, SketchedNewton, _native
from sketchnewton.learners.multiclass import OneVsAll
from sketchnewton.learners.rows import as_rows
from tests.contract.learners import DENSE, LEARNERS

MAKERS: dict[str, Callable[[], Learner]] = {
    **{name: make for name, make in LEARNERS.items() if name not in DENSE},  # those allocate for every row
    "one bank per class": lambda: OneVsAll(NewtonBank, 3),
    "classes, rfd": lambda: OneVsAll(SketchedNewton, 3, {"sketch": "rfd", "sketch_size": 4}),
    "class bank": lambda: ClassBank(3),
    "fd, many rows": lambda: SketchedNewton("fd", 12, alpha=1.0),
}


class Meter:
    """Counts allocations, and refuses one of them."""

    def __init__(self, refused: int) -> None:
        self.left = refused

    def metered(self, allocate: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == -1:
                raise MemoryError
            return allocate(*args, **kwargs)

        return wrapped


@contextmanager
def short_of_memory(learner: Learner, refused: int) -> Iterator[Meter]:
    """Neither arrays nor kernels are to be had without asking the meter."""
    meter = Meter(refused)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "zeros", meter.metered(_native.zeros))
        patch.setattr(np, "zeros", meter.metered(np.zeros))
        kind: Any = type(getattr(learner, "learners", [learner])[0])
        patch.setattr(kind, "_bind", meter.metered(kind._bind))
        yield meter


def rows_of(seed: int, n: int, first: int, d: int, share: float) -> csr_array:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < share)
    return csr_array(hstack([csr_array((n, first)), csr_array(X)]))


@pytest.mark.parametrize("name", MAKERS)
def test_a_refused_allocation_changes_nothing(name: str) -> None:
    make = MAKERS[name]
    few, more = rows_of(0, 30, 0, 5, 0.6), rows_of(1, 120, 3, 90, 0.4)
    rng = np.random.default_rng(2)
    classes = make().classes
    y, later = (
        rng.choice([-1.0, 1.0] if classes is None else np.arange(float(classes)), n) for n in (30, 120)
    )
    if name == "bank, poisson":
        y, later = np.abs(y), np.abs(later)
    expected, refused = make(), 0
    expected.learn(few, y)
    before, scores = expected.to_bytes(), expected.predict(few)
    learned = expected.learn(more, later)
    for refused in range(80):
        learner = make()
        learner.learn(few, y)
        try:
            with short_of_memory(learner, refused) as meter:
                learner.learn(more, later)
        except MemoryError:
            assert learner.to_bytes() == before
            np.testing.assert_array_equal(learner.predict(few), scores)
            np.testing.assert_array_equal(learner.learn(more, later), learned)
            assert learner.to_bytes() == expected.to_bytes()
        else:
            if meter.left >= 0:  # all that were asked for were granted
                break
    assert refused > 0
    assert refused < 79


def test_experts_that_leave_need_no_memory() -> None:
    """When features become many, the experts with whole matrices are gone; giving memory back cannot fail."""
    X, y = rows_of(3, 60, 0, 300, 0.5), np.random.default_rng(4).choice([-1.0, 1.0], 60)
    plain = NewtonBank()
    expected = plain.learn(X, y)
    for refused in range(12):
        bank = NewtonBank()
        bank.reserve(as_rows(X))
        with short_of_memory(bank, refused):
            np.testing.assert_array_equal(bank.learn(X, y), expected)
        assert bank.to_bytes() == plain.to_bytes()
