"""Output that cannot be written is named; a log that cannot be written ends no work; names may not be empty."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sketchnewton.cli.main import main
from tests.cli.support import SKN, skn, write_rows

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no device that is full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    data = write_rows(folder / "rows.svm")
    (folder / "rows.csv").write_text("label,a\n1,2\n-1,3\n")
    assert main(["train", str(data), "--model", str(folder / "model.skn"), "--quiet"]) == 0
    return folder


def into(stream: str, folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command with stdout or stderr on a disk that is full."""
    other = "stderr" if stream == "stdout" else "stdout"
    with FULL.open("wb") as full:
        streams = {stream: full, other: subprocess.PIPE}
        return subprocess.run([*SKN, *args], cwd=folder, check=False, timeout=120, env=os.environ, **streams)


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "train --help",
        "completion bash",
        "inspect model.skn",
        "inspect model.skn --json",
        "test model.skn rows.svm",
        "test model.skn rows.svm --json",
        "train rows.svm --json --quiet",
        "train rows.svm --dry-run --json --quiet",
        "sketch rows.svm --size 2 --quiet --json",
        "bench rows.svm --learners bank --quiet",
        "bench rows.svm --learners bank --quiet --json",
        "predict model.skn rows.svm",
        "convert rows.svm - --to jsonl --quiet",
    ],
)
def test_stdout_that_is_full(command: str, folder: Path) -> None:
    run = into("stdout", folder, *command.split())
    assert (run.returncode, run.stderr) == (1, b"skn: <stdout>: No space left on device\n")


def test_a_full_disk_under_the_log_ends_no_work(folder: Path) -> None:
    """The model is that of a run whose log could be written; the exit code says that something is wrong."""
    for name in ("logged.skn", "model.skn"):
        run = into("stderr", folder, "train", "rows.svm", "--model", "logged.skn", "--predictions", "p.txt")
        assert run.returncode == 1
        assert (folder / "logged.skn").read_bytes() == (folder / name).read_bytes()
        assert (folder / "p.txt").read_text().count("\n") == 400
    run = into("stderr", folder, "train", "missing.svm")
    assert run.returncode == 1
    run = into("stderr", folder, "predict", "model.skn", "rows.svm")  # which has nothing to say
    assert (run.returncode, run.stdout.count(b"\n")) == (0, 400)


def test_a_log_that_nobody_reads_any_more_ends_the_run(folder: Path) -> None:
    """As for any command before `head`: only a disk can have room again."""
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as broken:
        command = [*SKN, "train", "rows.svm"]
        run = subprocess.run(command, cwd=folder, stderr=broken, check=False, timeout=120, env=os.environ)
    assert run.returncode == 141


@pytest.mark.parametrize(
    "command",
    [
        ["train", ""],
        ["train", "rows.svm", ""],
        *(["train", "rows.svm", option, ""] for option in ("--model", "--test", "--resume", "--predictions")),
        *(["train", "rows.svm", option, ""] for option in ("--readable", "--cache", "--config")),
        ["predict", "", "rows.svm"],
        ["predict", "model.skn", ""],
        ["predict", "model.skn", "rows.svm", "--output", ""],
        ["test", "model.skn", "rows.svm", "--picture", ""],
        ["inspect", ""],
        ["merge", "model.skn", "model.skn", "--output", ""],
        ["sketch", "rows.svm", "--output", ""],
        ["sketch", "rows.svm", "--plot", ""],
        ["convert", "rows.svm", ""],
        ["bench", "rows.svm", "--output", ""],
        ["eigen", "rotating", "--output", ""],
        ["serve", ""],
        ["serve", "--state", ""],
        ["replay", ""],
    ],
)
def test_an_empty_name_is_no_file(command: list[str], folder: Path) -> None:
    """As of a variable of the shell that is not set: at once, and nothing is written where one stands."""
    before = sorted(folder.iterdir())
    run = subprocess.run([*SKN, *command], cwd=folder, capture_output=True, check=False, timeout=60)
    assert run.returncode == 2
    assert run.stderr.count(b"\n") == 1
    assert b"'' is invalid: must be the name of a file" in run.stderr or b" '': the picture can" in run.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("option", ["--label", "--weight", "--tag", "--drop", "--numeric", "--categorical"])
@pytest.mark.parametrize("value", ["", "a,"])
def test_a_column_without_a_name(option: str, value: str, tmp_path: Path) -> None:
    """Data frames are written with their index, which has none: it can be named, and must be there then."""
    if value and option in ("--label", "--weight", "--tag"):
        return
    without, index = tmp_path / "without.csv", tmp_path / "index.csv"
    without.write_text("label,a\n1,2\n-1,3\n")
    index.write_text(",label,a\n1,1,2\n2,-1,3\n")
    run = skn("train", without, option, value)
    assert (run.returncode, run.stderr.splitlines()[-1].decode()) == (
        1,
        f"skn: {without}:1:1: no column is named ''; there are label, a",
    )
    assert skn("train", index, option, value).returncode == 0


def test_the_index_of_a_data_frame_can_be_dropped(tmp_path: Path) -> None:
    index, without = tmp_path / "index.csv", tmp_path / "without.csv"
    index.write_text(",label,a\n1,1,2\n2,-1,3\n")
    without.write_text("label,a\n1,2\n-1,3\n")
    outputs = [
        skn("train", path, "--predictions", "-", "--quiet", *options).stdout
        for path, options in ((index, ("--drop", "")), (without, ()))
    ]
    assert outputs[0] == outputs[1] != b""
    model = tmp_path / "model.skn"
    assert skn("train", index, "--model", model).returncode == 0
    told = skn("predict", model, without).stderr.decode()
    assert "1 column that the model knows is missing from the table: ''" in told


@pytest.mark.parametrize("ending", ["png", "svg", "PDF"])
def test_pictures(ending: str, folder: Path) -> None:
    picture = folder / f"calibration.{ending}"
    assert skn("test", folder / "model.skn", folder / "rows.svm", "--picture", picture).returncode == 0
    assert picture.stat().st_size > 1000
    picture.unlink()
    picture.symlink_to(FULL)
    run = skn("test", folder / "model.skn", folder / "rows.svm", "--picture", picture)
    assert (run.returncode, run.stderr.splitlines()[-1].decode()) == (
        1,
        f"skn: {picture}: No space left on device",
    )
    assert FULL.is_char_device()
    picture.unlink()
    run = skn("test", folder / "model.skn", folder / "rows.svm", "--picture", folder / "picture.txt")
    assert run.returncode == 2
    assert b"the picture can be one of .png .svg .pdf" in run.stderr
