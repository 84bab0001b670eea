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
from experiments.rfd import learning  # isort: skip
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


def test_published_tables_are_shown_without_data(tmp_path: Path) -> None:
    """All that SON, RFD and ADA have in numbers, a cell of each."""
    names = ("son-table1", "son-table3", "rfd-table1", "rfd-table2", "ada-table2", "ada-table3")
    experiments = [BY_NAME[name] for name in names]
    outcomes, _ = run(tmp_path, *experiments)
    assert {outcome.verdict for outcome in outcomes} == {"not run: data missing"}
    page = report.write(tmp_path, list(zip(experiments, outcomes, strict=True)), {}).read_text()
    for cell in (
        "20,958 / –",
        "781,265 / –",
        "0.0509",
        "54,877 / –",
        "97.11",
        "7.4e-02",
        "dual norm",
        "97.30",
    ):
        assert f">{cell}" in page
    assert (
        "| rcv1 | 781,265 / – | 75.72 / – | 43,001 / – | not here |" in (tmp_path / "report.md").read_text()
    )


def test_published_accuracies_of_rfd_stand_beside_the_measured(tmp_path: Path) -> None:
    """On a small set by the name of a9a: tables, the flat line of RFD₀ in Figure 3, other sets as published."""
    rows = np.random.default_rng(0).random((40, 3)).round(3)
    lines = [f"{'+1' if row[0] > 0.5 else '-1'} 1:{row[0]} 2:{row[1]} 3:{row[2]}\n" for row in rows]
    (tmp_path / "a9a").mkdir()
    (tmp_path / "a9a" / "a9a.xz").write_bytes(lzma.compress("".join(lines).encode()))
    jobs, missing = BY_NAME["rfd-table2"].jobs(tmp_path, True)
    outcome = learning._outcome([(job, runner.call(job.function, job.arguments)["result"]) for job in jobs])
    accuracies = {row[0]: row[1] for row in outcome.tables[0].rows}
    assert accuracies["RFD, m = 20"] == "83.94"
    assert accuracies["FULL-ON"] == "83.83"
    curves = outcome.figures[0].curves
    assert curves["RFD₀, published"][1] == pytest.approx([1 - 0.832429] * 10)
    assert curves.keys() > {"ADAGRAD", "FULL-ON", "FD", "PFD", "RP", "Oja", "RFD", "RFD₀", "RFD, published"}
    assert [table.title for table in outcome.tables].count("Tables 2 and 3, sido0, which is not here") == 1
    assert len(missing) == 5


def test_sizes_of_sets_stand_beside_the_published(tmp_path: Path) -> None:
    """heart as published, australian with a row more; and a small MNIST."""
    for name, rows, features in (("heart", 270, 13), ("australian", 691, 14)):
        (tmp_path / name).mkdir()
        lines = f"+1 1:1 {features}:0.5\n" + "-1 2:1\n" * (rows - 1)
        (tmp_path / name / f"{name}.xz").write_bytes(lzma.compress(lines.encode()))
    (tmp_path / "mnist").mkdir()
    for part, rows in (("train", 3), ("t10k", 2)):
        for kind, shape in (("images-idx3", (rows, 28, 28)), ("labels-idx1", (rows,))):
            head = bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
            content = head + bytes(range(rows)) * (1 if len(shape) == 1 else 784)
            (tmp_path / "mnist" / f"{part}-{kind}-ubyte").write_bytes(content)
    experiments = [BY_NAME["son-table1"], BY_NAME["ada-table2"]]
    outcomes = runner.Runner(tmp_path / "cache", 1, lambda _: None).run(experiments, tmp_path, quick=True)
    son, ada = (
        {row[0]: (row[1:], verdict) for row, verdict in zip(table.rows, table.verdicts, strict=True)}
        for table in (outcomes[0].tables[0], outcomes[1].tables[1])
    )
    assert son["heart"] == (["270 / 270", "9.76 / 1", "13 / 13"], "features per row -8.76")
    assert son["australian"][1] == "rows +1, features per row -10.19"
    assert son["w8a"] == (["49,749 / –", "11.65 / –", "300 / –"], "not here")
    assert ada["MNIST"] == (
        ["60,000 / 3", "10,000 / 2", "784 / 784", "10 / 3"],
        "rows to learn from -59997, rows to test -9998, classes -7",
    )
    assert ada["SVHN"][1] == "not here"
    assert outcomes[0].verdict == "0 of 2 sets that are here have the published size"


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
