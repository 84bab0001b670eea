"""`skn reproduce`: one experiment of each paper at toy size, the cache of results, missing data, the report."""

from __future__ import annotations

import hashlib
import html
import json
import lzma
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sketchnewton
from tests.theory.experiment_support import BY_NAME, ROOT, TOY, toy

from experiments import catalogue, data, report, runner  # isort: skip
from experiments.ada import measure, online  # isort: skip
from sketchnewton.cli.commands import reproduce
from sketchnewton.cli.main import main

HERE = ["--experiments", str(ROOT / "experiments")]


def run(folder: Path, *experiments: runner.Experiment) -> tuple[list[runner.Outcome], list[str]]:
    said: list[str] = []
    outcomes = runner.Runner(folder / "cache", 1, said.append).run(
        experiments, folder / "no data", quick=True
    )
    return outcomes, said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, runner.Outcome]:
    found, _ = run(folder, *(toy(name) for name in TOY))
    return dict(zip(TOY, found, strict=True))


def test_every_paper_has_a_toy() -> None:
    assert {BY_NAME[name].paper for name in TOY} == {experiment.paper for experiment in BY_NAME.values()}


def test_toy_figures(outcomes: dict[str, runner.Outcome]) -> None:
    errors = {name: line[1] for name, line in outcomes["son-figure1"].figures[0].curves.items()}
    assert errors["m = 0"][-1] > errors["m = 0"][0]
    assert errors["Oja, m = 10"][-1] < errors["m = 0"][-1]
    for row in outcomes["rfd-figure1"].tables[0].rows:
        assert 0.45 < float(row[-1]) < 0.7
    regrets = {row[0]: float(row[4]) for row in outcomes["ada-figure1"].tables[0].rows}
    assert regrets["ADA-FULL"] < 1.0
    assert set(outcomes["eig-table1"].tables[0].verdicts) == {"ok"}
    assert all(outcome.figures and outcome.seconds > 0 for outcome in outcomes.values())


@pytest.mark.usefixtures("outcomes")  # whose results are kept in the folder
def test_all_without_data(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The synthetic parts run, and every set of the others is listed with the place to get it."""
    everything = [toy(name) if name in TOY else experiment for name, experiment in BY_NAME.items()]
    monkeypatch.setattr(catalogue, "EXPERIMENTS", tuple(everything))
    data_folder = folder / "no data"
    options = [
        *HERE,
        "--quick",
        "--quiet",
        "--workers",
        "1",
        "--data",
        str(data_folder),
        "--output",
        str(folder),
    ]
    assert main(["reproduce", "--all", *options]) == 0
    said = capsys.readouterr().out
    verdicts = {name: line for name in BY_NAME for line in said.splitlines() if line.startswith(f"{name} ")}
    assert verdicts.keys() == BY_NAME.keys()
    synthetic = {name for name, line in verdicts.items() if "not run: data missing" not in line}
    assert synthetic == {*TOY, "son-figure2"}
    assert "failed" not in said
    page = (folder / "report.html").read_text()
    assert page.count("<section") == len(BY_NAME)
    assert page.count("<svg") >= len(synthetic)
    assert "no data folder: synthetic parts only" in page
    for experiment in everything:
        missing = experiment.jobs(data_folder, True)[1]
        assert missing or experiment.name in synthetic
        for line in missing:
            assert str(data_folder) in line
            assert f": {line}" in said
            assert html.escape(line) in page


def test_one_matrix_serves_all_etas_and_sigmas_of_ada_full() -> None:
    """Figure 1 at the paper's size runs ADA-FULL on the whole grid at once: to the loss of the learner itself."""
    X, y = measure._regression_data(120, 15)
    order, grid = measure._order(120, 1), [0.0001, 0.01, 1.0]
    curves = measure.full_regression(120, 15, 1, grid)["curves"]
    for i, eta in enumerate(grid):
        for j, sigma in enumerate(grid):
            learner = measure.learner_of("ADA-FULL", 10, eta, sigma, loss="absolute")
            loss = np.abs(learner.learn(X[order], y[order]) - y[order])
            assert curves[i][j][1][-1] == pytest.approx(loss.sum(), rel=1e-9)
            assert curves[i][j][1][9] == pytest.approx(loss[: int(curves[i][j][0][9])].sum(), rel=1e-9)


def test_figure_1_of_ada_at_the_papers_size_has_all_methods() -> None:
    """Planned with all methods; the permutations of ADA-FULL become one line, with the η and σ of the first."""
    jobs, _ = BY_NAME["ada-figure1"].jobs(Path("nowhere"), False)
    large = [job for job in jobs if job["rounds"] == 10_000]
    assert all(job["d"] == 500 for job in large)
    assert {job.arguments.get("method", "ADA-FULL") for job in large} == set(online.METHODS)
    small = [replace(job, arguments={**job.arguments, "rounds": 60, "d": 8}) for job in large]
    small = [replace(job, arguments={**job.arguments, "grid": [0.001, 0.1]}) for job in small]
    results = [(job, runner.call(job.function, job.arguments)["result"]) for job in small]
    rows = {row[0]: row for row in online._figure_1(results).tables[0].rows}
    assert list(rows) == online.METHODS
    single = measure.regression("ADA-FULL", 10, 60, 8, online.SEEDS, [0.001, 0.1])
    assert rows["ADA-FULL"][3] == f"{single['regret']:.1f} ± {single['spread']:.1f}"
    assert rows["ADA-FULL"][6] == f"{single['eta']:g}, {single['sigma']:g}"


def test_results_are_kept_and_reported(tmp_path: Path) -> None:
    small = replace(toy("rfd-figure1"), title="Toy <figure>")
    (first,), said = run(tmp_path, small)
    assert said
    kept = {path.name: path.read_bytes() for path in (tmp_path / "cache").glob("*.json")}
    assert len(kept) == first.jobs
    next((tmp_path / "cache").glob("*.json")).write_text("{")  # as if the power had failed
    (again,), said = run(tmp_path, small)
    assert len([line for line in said if "of 1 jobs" in line]) == 1
    assert again.tables == first.tables
    page = report.write(tmp_path, [(small, first)], {"run": "quick"}).read_text()
    assert "Toy &lt;figure&gt;" in page
    assert "<svg" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    assert first.missing[0] in (tmp_path / "report.md").read_text()


def test_a_failure_leaves_the_others(tmp_path: Path) -> None:
    job = runner.Job("experiments.eig.measure:regret", {"method": "none", "n": 2, "rounds": 2, "seeds": 1})
    bad = replace(BY_NAME["eig-table1"], jobs=lambda folder, quick: ([job], []))
    (failed, good), _ = run(tmp_path, bad, toy("rfd-figure1"))
    assert failed.failed
    assert failed.verdict.startswith("failed: ")
    assert good.verdict.startswith("RFD / FD")


def test_a_set_is_fetched_if_its_checksum_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"+1 1:1 3:2\n-1 2:0.5\n"
    (tmp_path / "official").write_bytes(text)
    address, digest = (tmp_path / "official").as_uri(), hashlib.sha256(text).hexdigest()
    for name, checksum in (("right", digest), ("wrong", "0" * 64), ("unknown", "")):
        file = data.File(f"{name}/{name}.xz", address, checksum)
        monkeypatch.setitem(data.DATA_SETS, name, data.DataSet((file,)))
        assert data.present(name, tmp_path) == (name == "right")
    assert lzma.decompress((tmp_path / "right" / "right.xz").read_bytes()) == text
    X, y = data.load("right", tmp_path)
    np.testing.assert_array_equal(X.toarray(), [[0, 1, 0, 2], [0, 0, 0.5, 0]])  # column 0 is not used
    np.testing.assert_array_equal(y, [1, -1])
    with pytest.raises(data.MissingData, match=f"wrong is not in .*: {address}"):
        data.load("wrong", tmp_path)


def test_a_table_is_read_without_its_heading_and_unknown_values(tmp_path: Path) -> None:
    path = tmp_path / "some.csv.xz"
    path.write_bytes(lzma.compress(b"height,width,class\n1,0,2\n?,5,1\n-2.5,3e2,1\n"))
    X, y = data.read(path)
    np.testing.assert_array_equal(X.toarray(), [[1, 0], [-2.5, 300]])
    assert X.nnz == 3
    np.testing.assert_array_equal(y, [2, 1])


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *HERE]) == 0
    assert "son-table3" in capsys.readouterr().out
    assert main(["reproduce", "nothing", *HERE]) == 2
    assert "unknown experiment 'nothing'" in capsys.readouterr().err


def hostile(folder: Path) -> Path:
    """Experiments that leave a mark when they are imported."""
    experiments = folder / "experiments"
    experiments.mkdir(parents=True)
    for name in ("__init__.py", "catalogue.py"):
        (experiments / name).write_text("EXPERIMENTS = ()\nopen(__file__ + '.ran', 'w').close()\n")
    return experiments


def test_code_of_the_current_or_a_parent_directory_is_not_run(tmp_path: Path) -> None:
    experiments, below = hostile(tmp_path), tmp_path / "below"
    below.mkdir()
    package = Path(sketchnewton.__file__).parents[1]
    for place in (tmp_path, below):
        subprocess.run(
            [sys.executable, "-P", "-m", "sketchnewton", "reproduce", "--list"],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            check=False,
        )
        assert not list(experiments.glob("*.ran"))


def test_experiments_belong_to_the_checkout_that_was_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library, checkout = tmp_path / "site-packages", tmp_path / "a checkout"
    (library / "sketchnewton").mkdir(parents=True)
    monkeypatch.setattr(sketchnewton, "__file__", str(library / "sketchnewton" / "__init__.py"))
    hostile(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list"]) == 1
    assert "install from a source checkout, or give --experiments DIR" in capsys.readouterr().err
    note = library / "sketchnewton-0.1.0.dist-info"
    note.mkdir()
    (note / "METADATA").write_text("Metadata-Version: 2.1\nName: sketchnewton\nVersion: 0.1.0\n")
    (note / "direct_url.json").write_text(json.dumps({"url": checkout.as_uri(), "dir_info": {}}))
    assert reproduce.checkout() == checkout


@pytest.mark.parametrize("folder", ["elsewhere", "experiments"])
def test_a_folder_without_experiments(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / folder).mkdir()
    assert main(["reproduce", "--experiments", str(tmp_path / folder)]) == 1
    assert "must be the folder experiments of a source checkout" in capsys.readouterr().err
