"""Ctrl-C and SIGTERM keep what was learned; SIGKILL keeps the previous model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sketchnewton
from tests.cli.support import SKN, svmlight_lines, trained

LINES = svmlight_lines(1000)
PLENTY = "".join(LINES).encode() * 80  # several batches, more than any reader holds back


@contextmanager
def command(*args: object) -> Iterator[subprocess.Popen[bytes]]:
    """The command reading a pipe that stays open."""
    with subprocess.Popen(
        [*SKN, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def feed_until_learning(process: subprocess.Popen[bytes]) -> None:
    """Send rows, keep the pipe open, and return when the table has begun."""
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(PLENTY)
    process.stdin.flush()
    for line in process.stderr:
        if b"4,096" in line:
            return
    pytest.fail("the table never began")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_run_with_what_was_learned(number: int, code: int, tmp_path: Path) -> None:
    model, predictions = tmp_path / "m.skn", tmp_path / "p"
    with command("train", "-", "--model", model, "--predictions", predictions, "--json") as process:
        feed_until_learning(process)
        process.send_signal(number)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        told = json.loads(process.stdout.read())
        err = process.stderr.read().decode()
        assert process.wait(60) == code
    learner = trained(model)
    assert learner.rows_seen == told["rows"] >= 4096
    assert len(predictions.read_text().splitlines()) == learner.rows_seen
    assert told["stopped_by"] == signal.Signals(number).name
    assert "stopped by" in err
    assert "Traceback" not in err

    repeated = sketchnewton.Model()
    text = tmp_path / "again.svm"
    text.write_text("".join((LINES * 80)[: learner.rows_seen]))
    repeated.learn(text)
    repeated.save(tmp_path / "again.skn")
    assert (tmp_path / "again.skn").read_bytes() == model.read_bytes()


def test_a_signal_before_the_first_row_keeps_the_older_model(tmp_path: Path) -> None:
    fifo, model = tmp_path / "rows.fifo", tmp_path / "m.skn"
    os.mkfifo(fifo)
    model.write_bytes(b"older")
    with command("train", fifo, "--model", model) as process:
        assert process.stderr is not None
        assert b"NewtonBank" in process.stderr.readline()  # now it waits for somebody to open the fifo
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()
    assert model.read_bytes() == b"older"


def test_sigkill_leaves_the_previous_model(tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    sketchnewton.AdaGrad().save(model)
    before = model.read_bytes()
    with command("train", "-", "--model", model) as process:
        feed_until_learning(process)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    assert model.read_bytes() == before


def test_a_stopped_predict_leaves_no_file(tmp_path: Path) -> None:
    model, output = tmp_path / "m.skn", tmp_path / "p"
    sketchnewton.AdaGrad().save(model)
    with command("predict", model, "-", "--output", output) as process:
        assert process.stdin is not None
        process.stdin.write(PLENTY)
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert not output.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["m.skn"]


def test_a_run_that_ignores_hang_ups_goes_on(tmp_path: Path) -> None:
    """`nohup skn train …`: the terminal may close, the run does not end."""
    model = tmp_path / "m.skn"
    with subprocess.Popen(
        ["nohup", *SKN, "train", "-", "--model", str(model)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        feed_until_learning(process)
        process.send_signal(signal.SIGHUP)
        assert process.stdin is not None
        process.stdin.write(PLENTY)
        process.stdin.close()
        assert process.stderr is not None
        process.stderr.read()
        assert process.wait(60) == 0
    assert trained(model).rows_seen == 160_000
