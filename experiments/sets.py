"""Tables of data sets, SON Table 1, RFD Table 1, ADA Tables 1 and 2, beside the sizes of those that are here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from experiments.ada import idx, online
from experiments.ada import published as ada
from experiments.data import available
from experiments.rfd import learning
from experiments.rfd import published as rfd
from experiments.runner import Experiment, Job, Outcome, Results, Table
from experiments.son import published as son

Plan = Callable[[Path, bool], tuple[list[Job], list[str]]]


def _sizes(names: list[str]) -> Plan:
    """Jobs that count the rows and features of sets."""

    def jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
        there, missing = available(names, folder)
        return [
            Job("experiments.data:dimensions", {"folder": str(folder), "data": name}) for name in there
        ], missing

    return jobs


def _row(
    name: str, published: tuple[float, ...], ours: list[float] | None, labels: list[str]
) -> tuple[list[str], str]:
    """A row of published and, if the set is here, our sizes, and the verdict on it."""
    if ours is None:
        return [name, *(f"{value:,g} / –" for value in published)], "not here"
    # to as many digits as are published
    ours = [round(mine, 2) for mine in ours]
    pairs = list(zip(published, ours, strict=True))
    different = [
        f"{label} {mine - value:+g}"
        for label, (value, mine) in zip(labels, pairs, strict=True)
        if mine != value
    ]
    return [name, *(f"{value:,g} / {mine:,g}" for value, mine in pairs)], ", ".join(different) or "ok"


def _outcome(title: str, columns: list[str], rows: list[tuple[list[str], str]]) -> Outcome:
    table = Table(
        f"{title}: published / here", ["set", *columns], [row for row, _ in rows], [v for _, v in rows]
    )
    table.note = "ok: the same. Otherwise what is here less what is published."
    verdicts = [verdict for verdict in table.verdicts if verdict != "not here"]
    return Outcome(
        [table],
        verdict=f"{verdicts.count('ok')} of {len(verdicts)} sets that are here have the published size",
    )


def _son(results: Results) -> Outcome:
    found = {job["data"]: [size["rows"], size["nonzeros"], size["features"]] for job, size in results}
    columns = ["rows", "features per row", "features"]
    return _outcome("Table 1", columns, [_row(n, p, found.get(n), columns) for n, p in son.TABLE_1.items()])


def _rfd(results: Results) -> Outcome:
    found = {job["data"]: [size["rows"], size["features"]] for job, size in results}
    columns = ["rows", "features"]
    rows = [_row(n, p, found.get(learning.SETS[n][0]), columns) for n, p in rfd.TABLE_1.items()]
    return _outcome("Table 1", columns, rows)


def _ada_jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    jobs, missing = _sizes([name for train, test, _ in online.SETS.values() for name in (train, test)])(
        folder, quick
    )
    if not idx.mnist_is_in(folder):
        return jobs, [*missing, idx.MISSING.format(folder / "mnist")]
    return [
        *jobs,
        *(
            Job("experiments.ada.idx:dimensions", {"folder": str(folder), "part": part})
            for part in ("train", "t10k")
        ),
    ], missing


def _ada(results: Results) -> Outcome:
    sizes = {job.arguments.get("data", job.arguments.get("part")): size for job, size in results}
    parts = {name: (train, test) for name, (train, test, _) in online.SETS.items()} | {
        "MNIST": ("train", "t10k")
    }
    columns, rows = ["rows to learn from", "rows to test", "features", "classes"], []
    for name, published in ada.TABLE_2.items():
        train, test = (sizes.get(part) for part in parts.get(name, ("", "")))
        ours = None
        if train and test:
            ours = [train["rows"], test["rows"], max(train["features"], test["features"]), train["classes"]]
        rows.append(_row(name, published, ours, columns))
    outcome = _outcome("Table 2", columns, rows)
    outcome.tables[0].note += " CIFAR10 and SVHN are used by no experiment here."
    notation = [[symbol, meaning] for symbol, meaning in ada.TABLE_1.items()]
    outcome.tables.insert(0, Table("Table 1: notation", ["symbol", "meaning"], notation))
    return outcome


PROTOCOL = "Features are counted by the largest index, as LIBSVM does."
SON = Experiment("son-table1", "SON", "Table 1: data sets", _sizes(list(son.TABLE_1)), _son, PROTOCOL, True)
RFD = Experiment(
    "rfd-table1",
    "RFD",
    "Table 1: data sets",
    _sizes([name for name, _ in learning.SETS.values()]),
    _rfd,
    PROTOCOL,
    True,
)
ADA = Experiment(
    "ada-table2", "ADA", "Tables 1 and 2: notation and data sets", _ada_jobs, _ada, PROTOCOL, True
)
