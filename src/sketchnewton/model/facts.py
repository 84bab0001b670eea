"""What a model is and what it has learned, as a dictionary that JSON can hold."""

from __future__ import annotations

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import Header, np
from sketchnewton.learners import Learner

if TYPE_CHECKING:
    from sketchnewton.model.model import Model

__all__ = ["facts_of"]

_QUANTILES = {"least": 0.0, "1/4": 0.25, "median": 0.5, "3/4": 0.75, "most": 1.0}
_ENDS = 3  # features with the smallest and with the largest scales


def facts_of(model: Model, top: int) -> Header:
    """All there is to show of a model; `top` is how many of the largest weights."""
    learner = model.learner
    features, weights = learner.largest_weights()
    if weights.ndim > 1:  # of each feature, the class in which it weighs most
        weights = np.take_along_axis(weights, np.abs(weights).argmax(axis=1)[:, None], axis=1)[:, 0]
    used = int(np.count_nonzero(weights))
    largest = zip(features[: min(top, used)].tolist(), weights.tolist(), strict=False)
    names = {} if model.names is None else model.names.readable()
    constants = learner.intercepts.tolist()
    return {
        "class": type(learner).__name__,
        "classes": learner.classes,
        "parameters": learner.params,
        "alpha": learner.alpha_ or None,
        "positive": model.target.positive,
        "labels": model.target.description,
        "class_names": model.classes,
        "rows_seen": learner.rows_seen,
        "unfinished": _unfinished(model.run),
        "features": learner.features_seen,
        "largest_index": learner.dimension - 1 if learner.dimension else None,
        "nonzero_weights": used,
        "intercept": constants[0] if learner.classes is None else constants,
        # Where each class has a sketch of its own: all their eigenvalues together.
        "spectrum": np.sort(np.ravel(learner.spectrum))[::-1].tolist(),
        "experts": learner.experts,
        "scales": _scales(learner, names),
        "largest_weights": [
            {"feature": names.get(feature, feature), "weight": weight} for feature, weight in largest
        ],
        "kinds": dict(model.columns.kinds),
        "data": _data(model),
    }


def _data(model: Model) -> Header:
    """How records become features, where that is not the usual way."""
    parts = {"features": model.features.to_dict(), "columns": model.columns.with_kinds({}).to_dict()}
    return {name: options for name, options in parts.items() if options}


def _scales(learner: Learner, names: dict[int, str]) -> Header:
    """What features are divided by: quantiles, and the features at either end; empty for most learners."""
    features, scales = learner.sorted_scales()
    if not len(features):
        return {}
    ordered = [
        {"feature": names.get(feature, feature), "scale": scale}
        for at in (slice(_ENDS), slice(-_ENDS, None))
        for feature, scale in zip(features[at].tolist(), scales[at].tolist(), strict=True)
    ]
    count = len(ordered) // 2
    levels = np.quantile(scales, list(_QUANTILES.values()))
    return {
        "quantiles": dict(zip(_QUANTILES, levels.tolist(), strict=True)),
        "smallest": ordered[:count],
        "largest": ordered[: -count - 1 : -1],
    }


def _unfinished(run: Header | None) -> str | None:
    """Of a checkpoint: where the run was."""
    if run is None:
        return None
    return f" (a checkpoint after row {run['row']} of pass {run['pass'] + 1}: --resume finishes the run)"
