"""EIG Table 1 as measured growth: regret of every method against T and n."""

from __future__ import annotations

from pathlib import Path

from experiments.runner import Experiment, Figure, Job, Outcome, Results, Table
from sketchnewton.cli.pictures.eigen_games import METHODS, exponent

DIMENSION, ROUNDS = 10, 1000


def _jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    rounds = (250, 1000) if quick else (250, 1000, 4000)
    sizes = (5, 20) if quick else (5, 10, 20, 40)
    cases = sorted({(DIMENSION, T) for T in rounds} | {(n, ROUNDS) for n in sizes})
    return [
        Job(
            "experiments.eig.measure:regret",
            {"method": method.name, "n": n, "rounds": T, "seeds": 3 if quick else 10},
        )
        for method in METHODS
        for n, T in cases
    ], []


def _outcome(results: Results) -> Outcome:
    found = {(job["method"], job["n"], job["rounds"]): result for job, result in results}
    rows, verdicts, in_rounds, in_n = [], [], {}, {}
    for method in METHODS:
        mine = {(n, T): result for (name, n, T), result in found.items() if name == method.name}
        by_rounds = sorted((T, r[0]) for (n, T), r in mine.items() if n == DIMENSION)
        by_n = sorted((n, r[0]) for (n, T), r in mine.items() if T == ROUNDS)
        slopes = [exponent(*zip(*line, strict=True)) for line in (by_rounds, by_n)]
        bounds = {case: method.bound(*case) for case in mine}
        ratios = [mine[case][0] / bound for case, bound in bounds.items() if bound]
        rows.append(
            [
                method.name,
                method.regret,
                f"T^{slopes[0]:.2f}",
                f"n^{slopes[1]:.2f}",
                f"{max(ratios):.2f}" if ratios else "–",
                method.cost,
                f"{mine[max(n for n, _ in by_n), ROUNDS][1]:.0f}",
            ]
        )
        verdicts.append("ok" if not ratios or max(ratios) <= 1 else "above its bound")
        in_rounds[method.name] = ([float(T) for T, _ in by_rounds], [r for _, r in by_rounds])
        in_n[method.name] = ([float(n) for n, _ in by_n], [r for _, r in by_n])
    columns = ["method", "regret, published", "in T", "in n", "largest share of its bound", "cost, published"]
    table = Table("Growth of regret", [*columns, "µs per round"], rows, verdicts)
    table.note = (
        "Measured exponents of lines through the logarithms; the published ones are upper bounds for the worst "
        "sequence. ok: no regret above the bound with its own constants, where there is one."
    )
    figures = [
        Figure(f"Regret against T, n = {DIMENSION}", "T", "regret", in_rounds, log_x=True, log_y=True),
        Figure(f"Regret against n, T = {ROUNDS}", "n", "regret", in_n, log_x=True, log_y=True),
    ]
    return Outcome([table], figures, f"{verdicts.count('ok')} of {len(rows)} methods never above their bound")


EXPERIMENTS = (
    Experiment(
        "eig-table1",
        "EIG",
        "Table 1: regret and cost of every method",
        _jobs,
        _outcome,
        "Alternating directions; independent matrices where the method's theorem asks for them; mean of ten seeds "
        "(quick: three).",
    ),
)
