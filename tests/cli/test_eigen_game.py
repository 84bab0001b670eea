"""A game is scored rightly and cheaply, and `skn eigen` shows it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sketchnewton.cli.main import main
from sketchnewton.cli.pictures.eigen_games import METHODS
from sketchnewton.eigen import (
    AsymmetricLearner,
    EpochPowerMethod,
    FollowPerturbedLeader,
    FollowTheLeader,
    OjaLearner,
    play,
)
from sketchnewton.eigen.matrices import as_matrix
from sketchnewton.eigen.oracle import Operator, leading
from sketchnewton.eigen.running_sum import RunningSum
from sketchnewton.eigen.sequences import SEQUENCES, rotating, stochastic

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def test_rewards_and_regret() -> None:
    vectors = stochastic(5, 103, 1)
    game = play(OjaLearner(5), vectors, checkpoints=10)
    learner, rewards = OjaLearner(5), []
    for a in vectors:
        rewards.append((learner.predict() @ a) ** 2)
        learner.observe(a)
    np.testing.assert_allclose(game.rewards, rewards)
    assert game.checkpoints.tolist() == [*range(10, 101, 10), 103]
    for t, best, regret in zip(game.checkpoints, game.best, game.regret_curve, strict=True):
        assert best == pytest.approx(np.linalg.eigvalsh(vectors[:t].T @ vectors[:t])[-1])
        assert regret == pytest.approx(best - sum(rewards[:t]))
    assert game.regret == game.regret_curve[-1]
    assert game.seconds > 0


def test_games_of_unknown_length_and_of_none() -> None:
    vectors = stochastic(5, 70, 1)
    game = play(OjaLearner(5), iter(vectors))
    assert game.checkpoints[-1] == 70
    assert len(game.checkpoints) < 30
    assert game.regret == pytest.approx(play(OjaLearner(5), vectors).regret)
    assert play(OjaLearner(5), []).regret == 0.0


def test_two_components_are_measured_against_two_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, 50)) * np.geomspace(0.3, 0.001, 50)
    vectors /= np.linalg.norm(vectors, axis=1).max()
    game = play(FollowTheLeader(50, components=2), vectors, checkpoints=1)
    assert game.best[-1] == pytest.approx(np.linalg.eigvalsh(vectors.T @ vectors)[-2:].sum())
    assert 0 <= game.regret < 0.2 * game.best[-1]


def test_asymmetric_games_compete_with_the_largest_singular_value() -> None:
    rng = np.random.default_rng(0)
    matrices = [
        0.1 * rng.standard_normal((3, 4)) + np.outer([0.5, 0, 0], [0, 0.5, 0.5, 0]) for _ in range(400)
    ]
    bound = max(np.linalg.norm(A, 2) for A in matrices)
    learner = AsymmetricLearner(FollowPerturbedLeader(7, horizon=400, bound=bound), (3, 4))
    game = play(learner, matrices, checkpoints=1)
    assert game.best[-1] == pytest.approx(np.linalg.norm(sum(matrices), 2))
    assert game.regret < 0.8 * game.best[-1]
    power = AsymmetricLearner(EpochPowerMethod(7, horizon=400, bound=bound), (3, 4))
    assert play(power, matrices, checkpoints=1).regret < 0.8 * game.best[-1]


@pytest.mark.parametrize(("m", "n", "inner"), [(2, 3, 6), (0, 3, 3)])
def test_an_asymmetric_learner_that_does_not_fit(m: int, n: int, inner: int) -> None:
    with pytest.raises(ValueError, match=r"need n=5|shape=0 is invalid"):
        AsymmetricLearner(FollowTheLeader(inner), (m, n))


def test_the_sequences_are_what_they_say() -> None:
    for make in SEQUENCES.values():
        vectors = make(6, 2000, 3)
        assert vectors.shape == (2000, 6)
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-12
    mean = stochastic(6, 20_000, 0).T @ stochastic(6, 20_000, 0) / 20_000
    np.testing.assert_allclose(np.linalg.eigvalsh(mean), [1 / 12] * 5 + [7 / 12], atol=0.02)
    turning = rotating(6, 2000, 3)
    np.testing.assert_allclose((turning[1:] * turning[:-1]).sum(axis=1), np.cos(4 * np.pi / 2000))


# -- cost


def sparse_rows(n: int, rounds: int, non_zeros: int) -> list[sp.csr_array]:
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(rounds):
        columns = np.sort(rng.choice(n, non_zeros, replace=False)).astype(np.int32)
        values = rng.standard_normal(non_zeros)
        rows.append(
            sp.csr_array((values / np.linalg.norm(values), (np.zeros(non_zeros, int), columns)), (1, n))
        )
    return rows


@pytest.mark.parametrize("make", [FollowPerturbedLeader, FollowTheLeader, EpochPowerMethod, OjaLearner])
def test_sparse_data_never_cost_the_square_of_the_dimension(make: type) -> None:
    n = 20_000  # n² numbers would be 3.2 GB
    tracemalloc.start()
    try:
        play(make(n), sparse_rows(n, 12, 20), checkpoints=1)
        matrix = sp.random_array((n, n), density=1e-7, rng=np.random.default_rng(0), format="csr")
        learner = make(n)
        learner.observe((matrix + matrix.T) / 4)
        learner.predict()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * n * 8  # vectors of length n


def test_the_sum_keeps_factors_until_an_array_is_smaller() -> None:
    n = 70
    rows = sparse_rows(n, 700, 5)
    total, expected = RunningSum(n), np.zeros((n, n))
    sizes = []
    for row in rows:
        total.add(as_matrix(row, n))
        sizes.append(total.non_zeros)
        dense = row.toarray()
        expected += dense.T @ dense
    assert sizes[:3] == [5, 10, 15]
    assert max(sizes) == n**2
    np.testing.assert_allclose(total.dense(), expected, atol=1e-12)
    np.testing.assert_allclose(total.times(np.ones(n)), expected.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("n", [30, 70, 200])
def test_a_sum_of_every_kind_of_matrix(n: int) -> None:
    rng = np.random.default_rng(0)
    x, U, s = rng.standard_normal(n), rng.standard_normal((n, 2)), np.array([0.3, -2.0])
    S = sp.random_array((n, n), density=0.02, rng=rng, format="csr")
    S = S + S.T
    total, other, expected = RunningSum(n), RunningSum(n), np.zeros((n, n))
    for form, array in ((S, S.toarray()), (x, np.outer(x, x)), ((U, s), U * s @ U.T), (S, S.toarray())):
        total.add(as_matrix(form, n), 0.5)
        other.add(as_matrix(form, n))
        expected += 0.5 * array
    np.testing.assert_allclose(total.dense(), expected, atol=1e-12)
    total.absorb(other)
    np.testing.assert_allclose(total.dense(), 3 * expected, atol=1e-12)
    np.testing.assert_allclose(other.dense(), 0)
    v = rng.standard_normal((n, 3))
    np.testing.assert_allclose(total.times(v), 3 * expected @ v, atol=1e-9)
    assert -total.floor <= np.linalg.eigvalsh(3 * expected)[0] + 1e-9


@pytest.mark.parametrize("method", ["lanczos", "power"])
@pytest.mark.parametrize("n", [5, 60, 400])
def test_the_oracle_finds_leaders_from_bad_starts(method: str, n: int) -> None:
    """Started at the second eigenvector, exactly, it must still find the first; three are orthonormal."""
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.linspace(-1.0, 0.5, n)
    values[-3:] = [0.8, 1.0, 1.3]
    A = Q * values @ Q.T
    operator = Operator(n, lambda x: A @ x, lambda: A, floor=1.0)
    found = leading(operator, 3, Q[:, -2].copy(), 1e-9, rng, method)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(np.diag(found.T @ A @ found), [1.3, 1.0, 0.8], atol=1e-6)


def test_the_oracle_survives_equal_eigenvalues_and_zero() -> None:
    rng = np.random.default_rng(0)
    for A in (np.zeros((60, 60)), np.eye(60), -np.eye(350)):
        for method in ("lanczos", "power"):
            operator = Operator(len(A), lambda x, A=A: A @ x, floor=1.0)
            (x,) = leading(operator, 1, np.ones(len(A)), 1e-9, rng, method).T
            assert np.linalg.norm(x) == pytest.approx(1.0)


# -- what people see


def test_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    vectors = stochastic(5, 60, 0)
    for stream, seen in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sketchnewton.eigen.game._BAR_AFTER", 0.0)
        monkeypatch.setattr("sketchnewton.eigen.game._BAR_EVERY", 0.0)
        monkeypatch.setattr(sys, "stderr", stream)
        play(OjaLearner(5), vectors)
        assert ("100%  60 rounds" in stream.getvalue()) == seen
        assert stream.getvalue() == "" or stream.getvalue().endswith("\r\x1b[K")


def test_a_comparison_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "curves.png"
    assert main(["eigen", "alternating", "--rounds", "60", "--seeds", "2", "--output", str(picture)]) == 0
    page = capsys.readouterr().out
    for method in METHODS:
        assert method.name in page
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["eigen", "stochastic", "--rounds", "40", "--n", "4", "--seeds", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [fact["name"] for fact in facts["methods"]] == [method.name for method in METHODS]
    assert facts["n"] == 4


def test_table_1_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "table1.svg"
    size = ["--rounds", "160", "--n", "8", "--seeds", "1"]
    assert main(["eigen", "table1", *size, "--output", str(picture)]) == 0
    page = capsys.readouterr().out
    assert "n^5/4 √T" in page
    assert "leader, no noise" in page
    assert picture.read_text().startswith("<?xml")
    assert main(["eigen", "table1", *size, "--json"]) == 0
    growths = json.loads(capsys.readouterr().out)
    linear = next(growth for growth in growths["rounds"] if growth["name"] == "leader, no noise")
    assert linear["exponent"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eigen", "alternatin"], "did you mean alternating?"),
        (["eigen", "rotating", "--output", "curve.txt"], "the picture can be one of"),
        (["eigen", "rotating", "--output", "/nowhere/at/all.png"], "there is no directory"),
        (["eigen", "table1", "--n", "4"], "at least 8"),
        (["eigen", "table1", "--rounds", "10"], "at least 64"),
        (["eigen", "rotating", "--n", "0"], "must be a whole number >= 1"),
    ],
)
def test_one_line_for_a_mistake(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_package_does_not_import_scipy_for_it() -> None:
    code = "import sketchnewton, sys; print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
