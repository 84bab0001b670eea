"""The walk-through in the documentation runs exactly as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "walkthrough.md"
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.DOTALL)


def pattern(expected: str) -> re.Pattern[str]:
    """What is printed, with `…` for anything; a line of its own for any number of lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…\n" else re.escape(line) for line in expected.splitlines(keepends=True)
    ]
    return re.compile("".join(lines).replace("…", ".*"))


@pytest.mark.slow
def test_the_walk_through_runs_as_printed(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 9
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    for commands, expected in blocks:
        ended = subprocess.run(
            ["bash", "-eu", "-c", commands],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        said = ended.stdout.decode()
        assert ended.returncode == 0, f"{commands}\n{said}"
        assert pattern(expected).fullmatch(said), f"{commands}\nprinted\n{said}"
