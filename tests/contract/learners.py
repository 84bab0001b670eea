"""One table of all learners and a few streams: the tests of promises run over both."""

from __future__ import annotations

from collections.abc import Callable

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
from sketchnewton.core.types import Floats
from sketchnewton.testing.learners import assert_same_state, state
from sketchnewton.testing.rows import batches, sparse_stream

__all__ = ["DENSE", "LEARNERS", "Floats", "assert_same_state", "batches", "sparse_stream", "state"]

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
    "rfd, alpha from the first row": lambda: SketchedNewton(
        "rfd", 5, alpha="auto", loss="logistic", intercept=True
    ),
    "rfd, float64, diagonal": lambda: SketchedNewton("rfd", 4, alpha=1.0, diagonal=True, dtype="float64"),
    "rfd, every row": lambda: SketchedNewton("rfd", 5, shrink="row", intercept=True),
    "rfd, 2m rows": lambda: SketchedNewton("rfd", 6, shrink="2m", loss="logistic", dtype="float64"),
    "pfd, logistic, intercept": lambda: SketchedNewton("pfd", 8, loss="logistic", beta=0.5, intercept=True),
    "rp": lambda: SketchedNewton("rp", 6, random_state=3),
    "rp, diagonal, logistic": lambda: SketchedNewton("rp", 3, loss="logistic", diagonal=True, intercept=True),
    "none": lambda: SketchedNewton("none", alpha=30.0, intercept=True),
    "online gradient": lambda: OnlineGradient(alpha=30.0, diagonal=True),
    "bank": NewtonBank,
    "bank, float64, logistic": lambda: NewtonBank(4, loss="logistic", dtype="float64"),
    "bank, no sketch, no intercept": lambda: NewtonBank(0, intercept=False),
    "bank, quantile": lambda: NewtonBank(12, loss="quantile:0.8"),
    "bank, hinge, clipped": lambda: NewtonBank(loss="hinge", clip=0.7),
    "bank, huber": lambda: NewtonBank(5, loss="huber:0.5", dtype="float64"),
    "bank, poisson": lambda: NewtonBank(loss="poisson"),
    "full": lambda: FullNewton(alpha=5.0, intercept=True),
    "invariant": InvariantNewton,
    "invariant, hinge, intercept": lambda: InvariantNewton(loss="hinge", intercept=True),
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
    "ada-dp, decay": lambda: SketchedAdaGrad("rp", 5, of="data", loss="logistic", penalty="l2", sigma=10.0),
    "ada-fd": lambda: SketchedAdaGrad("fd", 5, loss="logistic", sigma=10.0, intercept=True),
    "ada-fd, clipped": lambda: SketchedAdaGrad("fd", 4, clip=1.0, sigma=10.0, dtype="float64"),
    "ada-rfd, averaging": lambda: SketchedAdaGrad("rfd", 4, loss="logistic", form="dual_averaging"),
    "ada-fd of data, l1": lambda: SketchedAdaGrad(
        "fd", 3, of="data", loss="logistic", penalty="l1", penalty_strength=1e-7, dtype="float64"
    ),
    "ada-full": lambda: FullAdaGrad(loss="logistic", intercept=True),
    "ada-lr": lambda: AdaLR(4, loss="logistic", clip=2.0),
    "radagrad": lambda: RadaGrad(4, loss="logistic", form="dual_averaging", penalty="l2"),
}

DENSE = {"ada-full", "ada-lr", "radagrad"}
"""Learners whose cost per row grows with the dimension: they get shorter streams of fewer features."""
