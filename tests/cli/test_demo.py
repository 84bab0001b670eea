"""The demo's data is the paper's, its comparison shows the paper's effect, and its picture is drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.cli.commands.demo import DEFAULT, METHODS, NEXT, Method, compare
from sketchnewton.cli.main import main
from sketchnewton.cli.pictures.demo_data import breast_cancer, ill_conditioned, real_data, standardised


def test_the_streams_have_the_spectrum_and_share_the_labels() -> None:
    data = ill_conditioned((10, 200), rows=20_000, features=20)
    for condition_number, (rows, labels) in data.items():
        eigenvalues = np.linalg.eigvalsh(rows.T @ rows / len(rows))
        expected = np.concatenate([np.ones(10), np.linspace(1, condition_number, 11)[1:]])
        np.testing.assert_allclose(eigenvalues, expected, rtol=0.1)
        assert set(labels) == {-1.0, 1.0}
    np.testing.assert_array_equal(data[10][1], data[200][1])


def test_the_labels_are_linear_in_every_scale() -> None:
    for rows, labels in ill_conditioned((10, 200), rows=300, features=100).values():
        weights = np.linalg.lstsq(rows, labels, rcond=None)[0]
        assert np.mean(np.sign(rows @ weights) == labels) > 0.9


def test_breast_cancer_is_shuffled_and_signed() -> None:
    rows, labels = breast_cancer()
    assert rows.shape == (569, 30)
    assert sorted(np.unique(labels)) == [-1.0, 1.0]
    assert np.abs(labels[:100].mean() - labels[-100:].mean()) < 0.5
    scaled = standardised(rows)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1)


@pytest.mark.slow
def test_second_order_methods_hardly_mind_the_condition_number() -> None:
    # FullNewton is the slow one; the best of its grid is inside these four.
    methods = [
        Method(method.name, method.make, (2.0**8, 2.0**10, 2.0**12, 2.0**14))
        if method.name == "full Newton"
        else method
        for method in METHODS
    ]
    errors = {name: np.zeros(2) for name in (method.name for method in methods)}
    for seed in range(3):
        results = compare(ill_conditioned((10, 200), seed=seed), methods)
        for name in errors:
            errors[name] += [results[10][name].error / 3, results[200][name].error / 3]
        for method in methods:
            for result in results.values():
                if method.name != DEFAULT:
                    assert method.grid[0] < result[method.name].setting < method.grid[-1]
    growth = {name: after / before - 1 for name, (before, after) in errors.items()}
    assert growth["online gradient"] > 0.4
    assert growth["AdaGrad"] > 0.4
    assert growth["sketched Newton"] < 0.2
    assert growth["full Newton"] < 0.15
    assert errors["sketched Newton"][1] < 0.75 * errors["AdaGrad"][1]
    # Untuned, below all tuned ones, and the condition number does not matter.
    tuned = np.min([error for name, error in errors.items() if name != DEFAULT], axis=0)
    assert errors[DEFAULT][0] < 0.9 * tuned[0]
    assert errors[DEFAULT][1] < 0.6 * tuned[1]
    assert abs(growth[DEFAULT]) < 0.1


def test_the_default_is_best_on_the_real_data_untuned() -> None:
    for name, result in compare(real_data(), intercept=True).items():
        assert result[DEFAULT].error < min(result[m.name].error for m in METHODS if m.name != DEFAULT), name


@pytest.mark.slow
def test_quick_demo_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.png"
    assert main(["demo", "--quick", "--output", str(picture)]) == 0
    page = capsys.readouterr().out
    for method in METHODS:
        assert page.count(f"\n{method.name} ") == 2
    assert page.endswith("\n".join(NEXT) + "\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_the_demo_names_the_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "sketchnewton.cli.pictures.demo", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["demo", "--output", str(tmp_path / "demo.png")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "pip install 'sketchnewton[plot]'" in err


def test_the_demo_refuses_a_picture_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--output", str(tmp_path / "picture.doc")]) == 2
    assert ".png" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "none" / "demo.png")]) == 1
    assert "there is no directory" in capsys.readouterr().err
