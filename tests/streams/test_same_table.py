"""One table in any format: the same features, the same model to the last byte, the same predictions."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchnewton
from sketchnewton.model import Model
from sketchnewton.river import ModelRegressor
from sketchnewton.serve.bodies import format_of, records_of
from sketchnewton.streams import Columns, Features, Names, open_stream, read_records
from tests.streams.format_support import rows_of

Record = dict[str, Any]

TYPES = {
    "label": pa.float64(),
    "_weight": pa.float64(),
    "_tag": pa.string(),
    "price": pa.float64(),
    "count": pa.int64(),
    "vip": pa.bool_(),
    "city": pa.string(),
    "user|group": pa.string(),
    "day": pa.date32(),
    "seen": pa.timestamp("us"),
    "at": pa.timestamp("us", tz="UTC"),
    "never": pa.string(),
    "comment": pa.string(),
}
# No tabs, line ends and other controls, which TSV has no place for; the first letter makes it no number.
WORDS = st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=6).map(lambda text: f"ä{text}")
CITIES = st.sampled_from(
    ['Łódź, "PL"', "São Paulo", "東京", "naïve|café", " x ", "1.0 x", "-", "=", "None at all"]
)
MOMENTS = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1))
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "label": st.sampled_from([-1.0, 1.0]),
            "_weight": st.sampled_from([1.0, 0.5, 3.0]),
            "_tag": st.none() | WORDS,
            "price": st.none() | st.floats(-1e6, 1e6),
            "count": st.none() | st.integers(-(10**6), 10**6),
            "vip": st.none() | st.booleans(),
            "city": st.none() | CITIES | WORDS,
            "user|group": st.none() | CITIES,
            "day": st.none() | st.dates(datetime.date(1000, 1, 1)),
            "seen": st.none()
            | MOMENTS
            | MOMENTS.map(lambda m: m.replace(hour=0, minute=0, second=0, microsecond=0)),
            "at": st.none() | MOMENTS.map(lambda moment: moment.replace(tzinfo=datetime.UTC)),
            "never": st.none(),
            "comment": st.none()
            | st.lists(WORDS | st.sampled_from(["good", "Good", "food!"])).map(" ".join).map("x {}".format),
        }
    ).map(lambda record: {name: record[name] for name in TYPES}),  # all in one order, as in a table
    min_size=1,
    max_size=12,
)
MISSING = ("", "NA", "NaN", "null", "None", " NA")


def delimited(records: list[Record], delimiter: str, seed: int) -> str:
    """As spreadsheets and pandas write it, with all the ways to write nothing and no time but the day."""
    nothing = itertools.cycle(MISSING[seed % 6 :] + MISSING[: seed % 6])
    yes, no = ("true", "yes", "TRUE", "True"), ("false", "no", "FALSE", "False")

    def cell(name: str, value: object) -> str:
        if value is None:
            return "" if name == "_tag" else next(nothing)
        if isinstance(value, bool):
            return (yes if value else no)[seed % 4]
        if isinstance(value, datetime.datetime) and seed % 2:
            return str(value)
        return value.isoformat() if isinstance(value, datetime.date) else str(value)

    rows = [list(records[0]), *([cell(name, record[name]) for name in record] for record in records)]
    if delimiter == "\t":
        return "".join("\t".join(row) + "\n" for row in rows)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def lines(records: list[Record], seed: int) -> str:
    def value(name: str, value: object) -> object:
        if value is None:
            return None if name == "_tag" else (None, float("nan"), "", "NA")[seed % 4]
        return value.isoformat() if isinstance(value, datetime.date) else value

    made = [{name: value(name, record[name]) for name in record} for record in records]
    return "".join(json.dumps(record, ensure_ascii=bool(seed % 2)) + "\n" for record in made)


def table_of(records: list[Record]) -> pa.Table:
    return pa.table(
        {name: pa.array([r[name] for r in records], of) for name, of in TYPES.items() if name in records[0]}
    )


def as_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


FILES: dict[str, Callable[[list[Record], Path, int], object]] = {
    "csv": lambda records, path, seed: path.write_text(delimited(records, ",;"[seed % 2], seed), "utf-8"),
    "tsv": lambda records, path, seed: path.write_text(delimited(records, "\t", seed), "utf-8"),
    "jsonl": lambda records, path, seed: path.write_text(lines(records, seed), "utf-8"),
    "parquet": lambda records, path, _: pa.parquet.write_table(table_of(records), path),
    "feather": lambda records, path, _: pa.feather.write_feather(table_of(records), str(path)),
    "arrow": lambda records, path, _: as_stream(table_of(records), path),
}

WAYS: dict[str, Columns] = {
    "as found": Columns(),
    "as chosen": Columns(
        categorical=("count",), dates=("day", "seen", "at"), text=("comment:2", "city"), missing=("=",)
    ),
    "numbers": Columns(numeric=("vip",), drop=("never",), categorical=("price",)),
}


BODIES = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.arrow.stream": "arrow",
}


def write_all(records: list[Record], folder: Path, seed: int) -> dict[str, Path]:
    paths = {kind: folder / f"table.{kind}" for kind in FILES}
    for kind, path in paths.items():
        FILES[kind](records, path, seed)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=10, deadline=None)
@given(records=RECORDS, seed=st.integers(0, 11))
def test_the_same_features_model_and_predictions(
    way: str, exact: bool, tmp_path_factory: pytest.TempPathFactory, records: list[Record], seed: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    columns = WAYS[way]
    if way == "numbers":
        for record in records:
            del record["never"]
        columns = columns._replace(drop=())
    features = Features(interactions=("u ",)) if seed % 3 == 0 else Features()
    paths = write_all(records, folder, seed)
    found, saved, models = {}, {}, {}
    for kind, path in paths.items():
        names = Names(exact=True) if exact else None
        found[kind] = rows_of(list(open_stream(path, columns=columns, features=features, names=names)))
        model = Model(sketchnewton.NewtonBank(), columns=columns, features=features, exact_names=exact)
        model.learn(path)
        model.save(folder / "m.skn")
        saved[kind], models[kind] = (folder / "m.skn").read_bytes(), model
    for kind, path in paths.items():
        assert found[kind] == found["parquet"], kind
        assert saved[kind] == saved["parquet"], kind
        expected = models["parquet"].predict(paths["parquet"])
        assert models["csv"].predict(path).tobytes() == expected.tobytes(), (
            kind
        )  # trained on one, served on another
    for door, predicted in through_other_doors(models["jsonl"], records, paths, seed).items():
        assert predicted.tobytes() == expected.tobytes(), door


def through_other_doors(
    model: Model, records: list[Record], paths: dict[str, Path], seed: int
) -> dict[str, Any]:
    """The predictions for records in memory, by River's interface, and for the bodies that the server takes."""
    table = table_of(records)
    bare = [{name: value for name, value in record.items() if name != "label"} for record in records]
    river = ModelRegressor(model)
    body = "[" + ",".join(lines(records, seed).splitlines()) + "]"
    served = {
        content: records_of(format_of(content), paths[kind].read_bytes()).records
        for content, kind in BODIES.items()
    }
    answers = {
        "dicts": model.predict(records),
        "one by one": np.concatenate([model.predict(record) for record in records]),
        "generator": model.predict(record for record in records),
        "pyarrow": model.predict(table),
        "pandas": model.predict(table.to_pandas()),
        "polars": model.predict(pl.from_arrow(table)),
        "River": np.array([river.predict_one(record) for record in bare]),
        "server, JSON": model.predict(records_of("json", body.encode()).records),
    }
    return {**answers, **{content: model.predict(data) for content, data in served.items()}}


def test_pandas_writes_what_is_read_alike(tmp_path: Path) -> None:
    """Whole numbers with a gap are floats to pandas; as categories they are the same as whole numbers."""
    frame = pd.DataFrame(
        {
            "label": [1, -1, 1, -1],
            "store": [7, None, 12, 7],
            "open": [True, False, True, True],
            "opens": [datetime.time(7, 30), datetime.time(0, 0), None, datetime.time(1, 2, 3, 40)],
            "since": pd.to_datetime(
                ["2024-01-31 12:30", "2024-02-01", None, "2023-05-06 07:08:09.25"], format="ISO8601"
            ),
        }
    )
    frame.assign(opens=["07:30:00", "00:00:00", None, "01:02:03.00004"]).to_csv(
        tmp_path / "a.csv", index=False
    )
    plain = frame.assign(opens=["07:30:00", "00:00:00", None, "01:02:03.00004"])
    plain.to_json(tmp_path / "a.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_feather(tmp_path / "a.feather")
    columns = Columns(categorical=("store",))
    read = {path.name: rows_of(list(open_stream(path, columns=columns))) for path in tmp_path.iterdir()}
    read["memory"] = rows_of(list(read_records(frame, columns=columns)))
    for name, rows in read.items():
        assert rows == read["a.csv"], name
    names = Names(exact=True)
    list(open_stream(tmp_path / "a.csv", columns=columns, names=names))
    assert sorted(names.readable().values()) == sorted(
        ["store=7", "store=", "store=12", "open", "since=", "since=2024-02-01"]
        + [f"opens={time}" for time in ("07:30:00", "00:00:00", "", "01:02:03.00004")]
        + [f"since={moment}" for moment in ("2024-01-31T12:30:00", "2023-05-06T07:08:09.25")]
    )
