"""One model behind every door: what `skn train` saved predicts in Python what `skn predict` prints."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import sketchnewton
from sketchnewton import Model
from sketchnewton.cli.main import main
from tests.contract.records import Rows, lines_of, printed, table


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def vw_line(row: dict[str, Any]) -> str:
    city = row["city"].replace(" ", "_").replace("|", "_")
    age = "" if row["user|age"] is None else f" |user age:{row['user|age']!r}"
    return f"{row['label']:g} | price:{row['price']!r} city={city}{age}"


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "csv": write_csv,
    "tsv": write_csv,
    "jsonl": write_jsonl,
    "parquet": lambda path, rows: pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path),
    "arrow": lambda path, rows: pyarrow.feather.write_feather(
        pa.Table.from_pylist(rows), str(path), compression="uncompressed"
    ),
    "vw": lambda path, rows: path.write_text("".join(vw_line(row) + "\n" for row in rows)) and None,
}

IN_MEMORY: dict[str, list[Callable[[Rows], Any]]] = {
    "jsonl": [list, iter],
    "parquet": [pa.Table.from_pylist, pd.DataFrame, pl.DataFrame, list],
    "arrow": [pa.Table.from_pylist, pl.DataFrame],
    "vw": [lambda rows: [vw_line(row) for row in rows], lambda rows: "\n".join(map(vw_line, rows))],
}
"""What Python users hold that must be read as the files of a format are."""

OPTIONS = {
    "hashed": [],
    "few bits": ["--bits", "6"],
    "exact names": ["--exact-names"],
    "interactions": ["--interactions", " u", "--interactions", "::"],
    "n-grams": ["--ngram", "2"],
    "kept": ["--keep", "u"],
    "logistic": ["--loss", "logistic", "--sketch", "rfd"],
    "other label": ["--positive", "-1"],
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("form", WRITERS)
def test_python_predicts_what_the_command_prints(form: str, options: list[str], tmp_path: Path) -> None:
    train, later, model = tmp_path / f"train.{form}", tmp_path / f"later.{form}", tmp_path / "m.skn"
    WRITERS[form](train, table(120, 1))
    rows = table(40, 2)
    WRITERS[form](later, rows)
    assert main(["train", str(train), "--model", str(model), "--quiet", *options]) == 0
    loaded = sketchnewton.load(model)
    assert isinstance(loaded, Model)
    expected = printed(tmp_path, model, later)
    assert len(set(expected)) > 3
    assert lines_of(loaded.predict(later)) == expected
    for held in IN_MEMORY.get(form, ()):
        assert lines_of(loaded.predict(held(rows))) == expected
    single = [loaded.predict(row)[0] for row in rows[:5]] if form == "jsonl" else None
    assert single is None or lines_of(single) == expected[:5]


@pytest.mark.parametrize(
    "learner", [[], ["--learner", "adagrad", "--loss", "logistic"]], ids=["bank", "softmax"]
)
@pytest.mark.parametrize("form", WRITERS)
def test_classes_and_their_probabilities_agree(form: str, learner: list[str], tmp_path: Path) -> None:
    train, model = tmp_path / f"train.{form}", tmp_path / "m.skn"
    rows = table(90, 3, classes=4)
    WRITERS[form](train, rows)
    assert main(["train", str(train), "--multiclass", "4", "--model", str(model), "--quiet", *learner]) == 0
    loaded = sketchnewton.load(model)
    assert loaded.classes == [1, 2, 3, 4]
    assert lines_of(loaded.predict(train)) == printed(tmp_path, model, train)
    assert lines_of(loaded.ordered(loaded.decision_function(train))) == printed(
        tmp_path, model, train, "--raw"
    )
    proba = loaded.predict_proba(train)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    if learner:
        assert lines_of(proba) == printed(tmp_path, model, train, "--link")
        assert (np.array(loaded.classes)[proba.argmax(axis=1)] == loaded.predict(train)).all()


@pytest.mark.parametrize("form", ["svm", "npz"])
def test_numbered_features(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12)) * (rng.random((80, 12)) < 0.4)
    y = np.sign(X[:, 0] + 0.1)
    path, model = tmp_path / f"d.{form}", tmp_path / "m.skn"
    if form == "svm":
        lines = (" ".join(f"{j}:{float(x[j])!r}" for j in np.flatnonzero(x).tolist()) for x in X)
        path.write_text("".join(f"{label:g} {line}\n" for label, line in zip(y, lines, strict=True)))
    else:
        A = csr_array(X)
        np.savez(path, indptr=A.indptr, indices=A.indices, data=A.data, labels=y)
    assert main(["train", str(path), "--model", str(model), "--quiet"]) == 0
    loaded = sketchnewton.load(model)
    expected = printed(tmp_path, model, path)
    assert lines_of(loaded.predict(path)) == lines_of(loaded.predict(csr_array(X))) == expected
    assert lines_of(loaded.predict(X)) == expected
    assert lines_of(loaded.learner.predict(X)) == expected


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(sorted(WRITERS)),
    options=st.sampled_from(sorted(OPTIONS)),
    rows=st.integers(1, 30),
)
@settings(max_examples=60)
def test_any_table_any_options(seed: int, form: str, options: str, rows: int, tmp_path_factory: Any) -> None:
    place = tmp_path_factory.mktemp("any")
    data, model = place / f"d.{form}", place / "m.skn"
    made = table(rows, seed)
    WRITERS[form](data, made)
    assert main(["train", str(data), "--model", str(model), "--quiet", *OPTIONS[options]]) == 0
    loaded = sketchnewton.load(model)
    expected = printed(place, model, data)
    for held in [Path, *IN_MEMORY.get(form, ())][1:] or [lambda _: data]:
        assert lines_of(loaded.predict(held(made))) == expected


@pytest.mark.parametrize("form", WRITERS)
def test_learning_in_python_continues_a_file_bit_for_bit(form: str, tmp_path: Path) -> None:
    first, second, both = (tmp_path / f"{name}.{form}" for name in ("first", "second", "both"))
    rows = table(100, 5)
    for path, part in ((first, rows[:60]), (second, rows[60:]), (both, rows)):
        WRITERS[form](path, part)
    half, whole, continued = (tmp_path / f"{name}.skn" for name in ("half", "whole", "continued"))
    assert main(["train", str(first), "--model", str(half), "--quiet"]) == 0
    assert main(["train", str(both), "--model", str(whole), "--quiet"]) == 0
    model = sketchnewton.load(half)
    model.learn(second)
    model.save(continued)
    assert continued.read_bytes() == whole.read_bytes()


def test_python_makes_the_model_that_the_command_makes(tmp_path: Path) -> None:
    rows = table(80, 6)
    data, theirs, ours = tmp_path / "d.jsonl", tmp_path / "theirs.skn", tmp_path / "ours.skn"
    write_jsonl(data, rows)
    assert main(["train", str(data), "--exact-names", "--model", str(theirs), "--quiet"]) == 0
    model = Model(exact_names=True)
    before = model.learn(rows)
    model.save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert before[0] == 0.0
    assert lines_of(model.predict(rows)) == printed(tmp_path, theirs, data)


def test_labels_beside_the_records(tmp_path: Path) -> None:
    rows = table(50, 7)
    labels = [row["label"] for row in rows]
    bare = [{k: v for k, v in row.items() if k != "label"} for row in rows]
    one, two = Model(), Model()
    np.testing.assert_array_equal(one.learn(rows), two.learn(bare, labels))
    np.testing.assert_array_equal(one.predict(bare), two.predict(bare))
    weighted = Model()
    weighted.learn(pd.DataFrame(bare), pd.Series(labels), np.full(50, 2.0))
    assert not np.array_equal(weighted.predict(bare), one.predict(bare))
