"""The experiment with convolutional networks runs from the command line, on idx files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[2] / "experiments" / "ada" / "cnn.py"


def write(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def test_cnn(tmp_path):
    random = np.random.default_rng(0)
    for part, n in (("train", 1400), ("t10k", 100)):
        labels = random.integers(0, 10, n)
        images = random.integers(0, 50, (n, 28, 28))
        images[np.arange(n), 2 * labels + 4] = 255  # a line at a height that tells the class
        write(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        write(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels)
    command = [sys.executable, SCRIPT, "--data", tmp_path, "--rows", "256", "--seeds", "1", "--workers", "1"]
    command += ["--etas", "0.01", "--sigmas", "0.1"]
    command += ["--picture", tmp_path / "cnn.svg", "--results", tmp_path / "cnn.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ADA-GP, own η  η=0.01 σ=0.1" in done.stdout
    assert (tmp_path / "cnn.svg").read_text().startswith("<?xml")
    results = json.loads((tmp_path / "cnn.json").read_text())
    assert [len(runs[0]["losses"]) for runs in results.values()] == [2, 2, 2]
    # The first batch is the same for all, the first step of the convolutions is not; two η may be alike.
    adagrad, one, own = (runs[0]["losses"] for runs in results.values())
    assert adagrad[0] == one[0]
    assert adagrad[1] != one[1]
    assert one == own
