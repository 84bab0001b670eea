"""`--config`: options from a file, overruled by those typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sketchnewton.cli.main import main
from tests.cli.support import write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


def parameters(capsys: pytest.CaptureFixture[str], *args: object) -> dict[str, object]:
    assert main(["train", *map(str, args), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["parameters"]
    assert isinstance(result, dict)
    return result


def test_options_come_from_the_file(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f'data = "{data}"\nsketch = "oja"\nsketch-size = 2\noja_rate = [1.0, 0.5]\nalpha = 2.5\n'
        "diagonal = true\nintercept = false\nquiet = true\n"
    )
    found = parameters(capsys, "--config", config)
    expected = {"sketch_size": 2, "oja_rate": [1.0, 0.5], "alpha": 2.5, "diagonal": True, "intercept": False}
    assert expected.items() <= found.items()


def test_what_is_typed_wins(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "run.toml"
    config.write_text('data = "nowhere.svm"\nalpha = 2.5\nsketch_size = 4\ndiagonal = true\n')
    found = parameters(
        capsys, data, f"--config={config}", "--alpha", 7, "--no-diagonal", "--learner", "newton"
    )
    assert {"alpha": 7.0, "sketch_size": 4, "diagonal": False}.items() <= found.items()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alhpa = 1", "unknown option alhpa: did you mean alpha?"),
        ("alpha = [", "not a TOML file"),
        ("diagonal = 3", "diagonal = 3 is invalid: must be true or false"),
        ("alpha = true", "alpha = True is invalid: must be text or a number"),
        ('sketch = "ojaa"', "--sketch: unknown value 'ojaa': did you mean oja?"),
        ("[train]\nalpha = 1", "unknown option train"),
        ("alpha = " + "[" * 100_000, "nested too deeply"),
        ("alpha = " + "1" * 5_000, "run.toml: Exceeds the limit"),
        ('model = "a\\u0000b"', "must have no null character"),
        ('data = "--help"', "data = '--help' is invalid: write ./--help"),
        ('"a\\n\\u001b[2Jb" = 1', "unknown option a \\x1b[2Jb"),
    ],
)
def test_mistakes_are_one_line(
    text: str, words: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    assert main(["train", str(data), "--config", str(config)]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_a_config_that_is_not_there(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(data), "--config", "nowhere.toml"]) == 1
    assert capsys.readouterr().err == "skn: nowhere.toml: no such file\n"
