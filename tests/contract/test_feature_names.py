"""Learners given tables hold them to the names and the order of the columns that they learned from."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchnewton import (
    AdaGrad,
    FrequentDirections,
    Learner,
    NewtonBank,
    SketchedAdaGrad,
    SketchedNewton,
    load,
)
from sketchnewton.core.archive import ModelFileError
from sketchnewton.evaluation import regret
from sketchnewton.learners import OneVsAll, SharedNewton

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

rng = np.random.default_rng(0)
DATA = {"a": rng.standard_normal(60), "b": 100.0 * rng.standard_normal(60), "c": rng.standard_normal(60)}
FRAMES: dict[str, Any] = {"pandas": pandas.DataFrame(DATA), "polars": polars.DataFrame(DATA)}
LEARNERS: dict[str, Any] = {
    "bank": NewtonBank,
    "newton": SketchedNewton,
    "adagrad": AdaGrad,
    "sketched adagrad": SketchedAdaGrad,
    "shared": lambda: SharedNewton(2),
    "one against all": lambda: OneVsAll(NewtonBank, 2),
}


def taught(name: str, frame: Any) -> tuple[Learner, Any]:
    learner = LEARNERS[name]()
    y = (DATA["a"] > 0).astype(float) if learner.classes else np.sign(DATA["a"])
    learner.learn(frame, y)
    return learner, y


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", LEARNERS)
def test_columns_in_another_order_are_refused(name: str, kind: str) -> None:
    frame = FRAMES[kind]
    learner, y = taught(name, frame)
    assert learner.feature_names == ("a", "b", "c")
    same = learner.predict(frame)
    before = learner.to_bytes()
    for call in (learner.predict, learner.decision_function, lambda X: learner.learn(X, y)):
        for columns, message in (
            (["b", "a", "c"], "in the same order: column 0 is 'b' instead of 'a'"),
            (["a", "b"], "2 columns instead of 3"),
        ):
            with pytest.raises(ValueError, match=f"The feature names should match.*{message}"):
                call(frame[columns])
    with pytest.raises(ValueError, match="passed during fit: column 2 is 'd' instead of 'c'"):
        learner.predict(pandas.DataFrame(DATA).rename(columns={"c": "d"}))
    assert learner.to_bytes() == before
    np.testing.assert_array_equal(learner.predict(np.column_stack(list(DATA.values()))), same)


def test_names_stay_with_copies_and_files(tmp_path: Path) -> None:
    learner, _ = taught("bank", FRAMES["pandas"])
    learner.save(tmp_path / "m.skn")
    twins = [load(tmp_path / "m.skn"), pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)]
    for twin in twins:
        assert isinstance(twin, NewtonBank)
        with pytest.raises(ValueError, match="The feature names should match"):
            twin.predict(FRAMES["pandas"][["c", "b", "a"]])
    header, views = learner.to_archive()
    arrays = {name: np.array(view) for name, view in views.items()}
    with pytest.raises(ModelFileError, match="its feature names are not a list of strings"):
        NewtonBank.from_archive(
            {**header, "feature_names": [1, 2, 3]}, {k: np.array(a) for k, a in arrays.items()}
        )


def test_rows_without_names_have_none() -> None:
    learner = NewtonBank()
    learner.learn(pandas.DataFrame(np.ones((3, 2))), [1.0, -1.0, 1.0])  # columns are 0 and 1
    assert learner.feature_names is None
    learner.learn(pandas.DataFrame(np.ones((3, 2)), columns=["a", "b"]), [1.0, -1.0, 1.0])
    assert learner.feature_names is None  # as scikit-learn, which only warns


@pytest.mark.parametrize(
    "name", ["format", "tocsr", "indptr", "indices", "toarray", "column_names", "columns", "shape"]
)
@pytest.mark.parametrize("kind", FRAMES)
def test_columns_may_have_the_names_of_attributes(name: str, kind: str) -> None:
    """A column of pandas is an attribute of its table, too."""
    X, y = np.column_stack(list(DATA.values())), DATA["a"]
    frame = {"pandas": pandas, "polars": polars}[kind].DataFrame(
        dict(zip((name, "b", "c"), X.T, strict=True))
    )
    learner = NewtonBank()
    assert np.array_equal(learner.learn(frame, y), NewtonBank().learn(X, y))
    assert learner.feature_names == (name, "b", "c")
    sketches = [FrequentDirections(2).update(rows) for rows in (frame, X)]
    assert np.array_equal(sketches[0].matrix, sketches[1].matrix)
    y = np.sign(y)
    newton = SketchedNewton(alpha=1.0)
    assert regret(newton, frame, y) == regret(newton, X, y)


def test_what_is_no_array_is_refused() -> None:
    for rows in ("1 2", b"1 2", "a text"):
        with pytest.raises(ValueError, match=r"shape|convert"):
            NewtonBank().predict(rows)
