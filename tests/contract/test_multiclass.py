"""Many classes: one learner each, the same in Python and on the command line, whatever the classes are called."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli.main import main
from sketchnewton.core import archive
from sketchnewton.evaluation import ClassScore
from sketchnewton.learners import AdaGrad, OneVsAll, SketchedNewton
from tests.cli.support import trained

PARAMETERS = {"sketch": "fd", "sketch_size": 4, "loss": "logistic", "clip": None, "intercept": True}


def three_classes(rows: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, 6))
    return X, (X[:, :3] + 0.2 * random.standard_normal((rows, 3))).argmax(axis=1)


def lines(first: int = 0, rows: int = 300, seed: int = 0) -> list[str]:
    X, y = three_classes(rows, seed)
    return [
        f"{label + first} " + " ".join(f"{i}:{value:.4f}" for i, value in enumerate(x, 1)) + "\n"
        for x, label in zip(X, y, strict=True)
    ]


def test_each_class_is_learned_against_the_others() -> None:
    X, y = three_classes()
    learner = OneVsAll(SketchedNewton, 3, PARAMETERS)
    scores = learner.learn(X, y)
    assert scores.shape == (300, 3)
    for k in range(3):
        alone = SketchedNewton(**PARAMETERS)  # type: ignore[arg-type]
        np.testing.assert_array_equal(scores[:, k], alone.learn(X, np.where(y == k, 1.0, -1.0)))
        np.testing.assert_array_equal(learner.weights[:, k], alone.weights)
        assert learner.intercepts[k] == alone.intercept_
    assert np.mean(learner.predict(X).argmax(axis=1) == y) > 0.8


@pytest.mark.parametrize("threads", [1, 3])
def test_saving_batches_threads_and_copies_change_nothing(threads: int, tmp_path: Path) -> None:
    X, y = three_classes()
    whole = OneVsAll(SketchedNewton, 3, PARAMETERS)
    whole.learn(X, y)
    parts = OneVsAll("SketchedNewton", 3, PARAMETERS)
    parts.threads = threads
    for row in range(0, 100, 10):
        parts.learn(X[row : row + 10], y[row : row + 10])
    parts.save(tmp_path / "m.skn")
    parts = copy.deepcopy(sketchnewton.load(tmp_path / "m.skn"))  # type: ignore[assignment]
    parts.learn(X[100:], y[100:])
    whole.save(tmp_path / "whole.skn")
    parts.save(tmp_path / "parts.skn")
    assert (tmp_path / "whole.skn").read_bytes() == (tmp_path / "parts.skn").read_bytes()


@pytest.mark.parametrize("label", [3, -1, 0.5, np.nan])
def test_labels_that_are_no_class(label: float) -> None:
    learner = OneVsAll(AdaGrad, 3)
    with pytest.raises(ValueError, match=r"at position 1 is invalid: classes are 0 to 2"):
        learner.learn(np.ones((2, 1)), [0, label])
    assert learner.rows_seen == 0


def test_a_file_with_classes_that_do_not_belong_together(tmp_path: Path) -> None:
    learner, other = OneVsAll(AdaGrad, 3), OneVsAll(AdaGrad, 3)
    other.learn([[1.0]], [1.0])
    header, arrays = archive.decode(learner.to_bytes())
    _, taught = archive.decode(other.to_bytes())
    mixed = {name: taught[name] if name.startswith("1/") else array for name, array in arrays.items()}
    (tmp_path / "m.skn").write_bytes(archive.encode(header, mixed))
    with pytest.raises(ValueError, match="its classes have seen different rows"):
        sketchnewton.load(tmp_path / "m.skn")


def test_the_score_of_classes() -> None:
    score = ClassScore("squared", 3)
    p = np.array([[0.5, -1.0, 0.0], [1.0, 2.0, -1.0]])
    score.update(p, [0, 2], [1.0, 3.0])
    losses = np.array([(0.25 + 0 + 1) / 3, (4 + 9 + 4) / 3])
    assert score.mean_loss == pytest.approx((losses[0] + 3 * losses[1]) / 4)
    assert score.error_rate == 0.75
    assert score.report(2, p[1]).prediction == 1.0
    again = ClassScore("squared", 3)
    again.state = json.loads(json.dumps(score.state))
    assert again.state == score.state
    with pytest.raises(ValueError, match="must have"):
        score.update(p[:, :2], [0, 1])


@pytest.mark.parametrize("first", [0, 1])
def test_the_command_counts_classes_from_zero_or_one(
    first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, test, model = tmp_path / "a.svm", tmp_path / "t.svm", tmp_path / "m.skn"
    data.write_text("".join(lines(first)))
    test.write_text("".join(lines(first, seed=1)))
    options = [
        "--multiclass",
        "3",
        "--model",
        str(model),
        "--loss",
        "logistic",
        "--clip",
        "none",
        "--test",
        str(test),
        "--json",
    ]
    assert main(["train", str(data), *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["classes"] == 3
    assert told["test_error_rate"] < 0.15
    assert main(["predict", str(model), str(test)]) == 0
    predicted = np.array(capsys.readouterr().out.split(), float)
    truth = three_classes(seed=1)[1] + first
    assert np.mean(predicted != truth) == pytest.approx(told["test_error_rate"])
    assert set(predicted) == {first, first + 1, first + 2}

    assert main(["predict", str(model), str(test), "--raw"]) == 0
    scores = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    np.testing.assert_array_equal(scores.argmax(axis=1) + first, predicted)
    assert main(["predict", str(model), str(test), "--link"]) == 0
    shares = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-7)
    np.testing.assert_array_equal(shares.argmax(axis=1) + first, predicted)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("0 3", "row 2 has the label 3, but there was a label 0"),
        ("3 0", "row 2 has the label 0, but there was a label 3"),
        ("1 4", "row 2 has the label 4, but --multiclass 3 needs 1..3 or 0..2"),
        ("1 1.5", "row 2 has the label 1.5"),
    ],
)
def test_labels_that_contradict(
    labels: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "a.svm"
    data.write_text("".join(f"{label} 1:1\n" for label in labels.split()))
    assert main(["train", str(data), "--multiclass", "3"]) == 1
    assert words in capsys.readouterr().err


def test_two_halves_inspect_and_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, first, second = tmp_path / "whole", tmp_path / "first", tmp_path / "second"
    text = lines(1)
    for path, part in ((whole, text), (first, text[:100]), (second, text[100:])):
        path.write_text("".join(part))
    a, b = tmp_path / "a.skn", tmp_path / "b.skn"
    options = ["--multiclass", "3", "--quiet", "--learner", "newton"]
    assert main(["train", str(whole), "--model", str(a), *options]) == 0
    assert main(["train", str(first), "--model", str(b), *options]) == 0
    assert main(["train", str(second), "--resume", str(b), "--model", str(b), "--quiet"]) == 0
    assert a.read_bytes() == b.read_bytes()
    assert main(["train", str(whole), "--resume", str(a), "--multiclass", "4"]) == 2
    assert main(["inspect", str(a)]) == 0
    page = capsys.readouterr().out
    assert "3 classes" in page
    assert "SketchedNewton" in page
    assert main(["train", str(whole), *options, "--readable", str(tmp_path / "w.tsv")]) == 0
    table = [line.split("\t") for line in (tmp_path / "w.tsv").read_text().splitlines()]
    assert table[0] == ["feature", "name", "weight of 1", "weight of 2", "weight of 3"]
    learner = trained(a)
    assert isinstance(learner, OneVsAll)
    for feature, _, *weights in table[2:]:
        expected = learner.weights[int(feature), [1, 2, 0]]  # class 3 is known as 0
        np.testing.assert_allclose(np.array(weights, float), expected, rtol=1e-8)


@pytest.mark.parametrize("learner", ["adagrad", "sketched-adagrad"])
def test_softmax_where_the_learner_has_it(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = tmp_path / "a.svm", tmp_path / "m.skn"
    data.write_text("".join(lines()))
    options = ["--multiclass", "3", "--learner", learner, "--eta", "0.5", "--model", str(model), "--json"]
    assert main(["train", str(data), *options, "--predictions", str(tmp_path / "p"), "--raw"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["learner"] != "OneVsAll"
    assert told["parameters"]["classes"] == 3
    scores = np.loadtxt(tmp_path / "p")
    truth = three_classes()[1]
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(300), truth]
    assert told["progressive_loss"] == pytest.approx(losses.mean(), rel=1e-6)
    assert told["error_rate"] == pytest.approx(np.mean(scores.argmax(axis=1) != truth))
    assert main(["predict", str(model), str(data), "--link"]) == 0
    shares = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-7)
    assert np.mean(shares.argmax(axis=1) == truth) > 0.8
    assert main(["inspect", str(model)]) == 0
    assert "3 classes" in capsys.readouterr().out
    table = tmp_path / "w.tsv"
    assert main(["train", str(data), *options[:4], "--readable", str(table), "--quiet"]) == 0
    assert table.read_text().splitlines()[0].count("weight of") == 3
