"""Model files that nobody saved: with a correct checksum, but numbers that no learner would have.

`python -m tests.native.model_mutants --mutants 5000` makes them of every learner in the table and does with each
what a user does: load, learn, predict, merge, save. Run under a core with sanitizers (`make fuzz-models`).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np
from numpy.random import Generator

from sketchnewton import Learner
from sketchnewton.core import archive
from sketchnewton.core.types import Array, Header
from sketchnewton.learners import OneVsAll, SharedNewton, SketchedAdaGrad
from tests.contract.learners import LEARNERS, sparse_stream

KINDS: dict[str, Callable[[], Learner]] = {
    **LEARNERS,
    "one against all": lambda: OneVsAll("SketchedNewton", 3, {"sketch": "rfd", "sketch_size": 3}),
    "shared": lambda: SharedNewton(3, 4),
    "ada-fd, classes": lambda: SketchedAdaGrad("fd", 3, loss="logistic", classes=3),
}
CLASSES = {"one against all", "shared", "ada-fd, classes"}
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
    0.0,
    -0.0,
    -1.0,
    0.5,
    1.0,
    2.0,
    16.0,
    1e3,
    2.0**-26,
    1e-40,
    1e-200,
    1e30,
    3e38,
    1e200,
    -1e300,
    np.nan,
    np.inf,
)
PARAMETERS = (-1, 0, 1, 2, 3, 50, 63, 20_000, 2**31, 2**62, 0.5, 1e300, "auto", None, True, [1.0], {})


def stream(kind: str, rows: int, d: int, seed: int) -> tuple[Array, Array]:
    X, y = sparse_stream(rows, d=d, non_zeros=6, seed=seed)
    if kind in CLASSES:
        return X, np.arange(rows) % 3.0
    return X, y if KINDS[kind]().takes(-1.0) else y + 1  # counts


@cache
def trained(kind: str, rows: int) -> bytes:
    """The file of a learner that has learned so many rows."""
    learner = KINDS[kind]()
    learner.learn(*stream(kind, rows, 40, 0))
    return learner.to_bytes()


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
    values = INTEGERS if array.dtype.kind == "i" else NUMBERS
    with np.errstate(all="ignore"):
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
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.1:
            change_parameter(header, rng)
        else:
            name = rng.choice(sorted(arrays))
            arrays[name] = spoiled(arrays[name], rng)
    return archive.encode(header, arrays)


def change_parameter(header: Header, rng: Generator) -> None:
    parameters = header["parameters"]
    parameters[rng.choice(sorted(parameters))] = PARAMETERS[rng.integers(len(PARAMETERS))]


def use(data: bytes, kind: str) -> bool:
    """Do with the file what a user does. False if it is refused; anything but a refusal or a result is raised."""
    try:
        learner = Learner.from_bytes(data)
    except archive.ModelFileError:
        return False
    X, y = stream(kind, 40, 60, 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        other = Learner.from_bytes(trained(kind, 40))
        for step in (
            lambda: learner.predict(X),
            lambda: learner.learn(X, y),
            lambda: learner.learn(X[:3], y[:3], np.array([0.0, 2.0, 1.0])),
            lambda: learner.weights,
            lambda: learner.spectrum,
            lambda: learner.merge(other),
            lambda: learner.learn(X, y),
            lambda: Learner.from_bytes(learner.to_bytes()),
        ):
            with suppress(ValueError, AttributeError):  # numbers that lead nowhere are the file's own fault
                step()
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    args = parser.parse_args()
    kinds = [args.kind] if args.kind else list(KINDS)
    begin, used, at = time.monotonic(), 0, 0
    while at < args.mutants and time.monotonic() - begin < args.seconds:
        kind, seed = kinds[at % len(kinds)], args.seed + at
        data = mutant(kind, np.random.default_rng(seed))
        print(
            f"{kind!r} seed {seed}", file=sys.stderr, flush=True
        )  # the last one is what a sanitizer stopped at
        started = time.monotonic()
        used += use(data, kind)
        if (seconds := time.monotonic() - started) > 60:
            raise SystemExit(f"{kind!r} seed {seed} took {seconds:.1f} s")
        at += 1
    print(f"{at} mutants, {at - used} refused, {used} used, in {time.monotonic() - begin:.0f} s: no finding")


if __name__ == "__main__":
    main()
