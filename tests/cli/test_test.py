"""`skn test` scores as `Model.test` does, learns nothing, and splits by a column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli.main import main

CITIES = ("Rome", "Oslo", "Bonn, Rhine")


def write_table(path: Path, *, labels: str = "signs", rows: int = 600, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    lines = ["y,city,x,z"]
    for _ in range(rows):
        city, x, z = rng.integers(3), rng.normal(), rng.normal()
        score = x - 0.5 * z + city + 0.5 * rng.normal()
        label = {"signs": 1 if score > 1.0 else -1, "numbers": round(score, 3), "classes": city + 1}[labels]
        lines.append(f'{label},"{CITIES[city]}",{x:.4f},{z:.4f}')
    path.write_text("\n".join(lines) + "\n")
    return path


def trained(tmp_path: Path, labels: str, *options: str) -> tuple[Path, Path]:
    data, model = write_table(tmp_path / "train.csv", labels=labels), tmp_path / "m.skn"
    assert main(["train", str(data), "--label", "y", "--model", str(model), "--quiet", *options]) == 0
    return model, write_table(tmp_path / "test.csv", labels=labels, seed=1)


# Cities are a feature, and one of a product.
CASES = {
    "signs": ["--loss", "logistic", "--interactions", "city,x"],
    "numbers": [],
    "classes": ["--multiclass", "3"],
}


@pytest.mark.parametrize("labels", CASES)
def test_it_scores_as_the_model_does(labels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = trained(tmp_path, labels, *CASES[labels])
    before = model.read_bytes()
    assert main(["test", str(model), str(data), "--json", "--by", "city", "--quiet"]) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = sketchnewton.load(model).test(data)
    assert {name: facts[name] for name in expected} == expected
    assert model.read_bytes() == before
    assert [segment["value"] for segment in facts["by"]] != []
    assert {segment["value"] for segment in facts["by"]} == set(CITIES)
    assert sum(segment["rows"] for segment in facts["by"]) == 600
    kept = [line for line in data.read_text().splitlines() if "Bonn" in line or line.startswith("y,")]
    part = tmp_path / "part.csv"
    part.write_text("\n".join(kept) + "\n")
    alone = sketchnewton.load(model).test(part)
    bonn = next(segment for segment in facts["by"] if "Bonn" in segment["value"])
    for name, value in bonn.items():
        if name != "value" and value is not None:
            assert value == pytest.approx(alone[name], rel=1e-12, nan_ok=True), name
    if labels != "numbers":
        assert np.sum(facts["confusion"]) == 600
        wrong = 600 - np.trace(np.array(facts["confusion"]))
        assert wrong == pytest.approx(600 * facts["error"])


@pytest.mark.parametrize("labels", CASES)
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_page_and_picture(
    labels: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = trained(tmp_path, labels, *CASES[labels])
    picture = tmp_path / f"p{suffix}"
    assert main(["test", str(model), str(data), "--picture", str(picture)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("600 rows\n")
    assert ("confusion matrix" in page) == (labels != "numbers")
    assert ("calibration" in page) == (labels == "signs")
    assert ("RMSE" in page) == (labels == "numbers")
    assert picture.stat().st_size > 2000


def test_tags_of_vw_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.vw", tmp_path / "m.skn"
    data.write_text("".join(f"{1 - 2 * (i % 2)} 'day{i % 3}| a:{i % 5} b\n" for i in range(60)))
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    assert main(["test", str(model), str(data), "--by", "tag", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(segment["value"], segment["rows"]) for segment in facts["by"]] == [
        ("day0", 20),
        ("day1", 20),
        ("day2", 20),
    ]
    assert main(["test", str(model), str(data), "--by", "city"]) == 2
    assert "has no columns: use --by tag" in capsys.readouterr().err


def test_rows_without_labels_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = trained(tmp_path, "signs")
    bare = tmp_path / "bare.csv"
    bare.write_text("y,city,x,z\n,Rome,1,2\n")
    assert main(["test", str(model), str(bare)]) == 1
    assert "has no label" in capsys.readouterr().err
    bare.write_text("y,city,x,z\n")
    assert main(["test", str(model), str(bare)]) == 1
    assert capsys.readouterr().err.startswith(f"skn: {bare}:1:1: ")


def test_by_a_column_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = trained(tmp_path, "signs")
    assert main(["test", str(model), str(data), "--by", "town"]) != 0
    assert "town" in capsys.readouterr().err


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_by_the_label_that_nobody_named(
    on_error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be any of several columns, so that `y` as the column of segments left no label."""
    data, model = write_table(tmp_path / "a.csv", labels="signs"), tmp_path / "m.skn"
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    assert main(["test", str(model), str(data), "--by", "y", "--on-error", on_error]) == 2
    assert capsys.readouterr().err == "skn: --by y does not apply to the label: give another column\n"
    both = tmp_path / "both.csv"  # where another column is the label, y is like any other
    lines = data.read_text().splitlines()
    both.write_text(
        "\n".join(["label," + lines[0], *(line.split(",")[0] + "," + line for line in lines[1:])])
    )
    assert main(["test", str(model), str(both), "--by", "y", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["by"]) == 2
