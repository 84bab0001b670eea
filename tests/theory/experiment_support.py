"""One experiment of each paper at toy size: the same functions and presentation, smaller arguments."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments" / "catalogue.py").is_file():
    pytest.skip("needs a source checkout", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.catalogue import EXPERIMENTS  # noqa: E402
from experiments.runner import Experiment, Job  # noqa: E402

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
TOY: dict[str, dict[str, Any]] = {
    "son-figure1": {"rows": 200},
    "rfd-figure1": {"sizes": [5, 10], "rows": 300},
    "ada-figure1": {"rounds": 200, "d": 20, "grid": [0.001, 0.01, 0.1, 1.0]},
    "eig-table1": {"seeds": 1},
}


def toy(name: str) -> Experiment:
    """The quick experiment with the arguments of TOY in its place; no data."""
    experiment = BY_NAME[name]

    def jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
        planned, missing = experiment.jobs(folder, True)
        return [replace(job, arguments={**job.arguments, **TOY[name]}) for job in planned], missing

    return replace(experiment, jobs=jobs)
