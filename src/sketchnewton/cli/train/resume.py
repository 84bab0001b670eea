"""`--resume`: a model to go on with, or an interrupted run to finish."""

from __future__ import annotations

import argparse
import os
from typing import Any

from sketchnewton import learners
from sketchnewton.cli.io.data_source import expand_data
from sketchnewton.cli.io.files import check_readable
from sketchnewton.cli.train.checkpoint import Run, resumed
from sketchnewton.cli.train.learner import check_agreement
from sketchnewton.cli.train.prefetch import identity_of
from sketchnewton.learners import Learner

__all__ = ["resume"]


def resume(args: argparse.Namespace) -> tuple[Learner, Run | None, bool]:
    """The learner, the run over the same data that it is in the middle of, and whether it has learned nothing."""
    path: str = args.resume
    if not os.path.exists(f"{path}.run"):  # else it may be that only the run's mark is there
        check_readable(path)

    def rebuild(**start: Any) -> Learner:
        kind = getattr(learners, start["class"])
        learner: Learner = kind(**start["parameters"])
        learner.notes = start["notes"]
        return learner

    files = identity_of(expand_data(args.data))
    learner, run, fresh = resumed(path, files, lambda: Learner.load(path), rebuild)
    check_agreement(path, learner, args)
    return learner, run, fresh
