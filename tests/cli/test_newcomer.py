"""Forty command lines that a newcomer types: each works, and none is worse than the default by accident.

What a command leads to is measured on rows of another file, by `skn test`: the share of wrong clicks, or the mean
absolute error of prices. `MARGIN` is what the sampling of these rows alone may do.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.cli.main import main

ROWS, TESTED = 3000, 1500
MARGIN = 1.15


CLICKS = [
    "clicks.csv --label clicked",
    "clicks.tsv --label clicked",
    "clicks.jsonl --label clicked",
    "clicks.parquet --label clicked",
    "clicks.csv.gz --label clicked",
    "clicks.vw",
    "clicks.csv --label clicked --loss logistic",
    "clicks.csv --label clicked --loss hinge",
    "clicks.csv --label clicked --loss squared",
    "clicks.csv --label clicked --passes 3",
    "clicks.csv --label clicked --passes 3 --holdout 10",
    "clicks.csv --label clicked --classes no,yes",
    "clicks.csv --label clicked --positive yes",
    "clicks.csv --label clicked --bits 22",
    "clicks.csv --label clicked --exact-names",
    "clicks.csv --label clicked --categorical city",
    "clicks.csv --label clicked --categorical hour",
    "clicks.csv --label clicked --numeric hour",
    "clicks.csv --label clicked --interactions city,device",
    "clicks.csv --label clicked --drop noise",
    "clicks.csv --label clicked --text query",
    "clicks.csv --label clicked --clip 5",
    "clicks.csv --label clicked --dtype float64",
    "clicks.csv --label clicked --threads 1",
    "clicks.csv --label clicked --metric auc",
    "clicks.csv --label clicked --checkpoint-every 1000",
    "clicks.csv --label clicked --learner newton",
    "clicks.csv --label clicked --learner newton --sketch oja",
    "clicks.csv --label clicked --learner adagrad",
]
PRICES = [
    "prices.csv --label price",
    "prices.jsonl --label price",
    "prices.csv --label price --regression",
    "prices.csv --label price --loss squared",
    "prices.csv --label price --loss huber",
    "prices.csv --label price --loss absolute",
    "prices.csv --label price --loss quantile:0.5",
    "prices.csv --label price --passes 3",
    "prices.csv --label price --clip 1000000",
    "prices.csv --label price --dates sold",
    "prices.csv --label price --metric mae",
]


def clicks(rows: int, seed: int) -> list[dict[str, object]]:
    """A click depends on city, device, hour and a word of the query; one column is noise."""
    rng = np.random.default_rng(seed)
    cities, devices, words = (
        ("Rome", "Oslo", "Bern", "Lima"),
        ("phone", "desk"),
        ("cheap", "new", "old", "red"),
    )
    effect = {"Rome": 1.2, "Oslo": -0.8, "Bern": 0.1, "Lima": -0.3, "phone": 0.9, "desk": -0.9, "cheap": 1.0}
    records: list[dict[str, object]] = []
    for _ in range(rows):
        city, device = cities[rng.integers(4)], devices[rng.integers(2)]
        query = " ".join(words[k] for k in rng.integers(4, size=2))
        hour, noise = int(rng.integers(24)), round(float(rng.normal()), 3)
        score = (
            effect[city] + effect[device] + effect["cheap"] * ("cheap" in query) + 0.08 * (hour - 12) - 0.4
        )
        clicked = "yes" if score + rng.logistic() * 0.5 > 0 else "no"
        records.append(
            {"clicked": clicked, "city": city, "device": device, "query": query, "hour": hour, "noise": noise}
        )
    return records


def prices(rows: int, seed: int) -> list[dict[str, object]]:
    """A price follows from the area, the rooms, the city and the year of the sale."""
    rng = np.random.default_rng(seed)
    base = {"Rome": 90_000, "Oslo": 140_000, "Bern": 120_000}
    records: list[dict[str, object]] = []
    for _ in range(rows):
        city = list(base)[rng.integers(3)]
        area, rooms, year = (
            round(float(rng.uniform(20, 200)), 1),
            int(rng.integers(1, 7)),
            int(rng.integers(2010, 2024)),
        )
        price = base[city] + 2000 * area + 9000 * rooms + 3000 * (year - 2010) + 12_000 * rng.normal()
        sold = f"{year}-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}"
        records.append({"price": round(price), "city": city, "area": area, "rooms": rooms, "sold": sold})
    return records


def write(folder: Path, name: str, records: list[dict[str, object]]) -> None:
    """The same table in every format that commands name."""
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq

    keys = list(records[0])
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        lines = [delimiter.join(keys), *(delimiter.join(map(str, record.values())) for record in records)]
        (folder / f"{name}.{ending}").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress((folder / f"{name}.csv").read_bytes()))
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pq.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")
    if "clicked" in keys:
        lines = []
        for record in records:
            label = 1 if record["clicked"] == "yes" else -1
            text = f"city={record['city']} device={record['device']} hour:{record['hour']} noise:{record['noise']}"
            lines.append(f"{label} | {text} query={str(record['query']).replace(' ', '_')}")
        (folder / f"{name}.vw").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("newcomer")
    for name, records in (("clicks", clicks), ("prices", prices)):
        write(made, name, records(ROWS, 0))
        write(made, f"{name}-test", records(TESTED, 1))
    return made


def outcome(
    folder: Path, line: str, metric: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> float:
    """The metric on rows of another file of the model that `skn train` makes."""
    monkeypatch.chdir(folder)
    data = line.split(maxsplit=1)[0]
    assert main(["train", *line.split(), "--model", "m.skn", "--no-cache"]) == 0, line
    capsys.readouterr()
    name, _, ending = data.partition(".")
    assert main(["test", "m.skn", f"{name}-test.{ending}", "--json"]) == 0, line
    return float(json.loads(capsys.readouterr().out)[metric])


def test_there_are_forty() -> None:
    assert len({*CLICKS, *PRICES}) == 40


@pytest.mark.parametrize(
    ("commands", "metric"), [(CLICKS, "error"), (PRICES, "mae")], ids=["clicks", "prices"]
)
def test_no_command_is_worse_than_the_default_by_accident(
    folder: Path,
    commands: list[str],
    metric: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    default = outcome(folder, commands[0], metric, capsys, monkeypatch)
    found = {command: outcome(folder, command, metric, capsys, monkeypatch) for command in commands}
    worse = {
        command: f"{value:.4g} against {default:.4g}"
        for command, value in found.items()
        if not (math.isfinite(value) and value <= MARGIN * default)
    }
    assert not worse
