"""Labels become what a learner learns by one rule, whoever brings them, and classes become their labels again."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchnewton._native import LARGEST_VALUE, LabelRule
from sketchnewton.core.names import LOSSES
from sketchnewton.losses import get_loss
from sketchnewton.model.target import Classes, Numbers, Signs, Target

AWKWARD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 4.0, -2.0]
AWKWARD += [LARGEST_VALUE, -LARGEST_VALUE, math.nextafter(LARGEST_VALUE, math.inf), 1e308, 5e-324]

labels_of_any_kind = st.lists(st.one_of(st.sampled_from(AWKWARD), st.floats()), max_size=40)


def fit_numbers(y: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.isfinite(y) & (np.abs(y) <= 1e30) & (y >= low) & (y <= high)


# Each rule written out in NumPy: which labels fit, and what becomes of those.
RULES = {
    "numbers": (lambda: LabelRule.numbers(-math.inf, math.inf), lambda y: fit_numbers(y, -1e99, 1e99), None),
    "counts": (lambda: LabelRule.numbers(0.0, math.inf), lambda y: fit_numbers(y, 0.0, 1e99), None),
    "interval": (lambda: LabelRule.numbers(-1.0, 2.0), lambda y: fit_numbers(y, -1.0, 2.0), None),
    "signs": (LabelRule.signs, lambda y: np.abs(y) == 1, None),
    "positive": (
        lambda: LabelRule.positive(3.0),
        lambda y: ~np.isnan(y),
        lambda y: np.where(y == 3, 1.0, -1.0),
    ),
    "classes from 0": (lambda: LabelRule.classes(4, True), lambda y: np.isin(y, [0, 1, 2, 3]), lambda y: y),
    "classes from 1": (
        lambda: LabelRule.classes(4, False),
        lambda y: np.isin(y, [1, 2, 3, 4]),
        lambda y: np.where(y == 4, 0.0, y),
    ),
}


@pytest.mark.parametrize("rule", RULES)
@given(labels=labels_of_any_kind)
def test_the_rule_is_what_it_says(rule: str, labels: list[float]) -> None:
    make, fits, code = RULES[rule]
    y = np.array(labels, np.float64)
    for given_labels in (y, memoryview(y)):
        coded, unfit = make().code(given_labels)
        assert unfit == np.flatnonzero(~fits(y)).tolist() == make().unfit(given_labels)
        assert [row for row, label in enumerate(labels) if not make().takes(label)] == unfit
        if code is None:
            assert coded is given_labels
        else:
            np.testing.assert_array_equal(np.asarray(coded), np.where(fits(y), code(y), np.nan))


@pytest.mark.parametrize("name", LOSSES)
@given(labels=labels_of_any_kind)
def test_a_loss_its_target_and_its_rule_agree(name: str, labels: list[float]) -> None:
    loss = get_loss(name)
    unfit = Numbers(loss).code(np.array(labels, np.float64)).unfit
    assert unfit == [row for row, label in enumerate(labels) if not loss.takes(label)]
    if unfit:
        with pytest.raises(ValueError, match=f"at position {unfit[0]} is"):
            loss.check_labels(labels)
    else:
        loss.check_labels(labels)


@pytest.mark.parametrize(("first", "zero", "refused"), [(0.0, True, 3.0), (3.0, False, 0.0)])
def test_the_first_end_says_how_classes_are_counted(first: float, zero: bool, refused: float) -> None:
    target = Classes(3)
    assert target.code(np.array([1.0, 2.0])).unfit == []
    assert target.zero is None
    coded = target.code(np.array([1.0, first, refused, 2.0, refused]))
    assert np.asarray(coded.labels)[[0, 1, 3]].tolist() == [1.0, 0.0, 2.0]
    assert coded.unfit == [2, 4]
    assert target.zero is zero
    assert target.name([0, 1, 2]).tolist() == [first, 1, 2]
    assert f"there was a label {first:g}" in target.complaint(refused)
    assert target.code(np.array([refused])).unfit == [0]


NAMES = {
    "text": ["no", "yes"],
    "booleans": [False, True],
    "numbers": [3.5, 7.0],
    "mixed": ["one", 1],
    "many": ["a", "b", "", "ä"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_named_classes_survive_coding_and_json(names: list[object]) -> None:
    target: Target = Classes(names=names)
    again = Target.from_dict(json.loads(json.dumps(target.to_dict())))
    assert again.to_dict() == target.to_dict()
    shown = again.name(range(len(names))).tolist()
    assert shown == names
    assert list(map(type, shown)) == list(map(type, names))
    for labels in (names, np.array(names, object), tuple(names)):
        assert np.asarray(again.code(labels).labels).tolist() == list(range(len(names)))
    if len(names) == 2:
        signs = Target.from_dict(json.loads(json.dumps(Signs(names=names).to_dict())))
        assert np.asarray(signs.code(names).labels).tolist() == [-1.0, 1.0]
        assert signs.name([1, 0]).tolist() == names[::-1]


def test_arrays_of_names_have_names_too() -> None:
    target = Signs(names=np.array(["ham", "spam"]))
    coded = target.code(np.array(["spam", "eggs", "ham"]))
    assert np.isnan(np.asarray(coded.labels)).tolist() == [False, True, False]
    assert coded.unfit == [1]
    assert target.complaint(np.str_("eggs")) == "has the label 'eggs', but the classes are 'ham', 'spam'"
    assert target.description == "label 'spam' as +1, 'ham' as -1"


@pytest.mark.parametrize(
    ("label", "complaint"),
    [(None, "no label"), (math.nan, "no label"), (np.float64("nan"), "no label"), ([1], r"label \[1\]")],
)
def test_a_label_that_is_none_of_the_names_is_unfit(label: object, complaint: str) -> None:
    target = Classes(names=["a", "b"])
    assert target.code(["a", label]).unfit == [1]
    assert re.search(complaint, target.complaint(label))


def test_a_list_of_numbers_is_as_good_as_an_array() -> None:
    assert np.asarray(Signs(2).code([1, 2, 3]).labels).tolist() == [-1.0, 1.0, -1.0]
    y = np.array([1.0, 2.0])
    assert Numbers("squared").code(y).labels is y


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {},
        {"kind": []},
        {"kind": "oracle"},
        {"kind": "numbers"},
        {"kind": "numbers", "loss": 3},
        {"kind": "numbers", "loss": "sqared"},
        {"kind": "numbers", "loss": "squared", "more": 1},
        {"kind": "signs"},
        {"kind": "signs", "positive": ["1"]},
        {"kind": "signs", "positive": True},
        {"kind": "signs", "positive": math.nan},
        {"kind": "signs", "positive": 10**400},
        {"kind": "signs", "positive": [1]},
        {"kind": "signs", "positive": 1, "names": ["a", "b"]},
        {"kind": "signs", "names": ["a", "b", "c"]},
        {"kind": "signs", "names": ["a", "a"]},
        {"kind": "classes"},
        {"kind": "classes", "count": 1},
        {"kind": "classes", "count": 2.0},
        {"kind": "classes", "count": True},
        {"kind": "classes", "count": 10**30},
        {"kind": "classes", "count": 3, "zero": 1},
        {"kind": "classes", "names": "ab"},
        {"kind": "classes", "names": ["a"]},
        {"kind": "classes", "names": ["a", ["b"]]},
        {"kind": "classes", "names": ["a", None]},
        {"kind": "classes", "names": [1, True]},
        {"kind": "classes", "names": ["a", math.nan]},
    ],
    ids=repr,
)
def test_a_damaged_description_is_refused_in_one_line(facts: object) -> None:
    with pytest.raises(
        ValueError, match=r"no target|needed|invalid|not described|unknown|cannot be|give either"
    ) as caught:
        Target.from_dict(facts)
    assert "\n" not in str(caught.value)


def test_names_that_json_cannot_hold_are_not_saved() -> None:
    target = Classes(names=[("a", 1), ("b", 2)])
    assert target.name([1]).tolist() == [("b", 2)]
    with pytest.raises(ValueError, match="cannot be saved"):
        target.to_dict()


@pytest.mark.parametrize(
    "target",
    [Numbers("poisson"), Numbers("huber:0.5"), Signs(7), Classes(3), Classes(3, zero=True)],
    ids=repr,
)
def test_a_target_survives_json(target: Target) -> None:
    again = Target.from_dict(json.loads(json.dumps(target.to_dict())))
    assert again.to_dict() == target.to_dict()
    assert type(again) is type(target)
    assert again.description == target.description
