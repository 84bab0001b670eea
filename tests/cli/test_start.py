"""The command starts fast and explains itself."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli import reference
from sketchnewton.cli.commands import COMMANDS
from sketchnewton.cli.main import main
from sketchnewton.losses import LOSSES
from tests.cli.support import SKN, skn, trained, write_rows


def modules_after(*args: str) -> set[str]:
    """The modules that a process has imported when `skn` has run."""
    code = (
        "import sys\n"
        "from sketchnewton.cli.main import main\n"
        "try:\n"
        f"    main({list(args)!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["train", "--help"], ["trian"]])
def test_no_numpy_for_a_word_of_help(args: list[str]) -> None:
    assert not modules_after(*args) & {"numpy", "scipy", "sklearn", "matplotlib"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_the_module_of_one_command_and_nothing_that_takes_long(command: str) -> None:
    room = "sketchnewton.cli.commands."
    modules = modules_after(command, "--help")
    assert {name for name in modules if name.startswith(room)} == {room + command}
    heavy = {
        "numpy",
        "sketchnewton._native",
        "sketchnewton.learners",
        "sketchnewton.streams",
        "json",
        "inspect",
    }
    assert not modules & heavy


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["trian"]])
def test_no_command_no_module(args: list[str]) -> None:
    assert not any(name.startswith("sketchnewton.cli.commands.") for name in modules_after(*args))


def test_every_module_of_a_command_is_in_the_table() -> None:
    folder = Path(sketchnewton.__file__).parent / "cli" / "commands"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(COMMANDS)


def test_training_imports_no_more_than_numpy(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm")
    modules = modules_after("train", str(data), "--model", str(tmp_path / "m.skn"), "--test", str(data))
    assert "numpy" in modules
    assert not modules & {"scipy", "sklearn", "matplotlib", "safetensors"}


def test_training_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm")
    code = "import sys, numpy; print(*sys.modules)"
    needed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    extra = modules_after("train", str(data), "--quiet") - set(needed.split())
    assert not extra & {"shutil", "difflib", "json", "hashlib", "tempfile", "importlib.metadata"}


def test_exit_functions_run_although_the_process_ends_early(tmp_path: Path) -> None:
    code = (
        "import atexit, sys\n"
        "from sketchnewton.cli.main import run\n"
        "atexit.register(print, 'the end')\n"
        f"sys.argv[1:] = ['train', {str(tmp_path / 'none.svm')!r}]\n"
        "run()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "the end\n")
    assert "no such file" in ended.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, unbuffered: str) -> None:
    sketchnewton.AdaGrad().save(tmp_path / "m.skn")
    command = [*SKN, "inspect", str(tmp_path / "m.skn")]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"skn: <stdout>: No space left on device\n")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_written_is_one_line(option: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*SKN, option], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"skn: <stdout>: No space left on device\n")


def closed(streams: str, *args: object) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a command started with closed streams."""
    command = shlex.join([*SKN, *map(str, args)])
    ended = subprocess.run(["sh", "-c", f"{command} {streams}"], capture_output=True, check=False, timeout=60)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_not_needed_may_be_closed(streams: str, tmp_path: Path) -> None:
    data, model, scores = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn", tmp_path / "scores.txt"
    code, out, err = closed(streams, "train", data, "--model", model)
    assert (code, out) == (0, b"")
    assert (b"progressive loss" in err) == (streams == ">&-")
    learned = trained(model)
    assert learned.rows_seen == 400
    assert closed(streams, "predict", model, data, "--output", scores, "--quiet") == (0, b"", b"")
    assert len(scores.read_text().splitlines()) == 400


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "predict", "convert", "sketch", "--help", "train --help"])
def test_output_that_nobody_can_receive_is_an_error(command: str, tmp_path: Path) -> None:
    data, model = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn"
    sketchnewton.AdaGrad().save(model)
    args = {
        "inspect": ["inspect", model],
        "predict": ["predict", model, data],
        "convert": ["convert", data, "-", "--to", "vw", "--quiet"],
        "sketch": ["sketch", data, "--json", "--quiet"],
    }.get(command, command.split())
    code, _, err = closed(">&-", *args)
    assert code == 1
    assert err in (b"skn: Bad file descriptor\n", b"skn: <stdout>: Bad file descriptor\n")
    assert closed(">&- 2>&-", *args) == (1, b"", b"")
    code, out, err = closed("2>&-", *args)
    assert code == 0
    assert out


def test_version() -> None:
    run = skn("--version")
    assert (run.returncode, run.stdout.decode()) == (0, f"skn {sketchnewton.__version__}\n")


@pytest.mark.parametrize("args", [[], ["--help"]])
def test_help_fits_a_screen(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(args)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for command in COMMANDS:
        assert any(f"skn {command}" in line for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    page = capsys.readouterr().out
    assert f"  skn {command}" in page.partition("examples:")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_more_than_ascii(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert capsys.readouterr().out.isascii()


def test_help_names_every_loss(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    page = capsys.readouterr().out
    for name in LOSSES:
        assert name in page


def test_the_page_of_all_options_is_up_to_date() -> None:
    """`python -m sketchnewton.cli.reference > docs/command-line.md` makes it so."""
    written = Path(__file__).parents[2] / "docs" / "command-line.md"
    assert written.read_text(encoding="utf-8") == reference.page()


@pytest.mark.parametrize("name", ["rows.svm", "rows.vw"])
def test_data_is_read_before_numpy_is_there(tmp_path: Path, name: str) -> None:
    data = tmp_path / name
    data.write_text("1 | 3:0.5 7:1\n-1 | 0:2\n".replace("| ", "" if name.endswith("svm") else "| "))
    code = (
        "import sys\n"
        "from sketchnewton.cli.train.prefetch import begin\n"
        "from sketchnewton.cli.options.command_line import parse\n"
        f"ahead = begin(parse(['train', {str(data)!r}]))\n"
        "batch = next(ahead.reader)\n"
        "assert 'numpy' not in sys.modules\n"
        "print(len(batch), batch.indices.tolist())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "2 [3, 7, 0]\n"


@pytest.mark.parametrize("options", [[], ["--bits", "4"], ["--passes", "2"], ["--on-error", "skip"]])
def test_reading_ahead_changes_nothing(tmp_path: Path, options: list[str]) -> None:
    data = write_rows(tmp_path / "rows.svm")
    models = []
    for threads in ("1", "2"):  # with one thread nothing is read ahead
        model = tmp_path / f"{threads}.skn"
        assert (
            main(["train", str(data), "--model", str(model), "--threads", threads, "--quiet", *options]) == 0
        )
        models.append(trained(model))
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    assert models[0].rows_seen == models[1].rows_seen > 0
