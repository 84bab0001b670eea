"""Files sorted by label: `skn train` says so, and `--shuffle` learns their rows in random order."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sketchnewton.cli.main import main
from sketchnewton.core.batch import Batch
from sketchnewton.features.columns import Columns
from sketchnewton.model import LabelWatch, Model
from sketchnewton.streams.shuffle import concatenated, random_order, shuffled
from tests.cli.support import skn, write_rows
from tests.cli.test_interrupted import train, train_until


@pytest.fixture
def iris(tmp_path: Path) -> Path:
    """As everybody has it: sorted by species."""
    data = load_iris()
    lines = ["sepal_length,sepal_width,petal_length,petal_width,species"]
    lines += [
        ",".join([*map(str, row), str(data.target_names[label])])
        for row, label in zip(data.data.tolist(), data.target, strict=True)
    ]
    path = tmp_path / "iris.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def error(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> float:
    capsys.readouterr()
    assert main(["test", str(model), str(data), "--json"]) == 0
    return float(json.loads(capsys.readouterr().out)["error"])


def test_iris(iris: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.skn"
    command = ["train", str(iris), "--label", "species", "--model", str(model)]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "skn: warning: labels come in runs: 2 of 150 differ from the one before" in said
    assert "--shuffle" in said
    assert error(model, iris, capsys) > 0.5  # what the warning is about
    assert main([*command, "--shuffle"]) == 0
    assert "labels come in runs" not in capsys.readouterr().err
    assert error(model, iris, capsys) < 0.1


def test_a_model_in_python_warns_too(iris: Path) -> None:
    """Of the same rows, in the same words."""
    model = Model(columns=Columns(label="species"))
    with pytest.warns(UserWarning, match="labels come in runs: 2 of 150 .*: shuffle them first$"):
        model.learn(iris)
    header, *lines = iris.read_text().splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    Model(columns=Columns(label="species")).learn([rows[at] for at in random_order(len(rows)).tolist()])
    ordered = Model(columns=Columns(label="number"))
    ordered.learn([{"a": at, "number": at // 10} for at in range(500)])  # a sensor is no class


def test_shuffled_rows_are_the_same_rows(tmp_path: Path) -> None:
    lines = [f"{i % 2} {1 + i % 3} row{i}| a:{i} b{i % 5}\n" for i in range(500)]
    lines += [f"{i % 2} | c:{i}\n" for i in range(500, 700)]
    data, model = tmp_path / "d.vw", tmp_path / "m.skn"
    data.write_text("".join(lines))
    done = skn("train", data, "--model", model, "--shuffle", "--json", "--passes", "2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows_seen"] == 1400
    assert not list(tmp_path.glob("*cache*"))  # rows are in memory
    options = ["--model", tmp_path / "p.skn", "--shuffle", "--passes", "2"]
    from_pipe = skn("train", "-", *options, stdin=data.read_bytes())
    assert from_pipe.returncode == 0, from_pipe.stderr
    assert (tmp_path / "p.skn").read_bytes() == model.read_bytes()


def test_concatenated_and_taken() -> None:
    def rows(begin: int, end: int, **more: object) -> Batch:
        labels = np.arange(begin, end, dtype=float)
        lengths = np.arange(begin, end) % 4
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.repeat(labels, lengths)
        return Batch(indptr, entries.astype(np.int32) + 7, entries + 0.5, labels).replace(**more)

    parts = [
        rows(0, 10),
        rows(10, 13, weights=np.array([2.0, 3.0, 4.0]), tags=[b"x", b"y", b"z"], base=np.ones(3)),
        rows(13, 40)[3:],
    ]
    whole = concatenated(parts)
    assert whole.labels.tolist() == [*range(13), *range(16, 40)]
    assert whole.weights is not None
    assert whole.weights[8:14].tolist() == [1, 1, 2, 3, 4, 1]
    assert whole.base is not None
    assert whole.base.sum() == 3
    assert whole.tags is not None
    assert whole.tags[9:14] == [b"", b"x", b"y", b"z", b""]
    for batch in [whole, *shuffled(parts)]:
        for row in range(len(batch)):
            one = batch[row : row + 1]
            label = int(one.labels[0])
            assert one.indices.tolist() == [label + 7] * (label % 4)
            assert one.data.tolist() == [label + 0.5] * (label % 4)
            assert one.weights is not None
            assert one.weights[0] == {10: 2, 11: 3, 12: 4}.get(label, 1)
            assert one.tags == [{10: b"x", 11: b"y", 12: b"z"}.get(label, b"")]
    dealt = [label for batch in shuffled(parts) for label in batch.labels.tolist()]
    assert dealt != sorted(dealt) == whole.labels.tolist()
    assert shuffled([]) == shuffled([whole[3:3]]) == []


def test_orders_are_random_and_repeat() -> None:
    order = random_order(10_000)
    assert sorted(order.tolist()) == list(range(10_000))
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.05
    np.testing.assert_array_equal(order, random_order(10_000))


@pytest.mark.parametrize("options", [[], ["--passes", "3", "--holdout", "5"], ["--checkpoint-every", "150"]])
@pytest.mark.parametrize("row", [0, 700, 999])
def test_interrupted_then_resumed(options: list[str], row: int, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=1000, labels=(0, 1))
    whole, model = tmp_path / "whole.skn", tmp_path / "m.skn"
    assert train(data, whole, "--shuffle", *options) == 0
    assert train_until(row, data, model, "--shuffle", *options) == 130
    assert train(data, model, *options, "--resume", model) == 0  # the run knows its order
    assert model.read_bytes() == whole.read_bytes()


def test_a_resumed_run_is_still_shuffled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = write_rows(tmp_path / "rows.svm", rows=1000, labels=(0, 1)), tmp_path / "m.skn"
    assert train_until(10, data, model, "--shuffle", "--passes", 2) == 130
    assert train(data, model, "--resume", model, "--predictions", tmp_path / "p.txt") == 2
    assert "--predictions cannot be combined with --shuffle" in capsys.readouterr().err
    assert train(data, model, "--resume", model) == 0
    assert not list(tmp_path.glob("*cache*"))


def test_what_does_not_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = write_rows(tmp_path / "rows.svm", rows=1000, labels=(0, 1)), tmp_path / "m.skn"
    assert train_until(10, data, model, "--checkpoint-every", 100) == 130
    assert train(data, model, "--shuffle", "--resume", model) == 2
    assert "--shuffle does not agree with" in capsys.readouterr().err
    for option in (["--predictions", str(tmp_path / "p")], ["--shards", "2"]):
        assert train(data, tmp_path / "n.skn", "--shuffle", *option) == 2
        assert "--shuffle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "warns"),
    [
        (np.repeat([1.0, -1.0], 500), True),
        (np.repeat(np.arange(10.0), 30), True),
        (np.tile(np.repeat([0.0, 1.0], 5), 100), False),  # persistent, not sorted
        (np.random.default_rng(0).integers(0, 2, 1000).astype(float), False),
        (np.repeat([1.0, -1.0], [20, 20]), True),
        (np.repeat([1.0, -1.0], [10, 10]), False),  # few rows
        (np.repeat([1.0, -1.0], [5000, 3]), False),  # a change or two are no wonder
        (np.sort(np.random.default_rng(1).normal(size=1000)), False),  # numbers
        (np.ones(1000), False),
    ],
)
@pytest.mark.parametrize("size", [1, 37, 100_000])
def test_runs(labels: np.ndarray, warns: bool, size: int) -> None:
    watch = LabelWatch()
    for begin in range(0, len(labels), size):
        watch.follow(labels[begin : begin + size])
    watch.follow(labels[:0])
    assert (watch.runs() is not None) == warns
    assert (watch.runs(numbers=True) is not None) == (warns and len(set(labels.tolist())) == 2)
    assert LabelWatch().runs() is None
