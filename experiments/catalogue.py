"""All experiments, in the order of the report."""

from __future__ import annotations

from experiments.ada import cnn, online
from experiments.eig import table1
from experiments.rfd import learning, spectral
from experiments.runner import Experiment
from experiments.son import synthetic, tables

EXPERIMENTS: tuple[Experiment, ...] = (
    *synthetic.EXPERIMENTS,
    *tables.EXPERIMENTS,
    *spectral.EXPERIMENTS,
    *learning.EXPERIMENTS,
    *online.EXPERIMENTS,
    *cnn.EXPERIMENTS,
    *table1.EXPERIMENTS,
)
