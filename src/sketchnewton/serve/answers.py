"""Predictions as JSON has them: the model's answer, its score, and probabilities where it has some."""

from __future__ import annotations

import math
from typing import Any

from sketchnewton.core.types import Floats, np
from sketchnewton.features.names import Names
from sketchnewton.model import Model
from sketchnewton.serve.bodies import Body
from sketchnewton.streams.records import read_records

__all__ = ["Answer", "add_bounds", "answers", "contributions", "names_in", "shaped"]

_MOST_EXPLAINED = 200
_MOST_ENTRIES = 1_000_000  # of the rows that lack a feature each: bounds time and memory

Answer = dict[str, Any]


def answers(model: Model, scores: Floats) -> list[Answer]:
    """One answer for each row of scores."""
    if not model.has_classes:  # answers are numbers, on the scale of the labels: rates of the Poisson loss
        linked = scores if model.learner.loss.link_kind == "identity" else model.linked(scores)
        pairs = zip(linked.tolist(), scores.tolist(), strict=True)
        return [{"prediction": _number(value), "score": _number(score)} for value, score in pairs]
    labels = model.answer(scores).tolist()
    chances = _probabilities(model, scores)
    names = [str(name) for name in model.classes or (-1, 1)]
    made = []
    for label, score, row in zip(labels, scores.tolist(), chances, strict=True):
        several = isinstance(score, list)
        answer: Answer = {
            "prediction": label if model.classes else _number(label),
            "probability": max(row),
            "probabilities": dict(zip(names, row, strict=True)),
        }
        if several:
            ordered = model.ordered(np.array([score]))[0].tolist()
            answer["scores"] = {name: _number(value) for name, value in zip(names, ordered, strict=True)}
        else:
            answer["score"] = _number(score)
        made.append(answer)
    return made


def add_bounds(model: Model, records: object, made: list[Answer], coverage: str) -> None:
    """Add the lower and the upper bound of the label to each record's answer; ValueError if there are none."""
    try:
        wanted = float(coverage)
    except ValueError:
        raise ValueError(f"interval={coverage!r} is not a number") from None
    scores = np.array([math.nan if answer.get("score") is None else answer["score"] for answer in made])
    begin = 0
    for batch in model.rows_of(records, absent={}):
        part = slice(begin, begin + len(batch))
        bounds = model.interval(scores[part], wanted, batch).tolist()
        for answer, (lower, upper) in zip(made[part], bounds, strict=True):
            answer["lower"], answer["upper"] = _number(lower), _number(upper)
        begin = part.stop


def _probabilities(model: Model, scores: Floats) -> list[list[float]]:
    """Of each row; a single one is most requests, and arrays would cost more than all else about it."""
    if len(scores) == 1 and scores.ndim == 1:
        return [model.learner.row_probabilities(scores.tolist())]
    found: list[list[float]] = model.probabilities(scores).tolist()
    return found


def shaped(body: Body, made: list[Answer], version: int) -> Answer:
    """The answers to a body: one for one record, a list for a list."""
    return {**made[0], "version": version} if body.single else {"predictions": made, "version": version}


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def contributions(model: Model, record: object) -> Answer:
    """What the score of a record would lose without each of its features, by the model's own predictions.

    Of several classes it is the score of the one that is predicted. Of a linear model contributions and intercept
    add up to the score.
    """
    names = Names()
    columns = model.columns._replace(optional=model.columns.named)
    exact = model._names_for_reading()
    (batch,) = read_records(
        record,
        columns=columns,
        features=model.features,
        names=names if exact is None else exact,
        kinds=dict(model.columns.kinds),
        ignore_labels=True,
        label_codes=model.target.label_codes,
    )
    readable = (names if exact is None else exact).readable()
    indices, values = batch.indices, batch.data
    order = np.argsort(-np.abs(values), kind="stable")[
        : min(_MOST_EXPLAINED, _MOST_ENTRIES // max(1, len(values)))
    ]
    order.sort()
    rows = len(order)
    # Row 0 is the record, row 1 has no feature, each other one lacks one feature.
    kept = np.vstack(
        [np.ones(len(indices), bool), np.zeros(len(indices), bool), np.ones((rows, len(indices)), bool)]
    )
    kept[np.arange(2, rows + 2), order] = False
    ends = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    tiled = batch.replace(
        indptr=ends,
        indices=np.tile(indices, rows + 2)[kept.ravel()],
        data=np.tile(values, rows + 2)[kept.ravel()],
        labels=np.full(rows + 2, np.nan),
        weights=None,
        tags=None,
        base=None,
        columns=None,
        first_line=None,
    )
    scores = model.scores(tiled)
    if scores.ndim > 1:
        scores = scores[:, int(scores[0].argmax())]
    lost = scores[0] - scores[2:]
    listed = [
        {
            "name": readable.get(int(indices[at]), str(int(indices[at]))),
            "value": float(values[at]),
            "contribution": float(share),
        }
        for at, share in zip(order.tolist(), lost.tolist(), strict=True)
    ]
    listed.sort(key=lambda entry: -abs(float(str(entry["contribution"]))))
    return {"contributions": listed, "intercept": float(scores[1])}


def names_in(model: Model, records: object) -> dict[int, str]:
    """What the features of records are called, by their indices; hashed names only."""
    names = Names()
    for _ in read_records(
        records,
        columns=model.columns._replace(optional=model.columns.named),
        features=model.features,
        names=names,
        kinds=dict(model.columns.kinds),
        ignore_labels=True,
        label_codes=model.target.label_codes,
    ):
        pass
    return names.readable()
