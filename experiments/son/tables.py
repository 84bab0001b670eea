"""SON Tables 2 and 3, and Figure 4: progressive error of one pass, squared loss, best 1/α of 2^-3 … 2^6."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import load, missing_line, present
from experiments.learning import ALPHAS, best, learner_of, progressive_job
from experiments.runner import Experiment, Figure, Job, Outcome, Result, Table

# Table 3: without diagonal m = 0, m = 10; with diagonal m = 0, m = 10; AdaGrad.
TABLE_3 = {
    "20news": (0.121338, 0.121338, 0.049590, 0.049590, 0.068020),
    "a9a": (0.204447, 0.195203, 0.155953, 0.155953, 0.156414),
    "acoustic": (0.305824, 0.260241, 0.257894, 0.257894, 0.259493),
    "adult": (0.199763, 0.199803, 0.150830, 0.150830, 0.181582),
    "australian": (0.366667, 0.366667, 0.162319, 0.157971, 0.289855),
    "breast-cancer": (0.374817, 0.374817, 0.036603, 0.036603, 0.358712),
    "census": (0.093610, 0.062038, 0.051479, 0.051439, 0.069629),
    "cod-rna": (0.175107, 0.175107, 0.049710, 0.049643, 0.081066),
    "covtype": (0.042304, 0.042312, 0.050827, 0.050818, 0.045507),
    "diabetes": (0.433594, 0.433594, 0.329427, 0.328125, 0.391927),
    "gisette": (0.208000, 0.208000, 0.152000, 0.152000, 0.154000),
    "heart": (0.477778, 0.388889, 0.244444, 0.244444, 0.362963),
    "ijcnn1": (0.046826, 0.046826, 0.034536, 0.034645, 0.036913),
    "ionosphere": (0.188034, 0.148148, 0.182336, 0.182336, 0.190883),
    "letter": (0.306650, 0.232300, 0.233250, 0.230450, 0.237350),
    "magic04": (0.000263, 0.000263, 0.000158, 0.000158, 0.000210),
    "mnist": (0.062336, 0.062336, 0.040031, 0.039182, 0.046561),
    "mushrooms": (0.003323, 0.002339, 0.002462, 0.002462, 0.001969),
    "rcv1": (0.055976, 0.052694, 0.052764, 0.052766, 0.050938),
    "real-sim": (0.045140, 0.043577, 0.029498, 0.029498, 0.031670),
    "splice": (0.343000, 0.343000, 0.294000, 0.229000, 0.301000),
    "w1a": (0.001615, 0.001615, 0.004845, 0.004845, 0.003633),
    "w8a": (0.000101, 0.000101, 0.000422, 0.000422, 0.000221),
}
TABLE_2 = {
    "australian": (16.0, 15.8),
    "breast-cancer": (5.3, 3.7),
    "diabetes": (35.4, 32.8),
    "mushrooms": (0.5, 0.2),
    "splice": (22.6, 22.9),
}
QUICK_ROWS = 20_000
ETAS = [2.0**k for k in range(-6, 4)]
# Rows that say nothing about learning, by what is known of the files the paper used.
UNLIKE = {
    "magic04": "the paper's file was sorted by label; ours is shuffled",
    "w1a": "the paper's file was sorted by label; ours is shuffled",
    "w8a": "the paper's file was sorted by label",
    "20news": "how the classes were made two is unknown; here the first ten against the others",
    "covtype": "in file order the previous label is a better prediction than any method's",
}


def newton(m: int, alpha: float, diagonal: bool, sketch: str = "oja") -> dict[str, Any]:
    """A method of the tables."""
    return {
        "kind": "newton",
        "sketch": sketch if m else "none",
        "sketch_size": m,
        "alpha": alpha,
        "diagonal": diagonal,
        "intercept": True,
    }


def _table_3_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    jobs, missing = [], []
    for name in TABLE_3:
        if not present(name, folder):
            missing.append(missing_line(name, folder))
            continue
        limit = QUICK_ROWS if quick else None
        for diagonal in (False, True):
            for m in (0, 10):
                jobs += [
                    progressive_job(folder, name, newton(m, alpha, diagonal), limit)
                    for alpha in (ALPHAS[::2] if quick else ALPHAS)
                ]
        for eta in ETAS[::2] if quick else ETAS:
            jobs.append(
                progressive_job(
                    folder, name, {"kind": "adagrad", "eta": eta, "intercept": True, "clip": 1.0}, limit
                )
            )
    return jobs, missing


def _close(measured: float, published: float) -> bool:
    """Within 10% or 0.5 points, or lower."""
    return measured <= max(1.1 * published, published + 0.005)


def _table_3(results: list[tuple[Job, Result]]) -> Outcome:
    rows, verdicts, counted, kept = [], [], 0, 0
    for name, published in TABLE_3.items():
        measured = [
            best(results, data=name, kind="newton", sketch_size=m, diagonal=diagonal)
            for diagonal in (False, True)
            for m in (0, 10)
        ]
        measured.append(best(results, data=name, kind="adagrad"))
        if any(value is None for value in measured):
            continue
        cells = [f"{p:.4f} / {m:.4f}" for p, m in zip(published, measured, strict=True)]
        rows.append([name, *cells])
        fits = all(_close(m or 0.0, p) for p, m in list(zip(published, measured, strict=True))[2:4])
        counted, kept = counted + 1, kept + fits
        verdicts.append("ok" if fits else UNLIKE.get(name, "higher than published"))
    columns = ["set", "m = 0", "m = 10", "diagonal, m = 0", "diagonal, m = 10", "AdaGrad"]
    table = Table("Published / measured error", columns, rows, verdicts)
    table.note = (
        "ok: the two columns with diagonal adaptation within 10% or 0.5 points of the published, or lower."
    )
    return Outcome([table], verdict=f"{kept} of {counted} sets within 10% or 0.5 points, or lower")


def _table_2_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    jobs, missing = [], []
    for name in TABLE_2:
        if not present(name, folder):
            missing.append(missing_line(name, folder))
            continue
        for sketch in ("fd", "oja"):
            jobs += [progressive_job(folder, name, newton(10, alpha, True, sketch), None) for alpha in ALPHAS]
    return jobs, missing


def _table_2(results: list[tuple[Job, Result]]) -> Outcome:
    rows, verdicts = [], []
    for name, published in TABLE_2.items():
        measured = [best(results, data=name, sketch=sketch) for sketch in ("fd", "oja")]
        if None in measured:
            continue
        rows.append(
            [name, *(f"{p:.1f} / {100 * (m or 0.0):.1f}" for p, m in zip(published, measured, strict=True))]
        )
        fits = all(_close(m or 0.0, p / 100) for p, m in zip(published, measured, strict=True))
        verdicts.append("ok" if fits else "higher than published")
    table = Table("Published / measured error, %", ["set", "FD-SON", "Oja-SON"], rows, verdicts)
    return Outcome([table], verdict=f"{verdicts.count('ok')} of {len(verdicts)} sets as published or lower")


def splice_curve(folder: str, m: int, alpha: float) -> list[float]:
    """Progressive error after every 20 rows."""
    X, y = load("splice", Path(folder))
    wrong = np.sign(learner_of(newton(m, alpha, diagonal=True)).learn(X, y)) != y
    return [float(value) for value in (np.cumsum(wrong) / np.arange(1, len(y) + 1))[19::20]]


def _figure_4_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    if not present("splice", folder):
        return [], [missing_line("splice", folder)]
    sizes = (0, 1, 5, 10) if quick else range(11)
    return [
        Job("experiments.son.tables:splice_curve", {"folder": str(folder), "m": m, "alpha": alpha})
        for m in sizes
        for alpha in ALPHAS
    ], []


def _figure_4(results: list[tuple[Job, Result]]) -> Outcome:
    curves: dict[str, tuple[list[float], list[float]]] = {}
    last: dict[int, float] = {}
    for job, curve in results:
        m = job.arguments["m"]
        if m not in last or curve[-1] < last[m]:
            last[m] = curve[-1]
            curves[f"m = {m}"] = ([20.0 * (i + 1) for i in range(len(curve))], curve)
    if not last:
        return Outcome()
    figure = Figure("splice with diagonal adaptation", "rows", "progressive error", curves)
    rows = [[m, f"{error:.3f}", {0: "0.294", 10: "0.229"}.get(m, "")] for m, error in sorted(last.items())]
    table = Table("Error after one pass", ["m", "measured", "published"], rows)
    with_sketch = max(error for m, error in last.items() if m)
    verdict = f"m = 0: {last[0]:.3f}; with a sketch at most {with_sketch:.3f}"
    return Outcome([table], [figure], verdict)


PROTOCOL = "One pass, squared loss, predictions clipped to ±1, best 1/α of 2^-3 … 2^6 in hindsight."
EXPERIMENTS = (
    Experiment("son-table2", "SON", "Table 2: FD against Oja", _table_2_jobs, _table_2, PROTOCOL),
    Experiment("son-table3", "SON", "Table 3 and Figure 3: all data sets", _table_3_jobs, _table_3, PROTOCOL),
    Experiment("son-figure4", "SON", "Figure 4: sketch sizes on splice", _figure_4_jobs, _figure_4, PROTOCOL),
)
