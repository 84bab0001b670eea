"""What several papers measure: one pass over a data set with one learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sketchnewton import AdaGrad, FullNewton, SketchedNewton

Floats = npt.NDArray[np.float64]
Method = dict[str, Any]
"""`kind` is newton, full or adagrad; the rest are the learner's arguments."""


def learner_of(method: Method) -> SketchedNewton | FullNewton | AdaGrad:
    """A learner from plain arguments."""
    arguments = dict(method)
    kinds = {"newton": SketchedNewton, "full": FullNewton, "adagrad": AdaGrad}
    return kinds[arguments.pop("kind")](**arguments)


def mistakes(predictions: Floats, y: Floats) -> Floats:
    """1 where the sign is wrong, ½ where there is none."""
    signs = np.sign(predictions)
    return np.where(signs == 0, 0.5, signs != y)


def running_mean(values: Floats, points: int) -> tuple[list[float], list[float]]:
    """The mean of the first n values, for so many n."""
    places = np.unique(np.linspace(1, len(values), points + 1).astype(int)[1:])
    means = np.cumsum(values)[places - 1] / places
    return places.astype(float).tolist(), means.tolist()
