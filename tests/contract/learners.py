"""One table of all learners and a few streams: the tests of promises run over both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sketchnewton import (
    AdaGrad,
    AdaLR,
    CompositeAdaGrad,
    FullAdaGrad,
    FullNewton,
    InvariantNewton,
    Learner,
    NewtonBank,
    OnlineGradient,
    RadaGrad,
    SketchedAdaGrad,
    SketchedNewton,
)

Floats = NDArray[np.float64]

LEARNERS: dict[str, Callable[[], Learner]] = {
    "oja": lambda: SketchedNewton("oja", 5, alpha=20.0),
    "oja, defaults": SketchedNewton,
    "oja, float64, logistic": lambda: SketchedNewton("oja", 4, loss="logistic", clip=3, dtype="float64"),
    "oja, diagonal, intercept": lambda: SketchedNewton("oja", 7, diagonal=True, intercept=True),
    "oja, blocks": lambda: SketchedNewton("oja", 6, alpha=20.0, block=4, intercept=True),
    "oja, the paper's rate": lambda: SketchedNewton("oja", 20, alpha=20.0, oja_rate=1.0),
    "oja, rates per direction": lambda: SketchedNewton("oja", 3, alpha=20.0, oja_rate=[0.5, 1, 2]),
    "oja, absolute": lambda: SketchedNewton("oja", 5, alpha=20.0, loss="absolute"),
    "fd": lambda: SketchedNewton("fd", 5, alpha=20.0),
    "fd, one row": lambda: SketchedNewton("fd", 1, alpha=20.0),
    "rfd without a parameter": lambda: SketchedNewton("rfd", 6),
    "rfd, alpha from the first row": lambda: SketchedNewton("rfd", 5, "auto", "logistic", intercept=True),
    "rfd, float64, diagonal": lambda: SketchedNewton("rfd", 4, alpha=1.0, diagonal=True, dtype="float64"),
    "pfd, logistic, intercept": lambda: SketchedNewton("pfd", 8, loss="logistic", beta=0.5, intercept=True),
    "rp": lambda: SketchedNewton("rp", 6, random_state=3),
    "rp, diagonal, logistic": lambda: SketchedNewton("rp", 3, loss="logistic", diagonal=True, intercept=True),
    "none": lambda: SketchedNewton("none", alpha=30.0, intercept=True),
    "online gradient": lambda: OnlineGradient(alpha=30.0, diagonal=True),
    "bank": NewtonBank,
    "bank, float64, logistic": lambda: NewtonBank(4, "logistic", dtype="float64"),
    "bank, no sketch, no intercept": lambda: NewtonBank(0, intercept=False),
    "bank, quantile": lambda: NewtonBank(12, "quantile:0.8"),
    "full": lambda: FullNewton(alpha=5.0, intercept=True),
    "invariant": InvariantNewton,
    "invariant, hinge, intercept": lambda: InvariantNewton("hinge", intercept=True),
    "adagrad": lambda: AdaGrad(eta=0.3, intercept=True),
    "adagrad, clipped": lambda: AdaGrad(eta=0.3, clip=1.0, dtype="float64"),
    "adagrad, elastic net": lambda: CompositeAdaGrad(
        eta=0.3, penalty="elasticnet", penalty_strength=1e-5, intercept=True
    ),
    "adagrad, averaging": lambda: CompositeAdaGrad(
        eta=0.3, form="dual_averaging", loss="logistic", penalty="l2"
    ),
    "ada-gp": lambda: SketchedAdaGrad("rp", 6, loss="absolute", sigma=10.0, intercept=True),
    "ada-gp, averaging, float64": lambda: SketchedAdaGrad(
        "rp", 4, loss="logistic", form="dual_averaging", dtype="float64"
    ),
    "ada-dp, decay": lambda: SketchedAdaGrad("rp", 5, "data", loss="logistic", penalty="l2", sigma=10.0),
    "ada-fd": lambda: SketchedAdaGrad("fd", 5, loss="logistic", sigma=10.0, intercept=True),
    "ada-fd, clipped": lambda: SketchedAdaGrad("fd", 4, clip=1.0, sigma=10.0, dtype="float64"),
    "ada-rfd, averaging": lambda: SketchedAdaGrad("rfd", 4, loss="logistic", form="dual_averaging"),
    "ada-fd of data, l1": lambda: SketchedAdaGrad(
        "fd", 3, "data", loss="logistic", penalty="l1", penalty_strength=1e-7, dtype="float64"
    ),
    "ada-full": lambda: FullAdaGrad(loss="logistic", intercept=True),
    "ada-lr": lambda: AdaLR(4, loss="logistic", clip=2.0),
    "radagrad": lambda: RadaGrad(4, loss="logistic", form="dual_averaging", penalty="l2"),
}

DENSE = {"ada-full", "ada-lr", "radagrad"}
"""Learners whose cost per row grows with the dimension: they get shorter streams of fewer features."""


def sparse_stream(
    rounds: int, d: int = 300, non_zeros: int = 20, seed: int = 0, spread: float = 10.0
) -> tuple[Floats, Floats]:
    """Dense arrays of sparse rows, scales of features spread over a factor, labels ±1 from a linear rule."""
    rng = np.random.default_rng(seed)
    X = np.zeros((rounds, d))
    columns = np.argsort(rng.random((rounds, d)), axis=1)[:, :non_zeros]
    X[np.arange(rounds)[:, None], columns] = rng.standard_normal((rounds, non_zeros))
    X *= np.geomspace(1, spread, d) / np.sqrt(spread)
    y = np.sign(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(rounds))
    return X, y


def state(learner: Learner) -> dict[str, NDArray[Any]]:
    """All arrays of a learner, as a model file would hold them."""
    return {name: np.asarray(array) for name, array in learner._all_arrays().items()}


def assert_same_state(a: Learner, b: Learner) -> None:
    left, right = state(a), state(b)
    assert left.keys() == right.keys()
    for name, array in left.items():
        if name == "recent":  # room for the rows of a block, as much as was needed
            used = left["sketch_counts"][-1]
            assert used == right["sketch_counts"][-1]
            np.testing.assert_array_equal(array[:used], right[name][:used])
        else:
            np.testing.assert_array_equal(array, right[name], err_msg=name)


def batches(X: Floats, y: Floats, size: int) -> list[tuple[csr_array, Floats]]:
    return [(csr_array(X[i : i + size]), y[i : i + size]) for i in range(0, len(y), size)]
