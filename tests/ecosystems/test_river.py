"""The River models pass River's own checks, and learn the same however the examples come."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river")

from hypothesis import given
from hypothesis import strategies as st
from river import checks, datasets, evaluate, linear_model, metrics, optim, preprocessing

import sketchnewton
from sketchnewton import NewtonBank, _native
from sketchnewton.cli.main import main
from sketchnewton.model import Signs
from sketchnewton.river import (
    ModelClassifier,
    ModelRegressor,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
)

MODELS: dict[str, Any] = {
    "classifier": SketchedNewtonClassifier(),
    "classifier, oja, logistic": SketchedNewtonClassifier(learner="newton", sketch="oja", loss="logistic"),
    "classifier, hashed": SketchedNewtonClassifier(learner="newton", sketch="oja", hashing=10),
    "classifier, rfd": SketchedNewtonClassifier(learner="newton", sketch="rfd"),
    "classifier, rp, hinge": SketchedNewtonClassifier(
        learner="newton", sketch="rp", diagonal=True, loss="hinge", seed=3
    ),
    "regressor": SketchedNewtonRegressor(),
    "regressor, oja, absolute": SketchedNewtonRegressor(learner="newton", sketch="oja", loss="absolute"),
    "regressor, fd, hashed": SketchedNewtonRegressor(learner="newton", sketch="fd", hashing=8),
    "regressor, no intercept": SketchedNewtonRegressor(
        learner="newton", sketch="pfd", intercept=False, clip=None
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_river_accepts_it(name: str) -> None:
    checks.check_estimator(MODELS[name])


def stream(n: int, labels: list[Any], seed: int = 0) -> list[tuple[dict[str, float], Any]]:
    """Names that come and go."""
    rng = random.Random(seed)
    return [
        ({f"w{rng.randrange(60)}": rng.gauss(0, 1) for _ in range(rng.randrange(1, 12))}, rng.choice(labels))
        for _ in range(n)
    ]


@pytest.mark.parametrize("hashing", [None, 12])
@pytest.mark.parametrize("labels", [[True, False], ["a", "b", "c"]])
def test_learn_many_is_learn_one_bit_for_bit(labels: list[Any], hashing: int | None) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.standard_normal((80, 5)), columns=list("vwxyz"))
    y = [labels[k] for k in rng.integers(0, len(labels), 80)]
    one, many = (SketchedNewtonClassifier(hashing=hashing) for _ in range(2))
    for x, label in zip(X.to_dict("records"), y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X[:30][list("zyx")].assign(v=X["v"], w=X["w"]), pandas.Series(y[:30]))
    many.learn_many(X[30:], pandas.Series(y[30:]))
    if hashing is not None or len(labels) == 2:
        assert one.predict_proba_one({"v": 1.0, "z": -2.0}) == many.predict_proba_one({"v": 1.0, "z": -2.0})
    for x in X.to_dict("records")[:10]:
        assert one.predict_proba_one(x) == pytest.approx(many.predict_proba_one(x), abs=1e-6)
    assert many.predict_many(X).tolist() == [many.predict_one(x) for x in X.to_dict("records")]


def test_polars_frames() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = pandas.DataFrame(np.random.default_rng(0).standard_normal((50, 3)), columns=list("abc"))
    y = X["a"] * 100 + 7
    left, right = SketchedNewtonRegressor(), SketchedNewtonRegressor()
    left.learn_many(X, y)
    right.learn_many(polars.DataFrame(X.to_dict("list")), polars.Series(y.tolist()))
    np.testing.assert_array_equal(
        left.predict_many(X).to_numpy(), right.predict_many(polars.DataFrame(X.to_dict("list"))).to_numpy()
    )


@pytest.mark.parametrize("name", MODELS)
def test_pickle_continues_bit_for_bit(name: str) -> None:
    model = copy.deepcopy(MODELS[name])
    labels = ["a", "b", "c"] if "classifier" in name else [1.0, 5.0, -2e3]
    examples = stream(120, labels)
    for x, y in examples[:60]:
        model.learn_one(x, y)
    twin = pickle.loads(pickle.dumps(model))
    for x, y in examples[60:]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
    for x, _ in examples:
        assert model.predict_one(x) == twin.predict_one(x)


def test_labels_may_appear_at_any_time() -> None:
    model = SketchedNewtonClassifier()
    assert model.predict_proba_one({"a": 1}) == {}
    assert model.predict_one({"a": 1}) is None
    model.learn_one({"a": 1}, "first")
    assert model.predict_proba_one({"b": 1}) == {"first": 1.0}
    for x, y in stream(50, ["first", "second", 3]):
        model.learn_one(x, y)
    proba = model.predict_proba_one({"w1": 1.0})
    assert set(proba) == {"first", "second", 3}
    assert sum(proba.values()) == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match="label True cannot be told apart"):
        model.learn_one({"a": 1}, True)


def test_errors_learn_nothing() -> None:
    model = SketchedNewtonRegressor()
    model.learn_one({"a": 1.0}, 2.0)
    before = pickle.dumps(model._learner)
    for x, y, error in [
        ({"b": 1.0, "a": float("nan")}, 1.0, "X contains NaN: row 0, feature 'a'"),
        ({"a": float("inf")}, 1.0, "X contains infinity: row 0, feature 'a'"),
        ({"a": 1.0, ("b", 2): 1e31}, 1.0, r"beyond ±1e\+30: row 0, feature \('b', 2\); rescale"),
        ({"a": 1.0}, float("nan"), "label nan"),
        ({"b": 1.0, "a": 10**400}, 1.0, "int too large to convert to float: feature 'a'"),
    ]:
        with pytest.raises(ValueError, match=error):
            model.learn_one(x, y)
    with pytest.raises(TypeError, match="must be real number, not str: feature 'colour' is 'blue'"):
        model.learn_one({"a": 1.0, "colour": "blue"}, 1.0)
    with pytest.raises(ValueError, match="feature 'a'"):
        model.predict_one({"a": float("nan")})
    with pytest.raises(ValueError, match=r"w=-1.0 is invalid: must be finite and >= 0"):
        model.learn_one({"a": 1.0}, 1.0, w=-1.0)
    assert pickle.dumps(model._learner) == before
    with pytest.raises(ValueError, match="hashing=40 is invalid"):
        SketchedNewtonClassifier(hashing=40)
    with pytest.raises(ValueError, match="sketch='x' is invalid"):
        SketchedNewtonClassifier(learner="newton", sketch="x")
    with pytest.raises(ValueError, match=r"alpha=0.1 is invalid: the default learner, NewtonBank"):
        SketchedNewtonClassifier(alpha=0.1)


def test_a_missing_label_is_no_class() -> None:
    pandas = pytest.importorskip("pandas")
    for label in (None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT):
        model = SketchedNewtonClassifier()
        with pytest.raises(ValueError, match=r"label .* is missing: leave its row out"):
            model.learn_one({"a": 1.0}, label)
        with pytest.raises(ValueError, match=r"label .* is missing: leave its row out"):
            model.learn_many(pandas.DataFrame({"a": [1.0, 2.0]}), pandas.Series(["x", label], dtype=object))
        assert model.predict_proba_one({"a": 1.0}) == {}
        assert not model._names.names  # nor are the features of a refused row kept


def test_errors_name_features_of_frames_and_hashed_ones() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": [1.0, 2.0], "size": [1.0, np.nan]})
    for hashing in (None, 10):
        model = SketchedNewtonClassifier(hashing=hashing)
        with pytest.raises(ValueError, match="X contains NaN: row 1, feature 'size'"):
            model.learn_many(frame, pandas.Series(["a", "b"]))
        with pytest.raises(ValueError, match="X contains NaN: row 0, feature 'size'"):
            model.learn_one({"price": 1.0, "size": np.nan}, "a")
        assert model.predict_proba_one({"price": 1.0}) == {}  # nothing was learned, not even the label


@pytest.mark.parametrize("labels", [[True, False], ["a", "b", "c"]])
def test_weights_of_examples(labels: list[Any]) -> None:
    """A weight is the learner's, not a repeated row; weight 0 learns nothing; learn_many takes them too."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.standard_normal((60, 3)), columns=list("xyz"))
    y = [labels[k] for k in rng.integers(0, len(labels), 60)]
    w = rng.integers(0, 4, 60).astype(float)
    one, many, plain = (SketchedNewtonClassifier() for _ in range(3))
    for x, label, weight in zip(X.to_dict("records"), y, w, strict=True):
        one.learn_one(x, label, w=weight)
        plain.learn_one(x, label)
    many.learn_many(X, pandas.Series(y), w=pandas.Series(w))
    row = {"x": 1.0, "y": 2.0, "z": -1.0}
    assert one.predict_proba_one(row) == many.predict_proba_one(row) != plain.predict_proba_one(row)
    number, heavy = SketchedNewtonRegressor(), NewtonBank()
    for x, weight in zip(X.to_dict("records"), w, strict=True):
        number.learn_one(x, x["x"], w=weight)
        heavy.learn([list(x.values())], [x["x"]], [weight])
    assert number.predict_one(row) == heavy.predict([list(row.values())])[0]


def test_learned_weights_by_name() -> None:
    model = SketchedNewtonRegressor()
    hashed = SketchedNewtonRegressor(hashing=18)
    several, signs = SketchedNewtonClassifier(), SketchedNewtonClassifier()
    assert model.weights == several.weights == signs.weights == {}
    rng = random.Random(0)
    for _ in range(200):
        x = {"up": rng.gauss(0, 1), ("a", 1): rng.gauss(0, 1)}
        for each in (model, hashed):
            each.learn_one(x, 3.0 * x["up"] + 1.0)
        several.learn_one(x, "high" if x["up"] > 0 else "low")
        signs.learn_one(x, x["up"] > 0)
    assert model.weights == {"up": pytest.approx(3.0, abs=0.1), ("a", 1): pytest.approx(0.0, abs=0.1)}
    assert hashed.weights.keys() == {_native.hashed_index(name, 18) for name in ("up", "('a', 1)")}
    assert several.weights["high"]["up"] > 0 > several.weights["low"]["up"]
    assert signs.weights["up"] > abs(signs.weights[("a", 1)])


def test_hashed_names_are_vowpal_wabbits() -> None:
    assert _native.hashed_index("price", 18) == 229902
    assert _native.hashed_index("17", 18) == 17
    by_name, by_number = SketchedNewtonRegressor(hashing=18), SketchedNewtonRegressor(hashing=18)
    by_name.learn_one({"17": 1.0}, 3.0)
    by_number.learn_one({17: 1.0}, 3.0)
    assert by_name.predict_one({17: 1.0}) == by_number.predict_one({"17": 1.0})


def test_untuned_beats_rivers_default() -> None:
    def accuracy(model: Any) -> float:
        return float(evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get())

    assert accuracy(SketchedNewtonClassifier()) > accuracy(linear_model.LogisticRegression(optim.SGD(0.1)))
    scaled = preprocessing.StandardScaler() | SketchedNewtonClassifier()
    assert accuracy(scaled) > 0.88


# -- names of features become numbers as a dictionary would number them


class Clash:
    """Equal to its like, with a hash that all share."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if self.name == "broken":
            raise RuntimeError("no comparison today")
        return isinstance(other, Clash) and other.name == self.name

    def __str__(self) -> str:
        return self.name


any_name = st.one_of(
    st.text(max_size=3),
    st.text("ab", min_size=13, max_size=18),  # about the length that the index keeps itself
    st.text("aé€𝄞\0", max_size=3),
    st.integers(-3, 3),
    st.integers().map(lambda k: k << 32),
    st.sampled_from([True, False, None, 1.0, -0.0, 2.5, float("inf"), (), ("a", 1), b"a", "a", "1"]),
    st.sampled_from("abc").map(Clash),
    st.sampled_from("abc").map(np.str_),
)


@given(st.lists(st.tuples(st.lists(any_name, max_size=8, unique=True), st.booleans()), max_size=30))
def test_names_are_numbered_as_by_a_dictionary(calls: list[tuple[list[Any], bool]]) -> None:
    index, names, oracle = _native.NameIndex(), [], {}
    for wanted, learn in calls:
        if learn:
            new = [name for name in wanted if name not in oracle]
            for name in sorted(new, key=lambda name: (len(str(name)), str(name))):
                oracle[name] = len(oracle)
        assert index.places(wanted, names, learn) == [oracle.get(name, -1) for name in wanted]
        assert len(names) == len(oracle)
        assert all(mine is theirs for mine, theirs in zip(names, oracle, strict=True))
        assert _native.NameIndex().places(wanted, names, False) == index.places(wanted, names, False)


def test_many_names_keep_their_numbers() -> None:
    """Through all growth; equal names that are other objects, short and long ones, and integers a power apart."""
    for make in (lambda k: f"w{k}", lambda k: f"a name of some length {k}", lambda k: k << 20):
        index, names = _native.NameIndex(), []
        for start in range(0, 50_000, 1000):
            index.places([make(k) for k in range(start, start + 1000)], names, True)
        order = random.Random(0).sample(range(50_000), 50_000)
        assert index.places([make(k) for k in order], names, False) == order
        assert index.places([make(k) for k in range(50_000, 50_100)], names, False) == [-1] * 100


def test_what_fails_learns_no_name() -> None:
    index, names = _native.NameIndex(), []
    index.places([Clash("broken")], names, True)
    with pytest.raises(TypeError, match="must be real number"):
        index.row({"new": 1.0, "other": "text"}, names, True)
    with pytest.raises(RuntimeError, match="no comparison today"):
        index.row({"new": 1.0, Clash("b"): 2.0}, names, True)
    assert len(names) == 1


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_number_names_on_their_own(again: Any) -> None:
    model = SketchedNewtonRegressor()
    for x, _ in stream(50, [1.0]):
        model.learn_one({**x, ("a", 1): 2.0, 17: 1.0}, 1.0)
    twin, names = again(model), list(model._names.names)
    assert twin._names.names == names
    twin.learn_one({"only the twin": 1.0, "w1": 2.0}, 1.0)
    assert model._names.names == names
    assert twin._names.names == [*names, "only the twin"]
    model.learn_one({"only the first": 1.0}, 1.0)
    assert model._names.names == [*names, "only the first"]
    for x, _ in stream(50, [1.0], seed=1):
        assert list(twin._names._index.places(list(x), twin._names.names, False)) == [
            names.index(name) if name in names else -1 for name in x
        ]


def test_a_key_may_change_the_dictionary_that_is_learned() -> None:
    """A comparison that runs code of its own: what was in the row at first is learned."""
    x: dict[Any, float] = {}

    class Clears(Clash):
        def __eq__(self, other: object) -> bool:
            x.clear()
            return super().__eq__(other)

        __hash__ = Clash.__hash__

    index, names = _native.NameIndex(), []
    index.places([Clash("a")], names, True)
    x.update({f"w{k}": 1.0 for k in range(20)})
    x[Clears("b")] = 1.0
    index.row(x, names, True)
    assert len(names) == 22
    assert not x


def test_a_model_of_the_command_line_in_river(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [{"city": str(rng.choice(["Rome", "Oslo"])), "price": float(rng.normal())} for _ in range(60)]
    data, model = tmp_path / "d.jsonl", tmp_path / "m.skn"
    data.write_text(
        "".join(json.dumps({"label": 1 if r["city"] == "Rome" else -1, **r}) + "\n" for r in rows)
    )
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    opened = ModelRegressor(sketchnewton.load(model))
    assert [opened.predict_one(row) for row in rows] == sketchnewton.load(model).predict(data).tolist()

    fresh = ModelRegressor(sketchnewton.Model())
    for row in rows:
        fresh.learn_one(row, 1.0 if row["city"] == "Rome" else -1.0)
    assert fresh.model.to_bytes() == model.read_bytes()  # row by row as the command in one go
    with pytest.raises(ValueError, match="use ModelRegressor"):
        ModelClassifier(sketchnewton.Model())


def test_a_model_of_classes_in_river() -> None:
    classifier = ModelClassifier(sketchnewton.Model(target=Signs(names=["no", "yes"])))
    for _ in range(30):
        classifier.learn_one({"x": 1.0}, "yes")
        classifier.learn_one({"x": -1.0}, "no", w=2.0)
    assert classifier.predict_one({"x": 1.0}) == "yes"
    proba = classifier.predict_proba_one({"x": -1.0})
    assert proba.keys() == {"no", "yes"}
    assert proba["no"] > 0.5
    with pytest.raises(ValueError, match="'maybe'"):
        classifier.learn_one({"x": 1.0}, "maybe")
    with pytest.raises(ValueError, match="use ModelClassifier"):
        ModelRegressor(classifier.model)
    assert classifier.clone().model.learner.rows_seen == 0
    assert classifier.clone(include_attributes=True).model.learner.rows_seen == 60
    with pytest.raises(ValueError, match="the record has 'label', which the model takes for the label"):
        classifier.predict_one({"label": 1.0})
    mixed = ModelClassifier(sketchnewton.Model(target=Signs(names=["a", 1])))
    assert mixed.predict_one({"x": 1.0}) == 1


@pytest.mark.parametrize("kind", [SketchedNewtonClassifier, SketchedNewtonRegressor])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("hashing", (True, 0, -1, 31, 2.5, "many")),
        ("seed", (True, -1, 2.5, "many")),
        ("intercept", ("no", 1, None)),
        ("clip", (True, -1.0)),
        ("sketch_size", (True, -1, 2.5)),
    ],
)
def test_parameters_that_mean_nothing(kind: type, name: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=rf"{name}=.* is invalid"):
            kind(**{name: value})
