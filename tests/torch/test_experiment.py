"""The experiment with convolutional networks, at toy size, on idx files."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.ada import cnn
from experiments.runner import Job, call


def write(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def test_cnn(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    random = np.random.default_rng(0)
    for part, n in (("train", 1400), ("t10k", 100)):
        labels = random.integers(0, 10, n)
        images = random.integers(0, 50, (n, 28, 28))
        images[np.arange(n), 2 * labels + 4] = 255  # a line at a height that tells the class
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte.gz", images)
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte.gz", labels)
    experiment = cnn.EXPERIMENTS[0]
    toy = {"etas": [0.01], "sigmas": [0.1], "rows": 256, "seeds": 1}
    jobs = [Job(job.function, {**job.arguments, **toy}) for job in experiment.jobs(tmp_path, True)[0]]
    results = [(job, call(job.function, job.arguments)["result"]) for job in jobs]
    # The first batch is the same for all, the first step of the convolutions is not; two η may be alike.
    adagrad, filter_one, filter_own, layer_own = (result["losses"] for _, result in results)
    assert len(adagrad) == 2
    assert adagrad[0] == filter_one[0]
    assert adagrad[1] != filter_one[1]
    assert filter_one == filter_own
    assert filter_own[0] == layer_own[0]
    assert filter_own[1] != layer_own[1]
    outcome = experiment.outcome(results)
    assert [row[0] for row in outcome.tables[0].rows] == [
        "ADA-DIAG",
        "ADA-GP of filters, one η",
        "ADA-GP of filters, own η",
        "ADA-GP of layers, own η",
    ]
    assert "ADA-DIAG" in outcome.verdict
