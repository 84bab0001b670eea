"""`skn train` learns what the Python interface learns, tells how well, and continues where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import sketchnewton
from sketchnewton import _native
from sketchnewton.cli.main import main
from sketchnewton.core.checks import check_finite
from sketchnewton.streams import read_svmlight
from tests.cli.support import skn, svmlight_lines, trained, write_rows

LEARNERS = {
    "default": [],
    "oja": ["--sketch", "oja"],
    "fd": ["--sketch", "fd", "--sketch-size", "4"],
    "rfd": ["--sketch", "rfd", "--curvature-weight", "1/t"],
    "pfd": ["--sketch", "pfd", "--beta", "0.5", "--diagonal"],
    "rp": ["--sketch", "rp", "--seed", "5"],
    "gradient": ["--sketch", "none"],
    "adagrad": ["--learner", "adagrad"],
    "full": ["--learner", "full"],
    "invariant": ["--learner", "invariant", "--curvature-weight", "sqrt(d/(C^2 L^2 t))"],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


def summary(capsys: pytest.CaptureFixture[str], *args: object) -> dict[str, object]:
    assert main(["train", *map(str, args), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_the_command_learns_what_the_learner_learns(data: Path, tmp_path: Path) -> None:
    assert (
        main(
            [
                "train",
                str(data),
                "--model",
                str(tmp_path / "m.skn"),
                "--sketch",
                "oja",
                "--alpha",
                "2",
                "--quiet",
            ]
        )
        == 0
    )
    expected = sketchnewton.SketchedNewton(alpha=2.0, intercept=True)
    for batch in read_svmlight(data):
        expected.learn(batch, batch.labels)
    learned = trained(tmp_path / "m.skn")
    np.testing.assert_array_equal(learned.weights, expected.weights)
    assert learned.intercept_ == expected.intercept_ != 0.0
    assert learned.rows_seen == 400


@pytest.mark.parametrize("options", LEARNERS.values(), ids=LEARNERS.keys())
def test_two_halves_give_the_same_file_as_the_whole(options: list[str], tmp_path: Path) -> None:
    lines = svmlight_lines(500)
    for name, part in {"whole": lines, "first": lines[:237], "second": lines[237:]}.items():
        (tmp_path / name).write_text("".join(part))
    whole, model = tmp_path / "whole.skn", tmp_path / "halves.skn"
    assert main(["train", str(tmp_path / "whole"), "--model", str(whole), "--quiet", *options]) == 0
    assert main(["train", str(tmp_path / "first"), "--model", str(model), "--quiet", *options]) == 0
    half = model.read_bytes()
    assert (
        main(["train", str(tmp_path / "second"), "--resume", str(model), "--model", str(model), "--quiet"])
        == 0
    )
    assert model.read_bytes() == whole.read_bytes() != half


def test_resuming_from_stdin(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    assert skn("train", "-", "--model", model, stdin=data.read_bytes()).returncode == 0
    again = skn("train", "-", "--resume", model, "--model", model, stdin=data.read_bytes())
    assert again.returncode == 0
    assert trained(model).rows_seen == 800


def test_options_that_agree_with_the_resumed_model(data: Path, tmp_path: Path) -> None:
    model = str(tmp_path / "m.skn")
    options = ["--learner", "newton", "--alpha", "2", "--loss", "huber", "--clip", "3", "--oja-rate", "1,0.5"]
    options += ["--sketch-size", "2"]
    assert main(["train", str(data), "--model", model, "--quiet", *options]) == 0
    assert main(["train", str(data), "--resume", model, "--quiet", *options, "--loss", "huber:1.0"]) == 0


@pytest.mark.parametrize(
    ("option", "value", "held"),
    [
        ("--alpha", "3", "alpha=2"),
        ("--loss", "logistic", "loss=squared"),
        ("--clip", "none", "clip=1"),
        ("--seed", "5", "random_state=0"),
        ("--learner", "adagrad", "SketchedNewton"),
    ],
)
def test_options_that_disagree_with_the_resumed_model(
    option: str, value: str, held: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = data.with_name("m.skn")
    assert (
        main(["train", str(data), "--model", str(model), "--sketch", "oja", "--alpha", "2", "--quiet"]) == 0
    )
    assert main(["train", str(data), "--resume", str(model), option, value]) == 2
    message = capsys.readouterr().err
    for part in (option, value, held, str(model)):
        assert part in message


def test_the_summary_counts_and_scores(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = write_rows(tmp_path / "test.svm", rows=100, seed=1)
    told = summary(
        capsys, data, "--test", test, "--predictions", tmp_path / "p", "--model", tmp_path / "m.skn"
    )
    predictions = np.loadtxt(tmp_path / "p")
    labels = np.concatenate([batch.labels for batch in read_svmlight(data)])
    assert told["rows"] == len(predictions) == 400
    assert told["progressive_loss"] == pytest.approx(np.mean((predictions - labels) ** 2), rel=1e-6)
    assert told["error_rate"] == pytest.approx(np.mean((predictions >= 0) != (labels > 0)))

    learner = trained(tmp_path / "m.skn")
    (batch,) = read_svmlight(test)
    predicted = learner.predict(batch)
    assert learner.rows_seen == 400
    assert told["test_rows"] == 100
    assert told["test_loss"] == pytest.approx(np.mean((predicted - batch.labels) ** 2))
    assert told["test_error_rate"] == pytest.approx(np.mean((predicted >= 0) != (batch.labels > 0)))
    assert told["model"] == str(tmp_path / "m.skn")
    assert told["parameters"]["intercept"] is True  # type: ignore[index]


def test_the_table_doubles_and_is_aligned(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data)]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    start = next(at for at, line in enumerate(lines) if "examples" in line)
    table = lines[start : start + 11]
    assert [line.split()[0] for line in table[1:]] == [
        "1",
        "2",
        "4",
        "8",
        "16",
        "32",
        "64",
        "128",
        "256",
        "400",
    ]
    assert {len(line) for line in table} == {len(table[0])}
    assert out == ""
    assert "\r" not in err  # no progress bar where there is no terminal


def test_the_table_names_the_leading_expert(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of the time of the line, though the rows come in one batch."""
    assert main(["train", str(data)]) == 0
    lines = capsys.readouterr().err.splitlines()
    start = next(at for at, line in enumerate(lines) if "examples" in line)
    assert lines[start].endswith("leading")
    (batch,) = read_svmlight(data)
    X, y = csr_array((batch.data, batch.indices, batch.indptr)), batch.labels
    for line in lines[start + 1 : start + 11]:
        learner = sketchnewton.NewtonBank()
        rows = int(line.split()[0])
        learner.learn(X[:rows], y[:rows])
        assert line.endswith(f" {learner.leading_expert}")
    assert main(["train", str(data), "--learner", "adagrad"]) == 0
    assert "leading" not in capsys.readouterr().err


def test_quiet_is_quiet(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--quiet", "--test", str(data), "--clip", "0.5"]) == 0
    assert capsys.readouterr() == ("", "")


def test_one_label_against_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signs = write_rows(tmp_path / "signs")
    classes = write_rows(tmp_path / "classes", labels=(7, 3))
    expected = summary(capsys, signs, "--loss", "logistic", "--test", signs)
    told = summary(capsys, classes, "--loss", "logistic", "--test", classes, "--positive", "3")
    for fact in ("progressive_loss", "error_rate", "test_loss", "test_error_rate"):
        assert told[fact] == expected[fact] is not None


def test_wrong_labels_for_the_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "zeros.svm"
    data.write_text("1 1:1\n1 2:1\n0 1:1\n")
    assert main(["train", str(data), "--loss", "logistic"]) == 1
    message = capsys.readouterr().err
    assert "row 3" in message
    assert "--positive" in message


def test_no_error_rate_where_labels_are_not_signs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "levels", labels=(0, 1))
    assert summary(capsys, data)["error_rate"] is None


def test_labels_beyond_the_clip_are_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "prices.svm"
    data.write_text("1 1:1\n-4.2 1:2\n3 2:1\n")
    assert main(["train", str(data), "--passes", "2", "--learner", "newton"]) == 0
    assert (
        capsys.readouterr().err.count(
            "labels reach 4.2, but predictions are clipped to ±1: consider --clip 4.2"
        )
        == 1
    )
    assert main(["train", str(data), "--clip", "4.2"]) == 0
    assert "labels reach" not in capsys.readouterr().err


def test_passes_learn_again_but_score_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = summary(capsys, data)
    told = summary(
        capsys, data, "--passes", "3", "--predictions", tmp_path / "p", "--model", tmp_path / "m.skn"
    )
    assert told["rows"] == trained(tmp_path / "m.skn").rows_seen == 1200
    assert told["progressive_loss"] == once["progressive_loss"]
    assert told["last_pass_loss"] < told["progressive_loss"]  # type: ignore[operator]
    assert len((tmp_path / "p").read_text().splitlines()) == 400


def test_predictions_on_stdout(data: Path) -> None:
    run = skn("train", data, "--predictions", "-")
    assert run.returncode == 0
    assert len([float(line) for line in run.stdout.splitlines()]) == 400


def test_learner_options_reach_the_learner(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--learner",
        "newton",
        "--sketch-size",
        "3",
        "--curvature-weight",
        "0.5",
        "--clip",
        "none",
        "--diagonal",
        "--no-intercept",
        "--oja-rate",
        "0.5",
        "--block",
        "4",
    ]
    told = summary(capsys, data, *options, "--dtype", "float64", "--seed", "9", "--loss", "quantile:0.9")
    expected = {
        "sketch_size": 3,
        "curvature_weight": 0.5,
        "clip": None,
        "diagonal": True,
        "intercept": False,
        "oja_rate": 0.5,
        "block": 4,
        "dtype": "float64",
        "random_state": 9,
        "loss": "quantile:0.9",
    }
    assert expected.items() <= told["parameters"].items()  # type: ignore[attr-defined]


@pytest.mark.parametrize("weight", ["0.5", "1/t", "1/sqrt(t)"])
def test_the_curvature_weight_is_a_number_or_a_schedule(
    weight: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = summary(capsys, data, "--learner", "newton", "--curvature-weight", weight)
    assert str(told["parameters"]["curvature_weight"]) == weight  # type: ignore[index]


def test_the_full_matrix_has_the_default_alpha_of_its_class(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = summary(capsys, data, "--learner", "full")
    assert told["parameters"] == sketchnewton.FullNewton(intercept=True).params


def test_counts_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "one.svm"
    data.write_text("1 1:1\n")
    assert main(["train", str(data), "--test", str(data), "--learner", "newton"]) == 0
    message = capsys.readouterr().err
    assert "1 row in" in message
    assert "1 feature," in message
    assert "on 1 row\n" in message


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--learner", "newton"], "a larger --alpha or a tighter --clip"),
        (["--learner", "full"], "a larger --alpha or a tighter --clip"),
        (["--learner", "invariant"], "a larger --curvature-weight or a tighter --clip"),
        (["--learner", "adagrad"], "a smaller --eta or a tighter --clip"),
    ],
)
def test_a_learner_that_diverges_is_not_saved(
    options: list[str],
    advice: str,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def learn_into(
        self: object, predictions: memoryview, rows: _native.Rows, labels: object, weights: object
    ) -> None:
        if len(rows) == 4:  # rows 5 to 8, which one line of the table reports
            np.asarray(predictions)[2] = np.nan
        check_finite(predictions)

    monkeypatch.setattr(sketchnewton.Learner, "learn_into", learn_into)
    model = data.with_name("m.skn")
    assert main(["train", str(data), "--model", str(model), *options]) == 1
    message = capsys.readouterr().err
    assert f"row 7 is not finite: try {advice}" in message
    assert f"{model} was not written" in message
    assert not model.exists()
