"""Tables of plain names: what choices on the command line, documentation and tests are made from.

Nothing here imports what it names. Two tables have files of their own: `core/sketch_kinds.py` has the sketches
inside learners, `core/formats.py` the formats of data. The stubs `learners/__init__.pyi` and `__init__.pyi` are
made from the table of learners: `python -m sketchnewton.core.stubs` writes them again.
"""

from __future__ import annotations

import os

from sketchnewton.core.hints import Any, NamedTuple

__all__ = [
    "AT_TOP_LEVEL",
    "DEFAULT_LOSS",
    "EIGEN_LEARNERS",
    "EXTRAS",
    "IN_LEARNERS",
    "LEARNERS",
    "LOSSES",
    "LOSS_PARAMETERS",
    "METRICS",
    "SKETCHES",
    "SOFTMAX_LOSS",
    "SUBPACKAGES",
    "LearnerName",
    "command_line_learners",
    "loss_modules",
    "persistent_classes",
]


class LearnerName(NamedTuple):
    """A learner's class, its module in `sketchnewton.learners`, and what `--learner` calls it."""

    name: str
    module: str
    option: str = ""
    """Several classes may share one; the last of them takes the most options."""
    what: str = ""
    """What help says about the option; one of the classes that share it has it."""
    top_level: bool = True
    """Whether it is `sketchnewton.<name>`, too."""


LEARNERS = (
    LearnerName("NewtonBank", "newton.bank", "bank", "sketched Newton with nothing to tune"),
    LearnerName(
        "ClassBank", "newton.class_bank", "class-bank", "the same for several classes at once, by softmax"
    ),
    LearnerName("SketchedNewton", "newton.sketched", "newton", "sketched online Newton"),
    LearnerName("FullNewton", "newton.full", "full", "online Newton with the full matrix"),
    LearnerName(
        "InvariantNewton",
        "newton.invariant",
        "invariant",
        "the same without --alpha, invariant to the units and correlations of features",
    ),
    LearnerName("OnlineGradient", "newton.online_gradient", "gradient", "online gradient descent"),
    LearnerName("AdaGrad", "adagrad.diagonal", "adagrad", "diagonal AdaGrad"),
    LearnerName("CompositeAdaGrad", "adagrad.composite", "adagrad"),
    LearnerName(
        "SketchedAdaGrad", "adagrad.sketched", "sketched-adagrad", "AdaGrad with a sketched full matrix"
    ),
    LearnerName("FullAdaGrad", "adagrad.full", "full-adagrad", "AdaGrad with the full matrix"),
    LearnerName("AdaLR", "adagrad.low_rank", "ada-lr", "AdaGrad with a randomised low-rank matrix"),
    LearnerName("RadaGrad", "adagrad.low_rank", "radagrad", "the same in linear time"),
    LearnerName("OneVsAll", "multiclass", top_level=False),
    LearnerName("SharedNewton", "newton.shared", top_level=False),
)

SKETCHES = {
    "CompensativeFrequentDirections": "frequent_directions",
    "ExactCovariance": "exact",
    "FrequentDirections": "frequent_directions",
    "GreedyDirections": "frequent_directions",
    "OjaSketch": "oja",
    "ParameterizedFrequentDirections": "frequent_directions",
    "RandomProjection": "random_projection",
    "RobustFrequentDirections": "frequent_directions",
}
"""Sketches of matrices, and the module of each in `sketchnewton.sketches`."""

EIGEN_LEARNERS = {
    "AsymmetricLearner": "asymmetric",
    "EpochPowerMethod": "power",
    "FollowPerturbedLeader": "perturbed_leader",
    "FollowTheLeader": "perturbed_leader",
    "MatrixMultiplicativeWeights": "multiplicative_weights",
    "OjaLearner": "power",
    "OnlineFrankWolfe": "frank_wolfe",
}
"""Learners of eigenvectors, and the module of each in `sketchnewton.eigen`."""


SUBPACKAGES = (
    *("client", "eigen", "evaluation", "features", "learners", "losses", "model"),
    *("river", "sketches", "sklearn", "streams", "testing", "torch"),
    *("dask", "spark"),
)

EXTRAS = {"dask": "dask", "river": "river", "spark": "pyspark", "torch": "torch"}
"""Subpackages that need a package which is not always there, and that package."""

IN_LEARNERS = {learner.name: learner.module for learner in LEARNERS} | {
    "ClassLearner": "class_learner",
    "Learner": "base",
}
"""What `sketchnewton.learners` exports, and the module in it that has it."""

AT_TOP_LEVEL = {
    **{learner.name: "learners" for learner in LEARNERS if learner.top_level},
    **dict.fromkeys(SKETCHES, "sketches"),
    "Learner": "learners",
    "Loss": "losses",
    "Model": "model",
    "Sketch": "sketches",
    "SketchedAdaGradClassifier": "sklearn",
    "SketchedAdaGradRegressor": "sklearn",
    "SketchedNewtonClassifier": "sklearn",
    "SketchedNewtonRegressor": "sklearn",
    "SketchedPCA": "sklearn.decomposition",
    "load": "core.persistence",
}
"""What `sketchnewton` exports besides its subpackages, and the module in it that has it."""


def persistent_classes() -> dict[str, str]:
    """Every class that has a file, and its module in `sketchnewton`."""
    return {
        **{learner.name: f"learners.{learner.module}" for learner in LEARNERS},
        "Model": "model.model",
        **{name: f"sketches.{module}" for name, module in SKETCHES.items()},
        **{name: f"eigen.{module}" for name, module in EIGEN_LEARNERS.items()},
    }


def command_line_learners() -> dict[str, tuple[tuple[str, ...], str]]:
    """The classes and the description of each learner that `--learner` has."""
    options = dict.fromkeys(learner.option for learner in LEARNERS if learner.option)
    same = {option: [learner for learner in LEARNERS if learner.option == option] for option in options}
    return {
        option: (tuple(learner.name for learner in those), "".join(learner.what for learner in those))
        for option, those in same.items()
    }


def loss_modules() -> tuple[str, ...]:
    """The names in `LOSSES`, sorted, from the modules that there are: for help, which does not take the core."""
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "losses")
    there = (file.removesuffix(".py") for file in os.listdir(folder))
    return tuple(sorted(name for name in there if name != "base" and not name.startswith("_")))


LOSSES: tuple[str, ...]
"""The losses that the kernels know (`native/core/losses.hpp`); `sketchnewton.losses.<name>` has the class."""

LOSS_PARAMETERS: dict[str, str]
"""The name of a loss's parameter, where it has one."""

DEFAULT_LOSS = "squared"
SOFTMAX_LOSS = "logistic"
"""What several classes are learned with by a learner that has a softmax."""


def __getattr__(name: str) -> Any:
    """What the compiled core has a table of, when it is first asked for: other names do not take the core."""
    if name not in ("LOSSES", "LOSS_PARAMETERS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchnewton import _native

    globals().update(  # found without us from now on
        LOSSES=tuple(loss for loss, _ in _native.LOSSES),
        LOSS_PARAMETERS={loss: parameter for loss, parameter in _native.LOSSES if parameter},
    )
    return globals()[name]


METRICS = ("error", "auc", "f1", "log_loss", "brier", "mae", "rmse", "r2")
"""What predictions with known labels are measured by: the keys of `evaluation.metrics.METRICS`."""
