"""`--readable FILE`: the weights as a table for people, with the names of features where they are known."""

from __future__ import annotations

import numpy as np

from sketchnewton.cli.io.files import open_output
from sketchnewton.cli.train.learner import constants
from sketchnewton.learners import Learner
from sketchnewton.model.target import Classes, Target
from sketchnewton.streams import Names

__all__ = ["write_readable"]


def write_readable(path: str, learner: Learner, labels: Target, names: Names | None) -> None:
    """Write `feature<TAB>name<TAB>weight` lines, largest weights first, one column of weights per class.

    Names are those seen in this run; a feature that is known by its number alone has that for a name.
    """
    known = {} if names is None else names.readable()
    features, weights = learner.largest_weights()
    columns, constant = weights.reshape(len(features), -1), constants(learner)
    titles = ["weight"]
    if isinstance(labels, Classes):
        classes = labels.name(np.arange(labels.count))
        order = np.argsort(classes)
        columns, constant = columns[:, order], constant[order]
        titles = [f"weight of {label}" for label in classes[order].tolist()]
    with open_output(path) as file:
        file.write("\t".join(["feature", "name", *titles]) + "\n")
        file.write("\t".join(["", "(constant)", *(f"{value:.9g}" for value in constant.tolist())]) + "\n")
        for feature, row in zip(features.tolist(), columns.tolist(), strict=True):
            name = known.get(feature, str(feature)).replace("\t", "\\t").replace("\n", "\\n")
            file.write("\t".join([str(feature), name, *(f"{value:.9g}" for value in row)]) + "\n")
