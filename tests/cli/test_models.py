"""`skn predict` and `skn inspect` tell what a model says and what it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli.main import main
from sketchnewton.core import archive
from sketchnewton.learners.table import TableLearner
from sketchnewton.streams import read_svmlight
from tests.cli.support import SKN, skn, trained, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


@pytest.fixture
def model(data: Path) -> Path:
    path = data.with_name("m.skn")
    options = ["--sketch", "oja", "--loss", "logistic", "--clip", "8", "--quiet"]
    assert main(["train", str(data), "--model", str(path), *options]) == 0
    return path


@pytest.fixture
def predicted(data: Path, model: Path) -> np.ndarray:
    (batch,) = read_svmlight(data)
    return trained(model).predict(batch)


def test_predictions_are_those_of_the_model(
    data: Path, model: Path, predicted: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(data)]) == 0
    out, err = capsys.readouterr()
    np.testing.assert_allclose(np.array(out.split(), float), predicted, rtol=1e-8)
    assert err == ""


def test_predictions_to_a_file(data: Path, model: Path, predicted: np.ndarray) -> None:
    output = data.with_name("out")
    assert main(["predict", str(model), str(data), "--output", str(output), "--quiet"]) == 0
    np.testing.assert_allclose(np.loadtxt(output), predicted, rtol=1e-8)
    assert sorted(path.name for path in data.parent.iterdir()) == ["m.skn", "out", "rows.svm"]


def test_the_link_makes_probabilities(
    data: Path, model: Path, predicted: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(data), "--link"]) == 0
    np.testing.assert_allclose(
        np.array(capsys.readouterr().out.split(), float), 1 / (1 + np.exp(-predicted)), rtol=1e-7
    )


def test_predicting_stdin_and_features_never_seen(model: Path) -> None:
    run = skn("predict", model, "-", stdin=b"1 1:0.5\n1 1:0.5 999999:3\n")
    assert run.returncode == 0
    seen, unseen = run.stdout.split()
    assert seen == unseen


def test_a_slow_producer_is_answered_line_by_line(model: Path) -> None:
    """As `tail -f` is: the next line is sent when the answer to the one before it has been read."""
    with subprocess.Popen(
        [*SKN, "predict", str(model), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for row in (b"1 1:0.5\n", b"1 2:0.5\n", b"1 1:0.5\n"):
            process.stdin.write(row)
            process.stdin.flush()
            answers.append(float(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(60) == 0
    assert answers[0] == answers[2] != answers[1]


def test_inspect_shows_the_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = trained(model)
    assert main(["inspect", str(model)]) == 0
    page = capsys.readouterr().out
    for words in (
        "SketchedNewton",
        "logistic",
        "sketch_size",
        "rows seen      400",
        "spectrum",
        "largest weights",
    ):
        assert words in page
    heaviest = str(np.abs(learner.weights).argmax())
    after = page.partition("largest weights")[2].splitlines()
    assert after[1].split()[0] == heaviest


def test_inspect_as_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = trained(model)
    assert main(["inspect", str(model), "--json", "--top", "2"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows_seen"] == 400
    assert (facts["features"], facts["largest_index"]) == (5, 5)
    assert facts["alpha"] == learner.alpha_ > 0
    assert facts["intercept"] == learner.intercept_
    assert facts["parameters"] == learner.params
    assert facts["spectrum"] == learner.spectrum.tolist()
    order = np.argsort(-np.abs(learner.weights))[:2]
    assert facts["largest_weights"] == [{"feature": int(i), "weight": learner.weights[i]} for i in order]


def test_inspect_shows_a_bank(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = data.with_name("bank.skn")
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    learner = trained(model)
    assert main(["inspect", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["experts"] == dict(zip(learner.expert_names, learner.expert_shares.tolist(), strict=True))
    features, scales = learner.sorted_scales()
    assert facts["scales"]["quantiles"]["median"] == np.median(scales)
    assert facts["scales"]["smallest"][0] == {"feature": int(features[0]), "scale": scales[0]}
    assert facts["scales"]["largest"][0] == {"feature": int(features[-1]), "scale": scales[-1]}
    assert main(["inspect", str(model)]) == 0
    page = capsys.readouterr().out
    for words in ("expert weights", "scales of features", "median", "smallest", "largest"):
        assert words in page


@pytest.mark.parametrize("learner", ["bank", "newton", "adagrad"])
def test_inspect_needs_no_room_for_features_never_seen(
    learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dense(self: object) -> np.ndarray:
        raise MemoryError("a dense vector of all weights")

    for kind in (TableLearner, sketchnewton.SketchedNewton, sketchnewton.AdaGrad):
        monkeypatch.setattr(kind, "weights", property(dense))
    monkeypatch.setattr(sketchnewton.NewtonBank, "scales", property(dense))
    data, model = tmp_path / "rows.svm", tmp_path / "m.skn"
    data.write_text(f"1 7:1 {2**25 - 1}:-2\n")
    assert main(["train", str(data), "--model", str(model), "--quiet", "--learner", learner]) == 0
    assert main(["inspect", str(model)]) == 0
    assert "features seen  2, 2 with a weight, largest index 33554431" in capsys.readouterr().out


def test_alpha_in_force_is_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = data.with_name("m.skn")
    assert main(["train", str(data), "--model", str(model), "--json", "--sketch", "oja"]) == 0
    out, err = capsys.readouterr()
    alpha = trained(model).alpha_
    assert json.loads(out)["alpha"] == alpha > 0
    assert f"alpha {alpha:.4g}" in err
    assert main(["inspect", str(model)]) == 0
    assert f"chosen from the data ({alpha:g})" in capsys.readouterr().out
    assert main(["train", str(data), "--resume", str(model), "--alpha", "5"]) == 2
    assert f"was trained with alpha chosen from the data ({alpha:g})" in capsys.readouterr().err
    assert main(["train", str(data), "--resume", str(model)]) == 0
    assert f"alpha={alpha:g}" in capsys.readouterr().err.splitlines()[0]


def test_inspect_without_a_sketch(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = data.with_name("plain.skn")
    assert main(["train", str(data), "--model", str(model), "--learner", "adagrad", "--quiet"]) == 0
    assert main(["inspect", str(model)]) == 0
    assert "spectrum" not in capsys.readouterr().out


def test_inspect_shortens_a_long_spectrum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = sketchnewton.FullNewton()
    learner.learn(np.random.default_rng(0).standard_normal((60, 50)), np.ones(60))
    learner.save(tmp_path / "m.skn")
    assert main(["inspect", str(tmp_path / "m.skn")]) == 0
    assert "and 30 smaller ones" in capsys.readouterr().out


def test_inspect_a_model_that_has_learned_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketchnewton.SketchedNewton(clip=None).save(tmp_path / "fresh.skn")
    assert main(["inspect", str(tmp_path / "fresh.skn")]) == 0
    assert "rows seen      0" in capsys.readouterr().out


def test_a_model_of_an_unknown_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.skn"
    for name in ("Learner", "NoSuch", "annotations", "__name__", 3, None):
        archive.write(path, {"class": name, "parameters": {}}, {})
        with pytest.raises(archive.ModelFileError, match="unknown class"):
            sketchnewton.load(path)


def test_a_damaged_model_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_bytes(model.read_bytes()[:-5])
    assert main(["inspect", str(model)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"skn: {model}: damaged")


@pytest.mark.parametrize("weight", ["1e40", "1e300"])
@pytest.mark.parametrize("learner", ["bank", "newton", "adagrad"])
def test_no_weight_replaces_a_good_model_by_one_that_cannot_be_loaded(
    learner: str, weight: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, model = write_rows(tmp_path / "good.svm"), tmp_path / "m.skn"
    assert main(["train", str(good), "--learner", learner, "--model", str(model), "--quiet"]) == 0
    before = model.read_bytes()
    heavy = tmp_path / "heavy.vw"
    heavy.write_text(f"1 {weight} | 1:1 2:0.5\n")
    assert main(["train", str(heavy), "--resume", str(model), "--model", str(model), "--quiet"]) == 1
    assert f"row 1 has the weight {float(weight):g}" in capsys.readouterr().err
    assert model.read_bytes() == before


def test_what_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    learner = sketchnewton.AdaGrad()
    learner.learn([[1.0, 2.0]], [1.0])
    learner.save(tmp_path / "m.skn")
    before = (tmp_path / "m.skn").read_bytes()
    learner._state["intercept"][0] = np.inf
    with pytest.raises(ValueError, match="cannot save a AdaGrad whose 'intercept' is not finite"):
        learner.save(tmp_path / "m.skn")
    assert (tmp_path / "m.skn").read_bytes() == before
