"""Does the theory of online eigenvectors hold in numbers, and what does a round cost on large sparse data?

    python benchmarks/eigenvectors.py bounds      mean regret against every stated bound on a grid (~20 min)
    python benchmarks/eigenvectors.py growth      exponents of T and n for the three noises (~10 min)
    python benchmarks/eigenvectors.py rate        rank-one noise up to T = 64,000, from many draws (~5 min)
    python benchmarks/eigenvectors.py large       n = 100,000, T = 10,000 rows of 50 non-zeros (~5 min)
    python benchmarks/eigenvectors.py non-zeros   time per round against the non-zeros of a row

Everything runs on one thread of BLAS.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from sketchnewton.cli.pictures.eigen_games import METHODS, compare, exponent
from sketchnewton.eigen import EpochPowerMethod, FollowPerturbedLeader, OjaLearner, play
from sketchnewton.eigen.noise import scale_for
from sketchnewton.eigen.sequences import SEQUENCES

BOUNDED = [method for method in METHODS if method.regret != "-"]
NOISES = [method for method in METHODS if method.name.endswith(" noise")][:3]


def bounds(seeds: int, sequences: Sequence[str], sizes: Sequence[int]) -> None:
    """Mean regret / bound; in brackets where none is promised: Theorem 1 is about stochastic data."""
    print(f"{'sequence':<13}{'n':>5}{'T':>6}  " + "".join(f"{method.name:>27}" for method in BOUNDED))
    worst = {method.name: 0.0 for method in BOUNDED}
    for sequence in sequences:
        for n in sizes:
            for T in (250, 1000, 4000):
                cells = []
                for method in BOUNDED:
                    (score,) = compare(sequence, n, T, seeds, methods=[method], checkpoints=1)
                    bound = method.bound(n, T) or np.inf
                    promised = "stochastic" not in method.regret or sequence == "stochastic"
                    if promised:
                        worst[method.name] = max(worst[method.name], score.regret / bound)
                    cell = f"{score.regret:,.0f}±{score.error:.0f}/{bound:,.0f}"
                    cells.append(cell if promised else f"({cell})")
                print(f"{sequence:<13}{n:>5}{T:>6}  " + "".join(f"{cell:>27}" for cell in cells), flush=True)
    print("largest regret/bound: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst.items()))


def growth(seeds: int) -> None:
    """Exponents with a bootstrap standard error over seeds, on alternating directions.

    Of all T and of those that are at least 100n: in shorter games the noise leads for so many rounds that the
    regret is near T/2, the largest possible, and not yet near its rate.
    """
    rounds, sizes = (250, 1000, 4000, 16_000), (4, 8, 16, 32)
    rng = np.random.default_rng(0)
    for method in NOISES:
        for n in (4, 10):
            regrets = _regrets(method, [(n, T) for T in rounds], seeds)
            logarithms = np.sqrt([max(1.0, np.log(T / n)) for T in rounds])
            long = slice(1, None)
            print(
                f"{method.name}, n={n}, T={rounds}: {_line(regrets)}; T^{_fit(rounds, regrets, rng)}, "
                f"from T={rounds[1]} T^{_fit(rounds[long], regrets[:, long], rng)}, there divided by √ln(T/n) "
                f"T^{_fit(rounds[long], (regrets / logarithms)[:, long], rng)}",
                flush=True,
            )
        regrets = _regrets(method, [(n, 4000) for n in sizes], max(1, seeds // 2))
        fit = _fit(sizes, regrets, rng)
        print(f"{method.name}, T=4000, n={sizes}: {_line(regrets)}; n^{fit}", flush=True)
    leader = METHODS[-1]
    regrets = _regrets(leader, [(10, T) for T in rounds], 1)
    slope = exponent(rounds, regrets.mean(axis=0))
    print(f"{leader.name}, n=10, T={rounds}: {_line(regrets)}; T^{slope:.2f}")


def rate(seeds: int) -> None:
    """Regret of rank-one noise on alternating and on fixed directions, and of any learner on random axes.

    Over the rate √(nT ln(T/n)), and the exponent of T with and without the rate's logarithm, which is not yet
    slow in games of this length.
    """
    rounds = np.array([250, 1000, 4000, 16_000, 64_000])
    rng = np.random.default_rng(0)
    for n in (4, 10, 40, 160):
        logarithms = np.sqrt(np.maximum(1.0, np.log(rounds / n)))
        scale = np.sqrt(n * rounds) * logarithms
        for sequence in ("alternating", "fixed", "axes"):
            play = _any_on_axes if sequence == "axes" else _in_three_dimensions
            regrets = np.array([play(sequence, n, int(T), seeds) for T in rounds]).T
            ratios = ", ".join(f"{ratio:.3f}" for ratio in regrets.mean(axis=0) / scale)
            fits = ", ".join(
                f"{rounds[k]}-{rounds[k + 2]}: T^{_fit(rounds[k : k + 3], regrets[:, k : k + 3], rng)}"
                f", over √ln(T/n) T^{_fit(rounds[k : k + 3], (regrets / logarithms)[:, k : k + 3], rng)}"
                f" (rate T^{exponent(rounds[k : k + 3], scale[k : k + 3]):.2f})"
                for k in range(3)
            )
            print(
                f"{sequence}, n={n}, T={rounds.tolist()}: {_line(regrets)}; over the rate {ratios}; {fits}",
                flush=True,
            )


def _in_three_dimensions(sequence: str, n: int, rounds: int, seeds: int) -> np.ndarray:
    """The game of all seeds at once: sum, noise and best vector live in the span of two axes and v."""
    v = np.random.default_rng(n).standard_normal((seeds, n))
    u = np.column_stack([v[:, :2], np.linalg.norm(v[:, 2:], axis=1)])
    noise = scale_for("rank_one", n, rounds) * u[:, :, None] * u[:, None, :]
    total, gained = np.zeros((3, 3)), np.zeros(seeds)
    for vector in SEQUENCES[sequence](n, rounds, 0)[:, :2]:
        gained += (np.linalg.eigh(total + noise)[1][:, :2, -1] @ vector) ** 2
        total[:2, :2] += np.outer(vector, vector)
    return total.max() - gained


def _any_on_axes(sequence: str, n: int, rounds: int, seeds: int) -> np.ndarray:
    """Whoever plays gains rounds/n on average, so only the best axis has to be counted."""
    counts = np.random.default_rng(n).multinomial(rounds, np.full(n, 1 / n), 100 * seeds)
    return counts.max(axis=1) - rounds / n


def _regrets(method, cases, seeds):
    return np.array(
        [
            [
                game.regret
                for game in compare("alternating", n, T, seeds, methods=[method], checkpoints=1)[0].games
            ]
            for n, T in cases
        ]
    ).T


def _line(regrets) -> str:
    errors = regrets.std(axis=0) / np.sqrt(len(regrets))
    return ", ".join(
        f"{mean:.0f}±{error:.0f}" for mean, error in zip(regrets.mean(axis=0), errors, strict=True)
    )


def _fit(sizes, regrets, rng) -> str:
    draws = [
        exponent(sizes, regrets[rng.integers(0, len(regrets), len(regrets))].mean(axis=0)) for _ in range(300)
    ]
    return f"{exponent(sizes, regrets.mean(axis=0)):.2f}±{np.std(draws):.2f}"


def sparse_rows(n: int, rounds: int, non_zeros: int, seed: int = 0) -> Iterator[csr_array]:
    """Unit rows whose columns are skewed towards the first ones, as words are."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        columns = np.unique((n * rng.random(2 * non_zeros) ** 2).astype(np.int32))
        columns = np.sort(rng.permutation(columns)[:non_zeros])
        values = rng.standard_normal(len(columns)) + 0.5
        values /= np.linalg.norm(values)
        yield csr_array((values, columns, np.array([0, len(columns)], np.int32)), shape=(1, n))


def large(n: int = 100_000, rounds: int = 10_000, non_zeros: int = 50) -> None:
    """Both methods on the same rows; memory is the process's peak, data included."""
    rows = list(sparse_rows(n, rounds, non_zeros))
    for learner in (
        FollowPerturbedLeader(n, horizon=rounds),
        EpochPowerMethod(n, horizon=rounds),
        OjaLearner(n),
        FollowPerturbedLeader(n, horizon=rounds, scale=1e-4),  # noise that lets the data lead
    ):
        start = time.perf_counter()
        game = play(learner, rows, checkpoints=1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{learner!r}: {game.seconds:.0f} s in the learner, {time.perf_counter() - start:.0f} s in all, "
            f"{1e3 * game.seconds / rounds:.1f} ms per round, regret {game.regret:.1f} of {game.best[-1]:.1f}, "
            f"peak {peak:.0f} MB",
            flush=True,
        )


def by_non_zeros(n: int = 100_000, seen: int = 1000, rounds: int = 15) -> None:
    """CPU time of a round after `seen` rows, by the non-zeros of a row; the constant is O(n) for vectors."""
    sizes = np.array([50, 200, 400, 800, 1600, 3200])
    data = {int(size): list(sparse_rows(n, seen + rounds, int(size))) for size in sizes}
    for name, make in (
        ("leader, rank-one noise", lambda: FollowPerturbedLeader(n, horizon=seen + rounds)),
        ("epoch power method", lambda: EpochPowerMethod(n, horizon=seen + rounds, block=seen // 2)),
    ):
        times = []
        for size in sizes:
            learner, costs = make(), []
            for t, row in enumerate(data[int(size)]):
                start = time.process_time()
                if t >= seen:
                    learner.predict()
                learner.observe(row)
                costs.append(1e3 * (time.process_time() - start))
            times.append(np.median(costs[seen:]))
        slope, constant = np.polyfit(sizes, times, 1)
        fit = constant + slope * sizes
        r2 = 1 - ((times - fit) ** 2).sum() / ((times - np.mean(times)) ** 2).sum()
        cells = ", ".join(f"{size}: {ms:.2f}" for size, ms in zip(sizes, times, strict=True))
        print(
            f"{name}, ms per round by non-zeros: {cells}; {constant:.2f} + {slope:.5f}·nnz, R² {r2:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("bounds", "growth", "rate", "large", "non-zeros"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument(
        "--sequences", nargs="+", choices=SEQUENCES, default=list(SEQUENCES), help="of bounds"
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 40, 160], help="n of bounds")
    args = parser.parse_args()
    with threadpool_limits(
        1
    ):  # vectors gain nothing from threads of BLAS, and wait for each other on a busy machine
        if args.part == "large":
            large()
        elif args.part == "non-zeros":
            by_non_zeros()
        elif args.part == "bounds":
            bounds(args.seeds or 5, args.sequences, args.sizes)
        elif args.part == "rate":
            rate(args.seeds or 100)
        else:
            growth(args.seeds or 20)
