"""Ctrl-C and SIGTERM at any moment: the same command with --resume ends with the model of an undisturbed run.

`SKN_INTERRUPTS=30 SKN_SEED=2 pytest tests/cli/test_interrupted.py` interrupts thirty times instead of a few, and
at other moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.main import main
from sketchnewton.cli.train.observed_learner import ObservedLearner
from sketchnewton.core.batch import Batch
from tests.cli.support import SKN, skn, svmlight_lines, write_rows

INTERRUPTS = int(os.environ.get("SKN_INTERRUPTS", "3"))
SEED = int(os.environ.get("SKN_SEED", "1"))

RUNS: list[list[str]] = [
    [],
    ["--passes", "3"],
    ["--passes", "4", "--holdout", "5"],
    ["--multiclass", "2"],
    ["--sketch", "fd", "--exact-names", "--checkpoint-every", "700"],
]


def train(data: Path, model: Path, *options: object) -> int:
    return main(["train", str(data), "--model", str(model), "--quiet", *map(str, options)])


def train_until(row: int, data: Path, model: Path, *options: object) -> int:
    """Train, and receive SIGINT while the batch that holds the `row`-th row is learned."""
    learn = ObservedLearner.learn_batch

    def learn_and_interrupt(self: ObservedLearner, batch: Batch, /) -> object:
        before = self.rows
        predictions = learn(self, batch)
        if before <= row < self.rows:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.0)  # the handler runs between two instructions
        return predictions

    with mock.patch.object(ObservedLearner, "learn_batch", learn_and_interrupt):
        return train(data, model, *options)


@pytest.mark.parametrize("options", RUNS)
@pytest.mark.parametrize("row", [0, 400, 999])
def test_interrupted_then_resumed(options: list[str], row: int, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=1000, labels=(0, 1))
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    wanted, predictions = tmp_path / "whole.txt", tmp_path / "p.txt"
    assert train(data, whole, *options, "--predictions", wanted) == 0
    assert train_until(row, data, model, *options, "--predictions", predictions) == 130
    assert model.read_bytes() != whole.read_bytes()
    assert train(data, model, *options, "--resume", model, "--predictions", predictions) == 0
    assert model.read_bytes() == whole.read_bytes()
    assert predictions.read_bytes() == wanted.read_bytes()
    assert len(wanted.read_text().splitlines()) == 1000
    assert not list(tmp_path.glob("*.run"))


def test_predictions_of_other_rows_are_not_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=1000)
    model, predictions = tmp_path / "m.skn", tmp_path / "p.txt"
    assert train_until(400, data, model, "--predictions", predictions, "--loss", "logistic") == 130
    again = ["--resume", model, "--loss", "logistic", "--predictions"]
    written = predictions.read_text()
    for other in ("", "0.5\n" * 1000, written[:-20], written.replace("3", "4", 1)):
        predictions.write_text(other)
        before = model.read_bytes()
        assert train(data, model, *again, predictions) == 2
        assert f"--predictions {predictions} lacks those of the 1,000 rows" in capsys.readouterr().err
        assert predictions.read_text() == other
        assert model.read_bytes() == before
    predictions.write_text(f"{written}what a hand has added\n")
    assert train(data, model, *again, predictions, "--link") == 2  # on another scale
    assert train(data, model, *again, tmp_path / "absent.txt") == 2
    assert train(data, model, *again, predictions) == 0
    assert predictions.read_text() == written  # one batch holds all rows


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_tables_with_classes_are_resumed(form: str, tmp_path: Path) -> None:
    """Kinds of columns and names of classes, found before the interruption, hold after it."""
    rows = 40_000
    some = np.random.default_rng(2)
    table = pa.table(
        {
            "label": some.choice(["eggs", "ham", "spam"], rows),
            "late": [None] * (rows - 1) + ["a text, in the last row only"],
            "price": np.round(some.normal(size=rows), 3),
            "city": some.choice(["Rome", "Oslo", "Łódź"], rows),
            "seen": np.datetime64("2024-01-01T00:00:00") + some.integers(0, 10**7, rows),
        }
    )
    data, whole, model = tmp_path / f"t.{form}", tmp_path / "whole.skn", tmp_path / "m.skn"
    if form == "parquet":
        pq.write_table(table, data)
    elif form == "csv":
        table.to_pandas().to_csv(data, index=False)
    else:
        table.to_pandas().to_json(data, orient="records", lines=True, date_format="iso")
    assert train(data, whole, "--dates", "seen") == 0
    assert train_until(rows // 2, data, model, "--dates", "seen") == 130
    assert model.read_bytes() != whole.read_bytes()
    assert train(data, model, "--dates", "seen", "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_the_best_pass_survives_an_interruption(tmp_path: Path) -> None:
    """Pass 3 is no better than pass 2: the learner of pass 2 is kept, though it was only in the file."""
    data = tmp_path / "rows.svm"
    data.write_text("".join(svmlight_lines(600)))
    options = ["--passes", "12", "--holdout", "4", "--sketch", "oja"]
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    assert train(data, whole, *options) == 0
    passes = 0
    for row in range(600, 7200, 600):
        if train_until(row, data, model, *options) != 130:
            break  # the best pass was before
        passes += 1
        assert train(data, model, *options, "--resume", model) == 0
        assert model.read_bytes() == whole.read_bytes()
    assert passes


def test_a_signal_after_the_last_save_is_no_reason_to_learn_twice(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=300)
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    assert train(data, whole) == 0

    def interrupted(training: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with mock.patch("sketchnewton.cli.train.training.report", interrupted):
        assert train(data, model) == 143
    assert train(data, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_stopped_before_the_first_row_over_an_older_model(tmp_path: Path) -> None:
    data, older = write_rows(tmp_path / "rows.svm"), write_rows(tmp_path / "older.svm", seed=3)
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    assert train(data, whole) == 0
    assert train(older, model) == 0
    before = model.read_bytes()
    enter = GracefulStop.__enter__

    def enter_and_interrupt(self: GracefulStop) -> GracefulStop:
        enter(self)
        os.kill(os.getpid(), signal.SIGINT)
        return self

    with mock.patch.object(GracefulStop, "__enter__", enter_and_interrupt):
        assert train(data, model) == 130
    assert model.read_bytes() == before
    assert train(data, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_new_data_continues_an_interrupted_model(tmp_path: Path) -> None:
    data, more = write_rows(tmp_path / "rows.svm", rows=1000), write_rows(tmp_path / "more.svm", seed=3)
    model, expected = tmp_path / "m.skn", tmp_path / "expected.skn"
    assert train_until(500, data, model) == 130
    assert main(["inspect", str(model)]) == 0
    assert train(more, model, "--resume", model) == 0
    assert train(data, expected) == 0  # one batch holds all rows of `data`
    assert train(more, expected, "--resume", expected) == 0
    assert model.read_bytes() == expected.read_bytes()


def test_resuming_what_is_not_there_yet_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, whole, model = write_rows(tmp_path / "r.svm"), tmp_path / "whole.skn", tmp_path / "m.skn"
    assert train(data, whole) == 0
    assert main(["train", str(data), "--model", str(model), "--resume", str(model)]) == 0
    assert "does not exist yet: starting a new model" in capsys.readouterr().err
    assert model.read_bytes() == whole.read_bytes()
    assert train(data, model, "--resume", tmp_path / "other.skn") == 1  # a slip of the pen is not a wish


@pytest.mark.slow
@pytest.mark.parametrize("options", RUNS)
def test_signals_at_random_moments(options: list[str], tmp_path: Path) -> None:
    data, whole = tmp_path / "rows.svm", tmp_path / "whole.skn"
    data.write_text("".join(line.replace("-1 ", "0 ", 1) for line in svmlight_lines(20_000)))
    start = time.monotonic()
    wanted = tmp_path / "whole.txt"
    assert skn("train", data, "--model", whole, "--predictions", wanted, *options).returncode == 0
    duration = time.monotonic() - start
    moments = random.Random(SEED)
    for trial in range(INTERRUPTS):
        model, predictions = tmp_path / f"{trial}.skn", tmp_path / f"{trial}.txt"
        options = [*options, "--predictions", str(predictions)]
        command = [*SKN, "train", str(data), "--model", str(model), *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(moments.uniform(0.0, duration))
            except subprocess.TimeoutExpired:
                process.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM]))
        if process.returncode:
            again = skn("train", data, "--model", model, "--resume", model, *options)
            assert again.returncode == 0, again.stderr
        assert model.read_bytes() == whole.read_bytes()
        assert predictions.read_bytes() == wanted.read_bytes()
