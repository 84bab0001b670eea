"""The command starts fast and explains itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sketchnewton
from sketchnewton.cli import main
from sketchnewton.losses import LOSSES
from tests.cli_support import skn, write_rows

COMMANDS = ("train", "predict", "inspect", "demo")


def modules_after(*args: str) -> set[str]:
    """The modules that a process has imported when `skn` has run."""
    code = (
        "import sys\n"
        "from sketchnewton.cli import main\n"
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


def test_training_imports_no_more_than_numpy(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm")
    modules = modules_after("train", str(data), "--model", str(tmp_path / "m.skn"), "--quiet")
    assert "numpy" in modules
    assert not modules & {"scipy", "sklearn", "matplotlib", "safetensors"}


def test_version() -> None:
    run = skn("--version")
    assert (run.returncode, run.stdout.decode()) == (0, f"skn {sketchnewton.__version__}\n")


@pytest.mark.parametrize("args", [[], ["--help"]])
def test_help_fits_a_screen(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(args)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    for command in COMMANDS:
        assert any(f"skn {command}" in line for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    page = capsys.readouterr().out
    assert f"  skn {command}" in page.partition("examples:")[2]


def test_help_names_every_loss(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    page = capsys.readouterr().out
    for name in LOSSES:
        assert name in page
