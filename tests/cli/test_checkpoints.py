"""A run with checkpoints can be killed at any moment; finished later, it ends with the model it would have had.

`SKN_KILLS=50 pytest tests/cli/test_checkpoints.py -k killed` kills fifty times instead of a few.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from sketchnewton import Model
from sketchnewton.cli.main import main
from tests.cli.support import SKN, skn, svmlight_lines, trained, write_rows

KILLS = int(os.environ.get("SKN_KILLS", "4"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm", rows=1000)


def train(data: Path, model: Path, *options: object) -> int:
    return main(["train", str(data), "--model", str(model), "--quiet", *map(str, options)])


def killed_after(seconds: float, command: list[str]) -> int:
    """The exit code of a process that is killed after some time, unless it ends before."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        return process.wait()


class Killed(BaseException):
    """Stands for SIGKILL inside this process: nothing catches it."""


def train_and_die(number: int, data: Path, model: Path, *options: object, before: bool = False) -> None:
    """Train, and die before or after the `number`-th save."""
    save = Model.save
    saves = 0

    def counted(self: Model, path: str) -> None:
        nonlocal saves
        saves += 1
        if before and saves == number:
            raise Killed
        save(self, path)
        if saves == number:
            raise Killed

    with mock.patch.object(Model, "save", counted), pytest.raises(Killed):
        train(data, model, *options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--passes", "2"], ["--sketch", "fd", "--exact-names"]])
def test_killed_at_any_moment(options: list[str], tmp_path: Path) -> None:
    data = tmp_path / "rows.svm"
    data.write_text("".join(svmlight_lines(20_000)))
    whole = tmp_path / "whole.skn"
    start = time.monotonic()
    wanted = tmp_path / "whole.txt"
    options = [*options, "--checkpoint-every", "1000", "--predictions"]
    assert skn("train", data, "--model", whole, *options, wanted).returncode == 0
    duration = time.monotonic() - start
    moments = random.Random(0)
    for trial in range(KILLS):
        model, predictions = tmp_path / f"{trial}.skn", tmp_path / f"{trial}.txt"
        command = [*SKN, "train", str(data), "--model", str(model), *options, str(predictions)]
        mark = Path(f"{model}.run")
        if killed_after(moments.uniform(0.0, duration), command) == 0 or (
            model.exists() and not mark.exists()
        ):
            pass  # it had ended before, all but for its exit
        elif mark.exists():
            again = skn("train", data, "--model", model, "--resume", model, "--predictions", predictions)
            assert again.returncode == 0, again.stderr
        else:  # nothing was there yet
            assert skn(*command[3:]).returncode == 0
        assert model.read_bytes() == whole.read_bytes()
        assert predictions.read_bytes() == wanted.read_bytes()
        assert not list(tmp_path.glob("*.run"))


def test_dying_between_the_last_save_and_the_end(data: Path, tmp_path: Path) -> None:
    whole, model, mark = (tmp_path / name for name in ("whole.skn", "m.skn", "m.skn.run"))
    assert train(data, whole, "--passes", 2) == 0
    train_and_die(9, data, model, "--checkpoint-every", 250, "--passes", 2)
    with mock.patch("sketchnewton.cli.train.checkpoint.forget", side_effect=Killed), pytest.raises(Killed):
        train(data, model, "--resume", model)
    assert mark.exists()
    assert train(data, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()
    assert not mark.exists()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(
    "options", [[], ["--passes", "2"], ["--multiclass", "2"], ["--sketch", "fd", "--sketch-size", "3"]]
)
def test_dying_around_a_save(options: list[str], number: int, before: bool, tmp_path: Path) -> None:
    """With --checkpoint-every 250 the fourth of 1000 rows' saves is the last checkpoint, the fifth the end."""
    data = write_rows(tmp_path / "rows.svm", rows=1000, labels=(0, 1))
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    wanted, predictions = tmp_path / "whole.txt", tmp_path / "p.txt"
    assert train(data, whole, *options, "--predictions", wanted) == 0
    options = [*options, "--predictions", str(predictions)]
    train_and_die(number, data, model, "--checkpoint-every", 250, *options, before=before)
    assert train(data, model, "--resume", model, "--predictions", predictions) == 0
    assert model.read_bytes() == whole.read_bytes()
    assert predictions.read_bytes() == wanted.read_bytes()
    left = [p.suffix for p in tmp_path.iterdir() if ".skn-cache" not in p.name]
    assert sorted(left) == [".skn", ".skn", ".svm", ".txt", ".txt"]


def test_dying_before_the_first_checkpoint_over_an_older_model(data: Path, tmp_path: Path) -> None:
    """What is resumed is the run, not the model that lies at its place, which stays intact until then."""
    older, model, whole = tmp_path / "older.svm", tmp_path / "m.skn", tmp_path / "whole.skn"
    write_rows(older, seed=3)
    assert train(older, model, "--learner", "adagrad") == 0
    before = model.read_bytes()
    assert train(data, whole, "--learner", "newton", "--alpha", 3) == 0
    train_and_die(1, data, model, "--learner", "newton", "--alpha", 3, "--checkpoint-every", 300, before=True)
    assert model.read_bytes() == before
    assert train(data, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_dying_while_going_on_with_a_model(data: Path, tmp_path: Path) -> None:
    more, model, whole = write_rows(tmp_path / "more.svm", seed=3), tmp_path / "m.skn", tmp_path / "whole.skn"
    for path in (model, whole):
        assert train(more, path) == 0
    assert train(data, whole, "--resume", whole) == 0
    for number in (1, 2):
        train_and_die(number, data, model, "--resume", model, "--checkpoint-every", 400, before=True)
    assert train(data, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_the_summary_of_a_finished_run_is_that_of_an_undisturbed_one(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.skn"
    assert train(data, model, "--json", "--holdout", 7) == 0
    expected = json.loads(capsys.readouterr().out)
    train_and_die(2, data, model, "--checkpoint-every", 300, "--holdout", 7)
    assert train(data, model, "--resume", model, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    for fact in (
        "rows",
        "rows_seen",
        "progressive_loss",
        "error_rate",
        "holdout_loss",
        "holdout_rows",
        "passes",
    ):
        assert told[fact] == expected[fact] is not None


def test_ctrl_c_leaves_a_checkpoint(tmp_path: Path) -> None:
    data, whole, model = tmp_path / "rows.svm", tmp_path / "whole.skn", tmp_path / "m.skn"
    data.write_text("".join(svmlight_lines(60_000)))
    assert train(data, whole) == 0
    command = [*SKN, "train", str(data), "--model", str(model), "--checkpoint-every", "1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not model.exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode in (0, 130)
    assert train(data, model, "--resume", model) == 0 or process.returncode == 0
    if process.returncode == 130:
        assert model.read_bytes() == whole.read_bytes()


def test_data_that_changed_since_the_checkpoint_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.skn"
    train_and_die(2, data, model, "--checkpoint-every", 300)
    before = model.read_bytes()
    data.write_text(data.read_text() + "1 1:1\n")
    assert train(data, model, "--resume", model) == 1
    assert "has changed since the checkpoint" in capsys.readouterr().err
    assert model.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--passes", "3"], "--passes 3 does not agree"),
        (["--holdout", "3"], "--holdout 3 does not agree"),
        (["--predictions", "-"], "--predictions - lacks those of the 600 rows"),
        (["--format", "svmlight"], "with other options"),
    ],
)
def test_a_run_is_finished_with_its_own_options(
    options: list[str],
    words: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "m.skn"
    train_and_die(2, data, model, "--checkpoint-every", 300)
    assert train(data, model, "--resume", model, *options) == 2
    assert words in capsys.readouterr().err


def test_a_checkpoint_goes_on_with_other_data_as_any_model_does(data: Path, tmp_path: Path) -> None:
    lines = data.read_text().splitlines(keepends=True)
    rest, model, whole = tmp_path / "rest.svm", tmp_path / "m.skn", tmp_path / "whole.skn"
    rest.write_text("".join(lines[600:]))
    assert train(data, whole) == 0
    train_and_die(2, data, model, "--checkpoint-every", 300)
    assert train(rest, model, "--resume", model) == 0
    assert model.read_bytes() == whole.read_bytes()


def test_a_bad_row_can_be_skipped_when_the_run_is_finished(data: Path, tmp_path: Path) -> None:
    lines = data.read_text().splitlines(keepends=True)
    bad, model, whole = tmp_path / "bad.svm", tmp_path / "m.skn", tmp_path / "whole.skn"
    bad.write_text("".join([*lines[:700], "nonsense\n", *lines[700:]]))
    assert train(bad, whole, "--on-error", "skip") == 0
    assert train(bad, model, "--checkpoint-every", 300) == 1
    assert train(bad, model, "--resume", model, "--on-error", "skip") == 0
    assert model.read_bytes() == whole.read_bytes()


def test_inspect_tells_a_checkpoint(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_and_die(2, data, tmp_path / "m.skn", "--checkpoint-every", 300)
    assert main(["inspect", str(tmp_path / "m.skn")]) == 0
    assert "a checkpoint after row 600 of pass 1: --resume finishes the run" in capsys.readouterr().out


def test_checkpoints_need_a_place(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--checkpoint-every", "10"]) == 2
    assert "needs --model" in capsys.readouterr().err


def small_disk(bytes_allowed: int) -> Callable[[], None]:
    """Limit the size of files that a process may write: the same error path as a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))

    return limit


@pytest.mark.parametrize("options", [[], ["--checkpoint-every", "100"]])
def test_a_full_disk_leaves_the_old_model_intact(options: list[str], data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    assert train(data, model, "--sketch-size", 40) == 0
    before = model.read_bytes()
    command = [*SKN, "train", str(data), "--model", str(model), "--sketch-size", "40", *options]
    full = subprocess.run(command, capture_output=True, preexec_fn=small_disk(2000), check=False, timeout=60)
    assert full.returncode == 1
    last = full.stderr.decode().splitlines()[-1]
    assert last.startswith(f"skn: {model}: cannot save the model, nothing was changed: ")
    assert "Traceback" not in full.stderr.decode()
    assert model.read_bytes() == before
    assert trained(model).rows_seen == 1000
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(data: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this system does not let us mount")
    try:
        model = disk / "m.skn"
        assert train(data, model) == 0
        before = model.read_bytes()
        (disk / "filler").write_bytes(bytes(64 * 1024 - len(before) - 4096 * 2))
        full = skn("train", data, "--model", model, "--sketch-size", 100)
        assert full.returncode == 1
        assert b"No space left on device" in full.stderr.splitlines()[-1]
        assert model.read_bytes() == before
    finally:
        subprocess.run(["umount", disk], check=True)


def test_no_file_of_somebody_else_is_taken_for_one_of_a_run(data: Path, tmp_path: Path) -> None:
    """Beside MODEL and beside the file of predictions, a run has files that end in .run."""
    rows = tmp_path / "clicks.run"
    rows.write_bytes(data.read_bytes())
    format, clicks = ["--format", "svmlight"], str(tmp_path / "clicks")
    assert main(["train", str(rows), *format, "--model", clicks]) == 1
    assert main(["train", str(rows), *format, "--predictions", clicks, "--checkpoint-every", "9"]) == 2
    model = str(tmp_path / "m")
    assert main(["train", str(rows), *format, "--model", model, "--predictions", clicks]) == 1
    assert main(["train", str(data), "--model", model, "--predictions", f"{model}.run"]) == 1
    assert rows.read_bytes() == data.read_bytes()
    ours, theirs = tmp_path / "own.run", tmp_path / "m.skn.run"
    for place in (ours, theirs):
        place.write_text("a diary")
    assert main(["train", str(data), "--model", str(tmp_path / "m.skn")]) == 0
    kept = ["--predictions", str(tmp_path / "own"), "--checkpoint-every", "9"]
    assert main(["train", str(data), "--model", str(tmp_path / "n.skn"), *kept]) == 1
    assert ours.read_text() == theirs.read_text() == "a diary"


def test_predictions_of_a_run_that_is_over_must_be_there(data: Path, tmp_path: Path) -> None:
    model, predictions = tmp_path / "m.skn", tmp_path / "p.txt"
    line = [
        "train",
        str(data),
        "--model",
        str(model),
        "--predictions",
        str(predictions),
        "--checkpoint-every",
        "20",
    ]
    with mock.patch(
        "sketchnewton.cli.train.checkpoint.forget", return_value=None
    ):  # killed after the last save
        assert main(line) == 0
    lines = predictions.read_bytes()
    predictions.unlink()
    assert main([*line, "--resume", str(model)]) == 2
    predictions.write_bytes(lines)
    assert main([*line, "--resume", str(model)]) == 0
    assert predictions.read_bytes() == lines
