"""Model files that nobody saved: with a correct checksum, but numbers that no learner would have.

`python -m tests.native.model_mutants --count 5000` makes them of every class that has a file and does with each
what a user does: load, learn, predict, merge, save. Run it under sanitizers (`make fuzz-models`). A mutant
may be refused, or work; what it has learned is finite, or cannot be saved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator

from sketchnewton import Learner, Model, Sketch
from sketchnewton.core import archive
from sketchnewton.core.persistence import Persistent
from sketchnewton.core.types import Array, Header
from sketchnewton.eigen.base import EigenLearner
from sketchnewton.features.options import Features
from sketchnewton.learners import ClassBank, OneVsAll, SharedNewton, SketchedAdaGrad, SketchedNewton
from tests.contract.learners import DENSE, LEARNERS, sparse_stream
from tests.contract.sketches import ALL as SKETCHES
from tests.contract.test_eigen import LEARNERS as EIGEN
from tests.native import watched

KINDS: dict[str, Callable[[], Learner]] = {
    **LEARNERS,
    "one against all": lambda: OneVsAll("SketchedNewton", 3, {"sketch": "rfd", "sketch_size": 3}),
    "one against all, full": lambda: OneVsAll("FullNewton", 3),
    "shared": lambda: SharedNewton(3, 4),
    "bank of classes": lambda: ClassBank(3, 4),
    "bank of classes, float64": lambda: ClassBank(3, 0, intercept=False, dtype="float64"),
    "ada-fd, classes": lambda: SketchedAdaGrad("fd", 3, loss="logistic", classes=3),
}
CLASSES = {
    *("one against all", "one against all, full", "shared", "ada-fd, classes"),
    *("bank of classes", "bank of classes, float64"),
}
MODEL = "model"
ALL = (*KINDS, *(f"sketch {name}" for name in SKETCHES), *(f"eigen {name}" for name in EIGEN), MODEL)
"""All kinds of files."""
INTEGERS = (
    -1,
    0,
    1,
    2,
    3,
    15,
    16,
    17,
    63,
    64,
    65,
    1023,
    4096,
    2**20,
    2**30,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
)
NUMBERS = (
    *(0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 16.0, 1e3, 2.0**-26, 1e-40, 1e-200, 1e30, 3e38, 1e200, -1e300),
    *(np.nan, np.inf),
)
PARAMETERS = (-1, 0, 1, 2, 3, 50, 63, 20_000, 2**31, 2**62, 0.5, 1e300, "auto", None, True, [1.0], {})


def stream(kind: str, rows: int, d: int, seed: int) -> tuple[Array, Array]:
    """Ordinary rows for a learner of this kind."""
    X, y = sparse_stream(rows, d=d, non_zeros=6, seed=seed)
    if kind in CLASSES:
        return X, np.arange(rows) % 3.0
    return X, np.abs(y) if "poisson" in kind else y


def records(rows: int) -> list[dict[str, object]]:
    """Rows for a model."""
    rng = np.random.default_rng(rows)
    return [
        {"a": f"v{rng.integers(9)}", "b|c": float(rng.random()), "label": (k % 2) * 2.0 - 1}
        for k in range(rows)
    ]


@cache
def trained(kind: str, rows: int) -> bytes:
    """The file of one that has seen so many rows."""
    if kind in KINDS:
        learner = KINDS[kind]()
        # Frequent Directions write vectors out up to 64 features, and go back to sparse time beyond 96.
        learner.learn(*stream(kind, rows, 40 if rows < 40 or kind in DENSE else 150, 0))
        return learner.to_bytes()
    if kind == MODEL:
        features = Features(interactions=("ab",), ngram=("2",))
        model = Model(SketchedNewton("fd", 3), features=features, exact_names=True)
        model.learn(records(rows))
        return model.to_bytes()
    family, _, name = kind.partition(" ")
    if family == "sketch":
        return SKETCHES[name](4).update(stream(kind, rows, 20, 0)[0]).to_bytes()
    eigen = EIGEN[name](6)
    for _ in range(min(rows, 20)):
        eigen.predict()
        eigen.observe(matrix(rows))
    return eigen.to_bytes()


def matrix(seed: int) -> Array:
    """A symmetric matrix with eigenvalues in [0, 1]."""
    v = np.random.default_rng(seed).standard_normal((6, 2))
    A: Array = v @ v.T
    return A / np.linalg.norm(A, 2)


def spoiled(array: Array, rng: Generator) -> Array:
    """The array with some numbers that do not belong there, or of another shape or type."""
    array = array.copy()
    how = rng.random()
    if how < 0.04:
        return array[: len(array) // 2] if array.ndim else array
    if how < 0.06:
        return array.astype(rng.choice(["float32", "float64", "int64"]))
    if how < 0.08:
        return np.ascontiguousarray(array.T)
    if array.size == 0:
        return array
    values = INTEGERS if array.dtype.kind in "iu" else NUMBERS
    value = np.array(values[rng.integers(len(values))]).astype(array.dtype)
    if array.dtype.kind == "i" and how < 0.4:
        array.flat[rng.integers(array.size)] += rng.choice([-1, 1])
    elif how < 0.5:  # rows, or numbers, that change places
        flat = array if array.ndim > 1 and rng.random() < 0.5 else array.reshape(-1)
        flat[:] = flat[rng.permutation(len(flat))]
    elif how < 0.65 and array.ndim > 1:
        array[..., rng.integers(array.shape[-1])] = value
    elif how < 0.7:
        array[...] = value
    elif how < 0.8 and array.dtype.kind == "f":
        array *= value
    else:
        array.flat[rng.integers(array.size)] = value
    return array


def mutant(kind: str, rng: Generator) -> bytes:
    """A file with one to three changes."""
    header, arrays = archive.decode(trained(kind, int(rng.choice([1, 7, 40, 200]))))
    with np.errstate(all="ignore"):
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.1 or not arrays:
                change_header(header, rng)
            else:
                name = rng.choice(sorted(arrays))
                arrays[name] = spoiled(arrays[name], rng)
    return archive.encode(header, arrays)


def change_header(header: Header, rng: Generator) -> None:
    """Another value for one of the entries, at any depth."""
    places = list(_places(header))
    within, name = places[rng.integers(len(places))]
    within[name] = PARAMETERS[rng.integers(len(PARAMETERS))]


def _places(header: Header) -> Any:
    for name in sorted(header):
        if isinstance(header[name], dict) and header[name]:
            yield from _places(header[name])
        elif name != "class":
            yield header, name


def use(data: bytes, kind: str) -> str:
    """Do with the file what a user does. Anything but a refusal or a result is raised."""
    try:
        made = Persistent.from_bytes(data)
    except archive.ModelFileError:
        return "refused"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(made, Learner):
            return _use_learner(made, kind)
        if isinstance(made, Sketch):
            return _use_sketch(made, kind)
        if isinstance(made, EigenLearner):
            return _use_eigen(made)
        return _use_model(made)


def _use_learner(learner: Learner, kind: str) -> str:
    d = 20 if kind in DENSE else 60 if learner.dimension < 60 else 160
    X, y = stream(kind, 20 if kind in DENSE else 40, d, 1)
    _try(lambda: learner.predict(X))
    _try(lambda: learner.learn(X, y))
    _try(lambda: learner.learn(X[:3], y[:3], np.array([0.0, 2.0, 1.0])))
    _try(lambda: (learner.weights, learner.spectrum, learner.largest_weights(3), learner.experts))
    _try(lambda: learner.merge(Learner.from_bytes(trained(kind, 40))))
    _try(lambda: learner.learn(X, y))
    return _saved(learner, lambda again: again.predict(X))


def _use_sketch(sketch: Sketch, kind: str) -> str:
    X = stream(kind, 12, 20, 1)[0]
    _try(lambda: (sketch.matrix, sketch.error_bound, sketch.singular_values_, sketch.transform(X)))
    _try(lambda: sketch.update(X))
    _try(lambda: sketch.solve(X[0], 1.0))
    _try(lambda: sketch.merge(Sketch.from_bytes(trained(kind, 40))))
    _try(lambda: sketch.update(X))
    return _saved(sketch, lambda again: again.matrix)


def _use_eigen(learner: EigenLearner) -> str:
    for k in range(4):
        _try(learner.predict)
        _try(lambda k=k: learner.observe(matrix(k)))
    return _saved(learner, lambda again: again.predict())


def _use_model(model: Persistent) -> str:
    if not isinstance(model, Model):
        raise TypeError(f"a {type(model).__name__}")
    rows = records(12)
    _try(lambda: model.predict(rows))
    _try(lambda: model.learn(rows))
    _try(model.facts)
    _try(lambda: model.names and model.names.readable())
    _try(lambda: model.merge(Model.from_bytes(trained(MODEL, 40))))
    return _saved(model, lambda again: again.predict(rows))


def _try(step: Callable[[], object]) -> None:
    with suppress(ValueError, MemoryError):  # numbers that lead nowhere are the file's own fault
        step()


def _saved(made: Any, result: Callable[[Any], object]) -> str:
    """What it has become can be loaded again and gives numbers, or it cannot be saved."""
    try:
        data = made.to_bytes()
    except ValueError:
        return "not saved"
    again = Persistent.from_bytes(data)
    try:
        numbers = np.asarray(result(again), float)
    except ValueError:
        return "no result"
    return "used" if np.isfinite(numbers).all() else "not finite"


def kind_of(seed: int) -> str:
    """Kinds take turns."""
    return ALL[seed % len(ALL)]


def case(seed: int) -> str:
    """The mutant of this number."""
    kind = kind_of(seed)
    return use(mutant(kind, np.random.default_rng(seed)), kind)


if __name__ == "__main__":
    watched.main("tests.native.model_mutants", "mutants", case, kind_of)
