"""`skn sketch` and `skn merge`: the sketch of a file is that of its rows, and every mistake is one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from sketchnewton import AdaGrad, FrequentDirections, RobustFrequentDirections
from sketchnewton.cli.main import main
from sketchnewton.streams import read_svmlight
from tests.cli.support import skn, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


def test_the_sketch_is_that_of_the_rows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = data.with_name("s.skn")
    assert main(["sketch", str(data), "--kind", "rfd", "--size", "4", "-o", str(out)]) == 0
    (batch,) = read_svmlight(data)
    expected = RobustFrequentDirections(4).update(batch)
    sketch = sketchnewton.load(out)
    np.testing.assert_array_equal(sketch.matrix, expected.matrix)
    page, notes = capsys.readouterr()
    for words in (
        "RobustFrequentDirections(sketch_size=4)",
        "rows seen     400",
        "error bound",
        f"singular values ({len(expected.singular_values_)}",
    ):
        assert words in page
    assert f"sketch saved to {out}" in notes
    assert main(["inspect", str(out)]) == 0
    assert f"singular values ({len(expected.singular_values_)}" in capsys.readouterr().out


def test_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sketch", str(data), "--target-error", "0.1", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert facts["rows_seen"] == 400
    assert facts["error_bound"] <= 0.1 * facts["squared_norm"]
    assert main(["sketch", str(data), "--kind", "oja", "--size", "2", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["error_bound"] is None


@pytest.mark.parametrize("kind", ["fd", "rfd", "pfd", "cfd", "greedy", "rp", "oja", "exact"])
def test_every_kind(data: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sketch", str(data), "--kind", kind]) == 0
    assert "rows seen     400" in capsys.readouterr().out


def test_features_that_come_late(tmp_path: Path) -> None:
    path = tmp_path / "late.svm"
    rows = f"1 1:2 # {'x' * 90}\n" * 20_000  # comments make batches out of few rows
    path.write_text(rows + "1 7:3\n" + rows)
    assert len(list(read_svmlight(path))) > 1
    assert main(["sketch", str(path), "--kind=fd", "--size=4", "--quiet", "-o", str(tmp_path / "s.skn")]) == 0
    sketch = FrequentDirections.load(tmp_path / "s.skn")
    assert sketch.n_features == 8
    np.testing.assert_allclose(np.diag(sketch.covariance()), [0, 1.6e5, 0, 0, 0, 0, 0, 9], rtol=1e-9)


def test_merged_files_are_a_sketch_of_all_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    A, narrow = random.standard_normal((50, 6)), random.standard_normal((50, 4))
    FrequentDirections(3).update(A).save(tmp_path / "a.skn")
    FrequentDirections(3).update(narrow).save(tmp_path / "b.skn")
    output = tmp_path / "all.skn"
    assert main(["merge", str(tmp_path / "a.skn"), str(tmp_path / "b.skn"), "-o", str(output)]) == 0
    assert "rows seen     100" in capsys.readouterr().out
    merged = FrequentDirections.load(output)
    whole = np.vstack([A, np.pad(narrow, ((0, 0), (0, 2)))])
    assert np.linalg.norm(whole.T @ whole - merged.covariance(), 2) <= merged.error_bound


def test_the_spectrum_is_drawn(data: Path) -> None:
    for name in ("s.png", "s.svg"):
        assert main(["sketch", str(data), "--plot", str(data.with_name(name)), "--quiet"]) == 0
        assert data.with_name(name).stat().st_size > 1000


def test_stdin() -> None:
    run = skn("sketch", "-", "--size", "2", stdin=b"1 1:3\n1 1:4\n")
    assert run.returncode == 0
    assert b"squared norm  25.000" in run.stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--size", "0"], 2, "must be a whole number >= 1"),
        (["--size", "-5"], 2, "--size"),
        (["--kind", "fdd"], 2, "did you mean fd?"),
        (["--kind", "exact", "--size", "3"], 2, "--size does not apply to --kind exact"),
        (["--kind", "fd", "--beta", "0.5"], 2, "--beta does not apply to --kind fd"),
        (["--kind", "pfd", "--beta", "2"], 2, "beta=2.0 is invalid"),
        (["--size", "3", "--target-error", "0.1"], 2, "give either sketch_size or target_error"),
        (["--plot", "s.txt"], 2, "the picture can be one of .png"),
        (["-o", "no/such/folder/s.skn"], 1, "there is no directory"),
    ],
)
def test_mistakes(
    data: Path, options: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sketch", str(data), *options]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_files_that_cannot_be_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FrequentDirections(3).update(np.eye(3)).save(tmp_path / "fd.skn")
    RobustFrequentDirections(3).update(np.eye(3)).save(tmp_path / "rfd.skn")
    AdaGrad().save(tmp_path / "model.skn")
    (tmp_path / "text.skn").write_text("hello, this is not a sketch")
    output = tmp_path / "all.skn"
    for name, words in (
        ("rfd.skn", "cannot merge a RobustFrequentDirections into a FrequentDirections"),
        ("model.skn", "cannot merge a AdaGrad into a FrequentDirections"),
        ("text.skn", "not a sketchnewton model file"),
        ("none.skn", "no such file"),
    ):
        assert main(["merge", str(tmp_path / "fd.skn"), str(tmp_path / name), "-o", str(output)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"skn: {tmp_path / name}: ")
        assert words in line
        assert not output.exists()
    assert main(["predict", str(tmp_path / "fd.skn"), str(tmp_path / "text.skn")]) == 1
    assert "holds a FrequentDirections, not a model" in capsys.readouterr().err
