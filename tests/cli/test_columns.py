"""Options on columns: where there are none, and where there are others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import sketchnewton
from sketchnewton import Model, NewtonBank
from sketchnewton.cli.main import main
from sketchnewton.streams import Columns, open_stream
from tests.cli.support import skn

TEXTS = {
    "svm": "1 1:0.5\n-1 2:1\n",
    "vw": "1 | a:0.5\n-1 | b\n",
    "csv": "label,price,a\n1,3,0.5\n-1,4,1\n",
    "jsonl": '{"label": 1, "price": 3, "a": 0.5}\n{"label": -1, "price": 4, "a": 1}\n',
}


def write(folder: Path, *kinds: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for kind in kinds:
        (folder / f"rows.{kind}").write_text(TEXTS[kind])
    return [str(folder / f"rows.{kind}") for kind in kinds]


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("skn: ")]
    return line


@pytest.mark.parametrize("kind", ["svm", "vw"])
@pytest.mark.parametrize("option", ["--label", "--weight", "--tag", "--drop", "--categorical"])
def test_they_are_refused_where_there_are_none(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data,) = write(tmp_path, kind)
    model = tmp_path / "m.skn"
    assert main(["train", data, "--model", str(model), option, "price"]) == 2
    name = "svmlight" if kind == "svm" else kind
    assert complaint(capsys) == f"skn: {option} does not apply to {data}: {name} has no columns"
    assert not model.exists()
    assert main(["train", data, "--model", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), data, f"{option}=price"]) == 2
    assert main(["convert", data, str(tmp_path / "rows.jsonl"), option, "price"]) == 2


def test_a_pipe_tells_its_format_later(tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    for threads in "12":
        options = ["--model", model, "--label", "price", "--quiet", "--threads", threads]
        ended = skn("train", "-", *options, stdin=TEXTS["vw"].encode())
        assert ended.returncode == 2
        expected = "skn: --label does not apply to <stdin>: vw has no columns"
        assert ended.stderr.decode() == f"{expected} ({model} was not written)\n"
    assert not model.exists()


def test_files_whose_names_tell_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path in paths:
        path.write_text(TEXTS["vw"])
    command = ["train", *map(str, paths), "--label", "price", "--quiet"]
    assert main(command) == 2
    assert complaint(capsys).endswith("and 1 more: vw has no columns")
    for path in paths:
        path.write_text(TEXTS["csv"])
    assert main(command) == 0


def test_they_apply_to_those_that_have_columns(tmp_path: Path) -> None:
    write(tmp_path / "mixed", "vw", "csv")
    command = ["train", str(tmp_path / "mixed"), "--drop", "price", "--model", str(tmp_path / "m.skn")]
    assert main([*command, "--quiet"]) == 0


def test_options_from_files_and_models_are_for_all_formats(tmp_path: Path) -> None:
    vw, csv = write(tmp_path, "vw", "csv")
    model, config = tmp_path / "m.skn", tmp_path / "options.toml"
    config.write_text('label = "price"\ndrop = ["label"]\nquiet = true\n')
    for data in (csv, vw):
        assert main(["train", data, "--config", str(config), "--model", str(model)]) == 0
    assert main(["train", csv, "--config", str(config), "--model", str(model), "--test", vw]) == 0
    assert main(["train", csv, "--label", "price", "--test", vw, "--quiet"]) == 0
    assert main(["train", vw, "--resume", str(model), "--model", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), vw]) == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_label_that_is_mistyped(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data,) = write(tmp_path, "csv" if kind == "parquet" else kind)
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow.csv")
        parquet = pytest.importorskip("pyarrow.parquet")
        table, data = arrow.read_csv(data), str(tmp_path / "rows.parquet")
        parquet.write_table(table, data)
    model = tmp_path / "m.skn"
    assert main(["train", data, "--label", "prize", "--model", str(model)]) == 1
    line = complaint(capsys)
    assert "'prize' (did you mean 'price'?)" in line
    assert "learned" not in line
    assert main(["train", data, "--label", "price", "--model", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), data, "--label", "prize"]) == 1
    assert "'prize' (did you mean 'price'?)" in complaint(capsys)


def test_a_label_that_is_remembered_may_be_missing(tmp_path: Path) -> None:
    csv, jsonl = write(tmp_path, "csv", "jsonl")
    model = tmp_path / "m.skn"
    assert main(["train", csv, "--label", "price", "--model", str(model), "--quiet"]) == 0
    Path(csv).write_text("label,a\n1,2\n")
    Path(jsonl).write_text(json.dumps({"label": 1, "a": 2}) + "\n")
    assert main(["predict", str(model), csv, jsonl]) == 0


def test_a_tag_of_two_lines_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "rows.csv"
    data.write_text('label,a,_tag\n1,2,"one\ntwo\r\n"\n-1,1,three\n1,3,\n')
    for _ in range(2):  # parsed, and from the cache
        assert main(["train", str(data), "--passes", "2", "--quiet", "--predictions", "-"]) == 0
        lines = capsys.readouterr().out.split("\n")
        assert [line.partition(" ")[2] for line in lines] == ["one\\ntwo\\r\\n", "three", "", ""]


def test_bits_and_exact_names_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data,) = write(tmp_path, "vw")
    model = tmp_path / "m.skn"
    options = ["--model", str(model), "--quiet"]
    assert main(["train", data, *options, "--exact-names", "--bits", "20"]) == 2
    assert "--bits cannot be combined with --exact-names" in complaint(capsys)
    assert not model.exists()
    assert main(["train", data, *options, "--exact-names"]) == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_dropped_label_is_no_label(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data,) = write(tmp_path, kind)
    assert main(["train", data, "--drop", "label"]) == 1
    assert "has no label" in complaint(capsys)
    assert main(["train", data, "--label", "price", "--drop", "price"]) == 2
    assert "column 'price' cannot be both the label and dropped" in complaint(capsys)
    assert main(["train", data, "--drop", "a", "--numeric", "a"]) == 2
    assert "column 'a' cannot be both number and dropped" in complaint(capsys)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("options", "named"),
    [([], "column 'price'"), (["--exact-names"], "feature 'price'"), (["--bits", "4"], "column 'price'")],
)
def test_a_value_that_is_too_large_is_named_by_its_column(
    kind: str, options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data,) = write(tmp_path, kind)
    Path(data).write_text(Path(data).read_text().replace("4", "4e31"))
    assert main(["train", data, *options]) == 1
    assert f"row 2 has the value 4e+31 for {named}, beyond ±1e+30" in complaint(capsys)


def test_a_dropped_column_has_no_role_in_any_row(tmp_path: Path) -> None:
    """JSON lines after the first, and records after the first lesson, are read by other code."""
    rows = [{"label": 5 + i, "_weight": 3.0, "_tag": "t", "y": float(i % 2), "a": 2.0 + i} for i in range(4)]
    names = list(rows[0])
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    columns = Columns(drop=("label", "_weight", "_tag"))
    for kind in ("d.jsonl", "d.csv"):
        (batch,) = open_stream(tmp_path / kind, columns=columns)
        assert batch.labels.tolist() == [0.0, 1.0, 0.0, 1.0]
        assert batch.weights is None or set(batch.weights) == {1.0}
        assert batch.tags is None or set(batch.tags) == {None}
        assert np.diff(batch.indptr).tolist() == [1, 1, 1, 1]
    model = Model(NewtonBank(), columns=Columns(drop=("label",)))
    model.learn([{"y": 1.0, "a": 2.0}, {"y": -1.0, "a": 3.0}])
    with pytest.raises(ValueError, match="has no label"):
        model.learn([{"label": 5.0, "a": 2.0}])


MODEL_TABLE = "label,age,city\n1,30,Rome\n-1,20,Oslo\n"
NONE_THERE = "none of the columns that the model knows is there: it knows age, city; there are Age, town"


def trained(folder: Path) -> str:
    (folder / "known.csv").write_text(MODEL_TABLE)
    model = str(folder / "m.skn")
    assert main(["train", str(folder / "known.csv"), "--model", model, "--quiet"]) == 0
    return model


@pytest.mark.parametrize("command", ["predict", "test"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_a_table_with_none_of_the_columns_is_refused(
    kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data, out = trained(tmp_path), tmp_path / f"other.{kind}", tmp_path / "out.txt"
    table = pa.table({"label": [1.0], "Age": [3.0], "town": ["Rome"]})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, data)
    elif kind == "arrow":
        pyarrow.feather.write_feather(table, data)
    else:
        text = "label,Age,town\n1,3,Rome\n"
        data.write_text(text if kind == "csv" else text.replace(",", "\t"))
    asked = ["--output", str(out)] if command == "predict" else []
    assert main([command, model, str(data), *asked]) == 1
    line = complaint(capsys)
    assert line.startswith(f"skn: {data}")
    assert line.endswith(NONE_THERE)
    assert not out.exists()


@pytest.mark.parametrize("command", ["predict", "test"])
def test_columns_that_are_missing_are_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = trained(tmp_path), tmp_path / "other.csv"
    data.write_text("label,age,town\n1,3,Rome\n")
    assert main([command, model, str(data)]) == 0
    warning = f"skn: warning: {data}: 1 column that the model knows is missing from the table: city"
    assert complaint(capsys) == warning
    assert main([command, model, str(data), "--quiet"]) == 0
    assert "warning" not in capsys.readouterr().err
    data.write_text("age,city\n3,Paris\n")  # a new category, and no label
    assert main(["predict", model, str(data)]) == 0
    assert capsys.readouterr().err == ""


def test_several_tables_lack_different_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, first, second = trained(tmp_path), tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("age\n3\n")
    second.write_text("city\nRome\n")
    assert main(["predict", model, str(first), str(second)]) == 0
    assert "2 columns that the model knows are missing from some of the tables: city, age" in complaint(
        capsys
    )


def test_a_test_file_is_checked_as_by_skn_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path)
    data, test, model = tmp_path / "known.csv", tmp_path / "test.csv", str(tmp_path / "n.skn")
    test.write_text("label,age\n1,30\n")
    assert main(["train", str(data), "--model", model, "--test", str(test)]) == 0
    assert "1 column that the model knows is missing from the table: city" in capsys.readouterr().err
    test.write_text("label,Age,town\n1,30,Rome\n")
    assert main(["train", str(data), "--model", model, "--test", str(test)]) == 1
    assert NONE_THERE in capsys.readouterr().err


def test_a_first_line_of_values_is_taken_for_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = trained(tmp_path), tmp_path / "other.csv"
    long = "x" * 70_000
    data.write_text(f'30,"Ro\tme",{long}\n')
    assert main(["predict", model, str(data)]) == 1
    names = f"there are 30, Ro\\tme, {'x' * 59}…"
    assert complaint(capsys).endswith(f"{names} (--no-header if the first line has no names)")


def test_objects_may_lack_any_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = trained(tmp_path), tmp_path / "other.jsonl"
    data.write_text('{"age": 3}\n{}\n{"colour": "red"}\n')
    assert main(["predict", model, str(data)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_converted_table_has_the_features_of_its_columns(tmp_path: Path) -> None:
    model, data = trained(tmp_path), tmp_path / "known.csv"
    expected = skn("predict", model, data).stdout
    for form in ("parquet", "svm"):
        assert main(["convert", str(data), str(tmp_path / f"sparse.{form}"), "--quiet"]) == 0
        found = skn("predict", model, tmp_path / f"sparse.{form}")
        assert (found.stdout, found.stderr) == (expected, b"")


def test_learning_may_continue_with_other_columns(tmp_path: Path) -> None:
    model, data = trained(tmp_path), tmp_path / "other.csv"
    data.write_text("label,Age,town\n1,3,Rome\n")
    assert main(["train", str(data), "--resume", model, "--model", model, "--quiet"]) == 0
    assert dict(load_columns(model).kinds) == {
        "age": "number",
        "city": "category",
        "Age": "number",
        "town": "category",
    }


def load_columns(model: str) -> Columns:
    loaded = sketchnewton.load(model)
    assert isinstance(loaded, Model)
    return loaded.columns


ROLES = [{"label": n % 3 - 1, "target": (-1) ** (n // 2), "x": 0.1 * n, "w": n + 1} for n in range(8)]


def write_roles(folder: Path) -> list[str]:
    """A table with two columns that may be the label."""
    lines = [",".join(ROLES[0]), *(",".join(map(str, row.values())) for row in ROLES)]
    (folder / "t.csv").write_text("".join(f"{line}\n" for line in lines))
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROLES))
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROLES), folder / "t.parquet")
    return [str(folder / f"t.{kind}") for kind in ("csv", "jsonl", "parquet")]


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        (["--label", "w", "--weight", "w"], "the label and the weight"),
        (["--label", "w", "--tag", "w"], "the label and the tag"),
        (["--weight", "w", "--tag", "w"], "the weight and the tag"),
    ],
)
def test_a_column_has_one_role(
    options: list[str], roles: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for data in write_roles(tmp_path):
        assert main(["train", data, *options]) == 2
        assert complaint(capsys) == f"skn: column 'w' cannot be both {roles}"
    columns = Columns(**dict(zip((option[2:] for option in options[::2]), options[1::2], strict=True)))
    for records in (ROLES, pa.Table.from_pylist(ROLES)):
        with pytest.raises(ValueError, match=f"cannot be both {roles}"):
            Model(columns=columns).learn(records)


def test_a_tag_is_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The usual name of a label that is said to be the tag: the next usual name is the label, in every format."""
    printed = []
    for data in write_roles(tmp_path):
        assert main(["train", data, "--tag", "label", "--quiet", "--predictions", "-"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].endswith(" 0\n")
    learned = Model(columns=Columns(tag="label")).learn(ROLES)
    assert [float(line.split()[0]) for line in printed[0].splitlines()] == pytest.approx(learned)


def test_the_label_beside_its_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels and weights do not matter to predictions: either may be the tag."""
    model = str(tmp_path / "m.skn")
    files = write_roles(tmp_path)
    assert main(["train", files[0], "--label", "target", "--weight", "w", "--model", model, "--quiet"]) == 0
    for column in ("target", "w"):
        for data in files:
            assert main(["predict", model, data]) == 0
            plain = capsys.readouterr().out.split()
            assert main(["predict", model, data, "--tag", column]) == 0
            told = capsys.readouterr()
            assert [line.split() for line in told.out.splitlines()] == [
                [line, str(row[column])] for line, row in zip(plain, ROLES, strict=True)
            ]
            assert not told.err


def test_what_the_model_learned_of_a_column_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m.skn")
    for data in write_roles(tmp_path):
        assert main(["train", data, "--label", "target", "--model", model, "--quiet"]) == 0
        for command in ("predict", "test"):
            assert main([command, model, data, "--categorical", "x"]) == 2
            assert "column 'x' cannot be category: the model learned it as number" in complaint(capsys)
            assert main([command, model, data, "--numeric", "x"]) == 0
            assert not capsys.readouterr().err
        assert main(["train", data, "--resume", model, "--categorical", "x"]) == 2
        assert "column 'x' cannot be category: the model learned it as number" in complaint(capsys)
        assert main(["train", data, "--resume", model, "--drop", "x,w"]) == 2
        assert "which was trained with none: leave them out" in complaint(capsys)
        assert main(["predict", model, data, "--tag", "x"]) == 0
        assert complaint(capsys).endswith("--tag x leaves out a column that the model knows as a feature")
        assert main(["test", model, data, "--by", "x"]) == 0
        assert not capsys.readouterr().err
        assert main(["test", model, data, "--by", "target"]) == 2
        assert complaint(capsys) == "skn: --by target does not apply to the label: give another column"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_advice_can_be_followed(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a model has learned a column, an option names its kind; afterwards none does, and none is named."""
    model, data = trained(tmp_path), tmp_path / f"bad.{kind}"
    if kind == "csv":
        data.write_text("label,age,city\n1,old,Rome\n")
    elif kind == "jsonl":
        data.write_text('{"label": 1, "age": "old", "city": "Rome"}\n')
    else:
        pyarrow.parquet.write_table(pa.table({"label": [1], "age": ["old"], "city": ["Rome"]}), data)
    for command in (["predict", model, str(data)], ["train", str(data), "--resume", model]):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "(the model has learned it as a number)" in said
        assert "--categorical" not in said
    assert main(["train", str(data), "--numeric", "age"]) == 1
    assert "(text in such a column: --categorical age)" in capsys.readouterr().err


def test_one_field_is_no_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "a.csv"
    data.write_text("# by hand\nlabel,x\n1,2\n")
    assert main(["train", str(data)]) == 1
    assert complaint(capsys).endswith("expected 1 field as in the header, got 2")


def test_an_archive_has_none_of_the_names_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = trained(tmp_path), tmp_path / "rows.npz"
    np.savez(data, X=np.ones((3, 2)), y=np.ones(3))
    for command in ("predict", "test"):
        assert main([command, model, str(data)]) == 1
        said = "it knows age, city; there are 0, 1 (an array has no names: give a table)"
        assert complaint(capsys).endswith(said)
    assert main(["train", str(data), "--model", model, "--quiet"]) == 0  # a model of numbers
    assert main(["predict", model, str(data)]) == 0
