"""`skn train` and `skn predict` do without NumPy where they can; whether they do must not show but in time.

Nor do they import `typing`: `core/hints.py` has its names.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from sketchnewton import load
from sketchnewton.cli.main import main
from sketchnewton.model import fitting

ROWS = 6_000  # more than one batch
LEARNERS = [
    [],
    ["--loss", "logistic"],
    ["--sketch", "none"],
    ["--sketch", "oja", "--sketch-size", "3"],
    ["--sketch", "oja", "--diagonal", "--oja-rate", "1.0"],
    ["--sketch", "fd", "--sketch-size", "3"],
    ["--sketch", "rp", "--sketch-size", "3"],
    ["--learner", "adagrad"],
    ["--learner", "adagrad", "--penalty", "l1", "--penalty-strength", "0.01"],
    ["--learner", "adagrad", "--penalty", "elasticnet"],
    ["--learner", "adagrad", "--clip", "auto"],
    ["--learner", "sketched-adagrad", "--sketch-size", "3"],
    ["--loss", "hinge", "--clip", "0.5"],
    ["--loss", "huber"],
    ["--loss", "poisson"],
    ["--learner", "newton", "--clip", "auto"],
    ["--learner", "newton", "--clip", "auto", "--loss", "poisson"],
    ["--learner", "gradient"],
]


def text(labels: list[str], rng: np.random.Generator, extra: str = "") -> str:
    """Rows of VW text with growing indices, so that the table has to grow."""
    lines = []
    for row, label in enumerate(labels):
        features = " ".join(f"{rng.integers(0, 10 + row)}:{value:.3g}" for value in rng.normal(size=5))
        lines.append(f"{label}{extra} | {features} {'x' * 400}\n")
    return "".join(lines)


def signs(rng: np.random.Generator) -> list[str]:
    return [str(label) for label in rng.choice([-1, 1], ROWS)]


def run(tmp_path: Path, data: Path, options: list[str]) -> tuple[bytes, bytes, int]:
    """The model file, the predictions, and the exit code."""
    model, predictions = tmp_path / "model.skn", tmp_path / "predictions.txt"
    for path in (model, predictions, Path(f"{data}.skn-cache")):
        path.unlink(missing_ok=True)
    command = ["train", str(data), "--model", str(model), "--predictions", str(predictions)]
    code = main([*command, *options])
    written = [path.read_bytes() if path.exists() else b"" for path in (model, predictions)]
    return written[0], written[1], code


def check_no_difference(
    tmp_path: Path, data: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> int:
    """The exit code of all ways to learn: as ever, with one thread, and with a closer look at every row."""
    outcomes = []
    for way in ("as ever", "one thread", "a closer look"):
        if way == "a closer look":
            with mock.patch.object(fitting, "_ready", return_value=None):
                *files, code = run(tmp_path, data, options)
        else:
            *files, code = run(tmp_path, data, [*options, *(["--threads", "1"] if "one" in way else [])])
        err = capsys.readouterr().err
        said = [line.split() for line in err.splitlines() if " rows/s)" not in line]
        for words in said:
            del words[6:7]  # the speed, in lines of the table
        outcomes.append((*files, code, said))
    for one, two, closer in zip(*outcomes, strict=True):
        assert one == closer
        assert two == closer
    return code


@pytest.mark.parametrize("options", LEARNERS, ids=" ".join)
def test_it_learns_the_same_model(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    data = tmp_path / "rows.vw"
    labels = [label.replace("-1", "4") for label in signs(rng)] if "poisson" in options else signs(rng)
    data.write_text(text(labels, rng))
    assert check_no_difference(tmp_path, data, options, capsys) == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--positive", "3"],
        ["--test", "same"],
        ["--quiet"],
        ["--holdout", "10"],
        ["--bits", "10"],
        ["--passes", "3"],
        ["--passes", "2", "--no-cache"],
        ["--passes", "2", "--positive", "3", "--link", "--loss", "logistic"],
    ],
    ids=" ".join,
)
def test_options_make_no_difference(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    data = tmp_path / "rows.vw"
    labels = [str(label) for label in rng.choice([3, 4], ROWS)] if "--positive" in options else signs(rng)
    data.write_text(text(labels, rng, extra=" 2.5 'tag"))
    options = [str(data) if option == "same" else option for option in options]
    assert check_no_difference(tmp_path, data, options, capsys) == 0


@pytest.mark.parametrize("passes", ["1", "2"])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("bad", ["", "-1 nan", "1 1 0.5", "x", "3e38"])
def test_a_row_that_is_not_plain_is_dealt_with_as_ever(
    bad: str, on_error: str, passes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    data = tmp_path / "rows.vw"
    labels = signs(rng)
    labels[-100] = bad  # no label, no weight, a base, no number, beyond the largest
    data.write_text(text(labels, rng))
    code = check_no_difference(tmp_path, data, ["--on-error", on_error, "--passes", passes], capsys)
    assert code == (0 if on_error == "skip" else 1)


@pytest.mark.parametrize("format", ["csv", "jsonl", "npz", "parquet"])
def test_other_formats_make_no_difference(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    rows, data = tmp_path / "rows.vw", tmp_path / f"rows.{format}"
    rows.write_text(text(signs(rng)[:500], rng, extra=" 0.5"))
    assert main(["convert", str(rows), str(data)]) == 0
    capsys.readouterr()
    assert check_no_difference(tmp_path, data, ["--passes", "2"], capsys) == 0


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--sketch", "oja"],
        ["--sketch", "none", "--loss", "hinge"],
        ["--passes", "3"],
        ["--threads", "1"],
        ["--learner", "class-bank", "--multiclass", "3"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["rows.svm", "rows.vw"])
def test_neither_numpy_nor_typing_is_imported(name: str, options: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = text(["1", "3" if "--multiclass" in options else "-1"] * 50, rng)
    data, model = tmp_path / name, tmp_path / "model.skn"
    data.write_text(rows.replace("|", "").replace("x", "") if name.endswith("svm") else rows)
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from sketchnewton.cli.main import main\n"
        f"assert main(['train', {str(data)!r}, '--model', {str(model)!r}, *{options!r}]) == 0\n"
        "assert not {'numpy', 'typing'} & set(sys.modules) - before"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert main(["predict", str(model), str(data)]) == 0


@pytest.mark.parametrize(
    "options", [[], ["--sketch", "oja"], ["--sketch", "none"], ["--learner", "adagrad"]], ids=" ".join
)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_predicting_imports_neither(threads: str, options: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    data, model, scores = tmp_path / "rows.vw", tmp_path / "model.skn", tmp_path / "scores.txt"
    data.write_text(text(["1", "-1"] * 50, rng))
    assert main(["train", str(data), "--model", str(model), *options]) == 0
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from sketchnewton.cli.main import main\n"
        f"assert main(['predict', {str(model)!r}, {str(data)!r}, '--output', {str(scores)!r}, "
        f"'--threads', {threads!r}]) == 0\n"
        "assert not {'numpy', 'typing'} & set(sys.modules) - before"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    predicted = load(model).predict(data)  # by NumPy's arrays
    assert scores.read_text() == "".join(f"{score:.9g}\n" for score in predicted)


@pytest.mark.parametrize("options", LEARNERS, ids=" ".join)
def test_threads_predict_the_same(options: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    data, model, scores = tmp_path / "rows.vw", tmp_path / "model.skn", tmp_path / "scores.txt"
    labels = signs(rng)
    data.write_text(
        text([label.replace("-1", "4") for label in labels] if "poisson" in options else labels, rng)
    )
    assert main(["train", str(data), "--model", str(model), *options]) == 0
    rows = data.read_text().splitlines(keepends=True)
    rows[4_000] = "1 | 3:1e35\n"  # a value that no learner takes
    data.write_text("".join(rows))
    outputs = []
    for threads in ("1", "2", "4"):
        command = ["predict", str(model), str(data), "--output", str(scores), "--threads", threads]
        assert main(command) == 1
        assert main([*command, "--on-error", "skip"]) == 0
        outputs.append(scores.read_bytes())
    assert outputs[0].count(b"\n") == ROWS - 1
    assert outputs[0] == outputs[1] == outputs[2]
