"""Predicting rows none of whose features the model has learned: a warning, once, and predictions all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from sketchnewton.cli.main import main

WARNING = "the model has learned none of the features of these rows"
LEARNERS = {
    "bank": [],
    "oja": ["--sketch", "oja"],
    "rfd": ["--sketch", "rfd"],
    "none": ["--sketch", "none"],
    "classes": ["--classes", "1,2,3"],
    "one per class": ["--classes", "1,2,3", "--sketch", "oja"],
    "exact": ["--exact-names"],
    "many bits": ["--bits", "24"],
}
# The second line has a feature of its own, and one that was learned.
KNOWN, UNKNOWN, ONE_KNOWN = "1 |a x y:2\n2 |a z\n3 |a x\n", "1 |b x y:2\n2 | z\n", "1 |b q\n2 |b r |a z\n"


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("learner", LEARNERS)
def test_names_that_were_not_learned(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = written(tmp_path / "known.vw", KNOWN), str(tmp_path / "model.skn")
    assert main(["train", data, "--model", model, *LEARNERS[learner]]) == 0
    capsys.readouterr()
    unknown, one = written(tmp_path / "unknown.vw", UNKNOWN), written(tmp_path / "one.vw", ONE_KNOWN)
    empty = written(tmp_path / "empty.vw", "1 |\n2 |\n")
    for command in ("predict", "test"):
        for path in (data, one, empty):
            assert main([command, model, path]) == 0
            assert WARNING not in capsys.readouterr().err
        assert main([command, model, unknown]) == 0
        out, err = capsys.readouterr()
        assert err.count(f"skn: warning: {unknown}: {WARNING}") == 1
        assert out
        assert main([command, model, unknown, data]) == 0
        assert WARNING not in capsys.readouterr().err


@pytest.mark.parametrize(
    "learner", ["bank", "newton", "full", "invariant", "full-adagrad", "ada-lr", "gradient"]
)
@pytest.mark.parametrize("options", [[], ["--classes", "0,1"]], ids=["numbers", "classes"])
def test_weights_of_zero_are_no_reason(
    learner: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels that are all predicted have no gradients; a bank learns nothing before labels differ."""
    data, model = written(tmp_path / "zeros.svm", "0 1:1\n0 2:1\n"), str(tmp_path / "model.skn")
    other = written(tmp_path / "other.svm", "0 7:1\n")
    assert main(["train", data, "--model", model, "--quiet", "--learner", learner, *options]) == 0
    assert main(["predict", model, data]) == 0
    assert WARNING not in capsys.readouterr().err
    assert main(["predict", model, other]) == 0
    assert (WARNING in capsys.readouterr().err) is (learner != "bank" or bool(options))


@pytest.mark.parametrize("learner", ["adagrad", "sketched-adagrad", "full-adagrad"])
def test_penalties_that_leave_no_weight_are_no_reason(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = written(tmp_path / "a.svm", "1 1:1\n-1 2:1\n1 1:2\n"), str(tmp_path / "model.skn")
    penalty = ["--penalty", "l1", "--penalty-strength", "100"]
    assert main(["train", data, "--model", model, "--quiet", "--learner", learner, *penalty]) == 0
    assert main(["predict", model, data]) == 0
    assert WARNING not in capsys.readouterr().err


def test_other_keys_of_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys may be absent from a line, so that only all lines together tell."""
    data = written(tmp_path / "a.jsonl", '{"label": 1, "price": 2}\n{"label": -1, "price": 3}\n')
    other = written(tmp_path / "b.jsonl", '{"label": 1, "Price": 2}\n')
    model = str(tmp_path / "model.skn")
    assert main(["train", data, "--model", model, "--quiet"]) == 0
    assert main(["test", model, other]) == 0
    assert WARNING in capsys.readouterr().err
    assert main(["train", data, "--test", other]) == 0
    assert WARNING in capsys.readouterr().err
    assert main(["train", data, "--test", data]) == 0
    assert WARNING not in capsys.readouterr().err
