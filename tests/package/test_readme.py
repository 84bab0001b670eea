"""The README's commands run as printed, its Python too, and its links lead to files of the project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.cli.test_guides import BLOCK, pattern

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = "https://github.com/sketchnewton/sketchnewton"
MAKE = re.compile(r"^make ([a-z-]+)", re.MULTILINE)


def run(command: list[str], folder: Path) -> str:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    blocks = BLOCK.findall(README)
    assert len(blocks) == 3
    install, first, rest = blocks
    # `make demo` is what installs: the rest runs where it did. That the target exists is another test's.
    assert MAKE.findall(install[0]) == ["demo", "test"]
    here = first[0].replace('cd "$(mktemp -d)"\n', "")  # the next block continues in the same folder
    assert here != first[0]
    said = run(["bash", "-eu", "-c", here], tmp_path)
    assert pattern(first[1]).fullmatch(said), said
    said = run(["bash", "-eu", "-c", rest[0]], tmp_path)
    assert said.endswith("resuming gave the same bytes as one run\n")
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 597


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", re.findall(r"```python\n(.*?)```", README, re.DOTALL), ids=["arrays", "records", "sklearn"]
)
def test_python(script: str, tmp_path: Path) -> None:
    assert run([sys.executable, "-W", "error", "-c", script], tmp_path)


def test_links_are_absolute_and_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert all(link.startswith("https://") for link in links)  # the index of packages shows this page, too
    ours = [link.removeprefix(HOME) for link in links if link.startswith(HOME)]
    assert len(ours) > 15
    for link in ours:
        path = re.sub(r"^/(blob|raw)/main/", "", link)
        assert (ROOT / path).exists(), link


def test_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in {*MAKE.findall(README), *re.findall(r"`make ([a-z-]+)`", README)}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
