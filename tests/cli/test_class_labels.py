"""Labels of any kind: texts and true/false are classes, numbers are numbers unless the options say otherwise."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sketchnewton.cli.main import main
from sketchnewton.model import Classes, Model, Signs, open_model
from tests.cli.support import skn

Record = dict[str, Any]


def records(label: Callable[[float, float], object], count: int = 300) -> list[Record]:
    source = random.Random(5)
    rows = [(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(count)]
    return [
        {"label": label(a, b), "a": round(a, 4), "b": round(b, 4), "id": f"r{k}"}
        for k, (a, b) in enumerate(rows)
    ]


def as_csv(rows: list[Record], path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(
            file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n"
        )
        table.writeheader()
        table.writerows(rows)


WRITE: dict[str, Callable[[list[Record], Path], object]] = {
    "csv": as_csv,
    "tsv": as_csv,
    "jsonl": lambda rows, path: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
    "parquet": lambda rows, path: pa.parquet.write_table(pa.Table.from_pylist(rows), path),
    "arrow": lambda rows, path: pa.feather.write_feather(pa.Table.from_pylist(rows), str(path)),
}
LABELS: dict[str, tuple[Callable[[float, float], object], list[Any]]] = {
    "two texts": (lambda a, _: "spam" if a > 0 else "hám", ["hám", "spam"]),
    "three texts": (lambda a, b: "cat" if a > 0.5 else "dog" if b > 0 else "bïrd", ["bïrd", "cat", "dog"]),
    "booleans": (lambda a, _: a > 0, [False, True]),
    "yes and no": (lambda a, _: "yes" if a > 0 else "no", ["no", "yes"]),
}


def run(*args: object) -> int:
    return main([str(arg) for arg in args])


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_format(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label, classes = LABELS[kind]
    rows = records(label)
    saved, predicted = {}, {}
    for format, write in WRITE.items():
        data, model = tmp_path / f"rows.{format}", tmp_path / f"{format}.skn"
        write(rows, data)
        assert run("train", data, "--model", model, "--drop", "id") == 0
        said = capsys.readouterr().err.splitlines()[0]
        assert all(repr(name) in said for name in classes), said
        saved[format] = model.read_bytes()
        assert run("predict", tmp_path / "csv.skn", data, "--drop", "id") == 0
        predicted[format] = capsys.readouterr().out.splitlines()
        assert open_model(model).classes == classes
        assert run("test", model, data, "--json", "--quiet", "--drop", "id") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["error"] < 0.15
        assert told["classes"] == classes
    assert set(saved.values()) == {saved["csv"]}
    names = [{True: "true", False: "false"}.get(row["label"], row["label"]) for row in rows]
    for format, lines in predicted.items():
        assert lines == predicted["csv"], format
        assert np.mean([line == name for line, name in zip(lines, names, strict=True)]) > 0.85


def test_predictions_as_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label, classes = LABELS["three texts"]
    data, model = tmp_path / "rows.csv", tmp_path / "m.skn"
    rows = records(label)
    as_csv(rows, data)
    assert run("train", data, "--model", model, "--tag", "id", "--quiet") == 0
    assert run("predict", model, data, "--probabilities", "--output", "csv") == 0
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(table[0]) == ["tag", "prediction", *classes]
    assert [row["tag"] for row in table] == [row["id"] for row in rows]
    for row in table:
        assert sum(float(row[name]) for name in classes) == pytest.approx(1.0)
        assert float(row[row["prediction"]]) == max(float(row[name]) for name in classes)
    assert run("predict", model, data, "--probabilities", "--output", "jsonl") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prediction"] for line in lines] == [row["prediction"] for row in table]
    assert list(lines[0]["probabilities"]) == classes
    assert run("predict", model, data, "--output", tmp_path / "out.jsonl", "--quiet") == 0
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0]) == {
        "tag": "r0",
        "prediction": lines[0]["prediction"],
    }
    assert run("predict", model, data, "--probabilities") == 0
    first = capsys.readouterr().out.splitlines()[0].split()
    assert [float(cell) for cell in first[:3]] == [float(table[0][name]) for name in classes]
    assert first[3] == "r0"
    assert run("predict", model, data, "--probabilities", "--raw") == 2
    assert "--raw and --probabilities cannot be combined" in capsys.readouterr().err


def test_a_model_of_numbers_has_no_probabilities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.csv", tmp_path / "m.skn"
    as_csv(records(lambda a, b: a + b), data)
    assert run("train", data, "--model", model, "--drop", "id", "--quiet") == 0
    assert run("predict", model, data, "--probabilities") == 2
    assert "predicts a number" in capsys.readouterr().err
    assert run("predict", model, data, "--output", "csv") == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "prediction"
    float(first)


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_a_label_that_was_never_seen(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / f"rows.{format}", tmp_path / "m.skn"
    rows = records(LABELS["two texts"][0])
    WRITE[format](rows, data)
    assert run("train", data, "--model", model, "--drop", "id", "--quiet") == 0
    WRITE[format]([*rows, {**rows[0], "label": "eggs"}], data)
    assert run("train", data, "--resume", model, "--drop", "id", "--quiet") == 1
    said = capsys.readouterr().err
    assert "expected one of the classes hám, spam" in said
    assert "'eggs'" in said
    assert "301" in said or "302" in said
    assert run("train", data, "--resume", model, "--drop", "id", "--on-error", "skip") == 0
    assert "1 row skipped" in capsys.readouterr().err
    assert run("predict", model, data, "--drop", "id") == 0  # which does not look at labels
    assert len(capsys.readouterr().out.splitlines()) == 301


def test_options_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers, texts, model = tmp_path / "n.csv", tmp_path / "t.csv", tmp_path / "m.skn"
    as_csv(records(lambda a, _: 8 if a > 0 else 3), numbers)
    as_csv(records(LABELS["three texts"][0]), texts)

    def trained(data: Path, *options: object) -> Model:
        assert run("train", data, "--drop", "id", "--model", model, *options) == 0
        return open_model(model)

    assert trained(numbers).target.kind == "numbers"
    assert "hint: all labels are 3 or 8" in capsys.readouterr().err
    assert trained(numbers, "--regression").target.kind == "numbers"
    assert "hint" not in capsys.readouterr().err
    assert trained(numbers, "--classes", "3,8").classes == [3, 8]
    assert trained(numbers, "--classes", "all").classes == [3, 8]
    assert trained(texts, "--classes", "dog,cat,bïrd,cow").classes == ["bïrd", "cat", "cow", "dog"]
    assert trained(texts, "--multiclass", 3).classes == ["bïrd", "cat", "dog"]
    assert trained(texts, "--positive", "cat").target.positive == "cat"
    assert "label 'cat' as +1, others as -1" in capsys.readouterr().err
    assert run("test", model, texts, "--json", "--drop", "id") == 0
    assert json.loads(capsys.readouterr().out)["error"] < 0.1
    for options, message in (
        (["--regression"], "expected a number as the label, got"),
        (["--multiclass", "4"], "--multiclass 4 does not agree with the labels, of which there are 3"),
        (["--classes", "cat"], "must be two different labels or more"),
        (["--classes", "cat,dog"], "expected one of the classes cat, dog as the label, got"),
        (["--regression", "--classes", "all"], "--regression cannot be combined"),
        (["--positive", "cat", "--classes", "all"], "--positive does not apply"),
        (["--loss", "poisson", "--positive", "cat"], "poisson loss needs"),
    ):
        assert run("train", texts, "--drop", "id", *options) in (1, 2), options
        assert message in capsys.readouterr().err, options
    assert run("train", numbers, "--resume", model, "--classes", "3,8", "--drop", "id") == 2
    assert "--classes 3,8 does not agree with" in capsys.readouterr().err


def test_numbers_of_formats_without_columns_may_be_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = tmp_path / "rows.vw", tmp_path / "m.skn"
    rows = records(lambda a, _: 8 if a > 0 else 3)
    data.write_text("".join(f"{row['label']} | a:{row['a']} b:{row['b']}\n" for row in rows))
    assert run("train", data, "--classes", "all", "--model", model, "--quiet") == 0
    assert run("predict", model, data) == 0
    lines = capsys.readouterr().out.split()
    assert set(lines) == {"3", "8"}
    assert np.mean([line == str(row["label"]) for line, row in zip(lines, rows, strict=True)]) > 0.9
    assert run("train", data, "--positive", "spam") == 2
    assert "whose labels are numbers" in capsys.readouterr().err


def test_a_pipe_needs_the_names(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    as_csv(records(LABELS["two texts"][0]), data)
    text = data.read_bytes()
    ended = skn("train", "-", "--format", "csv", "--drop", "id", stdin=text)
    assert ended.returncode == 1
    assert "expected a number as the label" in ended.stderr.decode()
    assert "--classes" in ended.stderr.decode()
    ended = skn("train", "-", "--format", "csv", "--drop", "id", "--classes", "spam,hám", stdin=text)
    assert ended.returncode == 0, ended.stderr


def test_bench_compares_on_two_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two, three = tmp_path / "two.csv", tmp_path / "three.csv"
    as_csv(records(LABELS["two texts"][0]), two)
    as_csv(records(LABELS["three texts"][0]), three)
    options = ["--learners", "bank", "--drop", "id", "--json", "--quiet"]
    for command in ([two], [three, "--positive", "cat"]):
        assert run("bench", *command, *options) == 0
        (learner,) = json.loads(capsys.readouterr().out)["learners"]
        assert learner["error_rate"] < 0.1
    assert run("bench", three, *options) == 2
    assert "has 3 different labels" in capsys.readouterr().err


def test_in_python() -> None:
    rows = records(LABELS["three texts"][0])
    model = Model(target=Classes(names=["bïrd", "cat", "dog"]), learner=_three_classes())
    model.learn(rows)
    assert np.mean(model.predict(rows) == np.array([row["label"] for row in rows])) > 0.85
    assert model.test(pa.Table.from_pylist(rows))["error"] < 0.15
    binary = Model(target=Signs(names=[False, True]))
    frame = pa.Table.from_pylist(records(LABELS["booleans"][0])).to_pandas()
    binary.learn(frame)
    assert binary.test(frame)["error"] < 0.1
    with pytest.raises(
        ValueError, match="record 1: expected one of the classes false, true for 'label', got 'x'"
    ):
        binary.learn({"label": "x", "a": 1})


def _three_classes() -> Any:
    from sketchnewton import NewtonBank
    from sketchnewton.learners import OneVsAll

    return OneVsAll(NewtonBank, 3)


def test_the_output_says_what_labels_were_taken_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "d.csv"
    data.write_text("x,label\n" + "".join(f"{n},{n % 3}\n" for n in range(9)))
    for options, said in {
        (): "columns: 1 number (x); labels as numbers\n",
        ("--regression",): "columns: 1 number (x); labels as numbers\n",
        ("--classes", "all"): "columns: 1 number (x)\n",
    }.items():
        assert main(["train", str(data), *options]) == 0
        out, err = capsys.readouterr()
        assert said in out + err


@pytest.mark.parametrize("name", ["places.csv", "places.tsv"])
def test_labels_that_are_not_utf_8(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / name
    data.write_bytes(
        "label,x\ncafé,1\nbar,2\n".replace(",", "\t" if "tsv" in name else ",").encode("latin-1")
    )
    told = r"expected UTF-8, got the label 'caf\xe9': iconv -f LATIN1 -t UTF-8 may turn one into the other"
    assert main(["train", str(data)]) == 1
    assert capsys.readouterr().err == f"skn: {data}: {told}\n"
    with pytest.raises(ValueError, match=re.escape(told)):
        Model().learn(data)


def test_true_and_false_are_spelled_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the table of progress as in predictions."""
    data = tmp_path / "d.csv"
    data.write_text("label,x\nTrue,1\nFalse,2\n")
    assert main(["train", str(data), "--model", str(tmp_path / "m.skn")]) == 0
    shown = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [line[4] for line in shown if line[0] in "12" and "rows" not in line] == ["true", "false"]
    assert main(["predict", str(tmp_path / "m.skn"), str(data)]) == 0
    assert set(capsys.readouterr().out.split()) <= {"true", "false"}


def test_tables_of_predictions_have_the_very_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program looks up what was predicted among the columns; people get lines without breaks."""
    names = ["a,b", "line\nbreak", "👩\u200d👧"]
    data, model = tmp_path / "a.csv", str(tmp_path / "m.skn")
    with open(data, "w", newline="") as file:
        csv.writer(file).writerows([["label", "x"], *([names[k % 3], k % 3] for k in range(30))])
    assert main(["train", str(data), "--model", model, "--quiet"]) == 0
    assert main(["predict", model, str(data), "--probabilities", "--output", "jsonl"]) == 0
    for line in map(json.loads, capsys.readouterr().out.splitlines()):
        assert list(line["probabilities"]) == names
        assert line["probabilities"][line["prediction"]] == max(line["probabilities"].values())
    assert main(["predict", model, str(data), "--probabilities", "--output", "csv"]) == 0
    table = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert table[0] == ["prediction", *names]
    assert {row[0] for row in table[1:]} == set(names)
    assert main(["predict", model, str(data)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 30


def test_classes_that_are_long_numbers_keep_their_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = tmp_path / "a.csv", str(tmp_path / "m.skn")
    names = ("0.12345678901234", "7.5")
    data.write_text("label,x\n" + "".join(f"{names[k % 2]},{k % 2}\n" for k in range(20)))
    assert main(["train", str(data), "--classes", "all", "--model", model, "--quiet"]) == 0
    for output in ("csv", "jsonl", "-"):
        assert main(["predict", model, str(data), "--output", output]) == 0
        assert "0.12345678901234" in capsys.readouterr().out, output
