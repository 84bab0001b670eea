"""Kinds of columns: how they are found, what overrides them, what does not fit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sketchnewton.cli.main import main
from sketchnewton.features.kinds import category, features_of, kind_of
from sketchnewton.streams import Columns, open_stream, read_records
from tests.streams.format_support import drain, hashed


def kinds_of(path: Path, **how: object) -> dict[str, str]:
    reader = open_stream(path, **how)  # type: ignore[arg-type]
    list(reader)
    return dict(reader.kinds)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ("1 2.5 -3e5 NaN NA", "number"),
        ("yes No TRUE false NA", "boolean"),
        ("yes 0 1 no", "boolean"),
        ("0 1 1", "number"),
        ("yes 2", "category"),
        ("00133 00134", "category"),
        ("0 0.5 007", "category"),
        ("2024-01-31 2024-02-01", "category"),
        ("Rome 3", "category"),
        ("NA None null", None),
    ],
)
def test_kinds_are_found_in_the_first_rows(cells: str, kind: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,c\n" + "".join(f"1,{cell}\n" for cell in cells.split()))
    assert kinds_of(path) == ({} if kind is None else {"c": kind})
    assert kinds_of(path, batch_bytes=1) == kinds_of(path)


@pytest.mark.parametrize("first", ["5", "yes", "x"])
def test_a_column_that_begins_with_nothing(first: str, tmp_path: Path) -> None:
    """More than the rows that are looked at: then the first value decides, however the text is cut."""
    path = tmp_path / "late.csv"
    path.write_text("label,c\n" + "1,NA\n" * 1500 + f"1,{first}\n")
    expected = {"c": kind_of([first.encode()])}
    assert kinds_of(path) == kinds_of(path, batch_bytes=100) == expected
    rows, error = drain(path)
    assert error == ""
    assert rows[0][4] == hashed("c=")
    with open(path, "a") as file:
        file.write("1,other\n")
    error = drain(path)[1]
    assert (f"{path}:1503:3: expected" in error) == (first != "x")


def test_rows_that_are_skipped_do_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,a,b\n1,2\n1,3,x\n1,4,5\n")
    reader = open_stream(path, on_error="skip")
    assert sum(map(len, reader)) == 2
    assert reader.kinds == {"a": "number", "b": "category"}


def test_options_override(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,zip,ok,note,day\n1,133,1,Good food,2024-01-31T12:30\n1,?,0,,\n")
    columns = Columns(categorical=("zip",), boolean=("ok",), text=("note:2",), dates=("day",), missing=("?",))
    rows, error = drain(path, columns=columns)
    assert error == ""
    parts = ["day.month=1", "day.day=31", "day.weekday=wed", "day.hour=12"]
    years = (8796 + 12.5 / 24) / 365.2425
    words = ["note=good", "note=food", "note=good food"]
    assert rows[0][4] == pytest.approx(hashed("zip=133", "ok", *words, *parts, values={"day": years}))
    assert rows[1][4] == hashed("zip=", "note=", "day=")
    with pytest.raises(ValueError, match="column 'zip' cannot be both category and number"):
        Columns(categorical=("zip",), numeric=("zip",)).chosen()
    with pytest.raises(ValueError, match="must be a column, or column:N"):
        Columns(text=("note:99",)).chosen()


def test_one_name_for_a_category() -> None:
    same = {
        b"7": [b"7", b"7.0"],
        b"true": [b"true", b"True", b"TRUE"],
        b"2024-01-31": [b"2024-01-31", b"2024-01-31 00:00", b"2024-01-31T00:00:00.000"],
        b"2024-01-31T12:30:00": [b"2024-01-31 12:30", b"2024-01-31T12:30:00.000000"],
        b"2024-01-31T10:30:00Z": [
            b"2024-01-31T12:30+02:00",
            b"2024-01-31 10:30:00Z",
            b"2024-01-31T05:30-0500",
        ],
        b"007": [b"007"],
        b"1.50": [b"1.50"],
        b"2024-13-31 12:30": [b"2024-13-31 12:30"],
    }
    for name, texts in same.items():
        assert {category(text) for text in texts} == {name}
        assert {tuple(features_of("category", text)) for text in texts} == {((b"=" + name, 1.0),)}


def test_values_that_do_not_fit_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "a.csv", tmp_path / "m.skn"
    path.write_text("label,x,ok\n" + "1,2,yes\n-1,3,no\n" * 600 + "1,oops,yes\n1,inf,maybe\n")
    assert main(["train", str(path), "--quiet"]) == 1
    assert f"{path}:1202:3: expected a number in column 'x', got 'oops'" in capsys.readouterr().err
    for _ in range(2):  # parsed, and from the cache
        command = ["train", str(path), "--on-error", "skip", "--model", str(model), "--passes", "2"]
        assert main(command) == 0
        said = capsys.readouterr().err
        assert f"3 cells taken as missing; the first: {path}:1202:3: expected a number" in said
        assert "columns: 1 number (x), 1 boolean (ok)" in said
    assert main(["inspect", str(model)]) == 0
    assert "1 number (x), 1 boolean (ok)" in capsys.readouterr().out
    path.write_text("label,x,ok\n1,2,yes\n")
    assert main(["train", str(path), "--resume", str(model), "--categorical", "x"]) == 2
    said = capsys.readouterr().err
    assert "column 'x' cannot be category: the model learned it as number" in said


@pytest.mark.parametrize(
    "served",
    [{"x": "2.5", "ok": "yes", "c": 7}, {"x": 2.5, "ok": True, "c": "7"}, {"x": 2.5, "ok": 1, "c": 7.0}],
)
def test_values_of_other_types_are_served(served: dict[str, object]) -> None:
    """A model that was trained on one table knows what the values of another are."""
    columns = Columns().with_kinds({"x": "number", "ok": "boolean", "c": "category"})
    (expected,) = read_records({"x": 2.5, "ok": True, "c": "7"}, columns=columns)
    for records in (served, pa.Table.from_pylist([served])):
        (batch,) = read_records(records, columns=columns)
        assert batch.indices.tolist() == expected.indices.tolist()
        assert batch.data.tolist() == expected.data.tolist()


@pytest.mark.parametrize(
    "damaged",
    [
        {"kinds": [["a"]]},
        {"kinds": [["a", "nothing"]]},
        {"kinds": [["a", "text:1000000"]]},
        {"kinds": [[1, "number"]]},
        {"categorical": "abc"},
        {"missing": [1]},
        {"text": ["a:1000"]},
    ],
    ids=repr,
)
def test_what_no_model_file_may_say(damaged: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"damaged|invalid"):
        Columns.from_dict(damaged)


def test_texts_and_booleans_know_the_one_form_of_a_cell() -> None:
    """As tables of numbers, dates and times have it, and texts of them."""
    assert features_of("text", b"1.0") == features_of("text", b"1") == [(b"=1", 1.0)]
    assert features_of("text", b"2024-01-31 12:30:00.000") == features_of("text", b"2024-01-31T12:30")
    assert features_of("boolean", b"-0.0") == features_of("boolean", b"0") == [(b"", 0.0)]
    assert category(b"01:02:03.000040") == category(b"01:02:03.00004") == b"01:02:03.00004"
    assert category(b"01:02:03.000") == b"01:02:03"
    assert category(b"01:02:3x.000") == b"01:02:3x.000"
