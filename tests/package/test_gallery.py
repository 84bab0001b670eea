"""The examples of the gallery run, print what the site shows, and draw."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
ROWS = {"text": 400, "explain": 300, "sparse_pca": 600, "torch_net": 400}


def shape(text: str) -> list[str]:
    """The lines without their numbers: those differ with the number of rows."""
    return [re.sub(r"[-+]?\d[\d.,e+%-]*", "#", re.sub(r" +", " ", line)) for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    if "import torch" in path.read_text(encoding="utf-8") and find_spec("torch") is None:
        pytest.skip("needs torch: make test-torch")
    picture = tmp_path / "picture.png"
    command = [
        sys.executable,
        "-W",
        "error",
        path,
        "--rows",
        str(ROWS.get(path.stem, 800)),
        "--picture",
        picture,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = (ROOT / "docs" / "gallery" / f"{path.stem}.txt").read_text(encoding="utf-8")
    if path.stem not in (
        "explain",
        "torch_net",
    ):  # which features are largest, and which rate is best, differ
        assert shape(done.stdout) == shape(shown)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_eight_with_output_and_picture() -> None:
    assert len(EXAMPLES) == 8
    for path in EXAMPLES:
        for ending in (".txt", ".png"):
            assert (ROOT / "docs" / "gallery" / path.stem).with_suffix(ending).stat().st_size > 50
