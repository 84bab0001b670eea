"""Learners of eigenvectors follow the printed algorithms, take every form of input and refuse bad input whole."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import sketchnewton
from sketchnewton.core.archive import ModelFileError, read, write
from sketchnewton.eigen import (
    AsymmetricLearner,
    EigenLearner,
    EpochPowerMethod,
    FollowPerturbedLeader,
    FollowTheLeader,
    MatrixMultiplicativeWeights,
    OjaLearner,
    OnlineFrankWolfe,
)
from tests.oracles import eigenvectors as oracle

Array = NDArray[np.float64]
Make = Callable[[int], EigenLearner]

LEARNERS: dict[str, Make] = {
    "leader": FollowTheLeader,
    "rank-one noise": lambda n: FollowPerturbedLeader(n, horizon=60),
    "rank-one noise, doubling": FollowPerturbedLeader,
    "rank-one noise, fresh": lambda n: FollowPerturbedLeader(n, horizon=60, fresh_noise=True),
    "rank-one noise, power": lambda n: FollowPerturbedLeader(n, horizon=60, oracle="power"),
    "rank-one noise, two components": lambda n: FollowPerturbedLeader(n, horizon=60, components=2),
    "uniform noise": lambda n: FollowPerturbedLeader(n, noise="uniform", horizon=60),
    "exponential noise": lambda n: FollowPerturbedLeader(n, noise="exponential"),
    "epochs": lambda n: EpochPowerMethod(n, block=7),
    "epochs, doubling": EpochPowerMethod,
    "multiplicative weights": MatrixMultiplicativeWeights,
    "Frank-Wolfe": lambda n: OnlineFrankWolfe(n, horizon=60),
    "Oja": lambda n: OjaLearner(n, rate=0.5),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def symmetric(n: int, rounds: int, seed: int = 0, definite: bool = False) -> list[Array]:
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(rounds):
        A = rng.standard_normal((n, n)) * np.geomspace(1, 0.1, n)
        A = A @ A.T if definite else A + A.T
        matrices.append(A / np.linalg.norm(A, 2))
    return matrices


def vectors(n: int, rounds: int, seed: int = 0, non_zeros: int = 5) -> Array:
    rng = np.random.default_rng(seed)
    rows = np.zeros((rounds, n))
    for row in rows:
        row[rng.choice(n, non_zeros, replace=False)] = rng.standard_normal(non_zeros) + 0.3
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def snapshot(learner: EigenLearner) -> tuple[Any, dict[str, bytes]]:
    header, arrays = learner.to_archive()
    return header, {name: array.tobytes() for name, array in arrays.items()}


def same_up_to_sign(x: Array, y: Array, tolerance: float) -> None:
    np.testing.assert_allclose(np.outer(x, x), np.outer(y, y), atol=tolerance)


# -- the algorithms


@pytest.mark.parametrize("n", [4, 50, 90])
@pytest.mark.parametrize("noise", ["rank_one", "uniform", "exponential"])
def test_perturbed_leader_is_algorithm_3(noise: str, n: int) -> None:
    matrices = symmetric(n, 25)
    learner = FollowPerturbedLeader(n, noise=noise, horizon=25, random_state=3, tolerance=1e-10)
    for A, expected in zip(matrices, oracle.perturbed_leader(matrices, learner.perturbation), strict=True):
        x = learner.predict()
        np.testing.assert_allclose(np.outer(x, x), expected, atol=1e-4)
        learner.observe(A)


@pytest.mark.parametrize("n", [5, 80])
def test_epoch_power_method_is_algorithm_2(n: int) -> None:
    matrices = symmetric(n, 33, definite=True)
    learner = EpochPowerMethod(n, horizon=33, block=6, shift=0.0)
    first = learner.predict()
    for A, expected in zip(matrices, oracle.epoch_power_method(matrices, first, 6), strict=True):
        np.testing.assert_allclose(learner.predict(), expected, atol=1e-10)
        learner.observe(A)


def test_block_length_of_theorem_1() -> None:
    assert EpochPowerMethod(10, horizon=1000).block == int(np.ceil(0.25 * np.sqrt(2000 * np.log(20_000))))


def test_epoch_power_method_needs_no_definite_matrices() -> None:
    """−1 is the largest eigenvalue in size, ½ the largest; the shift tells them apart."""
    learner = EpochPowerMethod(2, horizon=400)
    for _ in range(400):
        learner.observe(np.array([[-0.2, 0.6], [0.6, -0.4]]))
    expected = np.linalg.eigh(np.array([[-0.2, 0.6], [0.6, -0.4]]))[1][:, -1]
    same_up_to_sign(learner.predict(), expected, 1e-3)


def test_multiplicative_weights_density_and_draws() -> None:
    matrices = symmetric(4, 30)
    learner = MatrixMultiplicativeWeights(4, eta=0.3)
    for A, expected in zip(matrices, oracle.multiplicative_weights(matrices, 0.3), strict=True):
        np.testing.assert_allclose(learner.density, expected, atol=1e-10)
        learner.observe(A)
    # E[xxᵀ] is the density. Entries of xxᵀ lie in [−1, 1]; by Hoeffding, 4,000 draws are off by more than
    # 0.095 in one of 10 entries with probability below 10·2·exp(−4000·0.095²/2) < 1e-6.
    total = np.zeros((4, 4))
    for seed in range(4000):
        learner._rng = np.random.default_rng(seed)
        learner._prediction = None
        x = learner.predict()
        total += np.outer(x, x)
    np.testing.assert_allclose(total / 4000, learner.density, atol=0.095)


@pytest.mark.parametrize("n", [4, 50])
def test_frank_wolfe_density(n: int) -> None:
    # A large η and matrices with a clear leader: no near-ties, which the two might break differently.
    matrices = [
        A * np.outer(d, d)
        for A, d in zip(symmetric(n, 12), np.geomspace(0.1, 1, 12 * n).reshape(12, n), strict=True)
    ]
    learner = OnlineFrankWolfe(n, eta=3.0)
    learner.observe(matrices[0])  # its gradient is 0: any leader is right, so the reference takes ours
    densities = oracle.frank_wolfe(matrices, 3.0, first_leader=learner._leader)
    for A, expected in zip(matrices[1:], densities[1:], strict=True):
        np.testing.assert_allclose(learner.density, expected, atol=1e-3)
        learner.observe(A)


def test_oja() -> None:
    matrices = symmetric(6, 20)
    learner = OjaLearner(6)
    for A, expected in zip(matrices, oracle.oja(matrices, learner.predict()), strict=True):
        np.testing.assert_allclose(learner.predict(), expected, atol=1e-12)
        learner.observe(A)


# -- what all learners promise


@every_learner
@pytest.mark.parametrize("n", [6, 70])
def test_predictions_are_orthonormal_and_stay_until_the_matrix(make: Make, n: int) -> None:
    learner = make(n)
    for A in symmetric(n, 12):
        x = learner.predict()
        k = learner.components
        np.testing.assert_allclose(x.reshape(n, k).T @ x.reshape(n, k), np.eye(k), atol=1e-9)
        x[:] = 0  # a copy
        assert learner.predict().any()
        np.testing.assert_array_equal(learner.predict(), learner.predict())
        learner.observe(A)
    assert learner.rounds == 12


@every_learner
@pytest.mark.parametrize("n", [9, 70])
def test_every_form_of_a_matrix_is_the_same_matrix(make: Make, n: int) -> None:
    forms: list[Callable[[Array], Any]] = [
        lambda x: np.outer(x, x),
        lambda x: sp.csr_array(np.outer(x, x)),
        lambda x: x,
        lambda x: sp.coo_array(x[None, :]),
        lambda x: sp.csc_matrix(x[:, None]),
        lambda x: (x[:, None], [1.0]),
        lambda x: (sp.csc_array(np.column_stack([x, x])), np.array([0.25, 0.75])),
    ]
    learners = [make(n) for _ in forms]
    for x in vectors(n, 15):
        first, *others = [learner.predict() for learner in learners]
        for other in others:
            np.testing.assert_allclose(first @ first.T, other @ other.T, atol=1e-3)
        for learner, form in zip(learners, forms, strict=True):
            learner.observe(form(x))


BAD: dict[str, tuple[Any, str]] = {
    "not symmetric": ([[0.0, 0.5, 0], [0, 0, 0], [0, 0, 0]], r"not symmetric: entry \(0, 1\) is 0.5"),
    "sparse, not symmetric": (sp.csr_array([[0.0, 0, 0], [0.5, 0, 0], [0, 0, 0]]), "not symmetric"),
    "NaN": (np.full((3, 3), np.nan), "NaN or infinity"),
    "NaN in a vector": (np.array([0.1, np.nan, 0]), "NaN or infinity"),
    "infinity, sparse": (sp.csr_array(np.diag([np.inf, 0, 0])), "NaN or infinity"),
    "NaN in a factor": ((np.eye(3), [0.1, np.nan, 0.1]), "s contains NaN"),
    "wrong size": (np.eye(4) / 2, r"shape \(4, 4\), expected \(3, 3\)"),
    "not square": (np.ones((3, 2)), r"shape \(3, 2\)"),
    "wrong vector": (np.ones(4) / 2, r"shape \(4,\)"),
    "wrong sparse": (sp.eye_array(4), r"shape \(4, 4\)"),
    "wrong factor": ((np.eye(3), [1.0, 1.0]), r"expected \(3, k\) and \(k,\)"),
    "triple": ((np.eye(3), [1.0], 2), "pair"),
    "complex": (np.eye(3) * 1j, "real numbers"),
    "words": ([["a"] * 3] * 3, "real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "rows differ in length"),
    "norm": (np.diag([0.0, -1.5, 0.2]), "norm 1.5, above bound=1"),
    "norm, sparse": (sp.csr_array(np.diag([0.0, 1.2, 0.2])), "norm 1.2, above"),
    "norm, vector": (np.array([0.0, 2.0, 0.0]), "norm 4, above"),
    "norm, factor": ((np.array([[1.0, 1], [0, 0], [0, 0]]), [1.0, 1.0]), "norm 2, above"),
}


@every_learner
def test_bad_input_is_refused_and_changes_nothing(make: Make) -> None:
    learner = make(3)
    learner.observe(np.diag([0.5, 0.2, 0.1]))
    learner.predict()
    before = snapshot(learner)
    for matrix, message in BAD.values():
        with pytest.raises(ValueError, match=message) as caught:
            learner.observe(matrix)
        assert "\n" not in str(caught.value)
        assert snapshot(learner) == before


def test_a_norm_at_the_bound_is_accepted_whatever_the_cheap_estimates_say() -> None:
    A = np.kron(np.eye(2), np.ones((3, 3))) / 3  # norm 1, Frobenius' norm √2
    A[0, 3] = A[3, 0] = 1e-12
    for form in (A, sp.csr_array(A), (np.linalg.qr(np.ones((6, 6)) + np.eye(6))[0], np.ones(6))):
        FollowTheLeader(6).observe(form)


def test_bound_rescales() -> None:
    """Matrices of norm up to 50 with bound=50 are the same game as matrices of norm up to 1."""
    plain, scaled = FollowPerturbedLeader(5, horizon=30), FollowPerturbedLeader(5, horizon=30, bound=50.0)
    for A in symmetric(5, 30):
        np.testing.assert_allclose(plain.predict(), scaled.predict(), atol=1e-9)
        plain.observe(A)
        scaled.observe(50 * A)
    assert scaled.regret_bound(30) == pytest.approx(50 * plain.regret_bound(30))


def test_rounding_asymmetry_is_averaged() -> None:
    A = symmetric(5, 1)[0]
    noisy = A + 1e-12 * np.triu(np.ones((5, 5)))
    for form in (noisy, sp.csr_array(noisy)):
        learner = FollowTheLeader(5, bound=2.0)
        learner.observe(form)
        np.testing.assert_allclose(learner._sum.dense(), learner._sum.dense().T, atol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 is invalid"),
        ({"n": 3, "noise": "gaussian"}, "noise='gaussian' is invalid"),
        ({"n": 3, "horizon": 0}, "horizon=0 is invalid"),
        ({"n": 3, "scale": -1}, "scale=-1 is invalid"),
        ({"n": 3, "bound": np.inf}, "bound=inf is invalid"),
        ({"n": 3, "components": 4}, "components=4 is invalid"),
        ({"n": 3, "oracle": "qr"}, "oracle='qr' is invalid"),
        ({"n": 3, "tolerance": 0.0}, "tolerance=0.0 is invalid"),
        ({"n": 3, "random_state": -1}, "random_state=-1 is invalid"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FollowPerturbedLeader(**arguments)


# -- saving


@every_learner
@pytest.mark.parametrize("n", [6, 70])
@pytest.mark.parametrize("asked", [True, False], ids=["after predict", "before predict"])
def test_a_saved_learner_continues_bit_for_bit(make: Make, n: int, asked: bool, tmp_path: Path) -> None:
    path = tmp_path / "learner.skn"
    rows = vectors(n, 40)
    inputs = [np.outer(x, x) if t % 9 == 8 else sp.csr_array(x[None, :]) for t, x in enumerate(rows)]
    if n > 64:  # without a dense matrix the sum stays sparse
        inputs = [sp.csr_array(A) for A in inputs]
    learner = make(n)
    for A in inputs[:20]:
        learner.predict()
        learner.observe(A)
    if asked:
        learner.predict()
    learner.save(path)
    resumed = [sketchnewton.load(path), type(learner).load(path), pickle.loads(pickle.dumps(learner))]
    for A in inputs[20:]:
        x = learner.predict()
        for other in resumed:
            np.testing.assert_array_equal(other.predict(), x)
            other.observe(A)
        learner.observe(A)
    for other in resumed:
        assert isinstance(other, EigenLearner)
        assert snapshot(other) == snapshot(learner)
        assert repr(other) == repr(learner)


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner.skn"
    learner = FollowPerturbedLeader(70)
    learner.observe(vectors(70, 1)[0])
    learner.save(path)
    header, arrays = read(path)
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({**header, "class": "Unknown"}, arrays),
        ({**header, "parameters": {"n": 3, "color": 1}}, arrays),
        ({**header, "counters": {"rounds": -1, "horizon": 3}}, arrays),
        ({**header, "random": {}}, arrays),
        (header, {**arrays, "noise": arrays["noise"][:3]}),
        (header, {**arrays, "sum.rows.indices": arrays["sum.rows.indices"] + 70}),
        (header, {name: array for name, array in arrays.items() if name != "last"}),
    ]
    for changed_header, changed_arrays in changes:
        write(path, changed_header, changed_arrays)
        with pytest.raises(ModelFileError, match=r"learner\.skn"):
            sketchnewton.load(path)


def test_a_file_of_another_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner.skn"
    OjaLearner(3).save(path)
    with pytest.raises(ModelFileError, match=r"holds a OjaLearner, not a learner$"):
        sketchnewton.Learner.load(path)
    with pytest.raises(ModelFileError, match="holds a OjaLearner, not a FollowTheLeader"):
        FollowTheLeader.load(path)


def test_asymmetric_learner_is_saved_with_the_learner_inside(tmp_path: Path) -> None:
    path = tmp_path / "learner.skn"
    rng = np.random.default_rng(0)
    learner = AsymmetricLearner(FollowPerturbedLeader(7, horizon=30), (3, 4), random_state=5)
    matrices = [A / np.linalg.norm(A, 2) for A in rng.standard_normal((30, 3, 4))]
    for A in matrices[:15]:
        learner.predict()
        learner.observe(A)
    learner.save(path)
    resumed = AsymmetricLearner.load(path)
    assert repr(resumed) == repr(learner)
    for A in matrices[15:]:
        for x, y in zip(learner.predict(), resumed.predict(), strict=True):
            np.testing.assert_array_equal(x, y)
        learner.observe(A)
        resumed.observe(A)
