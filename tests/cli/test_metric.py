"""`skn train --metric` shows what `skn test` would of the predictions made before each row was learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.cli.main import main
from sketchnewton.core import names
from sketchnewton.evaluation.metrics import METRICS, Answers
from tests.cli.test_test import CASES, write_table


def test_the_choices_are_the_metrics() -> None:
    assert tuple(METRICS) == names.METRICS


@pytest.mark.parametrize("labels", CASES)
def test_the_metric_is_that_of_the_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], labels: str
) -> None:
    data = write_table(tmp_path / "a.csv", labels=labels, rows=300)
    wanted = np.loadtxt(data, delimiter=",", skiprows=1, usecols=0, quotechar='"')
    for name, (metric, kinds) in METRICS.items():
        if labels not in kinds or name in ("log_loss", "brier"):
            continue
        out = tmp_path / "p.txt"
        options = [
            "--label",
            "y",
            "--metric",
            name,
            "--json",
            "--predictions",
            str(out),
            "--raw",
            *CASES[labels],
        ]
        assert main(["train", str(data), *options]) == 0
        printed = capsys.readouterr()
        predictions = np.loadtxt(out)
        targets = wanted
        if labels == "classes":  # class 3 is the learner's first: where scores tie it is the answer
            predictions, targets = predictions[:, [2, 0, 1]], wanted % 3
        expected = metric(Answers(predictions, targets, np.ones(len(targets)), labels))
        assert json.loads(printed.out)["metric"][name] == pytest.approx(expected, rel=1e-4, abs=1e-4)
        lines = printed.err.splitlines()
        assert any(line.split()[0] == name and "examples" in line for line in lines)


def test_a_metric_that_does_not_apply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_table(tmp_path / "a.csv", labels="classes", rows=50)
    assert main(["train", str(data), "--label", "y", "--multiclass", "3", "--metric", "auc"]) == 2
    assert (
        "--metric auc is not one of several classes, which have error, log_loss, brier"
        in capsys.readouterr().err
    )
    data = tmp_path / "two.csv"
    data.write_text("y,x\nham,1\nspam,2\nham,1\n")
    assert main(["train", str(data), "--label", "y", "--metric", "mae"]) == 2
    known = "error, auc, f1, log_loss, brier"
    assert f"--metric mae is not one of two classes, which have {known}" in capsys.readouterr().err
    data = write_table(tmp_path / "b.csv", labels="numbers", rows=50)
    assert main(["train", str(data), "--label", "y", "--metric", "auc"]) == 0
    assert ", auc -" in capsys.readouterr().err


def test_the_table_has_the_names_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "label,x\n" + "".join(f"{('ham', 'spam', 'unsolicited')[k % 3]},{k % 3}\n" for k in range(32))
    )
    assert main(["train", str(path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    table = [line.split() for line in lines if line.strip()[:1].isdigit() and "rows" not in line]
    assert {row[4] for row in table} <= {"ham", "spam", "unsolici…"}
    assert {row[5] for row in table} <= {"ham", "spam", "unsolicit…", "unsolicited"}
