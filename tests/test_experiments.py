"""`skn reproduce`: one job of each paper at toy size, the cache of results, the report."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "experiments" / "catalogue.py").is_file():
    pytest.skip("needs a source checkout", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments import catalogue, report, runner  # noqa: E402

from sketchnewton.cli import main  # noqa: E402

TOY = {
    "SON": (
        "experiments.son.synthetic:synthetic_error",
        {"method": "Oja m = 5", "kappa": 50.0, "seed": 0, "rows": 200},
    ),
    "RFD": ("experiments.rfd.spectral:spectral_errors", {"folder": "", "data": "exponential", "sizes": [5]}),
    "ADA": (
        "experiments.ada.online:regression_loss",
        {"method": "ADA-GP", "rounds": 100, "d": 10, "seed": 0, "grid": [1.0]},
    ),
    "EIG": (
        "experiments.eig.table1:regret",
        {"method": "leader, rank-one noise", "n": 4, "rounds": 30, "seeds": 1},
    ),
}


@pytest.mark.parametrize("paper", TOY)
def test_a_job_of_each_paper(paper: str) -> None:
    function, arguments = TOY[paper]
    result = runner.call(function, arguments)
    if paper == "SON":
        assert 0.0 < result < 0.5
    elif paper == "RFD":
        assert 0.0 < result["RFD"][0] < 0.65 * result["FD"][0]
    elif paper == "ADA":
        assert 0.0 < result["loss"] < 1000.0
    else:
        assert len(result) == 2


def test_every_experiment_says_what_is_missing(tmp_path: Path) -> None:
    names = [experiment.name for experiment in catalogue.EXPERIMENTS]
    assert len(set(names)) == len(names)
    for experiment in catalogue.EXPERIMENTS:
        jobs, missing = experiment.jobs(tmp_path, True)
        assert jobs or missing
        assert all(str(tmp_path) in line for line in missing)


def test_results_are_kept_and_reported(tmp_path: Path) -> None:
    job = runner.Job(*TOY["RFD"])
    spectral = next(e for e in catalogue.EXPERIMENTS if e.name == "rfd-figure1")
    toy = runner.Experiment(
        "toy", "RFD", "Toy <figure>", lambda folder, quick: ([job], ["a set"]), spectral.outcome
    )
    said: list[str] = []
    first = runner.Runner(tmp_path / "cache", 1, "code", said.append).run(toy, tmp_path, quick=True)
    assert said
    assert len(list((tmp_path / "cache").glob("*.json"))) == 1
    said.clear()
    again = runner.Runner(tmp_path / "cache", 1, "code", said.append).run(toy, tmp_path, quick=True)
    assert not said
    assert again.tables == first.tables
    page = report.write(tmp_path, [(toy, first)], {"run": "quick"}).read_text()
    assert "Toy &lt;figure&gt;" in page
    assert "<svg" in page
    assert "<script" not in page
    assert "a set" in (tmp_path / "report.md").read_text()


def test_the_command_lists_and_refuses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["reproduce"]) == 0
    assert "son-table3" in capsys.readouterr().out
    assert main(["reproduce", "nothing"]) == 2
    assert "'nothing' is no experiment" in capsys.readouterr().err


def test_outside_of_a_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list"]) == 1
    assert "run it in a source checkout" in capsys.readouterr().err
