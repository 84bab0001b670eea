"""SON Tables 2 and 3, Figures 3 and 4, and the running time: one pass over real data, best 1/α of 2^-3 … 2^6."""

from __future__ import annotations

from pathlib import Path

from experiments.data import DATA_SETS, available
from experiments.passes import Method
from experiments.runner import Experiment, Figure, Job, Outcome, Results, Table
from experiments.son.measure import STEPS, alpha_of
from experiments.son.published import COST, TABLE_1, TABLE_2, TABLE_3

COLUMNS = ["m = 0", "m = 10", "diagonal, m = 0", "diagonal, m = 10", "AdaGrad"]
MORE = ["diagonal, m = 10, rate 1/t", "diagonal, m = 0, projected", "diagonal, m = 10, projected"]
FIGURE_4 = {0: TABLE_3["splice"][2], 10: TABLE_3["splice"][3]}
MEASURE = "experiments.son.measure"
LARGE = ("census", "cod-rna", "covtype")
ALGORITHM = (
    "One pass, squared loss, weights projected to |wᵀx| ≤ 1, a constant feature, the best 1/α of 2^-3 … 2^6 in "
    "hindsight."
)
PROTOCOL = (
    "As the paper's program does it: one pass, half of the squared loss at the prediction clipped to ±1, weights "
    "not projected, a constant feature, best 1/α of 2^-3 … 2^6 in hindsight. Oja's rate is the learner's own. "
    "AdaGrad projects its weights; its η is of 2^-6 … 2^6. Rows that are shuffled are with seed 0."
)


def newton(m: int, step: float, diagonal: bool, sketch: str = "oja", **more: object) -> Method:
    """A method of the tables; weights are projected if told so."""
    return {
        "kind": "newton",
        "sketch": sketch if m else "none",
        "sketch_size": m,
        "alpha": alpha_of(step, diagonal),
        "diagonal": diagonal,
        "dtype": "float64",
        "project": False,
        **more,
    }


GRIDS: dict[str, list[Method]] = {
    "m = 0": [newton(0, step, diagonal=False) for step in STEPS],
    "m = 10": [newton(10, step, diagonal=False) for step in STEPS],
    "diagonal, m = 0": [newton(0, step, diagonal=True) for step in STEPS],
    "diagonal, m = 10": [newton(10, step, diagonal=True) for step in STEPS],
    "AdaGrad": [{"kind": "adagrad", "eta": 2.0**j, "clip": 1.0} for j in range(-6, 7)],
    "diagonal, m = 10, rate 1/t": [newton(10, step, diagonal=True, oja_rate=1.0) for step in STEPS],
    "diagonal, m = 0, projected": [newton(0, step, diagonal=True, project=True) for step in STEPS],
    "diagonal, m = 10, projected": [newton(10, step, diagonal=True, project=True) for step in STEPS],
}


def _errors(function: str, folder: Path, name: str, methods: list[Method], **more: object) -> list[Job]:
    return [
        Job(f"{MEASURE}:{function}", {"folder": str(folder), "data": name, "method": method, **more})
        for method in methods
    ]


NEWS = {f"1–{k}": list(range(1, k + 1)) for k in range(1, 20)} | {
    "comp.*": [2, 3, 4, 5, 6],
    "rec.*": [8, 9, 10, 11],
    "sci.*": [12, 13, 14, 15],
    "religion": [1, 16, 20],
    "hockey": [11],
}
COVTYPE = {
    "covtype": "class 2 against the others, [0, 1]",
    "covtype, raw": "class 2 against the others, raw",
    "covtype, raw, class 1": "class 1 against the others, raw",
}
FURTHER = [2.0**j for j in (8, 10, 12, 14)]
"""1/α beyond the paper's grid."""


def _table_3_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    names, missing = available(list(TABLE_3), folder)
    jobs = []
    for name in names:
        for grid in GRIDS.values():
            jobs += _errors("progressive_error", folder, name, grid)
        # Evidence: the other order, and what the file gives away.
        other = not DATA_SETS[name].shuffled
        jobs += _errors("progressive_error", folder, name, GRIDS["diagonal, m = 10"], shuffled=other)
        jobs.append(Job(f"{MEASURE}:order_facts", {"folder": str(folder), "data": name}))
    if "20news" in names:
        jobs += [
            Job(f"{MEASURE}:news_split", {"folder": str(folder), "positive": NEWS[k], "shuffled": shuffled})
            for k in (("1–10", "comp.*", "hockey") if quick else NEWS)
            for shuffled in (True, False)
        ]
    for name in available([*COVTYPE], folder)[0]:
        if name != "covtype":
            jobs.append(Job(f"{MEASURE}:order_facts", {"folder": str(folder), "data": name}))
            for column in () if quick else ("m = 0", "diagonal, m = 0"):
                jobs += _errors("progressive_error", folder, name, GRIDS[column])
        jobs += _errors(
            "progressive_error", folder, name, [newton(0, step, diagonal=True) for step in FURTHER]
        )
    return jobs, missing


def close(measured: float, published: float) -> bool:
    """Within 10% or 0.5 points, or lower."""
    return measured <= max(1.1 * published, published + 0.005)


class _Evidence:
    """The results of Table 3's jobs, by what they say."""

    def __init__(self, results: Results) -> None:
        self.errors: dict[tuple[str, str], float] = {}
        self.further: dict[str, dict[float, float]] = {}
        self.other_order: dict[str, float] = {}
        self.facts: dict[str, dict[str, float]] = {}
        self.splits: dict[tuple[str, bool], list[float]] = {}
        columns = {str(method): name for name, grid in GRIDS.items() for method in grid}
        further = {str(newton(0, step, diagonal=True)): step for step in FURTHER}
        splits = {str(classes): name for name, classes in NEWS.items()}
        for job, result in results:
            kind = job.function.partition(":")[2]
            if kind == "progressive_error" and "shuffled" in job.arguments:
                self.other_order[job["data"]] = min(result, self.other_order.get(job["data"], 1.0))
            elif kind == "progressive_error" and (step := further.get(str(job["method"]))):
                self.further.setdefault(job["data"], {})[step] = result
            elif kind == "progressive_error":
                key = job["data"], columns[str(job["method"])]
                self.errors[key] = min(result, self.errors.get(key, 1.0))
            elif kind == "order_facts":
                self.facts[job["data"]] = result
            else:
                self.splits[splits[str(job["positive"])], job["shuffled"]] = result

    def why(self, name: str) -> str:
        """What the measurements say about a set whose error is not the published one."""
        published, said = TABLE_3[name], []
        if close(plain := self.errors[name, "diagonal, m = 0"], published[2]):
            said.append(f"at m = 0 the error is the published one ({plain:.4f})")
            if published[2] == published[3]:
                said.append(
                    "the published errors at m = 0 and m = 10 agree to the digit, so that the sketch had no part"
                    " in them"
                )
        other = self.other_order[name]
        if close(other, published[3]):
            order = "in the order of the file" if DATA_SETS[name].shuffled else "in shuffled order"
            said.append(f"{order} the error is {other:.4f}")
        if name == "20news" and self.splits:
            with_diagonal = [pair[1] for (_, shuffled), pair in self.splits.items() if shuffled]
            said.append(
                "how its 20 classes became two is not published, and that decides: from "
                f"{min(with_diagonal):.4f} to {max(with_diagonal):.4f} at m = 0 in the splits below"
            )
        if name in self.further:
            step, error = min(self.further[name].items(), key=lambda pair: abs(pair[1] - published[2]))
            if close(plain := self.errors[name, "m = 0"], published[0]):
                said.append(f"without the diagonal, at m = 0, the error is the published one ({plain:.4f})")
            said.append(
                f"the order of the file decides: the previous label errs {self._previous(name):.4f}, and the"
                f" larger the steps, the nearer to that; {error:.4f} needs 1/α = {step:g}, beyond the published"
                " grid, whatever the scaling and the split of the classes (below)"
            )
        return "; ".join(said) or "higher than published; order, scaling and clipping do not explain it"

    def _previous(self, name: str) -> float:
        return self.facts[name]["changes"] / self.facts[name]["rows"]

    def background(self, names: list[str]) -> Table:
        """What the published errors depend on."""
        rows = []
        for name in names:
            facts, published = self.facts[name], TABLE_3[name]
            rows.append(
                [
                    name,
                    f"{DATA_SETS[name].scaling}; {'shuffled' if DATA_SETS[name].shuffled else 'file order'}",
                    f"{facts['rows']:.0f}",
                    f"{TABLE_1[name][1]:.2f} / {facts['nonzeros']:.2f}",
                    "yes" if published[2] == published[3] else "no",
                    f"{facts['changes']:.0f}",
                    f"{self._previous(name):.4f}",
                    f"{facts['rarer']:.4f}",
                    f"{self.other_order[name]:.4f}",
                ]
            )
        columns = ["set", "features; order", "rows", "features per row, published / ours"]
        columns += ["published: m = 10 the same as m = 0", "label changes in the file"]
        columns += ["error of the previous label", "rarer class", "diagonal, m = 10, in the other order"]
        table = Table("What the published errors depend on", columns, rows)
        table.note = (
            "Where the label hardly changes from row to row (magic04, w1a), or the previous label errs less than "
            "every method (covtype), the published error is one of the file's order and says nothing about "
            "learning; the other order does. Where the published errors at m = 10 and m = 0 are the same to the "
            "sixth digit, the sketch did not work in the published run; here it does, for better or for worse."
        )
        return table

    def more(self) -> list[Table]:
        """What was tried on sets whose files are in doubt."""
        tables = []
        if self.further:
            rows = []
            for name, how in COVTYPE.items():
                if name not in self.further:
                    continue
                row = [how, f"{self.facts[name]['nonzeros']:.2f}", f"{self._previous(name):.4f}"]
                for column in ("m = 0", "diagonal, m = 0"):
                    row.append(f"{found:.4f}" if (found := self.errors.get((name, column))) else "–")
                rows.append([*row, *(f"{error:.4f}" for error in self.further[name].values())])
            published = TABLE_3["covtype"]
            columns = ["labels, features", f"features per row (published {TABLE_1['covtype'][1]})"]
            columns += ["error of the previous label", f"m = 0 (published {published[0]:.4f})"]
            columns += [f"diagonal, m = 0 (published {published[2]:.4f})"]
            columns += [f"the same, 1/α = {step:g}" for step in FURTHER]
            tables.append(Table("covtype in the order of the file", columns, rows))
            if any("–" in row for row in rows):
                tables[-1].note = "–: in the full run only."
        if self.splits:
            published = TABLE_3["20news"]
            columns = ["classes against the others", f"shuffled, m = 0 (published {published[0]:.4f})"]
            columns += [f"diagonal (published {published[2]:.4f})", "file order, m = 0", "diagonal"]
            rows = [
                [
                    name,
                    *(f"{error:.4f}" for shuffled in (True, False) for error in self.splits[name, shuffled]),
                ]
                for name in dict.fromkeys(name for name, _ in self.splits)
            ]
            tables.append(Table("20news made binary", columns, rows))
        return tables


def _table_3(results: Results) -> Outcome:
    found = _Evidence(results)
    names = [name for name in TABLE_3 if (name, "m = 10") in found.errors]
    rows, variants, verdicts, exceptions = [], [], [], []
    for name in names:
        published = TABLE_3[name]
        measured = [found.errors[name, column] for column in COLUMNS]
        rows.append([name, *(f"{p:.4f} / {m:.4f}" for p, m in zip(published, measured, strict=True))])
        variants.append([name, *(f"{found.errors[name, column]:.4f}" for column in [COLUMNS[3], *MORE])])
        fits = close(measured[3], published[3])
        verdicts.append("ok" if fits else f"{published[3]:.4f} is not reached: below")
        if not fits:
            exceptions.append([name, found.why(name)])
    table = Table("Published / measured error", ["set", *COLUMNS], rows, verdicts)
    table.note = (
        "ok: with the diagonal and m = 10, within 10% or 0.5 points of the published, or lower. The other columns "
        "are shown, not judged."
    )
    reasons = Table("Exceptions, and what the measurements below say about them", ["set", ""], exceptions)
    readings = Table("Other readings of the algorithm", ["set", COLUMNS[3], *MORE], variants)
    readings.note = "Oja's rate as in the paper, and the weights projected as in its Algorithm 1."
    verdict = f"{verdicts.count('ok')} of {len(names)} sets within 10% or 0.5 points, or lower (asked: 80%)"
    absent = [[name, *(f"{p:.4f}" for p in row)] for name, row in TABLE_3.items() if name not in names]
    others = Table("Sets that are not here: published error", ["set", *COLUMNS], absent)
    tables = [table, reasons, found.background(names), *found.more(), readings, others]
    return Outcome(tables, _figure_3(found, names) if names else [], verdict)


def _figure_3(found: _Evidence, names: list[str]) -> list[Figure]:
    def scatter(x: str, y: str) -> tuple[list[float], list[float]]:
        return [found.errors[name, x] for name in names], [found.errors[name, y] for name in names]

    sizes = {
        "without diagonal": scatter("m = 0", "m = 10"),
        "with diagonal": scatter("diagonal, m = 0", "diagonal, m = 10"),
    }
    peers = {
        "without diagonal": scatter("AdaGrad", "m = 10"),
        "with diagonal": scatter("AdaGrad", "diagonal, m = 10"),
    }
    return [
        Figure("Figure 3a: two sketch sizes", "error, m = 0", "error, m = 10", sizes, points=True),
        Figure(
            "Figure 3b: against AdaGrad", "error of AdaGrad", "error of Oja-SON, m = 10", peers, points=True
        ),
    ]


def _table_2_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    names, missing = available(list(TABLE_2), folder)
    return [
        job
        for name in names
        for sketch in ("fd", "oja")
        for job in _errors(
            "progressive_error",
            folder,
            name,
            [newton(10, step, diagonal=True, sketch=sketch, project=True) for step in STEPS],
        )
    ], missing


def _table_2(results: Results) -> Outcome:
    least: dict[tuple[str, str], float] = {}
    for job, error in results:
        key = job["data"], job["method"]["sketch"]
        least[key] = min(error, least.get(key, 1.0))
    rows, verdicts = [], []
    for name, published in TABLE_2.items():
        if (name, "fd") not in least:
            continue
        measured = [least[name, sketch] for sketch in ("fd", "oja")]
        rows.append(
            [name, *(f"{100 * p:.1f} / {100 * m:.1f}" for p, m in zip(published, measured, strict=True))]
        )
        fits = all(close(m, p) for m, p in zip(measured, published, strict=True))
        verdicts.append("ok" if fits else "higher than published")
    table = Table("Published / measured error, %", ["set", "FD-SON", "Oja-SON"], rows, verdicts)
    return Outcome([table], verdict=f"{verdicts.count('ok')} of {len(verdicts)} sets as published or lower")


def _figure_4_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    names, missing = available(["splice"], folder)
    return [
        job
        for name in names
        for m in range(11)
        for job in _errors(
            "progressive_curve", folder, name, [newton(m, step, diagonal=True) for step in STEPS]
        )
    ], missing


def _figure_4(results: Results) -> Outcome:
    best: dict[int, tuple[list[float], list[float]]] = {}
    for job, curve in results:
        m = job["method"]["sketch_size"]
        if m not in best or curve[1][-1] < best[m][1][-1]:
            best[m] = curve
    last = {m: curve[1][-1] for m, curve in best.items()}
    shown = {f"m = {m}": best[m] for m in (0, 1, 2, 5, 10)}
    figure = Figure("splice with diagonal adaptation", "rows", "progressive error", shown)
    rows = [
        [m, f"{FIGURE_4[m]:.3f}" if m in FIGURE_4 else "–", f"{error:.3f}"]
        for m, error in sorted(last.items())
    ]
    table = Table("Error after one pass", ["m", "published", "measured"], rows)
    worst = max(error for m, error in last.items() if m)
    return Outcome(
        [table], [figure], f"m = 0: {last[0]:.3f}; m = 1: {last[1]:.3f}; every m ≥ 1 at most {worst:.3f}"
    )


COSTS = {
    "AdaGrad": {"kind": "adagrad", "eta": 0.1, "clip": 1.0},
    "m = 0": {"kind": "newton", "sketch": "none", "sketch_size": 0, "alpha": 1.0, "diagonal": True},
    "Oja, m = 10": {"kind": "newton", "sketch": "oja", "sketch_size": 10, "alpha": 1.0, "diagonal": True},
}


def _cost_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    names, missing = available([name for name in TABLE_3 if name not in LARGE], folder)
    arguments = {"folder": str(folder), "methods": COSTS}
    return [Job(f"{MEASURE}:relative_cost", {**arguments, "data": name}) for name in names], missing


def _cost(results: Results) -> Outcome:
    ratios, rows = [], []
    for job, cost in results:
        ratios.append(cost["Oja, m = 10"] / cost["AdaGrad"])
        rows.append([job["data"], *(f"{cost[name]:.2f}" for name in COSTS), f"{ratios[-1]:.1f}"])
    mean = sum(ratios) / len(ratios)
    table = Table("Processor time, µs per row", ["set", *COSTS, "Oja / AdaGrad"], rows)
    table.note = f"Published: Oja-SON with m = 10 takes about {COST:g} times as long as AdaGrad."
    return Outcome(
        [table],
        verdict=f"m = 10 takes {mean:.1f} times as long as AdaGrad (published: about {COST:g})",
    )


EXPERIMENTS = (
    Experiment(
        "son-table2",
        "SON",
        "Table 2: FD against Oja",
        _table_2_jobs,
        _table_2,
        ALGORITHM + " m = 10, diagonal.",
    ),
    Experiment(
        "son-table3", "SON", "Table 3 and Figure 3: all data sets", _table_3_jobs, _table_3, PROTOCOL, True
    ),
    Experiment("son-figure4", "SON", "Figure 4: sketch sizes on splice", _figure_4_jobs, _figure_4, PROTOCOL),
    Experiment(
        "son-cost",
        "SON",
        "Running time",
        _cost_jobs,
        _cost,
        "The first 20,000 rows of each set, the least of five passes, the learners in turn; float32 tables.",
    ),
)
