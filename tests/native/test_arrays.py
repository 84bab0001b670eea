"""Kernels work on the arrays they are given: what they cannot read as it is, they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sketchnewton import AdaGrad, Learner, _native
from tests.contract.learners import DENSE, LEARNERS, sparse_stream

Spoil = Callable[[NDArray[Any]], NDArray[Any]]


def unaligned(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers at an odd address."""
    room = np.zeros(array.nbytes + 1, np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def spread(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers with gaps between them."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


SPOILED: dict[str, Spoil] = {
    "unaligned": unaligned,
    "read-only": read_only,
    "with gaps": spread,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "of another type": lambda array: array.astype(np.float16),
    "longer": lambda array: np.concatenate([array, array]),
}
FREE = {
    "recent",
    "group",
    "few",
    "buffer_index",
    "buffer_value",
    "archive0",
    "archive1",
    "archive2",
}  # as long as they need to be


def bound(learner: Learner) -> dict[str, NDArray[Any]]:
    """The arrays that its kernel works on."""
    own: Any = learner
    return {**own._state.arrays(), **({"table": own._table.rows} if hasattr(own, "_table") else {})}


def replace(learner: Learner, name: str, array: NDArray[Any]) -> None:
    """Put the array where its kernel will find it, behind the back of the state, which would refuse or copy it."""
    own: Any = learner
    state = own._table._memory if name == "table" else own._state
    state._views[name] = array


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("kind", [kind for kind in LEARNERS if kind not in DENSE])
def test_no_kernel_converts_an_array(kind: str, how: str) -> None:
    learner = LEARNERS[kind]()
    X, y = sparse_stream(40, d=30, non_zeros=5)
    learner.learn(X, np.abs(y) if not learner.loss.takes(-1.0) else y)
    own: Any = learner
    skipped = {"range"} | (FREE if how == "longer" else set())  # the range is Python's own
    for name, array in bound(learner).items():
        if name in skipped or array.size < 2:
            continue
        replace(learner, name, SPOILED[how](array))
        with pytest.raises(ValueError, match=name if how != "longer" else None):
            own._bind()
        replace(learner, name, array)
    own._bind()


@pytest.mark.parametrize("how", ["unaligned", "read-only", "with gaps", "big-endian", "of another type"])
def test_no_kernel_writes_into_a_copy(how: str) -> None:
    learner: Any = AdaGrad()
    X, y = sparse_stream(8, d=30, non_zeros=5)
    learner.learn(X, y)
    rows = _native.dense_rows(X)
    rows.scan()
    out = SPOILED[how](np.zeros(8))
    with pytest.raises(TypeError):
        learner._kernel.predict(rows, out)
    with pytest.raises(TypeError):
        learner._kernel.learn(rows, y, None, out)


@pytest.mark.parametrize("how", ["unaligned", "read-only", "with gaps", "big-endian"])
def test_learners_take_what_users_have(how: str) -> None:
    """Input is copied into the kernels' form where it is in another."""
    X, y = sparse_stream(50, d=30, non_zeros=5)
    plain, other = AdaGrad(), AdaGrad()
    expected = plain.learn(X, y, np.ones(50))
    got = other.learn(SPOILED[how](X), SPOILED[how](y), SPOILED[how](np.ones(50)))
    np.testing.assert_array_equal(got, expected)
