"""`skn train --shards`: processes that learn parts give the model that the rule gives, the same each time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sketchnewton import Model, load
from sketchnewton.cli.main import main
from sketchnewton.cli.options.command_line import parse
from sketchnewton.cli.train.shard import Rows
from sketchnewton.core.batch import ParseError
from sketchnewton.model.shards import merged_models
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.parts import cut, read_parts
from tests.cli.support import svmlight_lines, write_rows

OPTIONS = {"features": None, "columns": None, "names": None}


def lines(rows: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    y = np.sign(X @ np.arange(-2.5, 3))
    return "".join(
        f"{label:g} " + " ".join(f"{i + 1}:{value:.4f}" for i, value in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    )


@pytest.mark.parametrize("count", [1, 2, 5, 16, 400])
def test_parts_are_the_file(count: int, tmp_path: Path) -> None:
    """Every line is in one part, in order, whatever their number."""
    path = tmp_path / "rows.svm"
    path.write_text(lines(97)[:-1])  # without a last newline
    parts = cut([str(path)], count)
    assert len(parts) == min(count, 97) or count == 400
    text = path.read_bytes()
    assert b"".join(text[part.begin : part.end] for part in parts) == text
    assert all(part.begin == 0 or text[part.begin - 1 : part.begin] == b"\n" for part in parts)
    labels = [batch.labels for batch in read_parts(parts, ErrorPolicy(), None, **OPTIONS)]
    assert sum(map(len, labels)) == 97


def by_hand(path: Path, base: Model, count: int, rounds: int, first: int) -> Model:
    """The same training, written out; `first` rows of each part of the first round are learned before it."""
    parts = cut([str(path)], count * rounds)
    cells = [next(read_parts([part], ErrorPolicy(), None, **OPTIONS)) for part in parts]
    for number in range(count):
        base.learner.learn_batch(cells[number][:first])
        cells[number] = cells[number][first:]
    for turn in range(rounds):
        shards = [Model.from_bytes(base.to_bytes()) for _ in range(count)]
        for shard, cell in zip(shards, cells[count * turn : count * (turn + 1)], strict=True):
            shard.learner.learn_batch(cell)
        base = merged_models(shards, base)
    return base


@pytest.mark.parametrize(("rows", "rounds"), [(1000, 3), (1000, 8), (8000, 8)])
def test_shards_learn_by_the_rule(
    rows: int, rounds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 1,000 rows in eight rounds the whole first round is learned before it."""
    path, model, more = tmp_path / "rows.svm", tmp_path / "model.skn", tmp_path / "more.skn"
    path.write_text(lines(rows))
    command = ["train", str(path), "--shards", "2", "--rounds", str(rounds), "--threads", "1"]
    assert main([*command, "--model", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == facts["rows_seen"] == rows
    assert facts["error_rate"] < 0.2
    first = model.read_bytes()
    assert main([*command, "--model", str(model), "--quiet"]) == 0
    assert model.read_bytes() == first
    expected = by_hand(path, Model(), 2, rounds, 250 if rounds == 8 else 0)
    assert load(model).learner.to_bytes() == expected.learner.to_bytes()
    # A model that knows rows needs no warm-up.
    assert main([*command, "--resume", str(model), "--model", str(more), "--quiet"]) == 0
    expected = by_hand(path, expected, 2, rounds, 0)
    assert load(more).learner.to_bytes() == expected.learner.to_bytes()


@pytest.mark.parametrize("rounds", ["1", "8"])
@pytest.mark.parametrize("count", ["1", "3"])
def test_every_row_is_learned_once(count: str, rounds: str, tmp_path: Path) -> None:
    """Each has a feature of its own: in text that is cut, and in tables, of which each part has several."""
    model = tmp_path / "model.skn"
    (tmp_path / "rows.svm").write_text("".join(f"{1 - 2 * (i % 2)} {i + 1}:1\n" for i in range(3000)))
    for number in range(30):
        names = [f"{number}-{i},{1 - 2 * (i % 2)}" for i in range(100)]
        (tmp_path / f"{number}.csv").write_text("\n".join(["city,label", *names]) + "\n")
    tables = [str(tmp_path / f"{number}.csv") for number in range(30)]
    for data in ([str(tmp_path / "rows.svm")], [*tables, "--exact-names"]):
        options = ["--shards", count, "--rounds", rounds, "--model", str(model), "--no-intercept", "--quiet"]
        assert main(["train", *data, *options]) == 0
        learner = load(model).learner
        assert learner.rows_seen == learner.features_seen == 3000
        counts = learner._table.rows_of_active(3000)[:, -3]
        np.testing.assert_array_equal(counts, 1.0)


def test_files_of_any_format_are_parts(tmp_path: Path) -> None:
    """Tables, labels with names and exact names: a file each."""
    rng = np.random.default_rng(0)
    for number in range(4):
        rows = ["city,age,label"]
        for _ in range(100):
            city = rng.choice(["Rome", "Oslo", "Bonn"])
            rows.append(f"{city},{rng.integers(90)},{'yes' if city == 'Rome' else 'no'}")
        (tmp_path / f"{number}.csv").write_text("\n".join(rows) + "\n")
    model = tmp_path / "model.skn"
    files = [str(tmp_path / f"{number}.csv") for number in range(4)]
    for options in ([], ["--exact-names"]):
        assert main(["train", *files, "--shards", "2", "--model", str(model), "--quiet", *options]) == 0
        loaded = load(model)
        assert loaded.learner.rows_seen == 400
        assert loaded.predict([{"city": "Rome", "age": 30}, {"city": "Oslo", "age": 30}]).tolist() == [
            "yes",
            "no",
        ]


def test_errors_are_located_and_leave_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "rows.svm", tmp_path / "model.skn"
    rows = lines(300).splitlines(keepends=True)
    rows[222] = "1 2:x\n"
    path.write_text("".join(rows))
    command = ["train", str(path), "--shards", "2", "--model", str(model)]
    assert main(command) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert f"{path}:223:5: expected a number" in message
    assert message.endswith("(nothing was saved)")
    assert not model.exists()
    assert main([*command, "--on-error", "skip", "--json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["skipped"] == 1
    assert json.loads(out.out)["rows"] == 299
    assert f"{path}:223:5" in out.err


def test_rows_that_are_learned_first_are_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad ones, too, and those of later rows have their numbers."""
    path = tmp_path / "rows.svm"
    rows = lines(12_000).splitlines(keepends=True)
    rows[10] = "1 2:x\n"  # cannot be read
    rows[20] = "1 2:1e300\n"  # cannot be learned
    rows[700] = "1 2:1e300\n"
    path.write_text("".join(rows))
    command = ["train", str(path), "--shards", "2", "--rounds", "8"]
    assert main([*command, "--on-error", "skip", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["skipped"]) == (11_997, 3)
    for bad, message in (
        (10, f"{path}:11:5: expected a number"),
        (20, "row 21 of what shard 1 reads in this round has the value 1e+300"),
        (700, "row 701 of what shard 1 reads in this round has the value 1e+300"),
    ):
        path.write_text("".join([*lines(12_000).splitlines(keepends=True)[:bad], *rows[bad:]]))
        assert main([*command, "--model", str(tmp_path / "model.skn")]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert message in said
        assert said.endswith("(nothing was saved)")
    assert not (tmp_path / "model.skn").exists()


def test_rows_that_are_read_ahead_come_first(tmp_path: Path) -> None:
    """Whether or not there was time to read them; an error comes behind the rows before it."""
    path = tmp_path / "rows.svm"
    path.write_text(lines(300) + "1 2:x\n" + lines(10))
    args = parse(["train", str(path), "--shards", "1"])
    found = []
    for ahead in (True, False):
        rows = Rows(args, Model(), cut([str(path)], 2))
        while ahead and rows.read_ahead():
            pass
        labels: list[float] = []
        with pytest.raises(ParseError, match="301:5: expected a number"):
            labels.extend(label for batch in rows for label in batch.labels.tolist())
        found.append(labels)
    assert found[0] == found[1]
    assert len(found[0]) == 300


def test_rows_of_a_round_from_one_to_another(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text(lines(97))
    args, parts = parse(["train", str(path), "--shards", "1"]), cut([str(path)], 5)

    def labels(**some: int) -> list[float]:
        return [label for batch in Rows(args, Model(), parts, **some) for label in batch.labels.tolist()]

    whole = labels()
    assert len(whole) == 97
    for place in (0, 1, 19, 20, 60, 97, 200):
        assert labels(end=place) == whole[:place]
        assert labels(begin=place) == whole[place:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "3"], "--rounds needs --shards"),
        (["--shards", "2", "--passes", "3"], "--passes cannot be combined with --shards"),
        (["--shards", "2", "--holdout", "3"], "--holdout cannot be combined with --shards"),
        (
            ["--shards", "2", "--learner", "adagrad", "--rounds", "4"],
            "AdaGrad cannot be merged relative to a base",
        ),
        (["--shards", "1000"], "cannot be divided among 1000 shards"),
    ],
)
def test_what_does_not_go_with_shards(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "rows.svm")
    assert main(["train", str(path), *options]) == 2
    assert message in capsys.readouterr().err


def test_other_learners_merge_once(tmp_path: Path) -> None:
    path, model = write_rows(tmp_path / "rows.svm"), tmp_path / "model.skn"
    assert (
        main(["train", str(path), "--shards", "2", "--learner", "adagrad", "--model", str(model), "--quiet"])
        == 0
    )
    assert load(model).learner.rows_seen == 400


def test_resuming_begins_with_the_model(tmp_path: Path) -> None:
    path, model = write_rows(tmp_path / "rows.svm"), tmp_path / "model.skn"
    assert main(["train", str(path), "--model", str(model), "--quiet"]) == 0
    command = ["train", str(path), "--shards", "2", "--resume", str(model), "--model", str(model), "--quiet"]
    assert main(command) == 0
    assert load(model).learner.rows_seen == 800


@pytest.mark.slow
def test_a_signal_leaves_nothing_behind(tmp_path: Path) -> None:
    path, model = tmp_path / "rows.svm", tmp_path / "model.skn"
    path.write_text(lines(20_000) * 40)
    command = [
        sys.executable,
        "-m",
        "sketchnewton",
        "train",
        str(path),
        "--shards",
        "2",
        "--model",
        str(model),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        time.sleep(1.5)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    if process.returncode == 0:  # faster than we are
        return
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith(f"{model} was not written")
    assert not model.exists()


@pytest.mark.slow
def test_shards_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    """Their pipes end: no process waits for ever for a parent that is gone."""
    path = tmp_path / "rows.svm"
    path.write_text(lines(20_000) * 40)
    command = [sys.executable, "-m", "sketchnewton", "train", str(path), "--shards", "2", "--rounds", "100"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        children: list[int] = []
        while len(children) < 2 and process.poll() is None:
            found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            children = [int(number) for number in found]
        time.sleep(0.3)
        process.kill()
    deadline = time.monotonic() + 30
    while any(_runs(child) for child in children):
        assert time.monotonic() < deadline, "a shard's process is still there"
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[-1][0] != "Z"
    except OSError:
        return False


def test_shards_look_at_labels_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows sorted by label, and a positive label that no row has, are told as without shards."""
    rows = svmlight_lines(600)
    sorted_rows, mixed = tmp_path / "sorted.svm", tmp_path / "mixed.svm"
    sorted_rows.write_text("".join(sorted(rows)))
    mixed.write_text("".join(rows))
    for options in (["--shards", "2"], ["--shards", "3", "--rounds", "2"]):
        assert main(["train", str(sorted_rows), *options]) == 0
        said = capsys.readouterr().err
        assert "skn: warning: labels come in runs: " in said
        assert "of 600 differ from the one before, in random order about 281 would" in said
        assert "; shuf mixes the lines of a file" in said
        assert main(["train", str(mixed), *options]) == 0
        assert "warning" not in capsys.readouterr().err
    assert main(["train", str(mixed), "--shards", "2", "--positive", "7"]) == 0
    assert "skn: warning: no row has the label 7, so all" in capsys.readouterr().err
