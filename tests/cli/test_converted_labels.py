"""`skn convert` writes a number for every label, and says which for those that are not numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sketchnewton.cli.main import main
from sketchnewton.streams import open_stream
from tests.cli.support import skn


def test_converted_labels_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,x\nyes,1\nno,2\n")
    assert main(["convert", str(path), str(tmp_path / "a.vw")]) == 0
    assert "labels: no as 0, yes as 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "written", "said"),
    [
        (["spam", "ham"], [1, -1], "ham as -1, spam as 1"),
        (["b", "a", "ü"], [2, 1, 3], "a as 1, b as 2, ü as 3"),
        (["yes", "no", "maybe"], [3, 2, 1], "maybe as 1, no as 2, yes as 3"),
        (["one", "one"], [1, 1], "one as 1"),
    ],
)
@pytest.mark.parametrize("to", ["svm", "vw", "jsonl", "csv", "npz"])
def test_labels_that_are_texts_are_numbered(
    to: str,
    labels: list[str],
    written: list[int],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = tmp_path / "a.csv", tmp_path / f"b.{to}"
    source.write_text("label,x\n" + "".join(f"{label},1\n" for label in labels))
    assert main(["convert", str(source), str(target)]) == 0
    assert f"labels: {said}\n" in capsys.readouterr().err
    found = [float(label) for batch in open_stream(target) for label in batch.labels]
    assert found == written


def test_labels_of_a_pipe_are_named(tmp_path: Path) -> None:
    rows = b'{"y": "dog", "x": 1}\n{"y": "cat", "x": 2}\n'
    told = skn("convert", "-", "-", "--to", "vw", "--format", "jsonl", "--classes", "dog,cat", stdin=rows)
    assert told.stderr.startswith(b"labels: cat as -1, dog as 1\n")
    assert told.stdout.split()[0::3] == [b"1", b"-1"]
    told = skn("convert", "-", "-", "--to", "vw", "--format", "jsonl", "--classes", "dog,cow", stdin=rows)
    assert b"2:2: expected one of the classes" in told.stderr
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n")
    told = skn("convert", path, "-", "--to", "vw", "--classes", "1,2")
    assert told.returncode == 2
    assert b"--classes does not apply to" in told.stderr


def test_a_text_among_numbers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbering them all would make other numbers of them."""
    source, target = tmp_path / "a.csv", tmp_path / "b.svm"
    source.write_text("label,x\n10,1\n9,2\nx,3\n")
    assert main(["convert", str(source), str(target)]) == 1
    assert "labels are numbers, but one is the text 'x'" in capsys.readouterr().err
    assert not target.exists()
    assert main(["convert", str(source), str(target), "--classes", "10,9,x"]) == 0
    assert "10 as 1, 9 as 2, x as 3" in capsys.readouterr().err
