"""`--readable FILE`: the weights as a table for people, with the names of features where they are known."""

from __future__ import annotations

import numpy as np

from sketchnewton.cli.io.files import open_output
from sketchnewton.features.names import Names
from sketchnewton.model import Model

__all__ = ["write_readable"]


def write_readable(path: str, model: Model, names: Names | None) -> None:
    """Write `feature<TAB>name<TAB>weight` lines, largest weights first, one column of weights per class.

    Names are those seen in this run; a feature that is known by its number alone has that for a name.
    """
    known = {} if names is None else names.readable()
    features, weights = model.learner.largest_weights()
    columns, constants = weights.reshape(len(features), -1), np.atleast_1d(model.learner.intercepts)
    titles = ["weight"]
    if model.learner.classes is not None:
        columns, constants = model.ordered(columns), model.ordered(constants[None, :])[0]
        titles = [f"weight of {label}" for label in model.classes or ()]
    with open_output(path) as file:
        file.write("\t".join(["feature", "name", *titles]) + "\n")
        file.write("\t".join(["", "(constant)", *(f"{value:.9g}" for value in constants.tolist())]) + "\n")
        for feature, row in zip(features.tolist(), columns.tolist(), strict=True):
            name = known.get(feature, str(feature)).replace("\t", "\\t").replace("\n", "\\n")
            file.write("\t".join([str(feature), name, *(f"{value:.9g}" for value in row)]) + "\n")
