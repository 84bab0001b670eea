"""Sequences of calls that nobody planned: all learners, in any order, with arrays of odd shapes, types and values.

`python -m tests.native.call_sequences --count 10000`; run under a core with sanitizers (`make fuzz-calls`). A call
may give a result or one of the errors that users are told of; after it, the learner can still be saved and loaded,
unless its numbers have become infinite.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import Generator

from sketchnewton import Learner
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Array
from tests.native import watched
from tests.native.model_mutants import CLASSES, KINDS, stream

ERRORS = (ValueError, TypeError, MemoryError, OverflowError)
"""What a call may raise."""
NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e-300, 1e-30, 1e-8, 1e8, 1e29, 1e30, 1e31, 1e300, np.nan, np.inf, -np.inf)
LABELS = (-1.0, 0.0, 1.0, 2.0, 0.5, 1e3, 1e30, -1e300, np.nan, np.inf)
WEIGHTS = (0.0, 1.0, 1e-300, 2.5, 1e30, 1e31, -1.0, np.nan)
KIND_NAMES = tuple(KINDS)


class Caller:
    """A learner of some kind, and the calls that may be made of it."""

    def __init__(self, kind: str, rng: Generator) -> None:
        self.kind = kind
        self.rng = rng
        self.learner = KINDS[kind]()
        self.calls: list[Callable[[], object]] = [
            *[self.learn] * 4,
            *[self.learn_plainly] * 4,
            *[self.predict] * 2,
            *(self.learn_row, self.batch, self.look, self.merge, self.save, self.pickle, self.copy),
        ]

    def step(self) -> str:
        """One call; its name and how it ended."""
        call = self.calls[self.rng.integers(len(self.calls))]
        try:
            call()
        except ERRORS as error:
            return f"{call.__name__}: {type(error).__name__}"
        return call.__name__

    def learn(self) -> None:
        X = self.rows()
        n = int(self.rng.choice([len(X) if hasattr(X, "__len__") else 3, 0, 1, 5], p=[0.8, 0.05, 0.05, 0.1]))
        self.learner.learn(X, self.labels(n), self.weights(n))

    def learn_plainly(self) -> None:
        rows, seed = int(self.rng.choice([1, 3, 17, 60])), int(self.rng.integers(1000))
        self.learner.learn(*stream(self.kind, rows, int(self.rng.choice([7, 40, 150])), seed))

    def predict(self) -> None:
        self.learner.predict(self.rows())

    def learn_row(self) -> None:
        rows = Batch(np.array([0, 2]), np.array([1, 5]), self.values(2), np.ones(1)).rows
        self.learner.learn_row(rows, float(self.rng.choice(LABELS)), float(self.rng.choice(WEIGHTS)))

    def batch(self) -> None:
        """Rows that were checked, and then changed."""
        X, y = stream(self.kind, 12, 20, 3)
        indices = np.tile(np.arange(20), 12)
        batch = Batch(np.arange(0, 241, 20), indices, np.asarray(X, float).reshape(-1).copy(), y)
        self.learner.predict(batch)
        indices[self.rng.integers(240)] = self.rng.choice([-1, 3, 2**40])
        try:
            self.learner.learn_batch(batch)
        except RuntimeError as error:
            if "rows have changed" not in str(error):
                raise

    def look(self) -> None:
        learner = self.learner
        for look in (
            lambda: learner.weights,
            lambda: learner.spectrum,
            lambda: learner.largest_weights(int(self.rng.choice([0, 2, 10**9]))),
            lambda: (learner.experts, learner.leading_expert, learner.alpha_, learner.prediction_bounds),
            lambda: (learner.rows_seen, learner.features_seen, learner.dimension, repr(learner)),
            lambda: learner.intercepts,
            learner.sorted_scales,
            lambda: learner.decision_function(np.ones((2, 3))),
            lambda: learner.probabilities(np.zeros((2, learner.outputs))),
        ):
            try:
                look()
            except (*ERRORS, AttributeError):  # which some have not
                pass

    def merge(self) -> None:
        other = KINDS[
            self.kind if self.rng.random() < 0.9 else KIND_NAMES[self.rng.integers(len(KIND_NAMES))]
        ]()
        if self.rng.random() < 0.8 and type(other) is type(self.learner):
            other.learn(*stream(self.kind, int(self.rng.choice([1, 30])), int(self.rng.choice([3, 50])), 2))
        self.learner.merge(self.learner if self.rng.random() < 0.05 else other)

    def save(self) -> None:
        self.learner = Learner.from_bytes(self.learner.to_bytes())

    def pickle(self) -> None:
        self.learner = pickle.loads(pickle.dumps(self.learner))

    def copy(self) -> None:
        self.learner = copy.deepcopy(self.learner)

    # -- odd arrays

    def values(self, size: int) -> Array:
        rng = self.rng
        values = rng.standard_normal(size) * rng.choice([1.0, 1.0, 1e-20, 1e20])
        if size and rng.random() < 0.3:
            values[rng.integers(size, size=min(size, 3))] = rng.choice(NUMBERS)
        return values

    def labels(self, n: int) -> Any:
        rng = self.rng
        labels = rng.integers(3, size=n) * 1.0 if self.kind in CLASSES else rng.choice([-1.0, 1.0], size=n)
        if n and rng.random() < 0.2:
            labels[rng.integers(n)] = rng.choice(LABELS)
        return odd_form(labels, rng)

    def weights(self, n: int) -> Any:
        rng = self.rng
        if rng.random() < 0.6:
            return None
        weights = rng.random(n) * rng.choice([1.0, 3.0])
        if n and rng.random() < 0.4:
            weights[rng.integers(n)] = rng.choice(WEIGHTS)
        return odd_form(weights, rng)

    def rows(self) -> Any:
        rng = self.rng
        n, d = int(rng.choice([0, 1, 2, 9, 40])), int(rng.choice([0, 1, 3, 8, 30]))
        if rng.random() < 0.5:
            return odd_form(self.values(n * d).reshape(n, d), rng)
        lengths = rng.integers(0, d + 1, size=n)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        indices = rng.integers(0, max(d, 1), size=int(indptr[-1]))
        if rng.random() < 0.15 and len(indices):
            indices[rng.integers(len(indices))] = rng.choice([-1, 2**20, 2**40, 2**62])
        if rng.random() < 0.1 and n:
            indptr[rng.integers(n + 1)] = rng.choice([-1, 5, 10**6, 2**62])
        data = self.values(len(indices))
        types = rng.choice(["int64", "int32", "uint8", "float64"], p=[0.5, 0.4, 0.05, 0.05])
        with np.errstate(all="ignore"):
            return SimpleNamespace(
                format="csr",
                indptr=indptr,
                indices=indices.astype(types),
                data=data.astype(
                    rng.choice(["float64", "float32", "float16", "int64"], p=[0.5, 0.3, 0.1, 0.1])
                ),
                shape=(n, d),
            )


def at_an_odd_address(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    odd = memory[1:].view(array.dtype).reshape(array.shape)
    odd[...] = array
    return odd


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


TYPES = ("float32", "float16", "int64", "int8", "bool", "complex128", ">f8")
FORMS: tuple[Callable[[Array, Generator], Any], ...] = (
    *[lambda array, _: array] * 5,
    lambda array, _: array.tolist(),
    lambda array, _: np.asfortranarray(array),
    lambda array, _: np.repeat(array, 2, axis=0)[::2],
    lambda array, rng: array.astype(rng.choice(TYPES)),
    lambda array, _: at_an_odd_address(array),
    lambda array, _: read_only(array),
    lambda array, _: array[..., None],
    lambda array, _: array.reshape(-1),
    lambda array, _: array[::-1],
)


def odd_form(array: Array, rng: Generator) -> Any:
    """The same numbers, as a rule, in another form."""
    with np.errstate(all="ignore"):
        return FORMS[rng.integers(len(FORMS))](array, rng)


def kind_of(seed: int) -> str:
    """Kinds take turns."""
    return KIND_NAMES[seed % len(KIND_NAMES)]


def case(seed: int) -> str:
    """The sequence of this number."""
    rng = np.random.default_rng(seed)
    caller = Caller(kind_of(seed), rng)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(rng.integers(4, 16)):
            caller.step()
        try:
            data = caller.learner.to_bytes()
        except ValueError:
            return "not saved"
        Learner.from_bytes(data).predict(np.ones((1, 3)))
    return "done"


if __name__ == "__main__":
    watched.main("tests.native.call_sequences", "sequences", case, kind_of)
