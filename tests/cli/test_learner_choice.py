"""Which learner `skn train` takes: the one named, and no option changes it silently."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.cli.main import main
from tests.cli.support import trained, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


@pytest.mark.parametrize(
    "options",
    [
        ["--clip", "0.5"],
        ["--clip", "none"],
        ["--loss", "hinge"],
        ["--loss", "squared_hinge", "--clip", "0.7"],
        ["--loss", "huber"],
        ["--loss", "absolute"],
        ["--loss", "logistic", "--clip", "2", "--sketch-size", "3"],
        ["--no-intercept", "--dtype", "float64", "--seed", "3"],
    ],
)
def test_the_bank_stays(options: list[str], data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = data.with_name("m.skn")
    assert main(["train", str(data), "--model", str(model), *options]) == 0
    assert "NewtonBank" in capsys.readouterr().err
    assert type(trained(model)).__name__ == "NewtonBank"


def test_a_sketch_is_that_of_sketched_newton(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--sketch", "rfd", "--alpha", "2"]) == 0
    assert "SketchedNewton: sketch=rfd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "1"], "--alpha does not apply to the default learner, bank: --learner newton has it"),
        (["--diagonal"], "--diagonal does not apply to the default learner, bank: --learner newton has it"),
        (["--curvature-weight", "1/t"], "--learner newton has it"),
        (["--block", "4"], "--learner newton has it"),
        (["--eta", "1"], "--learner adagrad or --learner sketched-adagrad"),
        (
            ["--learner", "bank", "--alpha", "1"],
            "--alpha does not apply to --learner bank: --learner newton has it",
        ),
    ],
)
@pytest.mark.parametrize("classes", [[], ["--multiclass", "3"]])
def test_what_it_does_not_have(
    classes: list[str], options: list[str], words: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), *options, *classes]) == 2
    assert words in capsys.readouterr().err


def test_clip_bounds_predictions(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--quiet", "--predictions", "-", "--clip", "0.25"]) == 0
    predictions = np.array(capsys.readouterr().out.split(), float)
    assert abs(predictions).max() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("loss", ["squared", "hinge", "huber", "absolute"])
def test_link_of_a_loss_that_has_none(loss: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--loss", loss, "--link", "--predictions", "-"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"skn: --link does not apply to {loss} loss")
    assert "\n" not in said


def test_counts_are_predicted_as_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    rate = np.exp(X @ [0.6, -0.5, 0.4] + 1.3)
    y = rng.poisson(rate)
    data, model = tmp_path / "counts.svm", tmp_path / "m.skn"
    data.write_text(
        "".join(f"{n} 1:{a:.6g} 2:{b:.6g} 3:{c:.6g}\n" for n, (a, b, c) in zip(y, X, strict=True))
    )
    assert main(["train", str(data), "--loss", "poisson", "--model", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["loss"] == "poisson"
    assert main(["predict", str(model), str(data), "--link"]) == 0
    counts = np.array(capsys.readouterr().out.split(), float)
    assert np.mean(abs(counts - rate) / rate) < 0.05


def test_classes_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    rows = tmp_path / "rows.csv"
    lines = [f"{'abc'[x[:3].argmax()]},{','.join(map(str, x))}\n" for x in X]
    rows.write_text("label,w,x,y,z\n" + "".join(lines))
    model = tmp_path / "m.skn"
    options = ["--learner", "class-bank", "--model", str(model)]
    assert main(["train", str(rows), *options]) == 0
    learner = trained(model)
    assert (type(learner).__name__, learner.classes, learner.rows_seen) == ("ClassBank", 3, 300)
    assert main(["train", str(rows), "--resume", str(model), *options]) == 0
    assert trained(model).rows_seen == 600
    capsys.readouterr()
    assert main(["merge", str(model), str(model), "-o", str(tmp_path / "both.skn")]) != 0
    assert "cannot be merged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--learner class-bank needs several classes"),
        (["--multiclass", "3", "--loss", "squared"], "loss='squared' is invalid"),
        (["--multiclass", "3", "--clip", "1"], "--clip does not apply to --learner class-bank"),
    ],
)
def test_what_classes_at_once_cannot_be(
    options: list[str], message: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), "--learner", "class-bank", *options]) == 2
    assert message in capsys.readouterr().err
