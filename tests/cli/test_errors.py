"""Whatever is wrong with what was typed or read, the command says it in one line, without a traceback."""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
from pathlib import Path

import pytest

from sketchnewton import SketchedNewton
from sketchnewton.cli.main import main
from tests.cli.support import SKN, skn, svmlight_lines, write_rows

GOOD = b"1 1:0.5 2:1\n-1 3:2\n"
MALFORMED = {
    "letters for a value": (GOOD + b"1 4:abc\n", "3:5"),
    "letters for a label": (GOOD + b"yes 4:1\n", "3:1"),
    "letters for an index": (GOOD + b"1 x:1\n", "3:3"),
    "missing colon": (GOOD + b"1 4 5:1\n", r"3:\d+"),
    "negative index": (GOOD + b"1 -4:1\n", r"3:\d+"),
    "overflowing index": (GOOD + b"1 99999999999999999999:1\n", r"3:\d+"),
    "nan": (GOOD + b"1 4:nan\n", r"3:\d+"),
    "infinity": (GOOD + b"1 4:inf\n", r"3:\d+"),
    "overflowing value": (GOOD + b"1 4:1e999\n", r"3:\d+"),
    "nan label": (GOOD + b"nan 4:1\n", r"3:\d+"),
    "binary junk": (bytes(range(256)) * 20, r"\d+:\d+"),
    "empty": (b"", "1:1"),
    "blank lines only": (b"\n\n# nothing\n", r"\d+:\d+"),
    "10 MB without a newline": (b"1 " + b"1:1 " * 2_500_000, r"1:\d+"),
    "truncated gzip": (gzip.compress(GOOD * 1000)[:-20], r"\d+:\d+"),
}


def fail(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    """Exit code and the one line of a command that must fail."""
    code = main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    assert code != 0
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("skn: ")]
    assert len(lines) == 1
    assert err.endswith(lines[0] + "\n")
    return code, lines[0]


@pytest.mark.parametrize(("content", "place"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_data(content: bytes, place: str, tmp_path: Path) -> None:
    data, model, old = tmp_path / "bad.svm", tmp_path / "m.skn", b"an older model"
    data.write_bytes(content)
    model.write_bytes(old)
    run = skn("train", data, "--model", model, "--predictions", tmp_path / "p", "--quiet")
    assert run.returncode == 1
    assert run.stdout == b""
    (line,) = run.stderr.decode().splitlines()
    assert re.match(rf"skn: {re.escape(str(data))}:{place}: ", line)
    assert f"{model} was not written" in line
    assert model.read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.svm", "m.skn"]


def test_a_bad_row_tells_how_many_were_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "bad.svm"
    data.write_bytes(GOOD + b"oops\n")
    _, line = fail(capsys, "train", data)
    assert "learned 2" in line


def test_nothing_but_rows_to_skip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "bad.svm", tmp_path / "m.skn"
    data.write_text("oops\n2 1:1\n")
    command = ["train", data, "--on-error", "skip", "--loss", "logistic", "--model", model, "--quiet"]
    command += ["--predictions", tmp_path / "p"]
    code, line = fail(capsys, *command)
    assert code == 1
    assert line.endswith(f"no row can be learned: all 2 were skipped ({model} was not written)")
    assert list(tmp_path.iterdir()) == [data]


def test_malformed_data_on_stdin_and_for_predict(tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    SketchedNewton().save(model)
    run = skn("predict", model, "-", "--output", tmp_path / "p", stdin=GOOD + b"1 4:abc\n")
    assert run.returncode == 1
    assert re.fullmatch(rb"skn: <stdin>:3:5: .+\n", run.stderr)
    assert not (tmp_path / "p").exists()


def test_a_bad_test_file_leaves_the_trained_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.svm").write_bytes(GOOD + b"1 4:abc\n")
    data, model = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn"
    code, line = fail(capsys, "train", data, "--test", tmp_path / "bad.svm", "--model", model)
    assert code == 1
    assert f"{model} was written" in line
    assert model.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "DATA", "--alhpa", "1"], "unknown option --alhpa: did you mean --alpha?"),
        (["train", "DATA", "--skech-size=5"], "unknown option --skech-size: did you mean --sketch-size?"),
        (["trian", "DATA"], "unknown command 'trian': did you mean train?"),
        (["inspect", "DATA", "--tpo", "3"], "did you mean --top?"),
        (["train", "DATA", "--sketch", "ojaa"], "--sketch: unknown value 'ojaa': did you mean oja?"),
        (["train", "DATA", "--loss", "logistc"], "did you mean 'logistic'?"),
        (["train"], "missing DATA"),
        (["inspect", "DATA", "more"], "unexpected argument 'more'"),
        (["train", "DATA", "--alpha", "x"], "--alpha: 'x' is invalid: must be a number"),
        (["train", "DATA", "--alpha", "nan"], "--alpha: 'nan' is invalid: must be a number"),
        (["train", "DATA", "--learner", "newton", "--alpha", "-1"], "alpha=-1"),
        (
            ["train", "DATA", "--alpha", "1"],
            "--alpha does not apply to the default learner, bank: --learner newton has it",
        ),
        (["train", "DATA", "--diagonal"], "default learner, bank: --learner newton has it"),
        (["train", "DATA", "--clip", "auto"], "a bank learns the range of labels anyway"),
        (
            ["train", "DATA", "--curvature-weight", "1/x"],
            "--curvature-weight: '1/x' is invalid: must be a number, 1/t, 1/sqrt(t)",
        ),
        (
            ["train", "DATA", "--sketch", "fd", "--eta", "0.1"],
            "--eta does not apply to the default learner, newton: --learner adagrad or",
        ),
        (
            ["train", "DATA", "--eta", "0.1"],
            "--eta does not apply to the default learner, bank: --learner adagrad or",
        ),
        (
            ["train", "DATA", "--learner", "adagrad", "--curvature-weight", "0.1"],
            "--curvature-weight does not apply to --learner adagrad",
        ),
        (
            ["train", "DATA", "--learner", "adagrad", "--eta", "1/t"],
            "--eta: '1/t' is invalid: must be a number",
        ),
        (["train", "DATA", "--passes", "0"], "--passes: '0' is invalid: must be a whole number >= 1"),
        (["train", "DATA", "--ngram", "1"], "ngram='1' is invalid: must be a number from 2 to 16"),
        (["train", "-", "--passes", "2"], "--passes 2 needs a file"),
        (["train", "DATA", "--loss", "poisson", "--positive", "1"], "poisson loss needs labels >= 0: leave"),
        (["train", "DATA", "--json", "--predictions", "-"], "both write to stdout"),
        (["train", "-", "--test", "-"], "cannot both be stdin"),
        (
            ["train", "DATA", "--learner", "adagrad", "--sketch-size", "3"],
            "--sketch-size does not apply to --learner",
        ),
    ],
)
def test_usage(args: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "rows.svm")
    code, line = fail(capsys, *[data if arg == "DATA" else arg for arg in args])
    assert code == 2
    assert words in line


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "TMP/none.svm"], "TMP/none.svm: no such file"),
        (["train", "DATA", "--test", "TMP"], "TMP: is a directory"),
        (["train", "DATA", "--test", "TMP/none.svm"], "TMP/none.svm: no such file"),
        (["train", "DATA", "--model", "TMP/none/m.skn"], "TMP/none/m.skn: there is no directory"),
        (["train", "DATA", "--model", "TMP"], "TMP: is a directory"),
        (["train", "DATA", "--model", "/dev/null"], "/dev/null: is not a regular file"),
        (["train", "DATA", "--predictions", "TMP/none/p"], "TMP/none/p: there is no directory"),
        (["train", "DATA", "--resume", "DATA"], "DATA: not a sketchnewton model"),
        (["predict", "TMP/none.skn", "DATA"], "TMP/none.skn: no such file"),
        (["predict", "DATA", "DATA"], "DATA: not a sketchnewton model"),
        (["inspect", "TMP"], "TMP: is a directory"),
        (["inspect", "DATA"], "DATA: not a sketchnewton model"),
    ],
)
def test_files_that_cannot_be_used(
    args: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.svm")

    def real(text: str) -> str:
        return text.replace("TMP", str(tmp_path)).replace("DATA", str(data))

    code, line = fail(capsys, *map(real, args))
    assert code == 1
    assert real(words) in line


def test_nothing_is_learned_before_outputs_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.svm")
    main(["train", str(data), "--model", str(tmp_path / "none" / "m.skn")])
    assert "examples" not in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["newton", "full"])
def test_a_feature_index_too_large_for_memory(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "huge.svm"
    data.write_text("1 1000000000000000:1\n")
    code, line = fail(capsys, "train", data, "--learner", learner)
    assert code == 1
    assert re.search("feature index 1000000000000000 needs a (table|matrix) of", line)
    assert "GB" in line


@pytest.mark.slow
@pytest.mark.parametrize("place", ["out", "/dev/full", "-"])
def test_a_disk_that_is_full_is_named(place: str, tmp_path: Path) -> None:
    data, model = write_rows(tmp_path / "rows.svm", 20_000), tmp_path / "m.skn"
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    path = tmp_path / place if place == "out" else place
    converted = ["convert", data, path, "--to", "jsonl"]
    for command in [["train", data, "--predictions", path], ["predict", model, data, "--output", path]] + (
        [converted] if place == "out" else []
    ):
        with open("/dev/full", "wb") as full:
            run = subprocess.run(
                [*SKN, *map(str, command), "--quiet"],
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
            )
        assert run.returncode == 1
        name = "<stdout>" if place == "-" else path
        assert re.fullmatch(rf"skn: {name}: (File too large|No space left on device)\n", run.stderr.decode())
    assert sorted(tmp_path.iterdir()) == [model, data]


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    data = tmp_path / "rows.svm"
    data.write_text("".join(svmlight_lines()) * 500)  # predictions that no pipe holds at once
    model = tmp_path / "m.skn"
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    process = subprocess.Popen(
        [*SKN, "predict", str(model), str(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "rows.svm", "--model", "rows.svm"], "--model would overwrite DATA"),
        (["train", "rows.svm", "--predictions", "./rows.svm"], "--predictions would overwrite DATA"),
        (["train", "rows.svm", "--test", "t.svm", "--model", "t.svm"], "--model would overwrite --test"),
        (
            ["train", "rows.svm", "--model", "m.skn", "--predictions", "m.skn"],
            "--predictions would overwrite --model",
        ),
        (["train", "rows.svm", "--resume", "m.skn", "--predictions", "m.skn"], "would overwrite --resume"),
        (["predict", "m.skn", "rows.svm", "--output", "rows.svm"], "--output would overwrite DATA"),
        (["predict", "m.skn", "rows.svm", "--output", "m.skn"], "--output would overwrite MODEL"),
    ],
)
def test_no_output_replaces_an_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.svm")
    write_rows(tmp_path / "t.svm")
    assert main(["train", "rows.svm", "--model", "m.skn", "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(arguments) != 0
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "options", "hint"),
    [
        (
            "age,city,sold\n33,Rome,yes\n41,Oslo,no\n",
            [],
            ": its cell is empty, or --label names its column, one of age, city, sold",
        ),
        (
            "age,label\n33,\n41,1\n",
            [],
            "row 1 has no label, but needs one: its cell is empty, or --label names its column, one of age",
        ),
        ("33,Rome,1\n41,Oslo,0\n", [], "one of 33, Rome, 1 (--no-header if the first line has no names)"),
        ("33,Rome,1\n41,Oslo,0\n", ["--no-header"], "or --label names its column, one of 1, 2, 3"),
        (
            "age,label\n33,1\n41,\n",
            [],
            "row 2 has no label, but needs one (in a table, --label names its column)",
        ),
        ("age,sold\n33,1\n41,\n", ["--label", "sold"], "row 2 has no label, but needs one"),
        ('"\ufefflabel",age\n1,33\n', [], r"one of \ufefflabel, age"),  # a mark within the quotes shows
        (f"{'a' * 61},age\n1,33\n", [], f"one of {'a' * 59}…, age"),
    ],
)
def test_a_table_without_labels_is_told_its_columns(
    text: str, options: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "d.csv"
    data.write_text(text)
    _, line = fail(capsys, "train", data, *options)
    assert line.endswith(hint)


def test_model_and_data_are_not_mixed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m.skn"
    data.write_text("age,label\n33,1\n41,-1\n")
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    for command in ("predict", "test"):
        _, line = fail(capsys, command, data, model)
        assert line == f"skn: MODEL comes before DATA: skn {command} {model} {data}"
    _, line = fail(capsys, "train", model)
    assert line == f"skn: {model} is a model or a part of one, not data"
