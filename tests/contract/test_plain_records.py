"""One dict at a time goes a shorter way: to the same rows, the same predictions and the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnewton import Model, NewtonBank
from sketchnewton.features.columns import Columns
from sketchnewton.features.options import Features
from sketchnewton.learners import OneVsAll
from sketchnewton.model import Classes, Signs

MODELS = {
    "numbers": lambda: Model(NewtonBank()),
    "kinds": lambda: Model(columns=Columns(label="t", categorical=("c",), text=("s",), drop=("d",))),
    "signs": lambda: Model(NewtonBank(loss="logistic"), target=Signs(2.0)),
    "names": lambda: Model(NewtonBank(loss="logistic"), target=Signs(names=["no", "yes"])),
    "classes": lambda: Model(OneVsAll("NewtonBank", 3), target=Classes(names=["a", "b", "c"])),
    "counted": lambda: Model(OneVsAll("NewtonBank", 3)),
    "exact": lambda: Model(exact_names=True),
    "joined": lambda: Model(features=Features(interactions=("a,c",))),
    "bits": lambda: Model(features=Features(bits=4)),
}  # fmt: skip
LABELS: dict[str, list[Any]] = {"names": ["no", "yes"], "classes": ["a", "b", "c"], "counted": [0, 1, 2]}

scalars = st.one_of(
    st.floats(-10, 10),
    st.integers(-5, 5),
    st.booleans(),
    st.none(),
    st.sampled_from(["", "x", "y z", "NA", "?", "1", "2.5", "żółw", "true", "2024-01-31"]),
    st.just(float("inf")),
    st.lists(st.sampled_from(["p", "q"]), max_size=2),
    st.fixed_dictionaries({"in": st.integers(0, 2)}),
)
keys = st.sampled_from(["a", "b", "c", "s", "d", "ns|e", "_weight", "_tag", "y", "1"])
streams = st.lists(st.dictionaries(keys, scalars, max_size=5), min_size=1, max_size=8)


def outcome(act: Any, *given: Any) -> Any:
    """What comes of it: values, or the error's text without the number of the record."""
    try:
        return np.asarray(act(*given)).tolist()
    except (ValueError, TypeError) as error:
        return str(error)


class Unusual(dict[str, Any]):
    """A dict that is none by its very type: it goes the long way."""


@pytest.mark.parametrize("kind", MODELS)
@given(stream=streams, data=st.data())
@settings(max_examples=25, deadline=None)
def test_both_ways_are_one(kind: str, stream: list[dict[str, Any]], data: st.DataObject) -> None:
    short, long = MODELS[kind](), MODELS[kind]()
    for record in stream:
        label = data.draw(st.sampled_from(LABELS.get(kind, [1.0, 2, -3.5])))
        key = short.columns.label or "label"
        beside = data.draw(st.booleans())
        given_record = record if beside else {**record, key: label}
        labels = [label] if beside else None
        weights = data.draw(st.sampled_from([None, [1.0], [2.5], [0.0]])) if beside else None
        assert outcome(short.predict, record) == outcome(long.predict, Unusual(record))
        one = outcome(short.learn, given_record, labels, weights)
        assert one == outcome(long.learn, Unusual(given_record), labels, weights)
    assert short.to_bytes() == long.to_bytes()


def test_lists_too() -> None:
    rows = [{"a": i % 3, "b": "xyz"[i % 3], "label": float(i % 2)} for i in range(50)]
    short, long = Model(), Model()
    for _ in range(3):
        assert short.learn(rows).tolist() == long.learn([Unusual(row) for row in rows]).tolist()
        assert short.predict(rows).tolist() == long.predict([Unusual(row) for row in rows]).tolist()
    assert short.to_bytes() == long.to_bytes()


@pytest.mark.parametrize(
    "bad", [{"a": "text", "b": "x"}, {"a": 1, "b": ["x", ["y"]]}, {"a": 1, "label": "z"}]
)
def test_what_is_refused_leaves_no_trace(bad: dict[str, Any]) -> None:
    for kind in ("numbers", "exact"):
        model = MODELS[kind]()
        model.learn({"a": 1.5, "b": "x"}, [1.0])
        before = model.to_bytes()
        with pytest.raises(ValueError, match="expected"):
            model.learn([{"a": 1, "b": "new", "c": 2, "label": 1}, {"label": 2, **bad}])
        assert model.to_bytes() == before
