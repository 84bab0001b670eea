"""EIG Table 1 as measured growth: regret of every method against T and n."""

from __future__ import annotations

from pathlib import Path

from experiments.runner import Experiment, Figure, Job, Outcome, Result, Table
from sketchnewton.cli.eigen_games import METHODS, exponent, grow

DIMENSION, ROUNDS = 10, 1000


def regret(method: str, n: int, rounds: int, seeds: int) -> list[float]:
    """Mean regret, and microseconds per round."""
    chosen = next(candidate for candidate in METHODS if candidate.name == method)
    sequence = "stochastic" if "stochastic" in chosen.regret else "alternating"
    growth = grow(sequence, [(n, rounds)], seeds, methods=[chosen])[0]
    return [float(growth.regrets[0]), growth.microseconds]


def _jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    rounds = (250, 1000) if quick else (250, 1000, 4000)
    sizes = (5, 20) if quick else (5, 10, 20, 40, 80)
    cases = sorted({(DIMENSION, T) for T in rounds} | {(n, ROUNDS) for n in sizes})
    return [
        Job(
            "experiments.eig.table1:regret",
            {"method": method.name, "n": n, "rounds": T, "seeds": 3 if quick else 10},
        )
        for method in METHODS
        for n, T in cases
    ], []


def _outcome(results: list[tuple[Job, Result]]) -> Outcome:
    found = {
        (j.arguments["method"], j.arguments["n"], j.arguments["rounds"]): result for j, result in results
    }
    rows, in_rounds, in_n = [], {}, {}
    for method in METHODS:
        by_rounds = sorted(
            (T, r[0]) for (name, n, T), r in found.items() if name == method.name and n == DIMENSION
        )
        by_n = sorted((n, r[0]) for (name, n, T), r in found.items() if name == method.name and T == ROUNDS)
        slopes = [exponent(*zip(*line, strict=True)) for line in (by_rounds, by_n)]
        cost = found[method.name, max(n for n, _ in by_n), ROUNDS][1]
        rows.append(
            [
                method.name,
                method.regret,
                f"T^{slopes[0]:.2f}",
                f"n^{slopes[1]:.2f}",
                method.cost,
                f"{cost:.0f}",
            ]
        )
        in_rounds[method.name] = ([float(T) for T, _ in by_rounds], [r for _, r in by_rounds])
        in_n[method.name] = ([float(n) for n, _ in by_n], [r for _, r in by_n])
    columns = [
        "method",
        "regret, published",
        "in T, measured",
        "in n, measured",
        "cost, published",
        "µs per round",
    ]
    table = Table("Growth of regret", columns, rows)
    table.note = (
        "Exponents of lines through the logarithms. The paper's are upper bounds for the worst sequence."
    )
    figures = [
        Figure(f"Regret against T, n = {DIMENSION}", "T", "regret", in_rounds, log_x=True, log_y=True),
        Figure(f"Regret against n, T = {ROUNDS}", "n", "regret", in_n, log_x=True, log_y=True),
    ]
    return Outcome([table], figures, "growth of every method beside its bound")


EXPERIMENTS = (
    Experiment(
        "eig-table1",
        "EIG",
        "Table 1: regret and cost of every method",
        _jobs,
        _outcome,
        "Alternating directions; independent matrices where the method's theorem asks for them.",
    ),
)
