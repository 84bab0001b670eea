"""What a `Model` promises of records, labels, files and merging, and what it refuses."""

from __future__ import annotations

import json
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import sketchnewton
from sketchnewton import AdaGrad, Model, NewtonBank, SketchedNewton
from sketchnewton.cli.main import main
from sketchnewton.core.archive import ModelFileError
from sketchnewton.features import Columns, Features
from sketchnewton.learners import OneVsAll
from sketchnewton.model import Classes, Signs
from sketchnewton.model.target import Numbers
from tests.contract.records import lines_of, printed, table


def test_named_classes() -> None:
    rows = [{"x": 1.0}, {"x": -1.0}] * 20
    model = Model(NewtonBank(), target=Signs(names=["ham", "spam"]))
    model.learn(rows, ["spam", "ham"] * 20)
    assert model.predict(rows[:2]).tolist() == ["spam", "ham"]
    assert model.classes == ["ham", "spam"]
    assert model.predict_proba(rows[:1])[0, 1] > 0.5
    with pytest.raises(ValueError, match="row 1 has the label 'eggs', but the classes are 'ham', 'spam'"):
        model.learn(rows[:1], ["eggs"])
    many = Model(OneVsAll(NewtonBank, 3), target=Classes(names=["a", "b", "c"]))
    kinds = [{"k": k} for k in "abc"] * 20
    many.learn(kinds, [row["k"] for row in kinds])
    assert many.predict(kinds[:3]).tolist() == ["a", "b", "c"]


def test_named_classes_are_saved(tmp_path: Path) -> None:
    model = Model(target=Signs(names=["no", "yes"]))
    model.learn([{"x": 1.0}, {"x": -1.0}] * 10, ["yes", "no"] * 10)
    model.save(tmp_path / "m.skn")
    loaded = sketchnewton.load(tmp_path / "m.skn")
    assert loaded.predict({"x": 1.0}).tolist() == ["yes"]
    assert loaded.to_bytes() == model.to_bytes()


def test_test_scores_without_learning() -> None:
    rows = table(300, 8)
    model = Model(NewtonBank(loss="logistic"))
    model.learn(rows[:200])
    before = model.to_bytes()
    scores = model.test(rows[200:])
    assert model.to_bytes() == before
    assert scores["rows"] == 100
    assert 0.0 < scores["error"] < 0.3 < scores["auc"] <= 1.0
    chances = model.predict_proba(rows[200:])
    told = [chances[i, int(row["label"] > 0)] for i, row in enumerate(rows[200:])]
    assert scores["log_loss"] == pytest.approx(-np.log(told).mean(), rel=1e-9)  # of calibrated probabilities
    numbers = Model()
    for _ in range(20):
        numbers.learn([{"x": float(i), "y": 3.0 * i} for i in range(50)])
    told = numbers.test([{"x": 7.0, "y": 21.0}, {"x": 33.0, "y": 99.0}])
    assert told["r2"] > 0.9
    assert told["mae"] <= told["rmse"]
    assert "error" not in told


def test_a_frame_must_have_columns_that_are_known() -> None:
    model = Model()
    model.learn([{"y": 1, "age": 30, "city": "Rome"}, {"y": -1, "age": 20, "city": "Oslo"}] * 5)
    other = {"Age": [3.0], "town": ["Rome"]}
    for frame in (pd.DataFrame(other), pl.DataFrame(other), pa.table(other)):
        for ask in (model.predict, model.decision_function, lambda rows: model.test(rows, labels=[1.0])):
            with pytest.raises(ValueError, match="it knows age, city; there are Age, town"):
                ask(frame)
    whole = model.predict(pd.DataFrame({"city": ["Rome"], "age": [3.0]}))  # in any order, without a warning
    with pytest.warns(
        UserWarning, match="1 column that the model knows is missing from the table: city"
    ) as told:
        assert model.predict(pd.DataFrame({"age": [3.0]})) != whole
    assert told[0].filename == __file__
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        model.predict(pd.DataFrame({"age": [4.0]}))
    with pytest.warns(UserWarning, match="missing from the table: age"):  # called by code that has no name
        exec("model.predict(frame)", {"model": model, "frame": pd.DataFrame({"city": ["Rome"]})})
    assert model.predict({"age": 3.0}).shape == model.predict([{"Age": 3}]).shape == (1,)
    model.learn(pd.DataFrame({"y": [1.0], **other}))
    exact = Model(exact_names=True)
    exact.learn(pd.DataFrame({"y": [1.0], "age": [2.0]}))
    exact.learn(pd.DataFrame({"y": [1.0], **other}))  # is tried first, and is no prediction


def test_an_array_has_none_of_the_names_that_a_table_had() -> None:
    """What was learned of named columns is not to be had from numbers: such predictions were made of nothing."""
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3))
    named = Model()
    named.learn(pd.DataFrame(X, columns=["a", "b", "c"]), X[:, 0])
    for ask in (named.predict, lambda rows: named.test(rows, X[:, 0])):
        with pytest.raises(ValueError, match=r"it knows a, b, c; there are 0, 1, 2 \(an array has no names"):
            ask(X)
    numbered = Model()
    numbered.learn(pd.DataFrame(X), X[:, 0])  # whose columns are 0, 1, 2
    np.testing.assert_array_equal(numbered.predict(X), numbered.predict(pd.DataFrame(X)))
    with pytest.warns(UserWarning, match="1 column that the model knows is missing from the table: 2"):
        numbered.predict(X[:, :2])
    plain = Model()
    plain.learn(X, X[:, 0])
    np.testing.assert_array_equal(plain.predict(X), numbered.predict(X))
    assert plain.predict(X[:, :2]).shape == (60,)


def test_a_table_may_have_lists_alone() -> None:
    """They are learned, but have no kind that would be known."""
    model = Model()
    rows = [{"y": 1.0, "tags": ["a", "b"], "n": 1.0}, {"y": -1.0, "tags": ["c"], "n": 2.0}] * 5
    model.learn(pa.Table.from_pylist(rows))
    lists = [{"tags": row["tags"]} for row in rows]
    with pytest.warns(UserWarning, match="missing from the table: n"):
        found = model.decision_function(pa.Table.from_pylist(lists))
    np.testing.assert_array_equal(found, model.decision_function(lists))


def test_bad_records_leave_the_model_as_it_was() -> None:
    model = Model()
    model.learn(table(20, 9))
    before = model.to_bytes()
    rows = table(5, 10)
    for bad, message in (
        ([*rows, {"label": 1.0, "price": float("inf")}], "record 6: expected a finite number for 'price'"),
        ([*rows, {"price": 1.0}], "row 6 has no label"),
        ([*rows, {"label": 1.0, "price": 1e31}], "row 6 has the value 1e\\+31"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn(bad)
        assert model.to_bytes() == before


def test_merge_asks_for_the_same_records() -> None:
    def trained(**how: Any) -> Model:
        model = Model(SketchedNewton("oja", 3), **how)
        model.learn(table(30, 11))
        return model

    merged = trained().merge(trained())
    assert merged.learner.rows_seen == 60
    for other in (
        trained(features=Features(bits=10)),
        trained(exact_names=True),
        trained(target=Signs(-1.0)),
    ):
        with pytest.raises(ValueError, match="cannot merge"):
            trained().merge(other)


def test_a_learner_alone_is_a_model_of_numbered_features(tmp_path: Path) -> None:
    X = np.eye(4)
    learner = AdaGrad()
    learner.learn(X, [1.0, -1.0, 1.0, -1.0])
    learner.save(tmp_path / "m.skn")
    (tmp_path / "d.svm").write_text("".join(f"1 {i}:1\n" for i in range(4)))
    assert isinstance(sketchnewton.load(tmp_path / "m.skn"), AdaGrad)
    assert printed(tmp_path, tmp_path / "m.skn", tmp_path / "d.svm") == lines_of(learner.predict(X))


@pytest.mark.parametrize(
    "damage",
    [
        {"target": {"kind": "classes", "count": 3, "zero": None}},
        {"target": None},
        {"features": {"bits": 77}},
        {"columns": 3},
        {"exact_names": "yes"},
        {"learner": {"class": "FrequentDirections", "parameters": {"sketch_size": 3}}},
        {"learner": None},
        {"run": {"row": "many"}},
    ],
    ids=str,
)
def test_a_damaged_header_is_refused(damage: dict[str, Any], tmp_path: Path) -> None:
    from sketchnewton.core import archive

    model = Model()
    model.learn(table(5, 12))
    header, arrays = model.to_archive()
    archive.write(tmp_path / "m.skn", header | damage, arrays)
    with pytest.raises(ModelFileError, match="not a usable Model"):
        sketchnewton.load(tmp_path / "m.skn")


def test_damaged_arrays_are_refused() -> None:
    model = Model(exact_names=True)
    model.learn(table(5, 12))
    header, arrays = model.to_archive()
    for name in arrays:
        lacking = {other: np.asarray(array) for other, array in arrays.items() if other != name}
        changed = {} if name == "names/joins" else {name: np.full(3, 0.5, np.float32)}
        for damaged in (lacking, lacking | changed):
            with pytest.raises(ModelFileError, match="not a usable Model"):
                Model.from_archive(header, damaged)


def test_columns_are_remembered(tmp_path: Path) -> None:
    rows = [{"label": 1.0, "zip": 1000 + i % 3} for i in range(30)]
    model = Model(columns=Columns(categorical=("zip",)))
    model.learn(pd.DataFrame(rows))
    model.save(tmp_path / "m.skn")
    again = sketchnewton.load(tmp_path / "m.skn")
    np.testing.assert_array_equal(again.predict([{"zip": 1001}]), model.predict(pd.DataFrame(rows[1:2])))


def numbered(rows: int, classes: int, first: int) -> tuple[Any, Any]:
    X = np.random.default_rng(3).standard_normal((rows, classes))
    return X, X.argmax(axis=1) + first


@pytest.mark.parametrize("first", [0, 1])
def test_metrics_of_classes_do_not_depend_on_how_they_are_counted(first: int) -> None:
    X, y = numbered(300, 3, first)
    model = Model(OneVsAll(SketchedNewton, 3, {"loss": "logistic"}))
    model.learn(X, y)
    proba = model.predict_proba(X)[np.arange(300), y - first]
    told = model.test(X, y)
    assert told["log_loss"] == pytest.approx(-np.log(proba).mean())
    assert told["error"] == pytest.approx(np.mean(model.predict(X) != y))


def test_a_model_saved_while_it_learns_can_be_loaded() -> None:
    model = Model()
    X = np.random.default_rng(0).standard_normal((60_000, 40))
    thread = threading.Thread(target=model.learn, args=(X, np.sign(X[:, 0])))
    thread.start()
    while thread.is_alive():
        Model.from_bytes(model.to_bytes())
    thread.join()
    assert model.learner.rows_seen == 60_000


def test_classes_that_mean_different_things_are_not_merged() -> None:
    def trained(target: Classes, labels: Any) -> Model:
        model = Model(OneVsAll(SketchedNewton, 3, {}), target=target)
        model.learn(np.eye(3), labels)
        return model

    named = trained(Classes(names=["a", "b", "c"]), ["a", "b", "c"])
    zero, one, unknown = (trained(Classes(3), labels) for labels in ([0, 1, 2], [1, 2, 3], [1, 2, 1]))
    for mine, theirs in (
        (named, trained(Classes(names=["c", "a", "b"]), ["a", "b", "c"])),
        (zero, one),
        (zero, named),
    ):
        with pytest.raises(ValueError, match="cannot merge"):
            mine.merge(theirs)
    assert unknown.merge(zero).classes == [0, 1, 2]
    fresh = Model(OneVsAll(SketchedNewton, 3, {})).merge(trained(Classes(3), [1, 2, 1]))
    assert fresh.target is not unknown.target
    categories = Model(columns=Columns(categorical=("zip",)), learner=SketchedNewton())
    numbers = Model(SketchedNewton())
    for model in (categories, numbers):
        model.learn([{"zip": 1.0, "y": 1.0}])
    with pytest.raises(ValueError, match="in different ways"):
        numbers.merge(categories)


@pytest.mark.parametrize(
    ("learner", "target", "message"),
    [
        (lambda: OneVsAll(SketchedNewton, 3, {}), Signs(1.0), "cannot be learned by OneVsAll"),
        (NewtonBank, Classes(3), "labels as 3 classes cannot be learned by NewtonBank"),
        (lambda: SketchedNewton(loss="poisson"), Signs(1.0), "the poisson loss needs labels >= 0"),
        (lambda: "squared", None, "must be a learner"),
    ],
)
def test_a_target_must_go_with_its_learner(learner: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(learner(), target=target)


def test_a_learner_that_cannot_be_loaded_is_not_saved(tmp_path: Path) -> None:
    class Mine(SketchedNewton):
        pass

    with pytest.raises(ValueError, match="unknown class 'Mine'"):
        Model(Mine()).save(tmp_path / "m.skn")
    assert not (tmp_path / "m.skn").exists()


def test_predicting_and_testing_leave_no_trace() -> None:
    model = Model(exact_names=True)
    model.learn([{"p": 1.0, "y": 1.0}])
    before = model.to_bytes()
    model.predict([{f"n{i}": 1.0 for i in range(1000)}])
    model.test([{"q": 1.0, "y": 1.0}])
    assert model.to_bytes() == before
    assert model.predict({"p": 1.0, "q": 5.0}).tolist() == model.predict({"p": 1.0}).tolist()
    model.learn([{"r": 1.0, "y": 1.0}])
    assert (
        model.predict({"q": 9.0}).tolist() == model.predict({}).tolist()
    )  # not taken for r, which has q's number now


def test_what_is_refused_does_not_decide_how_classes_are_counted() -> None:
    model = Model(OneVsAll(SketchedNewton, 3, {}))
    with pytest.raises(ValueError, match="label 99"):
        model.learn(np.eye(3), [0, 1, 99])
    model.test(np.eye(3), [0, 1, 2])
    model.learn(np.eye(3), [1, 2, 3])
    assert model.classes == [1, 2, 3]


def test_text_is_checked_before_it_is_learned() -> None:
    model = Model()
    with pytest.raises(ValueError, match="record 5001"):
        model.learn("1 | a\n" * 5000 + "x | b")
    assert model.learner.rows_seen == 0


def test_learning_ends_the_run_of_a_checkpoint() -> None:
    model, other = Model(SketchedNewton()), Model(SketchedNewton())
    for each in (model, other):
        each.learn("1 | a")
    note = {"files": None, "way": {}, "passes": 1, "holdout": None, "every": 300, "pass": 0, "best": None}
    note |= {"row": 600, "scores": [{}], "held": []}
    model.run = note
    assert Model.from_bytes(model.to_bytes()).run == model.run
    model.merge(other)
    assert model.run is None
    model.run = note
    model.learn("1 | a")
    assert model.run is None


def test_labels_of_any_kind_are_told_by_their_row() -> None:
    model = Model(target=Signs(names=["ham", "spam"]))
    rows = [{"x": 1.0}, {"x": 2.0}]
    for labels in (["ham", "eggs"], iter(["ham", "eggs"]), pd.Series(["ham", "eggs"], index=[7, 9])):
        with pytest.raises(ValueError, match="row 2 has the label 'eggs'"):
            model.learn(rows, labels)
    model.learn(rows[0], "ham")
    with pytest.raises(ValueError, match="labels are text: give the model classes"):
        Model(target=Numbers("squared")).learn(rows, ["x", "y"])
    with pytest.raises(ValueError, match="no records to test"):
        Model().test([])


def test_names_of_classes_are_printed_whole(tmp_path: Path) -> None:
    names = [1234567890, 1234567891, 5]
    model = Model(OneVsAll(SketchedNewton, 3, {}), target=Classes(names=names))
    for _ in range(5):
        model.learn(np.eye(3), names)
    model.save(tmp_path / "m.skn")
    (tmp_path / "d.svm").write_text("0 0:1\n0 1:1\n0 2:1\n")
    assert printed(tmp_path, tmp_path / "m.skn", tmp_path / "d.svm") == [str(name) for name in names]


def test_a_text_against_all_others_takes_labels_of_any_type() -> None:
    rows = [{"a": n % 3} for n in range(60)]
    texts = ["spam" if n % 3 else "ham" for n in range(60)]
    given, within = Model(target=Signs("spam")), Model(target=Signs("spam"))
    given.learn(rows, texts)
    within.learn([{**row, "label": text} for row, text in zip(rows, texts, strict=True)])
    assert given.to_bytes() == within.to_bytes()
    assert given.test(rows, texts) == within.test(rows, texts)
    number = Model(target=Signs("spam"))
    number.learn([{"a": 1}], [1.0])  # a number is not the text
    assert number.decision_function({"a": 1})[0] < 0.0
    with pytest.raises(ValueError, match="row 2 has no label"):
        given.learn(rows[:2], ["spam", None])


def test_labels_tell_what_they_are(tmp_path: Path) -> None:
    """Without a target, as `skn train` does: the same model of the same labels, whichever way they come."""
    rows = [{"a": n % 3, "b": (n * n) % 5 - 2.0} for n in range(60)]
    kinds: dict[str, list[Any]] = {
        "texts": ["spam" if n % 3 else "ham" for n in range(60)],
        "several": [("eggs", "ham", "spam")[n % 3] for n in range(60)],
        "truth": [n % 3 > 0 for n in range(60)],
        "numbers": [float(n % 3) for n in range(60)],
    }
    for kind, labels in kinds.items():
        within = [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
        given = Model()
        given.learn(rows, labels)
        saved = {"labels": given.to_bytes()}
        for name, records in {
            "dicts": within,
            "pandas": pd.DataFrame(within),
            "polars": pl.DataFrame(within),
            "arrow": pa.Table.from_pylist(within),
        }.items():
            model = Model()
            model.learn(records)
            if name != "dicts":  # tables know the kinds of columns, dicts given with their labels do, too
                assert model.predict(rows).tolist() == given.predict(rows).tolist(), (kind, name)
            saved[name] = model.to_bytes()
        (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in within))
        assert main(["train", str(tmp_path / "d.jsonl"), "--model", str(tmp_path / "m.skn"), "--quiet"]) == 0
        command = sketchnewton.load(tmp_path / "m.skn")
        assert command.predict(rows).tolist() == given.predict(rows).tolist()
        assert command.target.to_dict() == given.target.to_dict()
        assert len(set(saved.values())) == 1, kind
    with pytest.raises(ValueError, match="labels are both texts and numbers, such as 'ham' and 1"):
        Model().learn(rows[:2], [1, "ham"])
    with pytest.raises(ValueError, match=r"row 1 has no label, but needs one \(labels=…, or columns=Columns"):
        Model().learn(rows)
    with pytest.raises(ValueError, match="all labels are 'spam': give the model its classes"):
        Model().learn(rows[0], "spam")
    model = Model()
    with pytest.raises(ValueError, match="row 2 has no label"):
        model.learn(rows[:3], ["ham", None, "spam"])
    model.learn(rows, kinds["several"])  # what was refused has decided nothing
    assert model.classes == ["eggs", "ham", "spam"]


def test_a_regression_has_no_probabilities() -> None:
    model = Model()
    model.learn([{"label": 1, "a": 1}, {"label": 5, "a": 2}])
    with pytest.raises(ValueError, match="predicts a number and has no probabilities"):
        model.predict_proba({"a": 1})


def test_yes_and_no_are_no_numbers() -> None:
    """As labels of records in memory: a model that learns numbers refuses them, as it refuses other texts."""
    import pyarrow as pa

    message = r"expected a number for 'y', got 'yes' \(labels that are texts are classes: target=Signs"
    for records in (
        [{"y": 1, "x": 1.0}, {"y": "yes", "x": 2.0}],
        pa.table({"y": ["1", "yes"], "x": [1.0, 2.0]}),
    ):
        with pytest.raises(ValueError, match=message):
            Model(target=Numbers("squared")).learn(records)


def test_errors_of_records_in_memory_name_python() -> None:
    with pytest.raises(ValueError, match=r"columns=Columns\(categorical=\('x',\)\)"):
        Model().learn([{"y": 1, "x": 1.0}, {"y": 1, "x": "Rome"}])


NA = pd.NA
BESIDE: dict[str, tuple[object, list[object]]] = {
    "NumPy's truth": ([np.True_, np.False_, np.True_], [True, False, True]),
    "truth as text": (["true", "False", "TRUE"], [True, False, True]),
    "numbers as text": (["1", "2.5", "1"], [1, 2.5, 1]),
    "numbers among texts": (["7.0", "x", "7"], ["7", "x", "7"]),
    "truth among texts": ([True, "x", True], ["true", "x", "true"]),
    "bytes": ([b"a", b"b", b"a"], ["a", "b", "a"]),
    "days": (
        pd.Series(pd.to_datetime(["2024-01-31", "2024-02-01", "2024-01-31"])),
        ["2024-01-31", "2024-02-01"],
    ),
}


@pytest.mark.parametrize("kind", BESIDE)
def test_labels_beside_the_records_mean_what_they_mean_within(kind: str) -> None:
    labels, plain = BESIDE[kind]
    rows = [{"x": 1.0}, {"x": 2.0}, {"x": 0.5}]
    within, beside = Model(), Model()
    within.learn([{**row, "label": label} for row, label in zip(rows, list(labels), strict=True)])  # type: ignore[call-overload]
    beside.learn(rows, labels)
    assert beside.target.to_dict() == within.target.to_dict()
    assert beside.classes is None or set(beside.classes) == set(plain)
    assert beside.decision_function(rows).tolist() == within.decision_function(rows).tolist()
    assert beside.test(rows, labels) == within.test(rows, labels)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([1, NA, 2], dtype="Int64"),
        pd.Series(["a", NA, "b"], dtype="string"),
        ["a", "NA", "b"],
        ["a", " ", "b"],
        [1.0, "nan", 2.0],
        [True, None, False],
        pd.Series(pd.to_datetime(["2024-01-31", None, "2024-02-01"])),
    ],
)
def test_a_missing_label_is_told_by_its_row(labels: object) -> None:
    with pytest.raises(ValueError, match="row 2 has no label, but needs one"):
        Model().learn([{"x": 1.0}, {"x": 2.0}, {"x": 0.5}], labels)


def test_texts_are_found_among_classes_that_are_numbers() -> None:
    model = Model(target=Signs(names=[3, 8]))
    model.learn([{"x": 1.0}, {"x": 2.0}, {"x": 3.0}], ["3", "8.0", 8])
    with pytest.raises(ValueError, match="row 1 has the label 'x', but the classes are 3, 8"):
        model.learn([{"x": 1.0}], ["x"])
