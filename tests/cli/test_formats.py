"""The command reads every format alike, and the model remembers how names became features."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchnewton
from sketchnewton.cli.main import main
from sketchnewton.streams import Features, open_stream
from tests.cli.support import skn, trained

ARROW = ("csv", "tsv", "parquet")


def vw_lines(rows: int = 200, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    lines = []
    for at in range(rows):
        age, colour = random.standard_normal(), random.choice(["red", "blue", "grün"])
        label = 1 if age + (colour == "red") > 0.3 else -1
        weight = " 2.5" if at % 3 == 0 else ""
        lines.append(
            f"{label}{weight} 'row{at}|user age:{age:.4f} {colour} |item price:{random.random():.3f}\n"
        )
    return lines


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.vw"
    path.write_text("".join(vw_lines()))
    return path


def run(*args: object) -> None:
    assert main(list(map(str, args))) == 0


def test_training_is_that_of_the_library(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.skn"
    options = ["--interactions", "ui", "--ignore", "x", "--bits", 12, "--learner", "newton"]
    run("train", data, "--model", model, "--quiet", *options)
    expected = sketchnewton.SketchedNewton(intercept=True)
    for batch in open_stream(data, features=Features(bits=12, interactions=("ui",), ignore="x")):
        expected.learn(batch, batch.labels, batch.weights)
    learned = trained(model)
    np.testing.assert_array_equal(learned.weights, expected.weights)
    assert learned.dimension <= 4096


@pytest.mark.parametrize("format", ["vw", "jsonl", *ARROW])
def test_a_model_predicts_the_same_from_every_format(
    format: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if format in ARROW:
        pytest.importorskip("pyarrow")
    model, other = tmp_path / "m.skn", tmp_path / f"rows2.{format}"
    run("train", data, "--model", model, "--quiet", "--interactions", "ui")
    run("predict", model, data)
    expected = capsys.readouterr().out
    assert expected.splitlines()[7].endswith(" row7")
    if format == "parquet":
        run("convert", data, tmp_path / "rows2.csv", "--quiet")
        pa = pytest.importorskip("pyarrow")
        pq, csv = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.csv")
        assert pa
        pq.write_table(csv.read_csv(tmp_path / "rows2.csv"), other)
    else:
        run("convert", data, other, "--quiet")
    run("predict", model, other)
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("names", [[], ["--exact-names"]])
def test_two_halves_and_a_resumed_model_keep_their_features(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = vw_lines(300)
    for name, part in {"whole": lines, "first": lines[:120], "second": lines[120:]}.items():
        (tmp_path / f"{name}.vw").write_text("".join(part))
    whole, model = tmp_path / "whole.skn", tmp_path / "halves.skn"
    options = ["--interactions", "ui", "--ngram", "2", *names, "--quiet"]
    run("train", tmp_path / "whole.vw", "--model", whole, *options)
    run("train", tmp_path / "first.vw", "--model", model, *options)
    run("train", tmp_path / "second.vw", "--model", model, "--resume", model, "--quiet")
    assert whole.read_bytes() == model.read_bytes()
    assert main(["train", str(tmp_path / "first.vw"), "--resume", str(model), "--bits", "9"]) == 2
    held = " ".join([*names, "--interactions ui --ngram 2"])
    assert (
        f"options on features do not agree with {model}, which was trained with {held}:"
        in capsys.readouterr().err
    )


def test_readable_names_every_feature(data: Path, tmp_path: Path) -> None:
    for option in ([], ["--exact-names"]):
        table = tmp_path / "w.tsv"
        run("train", data, "--readable", table, "--quiet", "--model", tmp_path / "m.skn", *option)
        rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
        assert rows[0] == ["feature", "name", "weight"]
        assert rows[1][1] == "(constant)"
        learned = trained(tmp_path / "m.skn")
        assert {name for _, name, _ in rows[2:]} == {
            "user^age",
            "user^red",
            "user^blue",
            "user^grün",
            "item^price",
        }
        for feature, _, weight in rows[2:]:
            assert float(weight) == pytest.approx(learned.weights[int(feature)], rel=1e-8)


def test_inspect_knows_exact_names(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("train", data, "--exact-names", "--quiet", "--model", tmp_path / "m.skn")
    run("inspect", tmp_path / "m.skn", "--json")
    names = [item["feature"] for item in json.loads(capsys.readouterr().out)["largest_weights"]]
    assert "user^age" in names


def assert_three_skipped(
    bad: Path, clean: Path, options: list[Any], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of `bad`, with `--on-error skip`, the model is learned that `clean` gives; what was left out is told."""
    models = bad.with_name("a.skn"), bad.with_name("b.skn")
    run("train", bad, "--on-error", "skip", *options, models[0])
    out, err = capsys.readouterr()
    assert json.loads(out)["skipped"] == 3
    assert f"3 rows skipped; the first: {first}" in err
    run("train", clean, *options, models[1])
    capsys.readouterr()
    assert models[0].read_bytes() == models[1].read_bytes()


@pytest.mark.parametrize("passes", [1, 2])
def test_bad_rows_are_skipped_counted_and_reported(
    passes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ["1 1:1\n", "-1 2:1\n", "1 1:1 3:2\n"]
    bad = tmp_path / "bad.svm"
    bad.write_text(good[0] + "1 x:1\n" + good[1] + "0.5 1:1\n" + good[2] + "nonsense\n")
    assert main(["train", str(bad)]) == 1
    assert f"{bad}:2:3: " in capsys.readouterr().err
    clean = tmp_path / "clean.svm"
    clean.write_text("".join(good))
    options = ["--loss", "logistic", "--json", "--passes", str(passes), "--model"]
    assert_three_skipped(bad, clean, options, f"{bad}:2:3: ", capsys)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1e31 | a:1", "has the label 1e+31, beyond ±1e+30"),
        ("1 | b:1 a:-1e31 c:1e32", "has the value -1e+31 for feature 92594, beyond ±1e+30"),
        ("1 1 0.5 | a", "has an initial prediction (base)"),
        ("| a", "has no label"),
    ],
)
def test_rows_that_cannot_be_learned_are_skipped(
    row: str, why: str, threads: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ["1 | a:1", "-1 | b:1", "1 | a:1 b:2"]
    bad, clean = tmp_path / "bad.vw", tmp_path / "clean.vw"
    clean.write_text("\n".join(good))
    for learner in ([], ["--sketch", "oja"], ["--learner", "adagrad"]):
        options = ["--json", "--threads", threads, *learner, "--model"]
        bad.write_text("\n".join([*good[:2], row, good[2], "1 2 0.5 | a", row]))  # and one more kind
        assert main(["train", str(bad), *map(str, options[1:-1])]) == 1
        assert f"skn: {bad}:3: row 3 {why}" in capsys.readouterr().err
        assert_three_skipped(bad, clean, options, f"{bad}:3: row 3 {why}", capsys)


def test_rows_that_cannot_be_predicted_are_skipped(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, far = tmp_path / "m.skn", tmp_path / "far.vw"
    run("train", data, "--model", model, "--quiet")
    far.write_text("|user age:1\n|user age:1e31\n1e31 |user age:2\n")
    assert main(["predict", str(model), str(far)]) == 1
    assert f"{far}:2: row 2 has the value 1e+31 for feature " in capsys.readouterr().err
    run("predict", model, far, "--on-error", "skip")
    assert len(capsys.readouterr().out.split()) == 2


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_prediction_needs_no_columns_but_features(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    names = ["label", "id", "w", "tag", "zip", "x"]
    rows = [[1, 7, 2, "a", 5, 1.5], [-1, 8, 1, "b", 6, 0.5], [1, 9, 3, "c", "5a", 2.5]]

    def write(name: str, kept: list[str]) -> Path:
        path = tmp_path / f"{name}.{ending}"
        tables = [{key: row[names.index(key)] for key in kept} for row in rows]
        if ending == "csv":
            lines = [",".join(kept), *(",".join(map(str, table.values())) for table in tables)]
        else:
            lines = [json.dumps(table) for table in tables]
        path.write_text("\n".join(lines))
        return path

    model = tmp_path / "m.skn"
    named = ["--drop", "id", "--weight", "w", "--tag", "tag", "--categorical", "zip"]
    run("train", write("train", names), *named, "--model", model, "--quiet")
    run("predict", model, write("again", names))
    whole = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    features = write("features", ["zip", "x"])
    run("predict", model, features)
    assert capsys.readouterr().out.split() == whole
    run("predict", model, write("x", ["x"]))
    assert len(capsys.readouterr().out.split()) == 3
    assert main(["predict", str(model), str(features), "--weight", "v"]) == 1  # typed, not remembered
    assert main(["train", str(features), "--resume", str(model)]) == 1


def test_texts_of_a_table_are_texts_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    table, lines, model = tmp_path / "a.csv", tmp_path / "a.jsonl", tmp_path / "m.skn"
    table.write_text("label,zip\n1,5a\n-1,22\n")
    lines.write_text('{"zip": "5a"}\n{"zip": 22}\n')
    run("train", table, "--model", model, "--quiet")
    run("predict", model, table)
    expected = capsys.readouterr().out
    run("predict", model, lines)
    assert capsys.readouterr().out == expected


def test_rows_without_a_label_are_predicted_but_not_learned(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, unlabelled = tmp_path / "m.skn", tmp_path / "new.vw"
    run("train", data, "--model", model, "--quiet")
    unlabelled.write_text("|user age:1 red\n")
    run("predict", model, unlabelled)
    assert float(capsys.readouterr().out) > 0
    assert main(["train", str(unlabelled)]) == 1
    assert "row 1 has no label, but needs one" in capsys.readouterr().err


def test_a_base_is_added_to_predictions(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, based = tmp_path / "m.skn", tmp_path / "based.vw"
    run("train", data, "--model", model, "--quiet")
    based.write_text("1 1 0 |user age:1\n1 1 0.25 |user age:1\n")
    run("predict", model, based)
    plain, shifted = map(float, capsys.readouterr().out.split())
    assert shifted == pytest.approx(plain + 0.25)
    assert main(["train", str(based)]) == 1
    assert "row 2 has an initial prediction (base)" in capsys.readouterr().err


def test_several_files_and_globs(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = vw_lines()
    (tmp_path / "part1.vw").write_text("".join(lines[:50]))
    (tmp_path / "part2.vw").write_text("".join(lines[50:]))
    run("train", data, "--model", tmp_path / "a.skn", "--quiet")
    run("train", tmp_path / "part1.vw", tmp_path / "part2.vw", "--model", tmp_path / "b.skn", "--quiet")
    run("train", tmp_path / "part*.vw", "--model", tmp_path / "c.skn", "--quiet", "--threads", 1)
    assert (
        (tmp_path / "a.skn").read_bytes()
        == (tmp_path / "b.skn").read_bytes()
        == (tmp_path / "c.skn").read_bytes()
    )


def test_dry_run_writes_nothing(data: Path, tmp_path: Path) -> None:
    ended = skn(
        "train",
        data,
        "--dry-run",
        "--model",
        tmp_path / "m.skn",
        "--passes",
        2,
        "--bits",
        20,
        "--sketch",
        "oja",
    )
    assert ended.returncode == 0
    said = ended.stderr.decode()
    where = f"--model would write {tmp_path / 'm.skn'}"
    for words in ("would learn", "SketchedNewton", "'bits': 20", "200 rows", where):
        assert words in said
    assert list(tmp_path.iterdir()) == [data]


def test_dry_run_for_machines(data: Path, tmp_path: Path) -> None:
    ended = skn("train", data, "--dry-run", "--json", "--model", tmp_path / "m.skn", "--bits", 20)
    told = json.loads(ended.stdout)
    assert (told["dry_run"], told["files"], told["passes"], told["learner"]) == (True, 1, 1, "NewtonBank")
    assert (told["features"], told["first_rows"]) == ({"bits": 20}, 200)
    assert told["model"] == str(tmp_path / "m.skn")
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beta", "0.5"], "--beta does not apply to the default learner, bank: --learner newton has it"),
        (["--sketch", "oja", "--beta", "0.5"], "--beta does not apply to --sketch oja, only to pfd"),
        (["--sketch", "fd", "--oja-rate", "1"], "--oja-rate does not apply to --sketch fd, only to oja"),
        (["--sketch", "rfd", "--block", "3"], "--block does not apply to --sketch rfd, only to oja"),
        (["--sketch", "none", "--sketch-size", "3"], "--sketch-size does not apply to --sketch none"),
        (["--learner", "full", "--sketch", "fd"], "--sketch does not apply to --learner full"),
        (["--learner", "full", "--dtype", "float64"], "--dtype does not apply to --learner full"),
        (["--learner", "newton", "--sigma", "1"], "--sigma does not apply to --learner newton"),
        (["--multiclass", "3", "--positive", "1"], "--positive does not apply to --multiclass"),
        (["--link", "--raw"], "--link and --raw cannot be combined"),
        (["--cache", "c", "--no-cache"], "--cache and --no-cache exclude each other"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    options: list[str],
    words: str,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(data.parent)
    assert main(["train", str(data), *options]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert list(data.parent.iterdir()) == [data]


@pytest.mark.parametrize("format", ["svmlight", "vw", "jsonl", "npz", "csv", "tsv"])
def test_converted_rows_train_the_same_model(format: str, tmp_path: Path) -> None:
    if format in ARROW:
        pytest.importorskip("pyarrow")
    source, target = tmp_path / "a.svm", tmp_path / "converted"
    source.write_text("1 3:0.5 7:1\n-1 1:2 3:-1\n1 2:1e-3\n" * 5)
    run("convert", source, target, "--to", format, "--quiet")
    for data, model in ((source, "a.skn"), (target, "b.skn")):
        format_option = [] if data == source else ["--format", format]
        run("train", data, "--model", tmp_path / model, "--quiet", "--bits", 20, *format_option)
    a, b = trained(tmp_path / "a.skn"), trained(tmp_path / "b.skn")
    np.testing.assert_array_equal(a.weights, b.weights)


def test_converting_to_nowhere(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(data), str(tmp_path / "rows.xyz")]) == 2
    assert "give --to" in capsys.readouterr().err
    assert main(["convert", str(data), str(data)]) == 1
    assert "would overwrite" in capsys.readouterr().err
    assert main(["convert", str(data), str(tmp_path / "a.svm")]) == 1
    assert "svmlight has no place for weights" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.slow
def test_bench_compares(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "bench.png"
    run("bench", data, "--quiet", "--output", picture, "--learners", "newton-oja,adagrad")
    page = capsys.readouterr().out
    assert "newton-oja" in page
    assert "best here: skn train" in page
    assert picture.read_bytes().startswith(b"\x89PNG")
    run("bench", data, "--quiet", "--json", "--rows", 50)
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 50
    adagrad = next(item for item in facts["learners"] if item["learner"] == "adagrad")
    assert adagrad["loss"] == min(point["loss"] for point in adagrad["grid"])
    assert main(["bench", str(data), "--learners", "adagard"]) == 2
    assert "did you mean adagrad?" in capsys.readouterr().err


def test_bench_agrees_with_train(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("bench", data, "--quiet", "--json", "--learners", "gradient")
    (gradient,) = json.loads(capsys.readouterr().out)["learners"]
    for point in gradient["grid"]:
        option = [] if point["value"] is None else ["--alpha", point["value"]]
        run("train", data, "--quiet", "--json", "--sketch", "none", *option)
        assert json.loads(capsys.readouterr().out)["progressive_loss"] == point["loss"]


def test_bench_goes_without_learners_that_cannot(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("bench", data, "--quiet", "--rows", 20, "--clip", "auto")
    page = capsys.readouterr().out
    assert "bank          not run: clip='auto' is invalid: must be a number or None" in page
    assert "best here: skn train" in page
    assert main(["bench", str(data), "--clip", "auto", "--learners", "adagrad,bank"]) == 2
    assert "a bank learns the range of labels anyway" in capsys.readouterr().err
    assert main(["bench", str(data), "--loss", "hinged"]) == 2
    assert "did you mean 'hinge'?" in capsys.readouterr().err


def test_bench_goes_on_when_a_learner_diverges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of length 10⁶ are too long for the steps of some; the others are compared."""
    data = tmp_path / "long.svm"
    rows = 1e6 * np.random.default_rng(0).standard_normal((60, 3))
    data.write_text("".join(f"{1 if a > 0 else -1} 1:{a:.6g} 2:{b:.6g} 3:{c:.6g}\n" for a, b, c in rows))
    run("bench", data, "--quiet", "--learners", "ada-rp,newton-rp,bank")
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[3:6]}
    assert lines["ada-rp"][3:] == ["diverged", "-", "-", "diverged"]  # with every setting
    assert lines["newton-rp"][-1] == "diverged"
    assert float(lines["newton-rp"][1]) < 1
    assert lines["bank"][-1] == "-"
    run("bench", data, "--quiet", "--json", "--learners", "ada-rp")
    (facts,) = json.loads(capsys.readouterr().out)["learners"]
    assert [point["loss"] for point in facts["grid"]] == [None] * 5
    assert main(["train", str(data), "--quiet", "--learner", "sketched-adagrad", "--sketch", "rp"]) == 1
    told = capsys.readouterr().err
    assert re.fullmatch(
        r"skn: the learner diverged: its prediction for row \d+ is not finite: "
        r"try a smaller --eta or a tighter --clip\n",
        told,
    )


def test_bench_of_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every learner predicts within the range of the targets, and as the command that is named would."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = 2e5 + 5e4 * X @ [1.0, -2.0, 0.5]
    data = tmp_path / "prices.svm"
    data.write_text(
        "".join(f"{label:.6g} 1:{a:.6g} 2:{b:.6g} 3:{c:.6g}\n" for label, (a, b, c) in zip(y, X, strict=True))
    )
    run("bench", data, "--quiet", "--json")
    learners = json.loads(capsys.readouterr().out)["learners"]
    for facts in learners:
        assert facts["loss"] < y.var(), facts["learner"]
    for name in ("newton-rfd", "adagrad", "full"):
        run("bench", data, "--quiet", "--learners", name)
        command = capsys.readouterr().out.splitlines()[-1].removeprefix("best here: skn ")
        run(*shlex.split(command), "--quiet", "--json")
        facts = next(facts for facts in learners if facts["learner"] == name)
        assert json.loads(capsys.readouterr().out)["progressive_loss"] == facts["loss"]


@pytest.mark.parametrize("learner", ["newton-oja", "adagrad", "bank"])
def test_bench_names_the_command_that_does_the_same(
    learner: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more of it.vw"
    more.write_text(data.read_text() + "no row\n")
    options = "" if learner == "bank" else "--clip none "
    options += "--loss logistic --sketch-size 3 --positive 1 --interactions uu --interactions ui "
    options += "--ngram 2 --on-error skip "
    options += ("--exact-names" if learner == "bank" else "--bits 20") + " --learners"
    run("bench", data, more, "--quiet", *options.split(), learner)
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("best here: skn ")
    run("bench", data, more, "--quiet", "--json", *options.split(), learner)
    (facts,) = json.loads(capsys.readouterr().out)["learners"]
    run(*shlex.split(command), "--quiet", "--json")
    trained = json.loads(capsys.readouterr().out)
    assert (trained["progressive_loss"], trained["skipped"]) == (facts["loss"], 1)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("completion", shell)
    script = capsys.readouterr().out
    for word in ("train", "predict", "convert", "bench", "sketch-size", "checkpoint-every"):
        assert word in script


def test_completion_completes(capsys: pytest.CaptureFixture[str]) -> None:
    import subprocess

    run("completion", "bash")
    script = capsys.readouterr().out + (
        "\nCOMP_WORDS=(skn train --sketch r); COMP_CWORD=3; _skn; echo ${COMPREPLY[@]}"
        "\nCOMP_WORDS=(skn pre); COMP_CWORD=1; _skn; echo ${COMPREPLY[@]}"
    )
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n")[:2] == ["rfd rp", "predict"]
