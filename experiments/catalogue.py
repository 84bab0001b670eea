"""All experiments, in the order of the report."""

from __future__ import annotations

from experiments import sets
from experiments.ada import cnn, online
from experiments.eig import table1
from experiments.rfd import learning, spectral
from experiments.runner import Experiment
from experiments.son import synthetic, tables

EXPERIMENTS: tuple[Experiment, ...] = (
    *synthetic.EXPERIMENTS,
    sets.SON,
    *tables.EXPERIMENTS,
    sets.RFD,
    *spectral.EXPERIMENTS,
    *learning.EXPERIMENTS,
    sets.ADA,
    *online.EXPERIMENTS,
    *cnn.EXPERIMENTS,
    *table1.EXPERIMENTS,
)
