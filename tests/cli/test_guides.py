"""The guides in the documentation run exactly as printed: commands, their output, and Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"walkthrough": 9, "tables": 5, "text": 5, "regression": 4, "classes": 3, "model-files": 4}
EXAMPLES = ["untuned", "class-bank", "newton", "oja", "frequent-directions", "invariant", "adaptive"]
EXAMPLES += ["regret", "sketching", "eigenvectors"]
PART = re.compile(r"```(sh|python)\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.DOTALL)
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.DOTALL)


def pattern(expected: str) -> re.Pattern[str]:
    """What is printed, with `…` for anything; a line of its own for any number of lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…\n" else re.escape(line) for line in expected.splitlines(keepends=True)
    ]
    return re.compile("".join(lines).replace("…", ".*"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_guide_runs_as_printed(page: str, tmp_path: Path) -> None:
    parts = PART.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(parts) >= PAGES[page]
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    for language, script, expected in parts:
        program = ["bash", "-eu"] if language == "sh" else [sys.executable, "-W", "error"]
        ended = subprocess.run(
            [*program, "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        said = ended.stdout.decode()
        assert ended.returncode == 0, f"{script}\n{said}"
        if expected or language == "sh":
            assert pattern(expected).fullmatch(said), f"{script}\nprinted\n{said}"


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    """Its blocks in one program: later ones use the names of earlier ones."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    subprocess.run(
        [sys.executable, "-W", "error", "-c", "".join(blocks)], cwd=tmp_path, timeout=120, check=True
    )
