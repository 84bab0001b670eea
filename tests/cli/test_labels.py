"""Labels of two classes: how they are coded is remembered with the model, and hinted at where it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli.main import main
from sketchnewton.model import LabelWatch, open_model
from tests.cli.support import svmlight_lines, write_rows


def train(*args: object) -> int:
    return main(["train", *map(str, args)])


@pytest.fixture
def halves(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Two halves and the whole of a stream with the labels 3 and 8."""
    lines = svmlight_lines(400, labels=(3, 8))
    paths = (tmp_path / "first", tmp_path / "second", tmp_path / "whole")
    for path, part in zip(paths, (lines[:150], lines[150:], lines), strict=True):
        path.write_text("".join(part))
    return paths


def test_a_resumed_model_remembers_the_positive_label(
    halves: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, whole = halves
    model, expected = tmp_path / "m.skn", tmp_path / "whole.skn"
    assert train(whole, "--positive", 8, "--model", expected, "--quiet") == 0
    assert train(first, "--positive", 8, "--model", model, "--quiet") == 0
    assert train(second, "--resume", model, "--model", model, "--test", whole, "--json") == 0
    out, err = capsys.readouterr()
    assert "label 8 as +1, others as -1" in err.splitlines()[0]
    assert str(model) in err.splitlines()[0]
    told = json.loads(out)
    assert told["positive"] == 8
    assert told["test_error_rate"] < 0.2
    assert model.read_bytes() == expected.read_bytes()
    assert open_model(model).target.positive == 8.0


def test_the_same_positive_label_may_be_repeated(halves: tuple[Path, Path, Path], tmp_path: Path) -> None:
    first, second, _ = halves
    model = tmp_path / "m.skn"
    assert train(first, "--positive", 8, "--model", model, "--quiet") == 0
    assert train(second, "--resume", model, "--positive", 8.0, "--quiet") == 0


@pytest.mark.parametrize(
    ("before", "held"), [(["--positive", 8], "label 8 as +1"), ([], "labels as they are")]
)
def test_another_positive_label_is_refused(
    before: list[object],
    held: str,
    halves: tuple[Path, Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second, _ = halves
    model = tmp_path / "m.skn"
    assert train(first, *before, "--model", model, "--quiet") == 0
    assert train(second, "--resume", model, "--positive", 3, "--model", model) == 2
    message = capsys.readouterr().err
    for part in ("--positive 3", held, str(model)):
        assert part in message


def test_a_model_that_has_learned_nothing_takes_any_label(
    halves: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    model = tmp_path / "m.skn"
    sketchnewton.AdaGrad().save(model)
    assert train(halves[0], "--resume", model, "--positive", 3, "--model", model, "--quiet") == 0
    assert open_model(model).target.positive == 3.0


def test_inspect_shows_the_coding(
    halves: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.skn"
    assert train(halves[0], "--positive", 8, "--model", model, "--quiet") == 0
    assert main(["inspect", str(model)]) == 0
    assert "label 8 as +1, others as -1" in capsys.readouterr().out
    assert main(["inspect", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["positive"] == 8


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (2, 4), (-1, 0)])
def test_two_labels_that_are_not_signs_get_a_hint(
    labels: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.svm", labels=labels)
    assert train(data, "--passes", 2) == 0
    hint = f"all labels are {labels[0]} or {labels[1]}: if they are classes, --positive {labels[1]} makes"
    assert capsys.readouterr().err.count(hint) == 1
    for quiet in (["--quiet"], ["--positive", labels[1]], ["--loss", "huber"]):
        assert train(data, *quiet) == 0
        assert "hint" not in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["1 -1", "1 2 3", "5", "-1", "1 -1 0"])
def test_other_labels_get_none(labels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "rows.svm"
    data.write_text("".join(f"{label} 1:1\n" for label in labels.split()) * 3)
    assert train(data) == 0
    assert "hint" not in capsys.readouterr().err


def test_labels_in_later_batches_count() -> None:
    watch = LabelWatch()
    for labels in ([1.0, 1.0], [0.0, 1.0]):
        watch.see(np.array(labels))
    assert "0 or 1" in str(watch.two_classes())
    watch.see(np.array([1.0, 0.0, 2.0, 3.0]))
    assert watch.two_classes() is None


def test_a_positive_label_that_never_comes_is_reported(
    halves: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(halves[0], "--positive", 9) == 0
    assert "no row has the label 9" in capsys.readouterr().err
    assert train(halves[0], "--positive", 8) == 0
    assert "no row" not in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_losses_of_two_classes_point_to_the_option(
    loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.svm", labels=(0, 1))
    assert train(data, "--loss", loss) == 1
    assert "--positive" in capsys.readouterr().err
