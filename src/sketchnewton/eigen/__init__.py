"""Online learning of eigenvectors (Garber, Hazan and Ma 2015): predict a unit vector, see a symmetric matrix.

>>> import numpy as np
>>> from sketchnewton.eigen import FollowPerturbedLeader, play
>>> rows = np.random.default_rng(0).standard_normal((200, 3)) * [0.1, 0.1, 0.5]
>>> game = play(FollowPerturbedLeader(3, horizon=200, bound=4.0), rows)     # each row x stands for xxᵀ
>>> game.rewards.shape
(200,)
"""

from __future__ import annotations

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
    "play",
]
