"""Online learning of eigenvectors (Garber, Hazan and Ma 2015): predict a unit vector, see a symmetric matrix.

>>> import numpy as np
>>> from sketchnewton.eigen import FollowPerturbedLeader, play
>>> rows = np.random.default_rng(0).standard_normal((200, 3)) * [0.1, 0.1, 0.5]
>>> game = play(FollowPerturbedLeader(3, horizon=200, bound=4.0), rows)     # each row x stands for xxᵀ
>>> game.rewards.shape
(200,)
"""

from __future__ import annotations

import os

from sketchnewton.core import archive
from sketchnewton.eigen.asymmetric import AsymmetricLearner
from sketchnewton.eigen.base import EigenLearner
from sketchnewton.eigen.frank_wolfe import OnlineFrankWolfe
from sketchnewton.eigen.game import Game, play
from sketchnewton.eigen.multiplicative_weights import MatrixMultiplicativeWeights
from sketchnewton.eigen.perturbed_leader import FollowPerturbedLeader, FollowTheLeader
from sketchnewton.eigen.power import EpochPowerMethod, OjaLearner

__all__ = [
    "AsymmetricLearner",
    "EigenLearner",
    "EpochPowerMethod",
    "FollowPerturbedLeader",
    "FollowTheLeader",
    "Game",
    "MatrixMultiplicativeWeights",
    "OjaLearner",
    "OnlineFrankWolfe",
    "known_class",
    "load",
    "play",
]

_CLASSES: dict[str, type[EigenLearner | AsymmetricLearner]] = {
    kind.__name__: kind
    for kind in (
        AsymmetricLearner,
        EpochPowerMethod,
        FollowPerturbedLeader,
        FollowTheLeader,
        MatrixMultiplicativeWeights,
        OjaLearner,
        OnlineFrankWolfe,
    )
}


def known_class(name: str) -> type[EigenLearner | AsymmetricLearner] | None:
    """The learner class of that name, None for any other."""
    return _CLASSES.get(name)


def load(path: str | os.PathLike[str]) -> EigenLearner | AsymmetricLearner:
    """The learner of eigenvectors saved at `path`, whatever its class; it continues bit for bit."""
    header, arrays = archive.read(path)
    kind = known_class(str(header.get("class")))
    if kind is None:
        raise archive.ModelFileError(
            f"{os.fspath(path)}: holds a {header.get('class')}, not a learner of eigenvectors"
        )
    return kind.from_archive(header, arrays, path)
