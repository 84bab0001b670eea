"""`--resume`: a model to continue with, or an interrupted run to finish."""

from __future__ import annotations

import argparse
import os

from sketchnewton.cli.io.data_source import expand_data
from sketchnewton.cli.io.files import check_readable
from sketchnewton.cli.train.checkpoint import Run, resumed
from sketchnewton.cli.train.learner import check_agreement
from sketchnewton.cli.train.prefetch import identity_of
from sketchnewton.model import Model

__all__ = ["resume"]


def resume(args: argparse.Namespace) -> tuple[Model, Run | None, bool]:
    """The model, the run over the same data that it is in the middle of, and whether it has learned nothing."""
    path: str = args.resume
    if not os.path.exists(f"{path}.run"):  # else it may be that only the run's mark is there
        check_readable(path)
    model, run, fresh = resumed(path, identity_of(expand_data(args.data)))
    check_agreement(path, model, args)
    if args.regression or args.classes is not None:
        from sketchnewton.cli.train.labels import check_classes

        check_classes(path, model, args)
    return model, run, fresh
