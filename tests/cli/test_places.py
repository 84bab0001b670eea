"""Rows that can be read and that no learner takes are told with their file and line, whatever the format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from sketchnewton.cli.main import main
from tests.cli.support import skn

Row = tuple[float, float]  # label and value


def text_of(ending: str, rows: Sequence[Row]) -> tuple[str, list[int]]:
    """A file that has these rows and lines that are none, and the line in which each row begins."""
    text = {"csv": "label,x,note\n", "tsv": "\n\nlabel\tx\n"}.get(ending, "\n \n")
    lines = []
    for number, (label, value) in enumerate(rows):
        if number % 3 == 1:
            text += {"svm": "# none\n  # none\n", "csv": "\r\n", "tsv": "\n"}.get(ending, " \t \r\n\n")
        lines.append(text.count("\n") + 1)
        note = '"two\nlines, ""quoted"""' if number % 2 else "plain"
        text += {
            "svm": f"{label} 1:{value} # a comment\n",
            "vw": f"{label} 'tag|x a:{value}\r\n",
            "csv": f"{label},{value},{note}\n",
            "tsv": f"{label}\t{value}\n",
            "jsonl": json.dumps({"label": label, "x": value}) + "\n",
        }[ending]
    return text, lines


ENDINGS = ("svm", "vw", "csv", "tsv", "jsonl")
every_text = pytest.mark.parametrize("ending", ENDINGS)
GOOD: list[Row] = [(1.0, 0.5), (0.0, -0.5), (1.0, 2.0), (0.0, 1.0), (1.0, 3.0), (0.0, 4.0)]


def with_bad(at: int, bad: Row) -> list[Row]:
    return [*GOOD[:at], bad, *GOOD[at:]]


@pytest.mark.parametrize("threads", ["1", "2"])
@every_text
def test_file_and_line(ending: str, threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A label outside of the loss's range and a value that is too large, in the second of two files."""
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    first.write_text(text_of(ending, GOOD)[0])
    options = ["--loss", "poisson", "--regression", "--threads", threads]
    for bad, why in (((-3.0, 1.0), "has the label -3"), ((1.0, 1e31), "has the value 1e+31 for ")):
        for at in range(len(GOOD) + 1):
            text, lines = text_of(ending, with_bad(at, bad))
            second.write_text(text)
            assert main(["train", str(first), str(second), *options]) == 1
            assert f"skn: {second}:{lines[at]}: row {at + 1} {why}" in capsys.readouterr().err
    assert main(["train", str(first), str(second), *options, "--on-error", "skip"]) == 0
    assert f"1 row skipped; the first: {second}:{lines[at]}: row {at + 1} {why}" in capsys.readouterr().err


@every_text
def test_rows_behind_malformed_ones(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    malformed = {"svm": "1 x:1\n", "vw": "1 |a b:x\n", "csv": "1\n", "tsv": "1\n", "jsonl": "{\n"}[ending]
    text, lines = text_of(ending, with_bad(5, (-3.0, 1.0)))
    pieces = text.splitlines(keepends=True)
    line = lines[2]  # before the third row
    path = tmp_path / f"rows.{ending}"
    path.write_text("".join([*pieces[: line - 1], malformed, *pieces[line - 1 :]]))
    options = ["--loss", "poisson", "--regression", "--on-error", "skip", "--model", str(tmp_path / "m.skn")]
    assert main(["train", str(path), *options]) == 0
    assert f"2 rows skipped; the first: {path}:{line}:" in capsys.readouterr().err
    assert main(["test", str(tmp_path / "m.skn"), str(path)]) == 1
    path.write_text(text)
    assert main(["test", str(tmp_path / "m.skn"), str(path)]) == 1
    assert f"skn: {path}:{lines[5]}: row 6 has the label -3" in capsys.readouterr().err


@every_text
def test_a_pipe_has_lines(ending: str) -> None:
    text, lines = text_of(ending, with_bad(4, (-3.0, 1.0)))
    format = "svmlight" if ending == "svm" else ending
    options = ("--format", format, "--loss", "poisson", "--regression")
    ended = skn("train", "-", *options, stdin=text.encode())
    assert ended.returncode == 1
    assert f"skn: <stdin>:{lines[4]}: row 5 has the label -3" in ended.stderr.decode()


def test_archives_have_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the file that they are in."""
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path, rows in zip(paths, (GOOD, with_bad(4, (-3.0, 1.0))), strict=True):
        labels, values = np.array(rows).T
        X = csr_array(values[:, None])
        np.savez(
            path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=b"csr", labels=labels
        )
    assert main(["train", *map(str, paths), "--loss", "poisson", "--regression"]) == 1
    assert f"skn: {paths[1]}: row 5 has the label -3" in capsys.readouterr().err


def test_negative_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "vw": ("1 1 | a\n\n1 -2 | a\n", 3),
        "csv": ('label,_weight,x\n1,1,"a\nb"\n1,-2,c\n', 4),
        "jsonl": ('{"label": 1, "x": 1}\n\n{"label": 1, "_weight": -2, "x": 1}\n', 3),
    }
    for ending, (text, line) in texts.items():
        path = tmp_path / f"rows.{ending}"
        path.write_text(text)
        assert main(["train", str(path)]) == 1
        assert f"skn: {path}:{line}:" in capsys.readouterr().err
