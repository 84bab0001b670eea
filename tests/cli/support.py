"""What the tests of the command line share: data files, and the command in and out of this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from sketchnewton.learners import Learner
from sketchnewton.model import open_model

SKN = [sys.executable, "-m", "sketchnewton"]


def svmlight_lines(rows: int = 400, seed: int = 0, labels: tuple[int, int] = (-1, 1)) -> list[str]:
    """Rows of a separable problem with five features."""
    random = np.random.default_rng(seed)
    lines = []
    for x in random.standard_normal((rows, 5)):
        label = labels[int(x[0] - 2 * x[1] + 0.5 > 0)]
        lines.append(f"{label} " + " ".join(f"{i}:{value:.4f}" for i, value in enumerate(x, 1)) + "\n")
    return lines


def write_rows(path: Path, rows: int = 400, seed: int = 0, labels: tuple[int, int] = (-1, 1)) -> Path:
    path.write_text("".join(svmlight_lines(rows, seed, labels)))
    return path


def skn(*args: object, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own, stdout and stderr kept."""
    return subprocess.run(
        [*SKN, *map(str, args)], input=stdin, capture_output=True, timeout=120, check=False, env=os.environ
    )


def trained(path: Path) -> Learner:
    """The learner of the model that the command wrote."""
    return open_model(path).learner
